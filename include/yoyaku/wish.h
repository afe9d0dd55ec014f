/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YOYAKU_WISH_H
#define YOYAKU_WISH_H

#include <apr_pools.h>
#include <stdint.h>
#include "secret.h"

/**
 * @file wish.h
 * @brief What somebody asks for, as it was sent, checked for form only.
 *
 * Made by http/ or a test from bytes; whether the names in it exist is for the
 * desk to find out. All texts are UTF-8 without NUL and of bounded length.
 */

#define YK_WISH_LINES 256 /**< lines of one wish, and of one order, alive */
#define YK_WISH_PARTS 8   /**< tariffs in one line */
#define YK_WISH_COUNT 256 /**< people in one line */

/** So many at one tariff. */
typedef struct yk_wish_part_t {
    const char *tariff;  /**< NULL: the only one offered */
    uint32_t quantity;   /**< 1 .. YK_WISH_COUNT; 1 for a named place */
} yk_wish_part_t;

/** Either a place, or a count in an area: exactly one of the two is set. */
typedef struct yk_wish_line_t {
    const char *slot;
    const char *place;   /**< guid, or NULL */
    const char *area;    /**< name, or NULL */
    uint32_t nparts;
    yk_wish_part_t parts[YK_WISH_PARTS];
    const char *field;   /**< for refusals: "lines[2]", "places[0]", "area" */
} yk_wish_line_t;

typedef struct yk_wish_t {
    uint32_t nlines;     /**< 0 only in an exchange that only gives */
    yk_wish_line_t *lines;
    int together;        /**< an assigned party sits side by side or not at all */
    int confirm;         /**< hold and confirm in one */
    int fresh;           /**< "new": do not add to the order in hand */
    const char *reference; /**< NULL: not sent */
} yk_wish_t;

typedef struct yk_give_t {
    uint32_t line;       /**< line number of the order */
    uint32_t quantity;   /**< 0: all of it */
} yk_give_t;

/** An Idempotency-Key and what it stands for. */
typedef struct yk_once_t {
    const char *key;     /**< as sent, 1 .. 255 visible ASCII */
    yk_hash_t scope;     /**< hash of tenant, method, path, user, order, key */
    yk_hash_t request;   /**< hash of what was asked */
} yk_once_t;

#endif
