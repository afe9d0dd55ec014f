/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YK_BODY_TREE_H
#define YK_BODY_TREE_H

#include "yoyaku/body.h"

/**
 * @file body_tree.h
 * @brief The tree between the two parsers and the getters of body.h.
 *
 * A parser adds values with yk_body_add(); all of it lives in one pool. Paths
 * are made only when somebody wants to name one.
 */

typedef enum yk_body_kind_e {
    YK_BODY_NULL,
    YK_BODY_FLAG,
    YK_BODY_NUMBER,
    YK_BODY_TEXT,
    YK_BODY_LIST,
    YK_BODY_OBJECT
} yk_body_kind_e;

/** What all values of one body share. */
typedef struct yk_body_top_t {
    apr_pool_t *p;
    int is_form;
    int is_bad;
    yk_fault_t fault; /**< the first one, when is_bad */
} yk_body_top_t;

struct yk_body_t {
    yk_body_kind_e kind;
    int known; /**< somebody asked for it */
    yk_body_top_t *top;
    yk_body_t *parent;
    const char *name; /**< NULL: an item of a list */
    uint32_t no;      /**< which item */
    const char *text;
    double number; /**< of a flag: 0 or 1 */
    uint32_t nvalues, space;
    yk_body_t **values; /**< of an object or a list, as sent */
};

/** Append a value to a list (name NULL) or an object. */
yk_body_t *yk_body_add(yk_body_t *parent, const char *name,
                       yk_body_kind_e kind);

yk_body_t *yk_body_find(const yk_body_t *object, const char *name);

/** Fill a fault of a body that could not be read. @return APR_EINVAL */
apr_status_t yk_body_unreadable(yk_fault_t *fault, yk_answer_e answer,
                                const char *detail);

#endif
