/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YOYAKU_REQUEST_H
#define YOYAKU_REQUEST_H

#include <apr_pools.h>
#include "body.h"
#include "desk.h"
#include "wish.h"

/**
 * @file request.h
 * @brief The bodies of the HTTP interface, read into what the desk takes.
 *
 * Each call reads a body to its end and refuses members it does not know; a
 * caller with a member of its own (the shop's "booker") reads that first, which
 * makes it known. APR_SUCCESS, or APR_EINVAL with the fault to answer.
 */

/**
 * A hold.
 *   {"lines": [{"slot", "place", "tariff"} |
 *              {"slot", "area", "quantity", "tariff"} |
 *              {"slot", "area", "tariffs": {"adult": 2, "child": 2}}], ...}
 * and for one slot also
 *   {"places": ["A-12", "A-13"], "tariff"} | {"area", "quantity", "tariff"} |
 *   {"area", "tariffs"}
 * each with "together", "confirm", "new", "reference". No place twice. In a
 * form a count of nought in "tariffs" is left out.
 *
 * @param slot the slot named by the URL, or NULL: then every line names its
 * own. A line that names another than the URL is refused.
 */
apr_status_t yk_request_wish(yk_wish_t **wish, yk_fault_t *fault,
                             yk_body_t *body, const char *slot, apr_pool_t *p);

typedef struct yk_exchange_t {
    uint32_t ngive;
    yk_give_t *give;
    yk_wish_t *take;      /**< always set; 0 lines when nothing is taken */
    int64_t amount;       /**< minor units; -1: not said */
    const char *currency; /**< "" when not said */
    const char *reason;   /**< "" when not said */
} yk_exchange_t;

/** {"give": [{"line", "quantity"}], "take": {"lines", "together"}, "amount",
 *  "currency", "reason"}; give or take may be missing, not both. */
apr_status_t yk_request_exchange(yk_exchange_t **exchange, yk_fault_t *fault,
                                 yk_body_t *body, apr_pool_t *p);

/** {"reference", "contact", "data", "holders": [{"line", "holder"}]} */
apr_status_t yk_request_patch(yk_patch_t **patch, yk_fault_t *fault,
                              yk_body_t *body, apr_pool_t *p);

/** The shop's confirm: {"attempt", "amount", "currency", "payment"}. A currency
 *  of null, "" or none stands for an order that costs nothing. */
apr_status_t yk_request_payment(yk_payment_t **payment, yk_fault_t *fault,
                                yk_body_t *body, apr_pool_t *p);

/** {"reason"}; *reason is "" when it was not said. */
apr_status_t yk_request_reason(const char **reason, yk_fault_t *fault,
                               yk_body_t *body, apr_pool_t *p);

/** A request that says nothing more: any member is refused. */
apr_status_t yk_request_nothing(yk_fault_t *fault, yk_body_t *body);

#endif
