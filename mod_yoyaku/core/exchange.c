/* SPDX-License-Identifier: Apache-2.0 */
#include "ask.h"
#include <apr_strings.h>
#include <string.h>

/*
 * Exchanging, and taking a line out. What is given comes first, so that the
 * same exchange can take it again; only what is taken on balance is checked.
 */

static const yk_wish_t nothing;

static yk_line_t *find_line(yk_order_t *order, uint32_t number)
{
    for (uint32_t i = 0; i < order->nlines; i++) {
        if (order->lines[i].line == number && order->lines[i].quantity > 0) {
            return &order->lines[i];
        }
    }
    return NULL;
}

apr_status_t yk_exchange_plan(yk_deed_t *deed)
{
    const yk_ask_t *ask = deed->ask;
    yk_take_t *take;
    apr_status_t rv = yk_deed_plan_order(deed);

    if (rv == APR_SUCCESS && !deed->refused) {
        rv =
            yk_take_plan(deed, &take, ask->wish != NULL ? ask->wish : &nothing);
        deed->own = take;
    }
    return rv;
}

/* Whose order is it to change, and in which state? */
static yk_verdict_e may_exchange(yk_deed_t *deed)
{
    const yk_order_t *order = deed->row->order;

    if (order->state == YK_ORDER_CONFIRMED && deed->desk->terms.shop) {
        return YK_VERDICT_DONE;
    }
    if (!yk_deed_in_time(deed, order)) {
        return yk_deed_refuse_ended(deed, order);
    }
    if (order->state == YK_ORDER_LOCKED) {
        deed->reply->state = yk_order_state_name(order->state);
        return yk_deed_refuse(deed, YK_ANSWER_STATE);
    }
    return YK_VERDICT_DONE;
}

static yk_verdict_e give_lines(yk_deed_t *deed, const yk_ask_t *ask)
{
    for (uint32_t i = 0; i < ask->ngive; i++) {
        const yk_give_t *give = &ask->give[i];
        yk_line_t *line = find_line(deed->row->order, give->line);

        if (line == NULL) {
            return yk_deed_refuse_field(deed, YK_ANSWER_INVALID, "line",
                                        "a line of this order");
        }
        if (give->quantity > line->quantity) {
            return yk_deed_refuse_field(deed, YK_ANSWER_INVALID, "quantity",
                                        "what the line has");
        }
        yk_deed_give(deed, deed->row, line, give->quantity, 1);
    }
    return YK_VERDICT_DONE;
}

/* A confirmed order that gets dearer: the request must say by how much. */
static yk_verdict_e check_difference(yk_deed_t *deed, const yk_ask_t *ask,
                                     int64_t before)
{
    const yk_order_t *order = deed->row->order;
    yk_reply_t *reply = deed->reply;

    reply->difference = yk_order_total(order) - before;
    if (reply->difference <= 0 ||
        (ask->amount == reply->difference && ask->currency != NULL &&
         strcmp(ask->currency, order->currency) == 0)) {
        return YK_VERDICT_DONE;
    }
    reply->total = reply->difference;
    reply->currency = apr_pstrdup(deed->p, order->currency);
    return yk_deed_refuse(deed, YK_ANSWER_AMOUNT);
}

static int has_lines(const yk_order_t *order)
{
    for (uint32_t i = 0; i < order->nlines; i++) {
        if (order->lines[i].live) {
            return 1;
        }
    }
    return 0;
}

static yk_verdict_e finish_exchange(yk_deed_t *deed, const yk_ask_t *ask,
                                    int64_t before)
{
    yk_order_t *order = deed->row->order;
    int confirmed = order->state == YK_ORDER_CONFIRMED;

    deed->reply->answer = YK_ANSWER_OK;
    if (confirmed) {
        yk_verdict_e verdict = check_difference(deed, ask, before);

        if (verdict != YK_VERDICT_DONE) {
            return verdict;
        }
    }
    if (!has_lines(order)) {
        yk_deed_end(deed, deed->row,
                    confirmed ? YK_ORDER_CANCELLED : YK_ORDER_RELEASED,
                    ask->why);
    }
    else if (!confirmed) {
        yk_deed_renew(deed, deed->row);
    }
    return YK_VERDICT_DONE;
}

yk_verdict_e yk_exchange_decide(yk_deed_t *deed)
{
    const yk_ask_t *ask = deed->ask;
    const yk_take_t *take = deed->own;
    yk_load_t *had, *kept, *asked;
    uint32_t nhad, nkept, nasked, taken;
    yk_order_row_t *row = deed->row;
    int64_t before = yk_order_total(row->order);
    yk_verdict_e verdict = may_exchange(deed);

    if (verdict != YK_VERDICT_DONE) {
        return verdict;
    }
    had = yk_limit_loads(deed, &nhad, row->order, 0);
    yk_deed_touch(deed, row, ask->why);
    verdict = give_lines(deed, ask);
    if (verdict != YK_VERDICT_DONE) {
        return verdict;
    }
    kept = yk_limit_loads(deed, &nkept, row->order, 0);
    asked = yk_take_loads(deed, &nasked, take, row->order);
    if (!yk_take_on_sale(deed, take) ||
        !yk_limit_size(deed, row->order, had, nhad, kept, nkept, asked,
                       nasked) ||
        !yk_limit_check(deed, row->order, had, nhad, kept, nkept, asked,
                        nasked)) {
        return YK_VERDICT_REFUSED;
    }
    verdict = yk_take_all(deed, row, take, &taken);
    return verdict != YK_VERDICT_DONE ? verdict
                                      : finish_exchange(deed, ask, before);
}
