/* SPDX-License-Identifier: Apache-2.0 */
#include "deed.h"

/*
 * Settling: what a due order still counts is given back, and it becomes
 * expired. The sweep does it so that the book is tidy; a hold that meets a
 * bound does it because the places are needed now.
 */

#define SETTLE_MOST 64

typedef struct settle_t {
    const uint64_t *order_ids;
    uint32_t n;
    yk_order_t **seen;
    uint32_t nseen;
    uint32_t settled;
} settle_t;

static int is_due(const yk_order_t *order, apr_time_t now)
{
    return (order->state == YK_ORDER_HELD || order->state == YK_ORDER_LOCKED) &&
           now >= order->until_us;
}

static apr_status_t plan_settle(yk_deed_t *deed)
{
    settle_t *settle = deed->own;
    apr_status_t rv =
        yk_store_orders_by_id(deed->desk->store, &settle->seen, &settle->nseen,
                              settle->order_ids, settle->n, deed->pt);

    for (uint32_t i = 0; rv == APR_SUCCESS && i < settle->nseen; i++) {
        rv = yk_deed_want_order(deed, settle->seen[i], 0);
    }
    return rv;
}

/* An order that changed since it was seen is left for the next time: its rows
 * may not all be locked. */
static yk_verdict_e decide_settle(yk_deed_t *deed)
{
    settle_t *settle = deed->own;

    settle->settled = 0;
    for (uint32_t i = 0; i < settle->nseen; i++) {
        yk_order_row_t *row =
            yk_ledger_order(deed->ledger, settle->seen[i]->order_id);

        if (row->found && row->order->version == settle->seen[i]->version &&
            is_due(row->order, deed->ledger->now_us)) {
            yk_deed_end(deed, row, YK_ORDER_EXPIRED, "expire");
            row->who = "clock";
            settle->settled++;
        }
    }
    return YK_VERDICT_DONE;
}

apr_status_t yk_settle(yk_desk_t *desk, uint32_t *settled,
                       const uint64_t *order_ids, uint32_t n)
{
    settle_t settle = {.order_ids = order_ids,
                       .n = n > SETTLE_MOST ? SETTLE_MOST : n};
    yk_reply_t reply;
    yk_deed_t deed = {.desk = desk,
                      .plan = plan_settle,
                      .decide = decide_settle,
                      .reply = &reply,
                      .own = &settle};
    apr_status_t rv;

    apr_pool_create(&deed.p, desk->p);
    rv = yk_deed_run(&deed);
    apr_pool_destroy(deed.p);
    if (settled != NULL) {
        *settled = rv == APR_SUCCESS ? settle.settled : 0;
    }
    return rv;
}

apr_status_t yk_desk_sweep(yk_desk_t *desk, uint32_t *settled, apr_pool_t *p)
{
    uint64_t *order_ids;
    uint32_t n;
    apr_status_t rv = yk_store_due(desk->store, &order_ids, &n, SETTLE_MOST, p);

    *settled = 0;
    if (rv == APR_SUCCESS && n > 0) {
        rv = yk_settle(desk, settled, order_ids, n);
    }
    /* the store's "at once again" is for whoever holds the deed */
    return rv == APR_EBUSY ? APR_TIMEUP : rv;
}
