/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YOYAKU_ORDER_H
#define YOYAKU_ORDER_H

#include <apr_pools.h>
#include <apr_time.h>
#include <stdint.h>
#include "secret.h"
#include "text.h"

/**
 * @file order.h
 * @brief An order and its lines, as they stand in the book.
 *
 *   held -> locked -> held          checkout, reopen
 *   held, locked -> confirmed -> cancelled
 *   held, locked -> released | expired
 *   expired -> confirmed | refund_due     paid late
 *   released -> refund_due                paid after release
 *
 * Held and locked end by themselves at `until_us`. Numbers in the book are
 * fixed: append, never renumber.
 */

#define YK_ORDER_STATES(X)                                                    \
    X(HELD, 1, "held")                                                        \
    X(LOCKED, 2, "locked")                                                    \
    X(CONFIRMED, 3, "confirmed")                                              \
    X(RELEASED, 4, "released")                                                \
    X(EXPIRED, 5, "expired")                                                  \
    X(CANCELLED, 6, "cancelled")                                              \
    X(REFUND_DUE, 7, "refund_due")

typedef enum yk_order_state_e {
#define YK_ORDER_STATE_ENUM(name, number, text) YK_ORDER_##name = number,
    YK_ORDER_STATES(YK_ORDER_STATE_ENUM)
#undef YK_ORDER_STATE_ENUM
} yk_order_state_e;

const char *yk_order_state_name(yk_order_state_e state);

/** Lines an order may come to have, given ones among them: all of them are read
 *  whenever it is changed, so nobody may pile them up by exchanging. */
#define YK_ORDER_LINES 4096

/** place_no of a line in a pool */
#define YK_NO_PLACE UINT32_MAX

typedef struct yk_line_t {
    uint32_t line;        /**< 1 .., never used again in its order */
    uint64_t slot_id;
    uint32_t area_no;
    uint32_t place_no;    /**< or YK_NO_PLACE */
    uint32_t quantity;    /**< 1 for a place; 0: taken out of the order */
    uint32_t price_no;    /**< 0: free of charge, no tariff */
    const char *tariff;   /**< "" without */
    int64_t amount;       /**< of one, at the moment of the hold */
    char currency[4];     /**< "" without */
    int live;             /**< it counts: pool, quota, limits, map */
    const char *holder;   /**< who will use it; "" when not said */
} yk_line_t;

typedef struct yk_order_t {
    uint64_t order_id;
    uint32_t tenant_id;
    yk_order_state_e state;
    uint64_t version;        /**< +1 at every write */
    apr_time_t until_us;     /**< held, locked: the deadline. Else 0 */
    apr_time_t begun_us;
    apr_time_t max_until_us; /**< until never passes this while held */
    apr_time_t checkout_end_us; /**< fixed by the first checkout; 0 before */
    apr_time_t confirmed_us; /**< 0 before */
    uint32_t attempt;        /**< changes from held to locked */
    int late;                /**< confirmed past its deadline */
    yk_hash_t token_hash;
    const char *booker;      /**< "" when none */
    unsigned char booker_hash[16]; /**< first half of SHA-256(booker) */
    const char *reference, *contact, *data; /**< "" when not said */
    const char *payment;     /**< the shop's, of the confirm; "" */
    char currency[4];        /**< of all its lines; "" when free of charge */
    uint32_t next_line;      /**< the next line number */
    uint64_t pass;           /**< number in a waiting room; 0 none */

    uint32_t nlines, line_space;
    yk_line_t *lines;        /**< all that ever were, ascending */
} yk_order_t;

/** Sum over all lines, also of an order that is over: what was taken out of it
 *  has quantity 0. */
int64_t yk_order_total(const yk_order_t *order);

/** The state as of now: held or locked past its deadline is expired. */
yk_order_state_e yk_order_state_at(const yk_order_t *order, apr_time_t now);

/** Of its own from p, lines too; texts stay where they are. */
yk_order_t *yk_order_copy(const yk_order_t *order, apr_pool_t *p);

/** hash(booker) as the book keeps it */
void yk_booker_hash(unsigned char hash[16], const char *booker);

#endif
