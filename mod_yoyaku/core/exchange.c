/* SPDX-License-Identifier: Apache-2.0 */
#include "deed.h"
#include <apr_strings.h>
#include <string.h>

/*
 * Exchanging, and taking a line out. What is given comes first, so that the
 * same exchange can take it again; only what is taken on balance is checked.
 */

typedef struct exchange_t {
    const yk_give_t *give;
    uint32_t ngive;
    const yk_wish_t *take; /* NULL: only gives */
    int64_t amount;        /* -1: not said */
    const char *currency;
    const char *why;
    yk_take_t *taking;
} exchange_t;

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

static apr_status_t plan_exchange(yk_deed_t *deed)
{
    const exchange_t *exchange = deed->what;
    yk_take_t *take;
    apr_status_t rv = yk_deed_plan_order(deed);

    if (rv == APR_SUCCESS && !deed->refused) {
        rv = yk_take_plan(deed, &take,
                          exchange->take != NULL ? exchange->take : &nothing);
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

static yk_verdict_e give_lines(yk_deed_t *deed, const exchange_t *exchange)
{
    for (uint32_t i = 0; i < exchange->ngive; i++) {
        const yk_give_t *give = &exchange->give[i];
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
static yk_verdict_e check_difference(yk_deed_t *deed,
                                     const exchange_t *exchange, int64_t before)
{
    const yk_order_t *order = deed->row->order;
    yk_reply_t *reply = deed->reply;

    reply->difference = yk_order_total(order) - before;
    if (reply->difference <= 0 ||
        (exchange->amount == reply->difference && exchange->currency != NULL &&
         strcmp(exchange->currency, order->currency) == 0)) {
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

static yk_verdict_e finish_exchange(yk_deed_t *deed, const exchange_t *exchange,
                                    int64_t before)
{
    yk_order_t *order = deed->row->order;
    int confirmed = order->state == YK_ORDER_CONFIRMED;

    deed->reply->answer = YK_ANSWER_OK;
    if (confirmed) {
        yk_verdict_e verdict = check_difference(deed, exchange, before);

        if (verdict != YK_VERDICT_DONE) {
            return verdict;
        }
    }
    if (!has_lines(order)) {
        yk_deed_end(deed, deed->row,
                    confirmed ? YK_ORDER_CANCELLED : YK_ORDER_RELEASED,
                    exchange->why);
    }
    else if (!confirmed) {
        yk_deed_renew(deed, deed->row);
    }
    return YK_VERDICT_DONE;
}

static yk_verdict_e decide_exchange(yk_deed_t *deed)
{
    const exchange_t *exchange = deed->what;
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
    yk_deed_touch(deed, row, exchange->why);
    verdict = give_lines(deed, exchange);
    if (verdict != YK_VERDICT_DONE) {
        return verdict;
    }
    kept = yk_limit_loads(deed, &nkept, row->order, 0);
    asked = yk_take_loads(deed, &nasked, take, row->order);
    if (!yk_take_on_sale(deed, take) ||
        !yk_limit_check(deed, row->order, had, nhad, kept, nkept, asked,
                        nasked)) {
        return YK_VERDICT_REFUSED;
    }
    verdict = yk_take_all(deed, row, take, &taken);
    return verdict != YK_VERDICT_DONE ? verdict
                                      : finish_exchange(deed, exchange, before);
}

static apr_status_t run(yk_desk_t *desk, yk_reply_t *reply,
                        const exchange_t *exchange, const yk_claim_t *claim,
                        const yk_once_t *once, apr_pool_t *p)
{
    yk_deed_t deed = {.desk = desk,
                      .plan = plan_exchange,
                      .decide = decide_exchange,
                      .reply = reply,
                      .claim = claim,
                      .once = once,
                      .what = exchange,
                      .p = p};

    return yk_deed_run(&deed);
}

apr_status_t yk_desk_exchange(yk_desk_t *desk, yk_reply_t *reply,
                              const yk_give_t *give, uint32_t ngive,
                              const yk_wish_t *take, int64_t amount,
                              const char *currency, const char *reason,
                              const yk_claim_t *claim, const yk_once_t *once,
                              apr_pool_t *p)
{
    exchange_t exchange = {.give = give,
                           .ngive = ngive,
                           .take = take,
                           .amount = amount,
                           .currency = currency,
                           .why = yk_deed_why("exchange", reason, p)};

    return run(desk, reply, &exchange, claim, once, p);
}

apr_status_t yk_desk_remove(yk_desk_t *desk, yk_reply_t *reply, uint32_t line,
                            const yk_claim_t *claim, const yk_once_t *once,
                            apr_pool_t *p)
{
    yk_give_t give = {line, 0};
    exchange_t exchange = {
        .give = &give, .ngive = 1, .amount = -1, .why = "remove"};

    return run(desk, reply, &exchange, claim, once, p);
}
