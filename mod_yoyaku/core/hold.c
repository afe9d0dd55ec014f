/* SPDX-License-Identifier: Apache-2.0 */
#include "ask.h"
#include <string.h>

/* Holding: begin an order, or add to one. */

/* Deadlines of a hold: see DESIGN "Deadlines"; never shortened. */
static apr_time_t later_until(const yk_order_t *order, const yk_terms_t *terms,
                              apr_time_t now)
{
    apr_time_t most = order->checkout_end_us != 0 ? order->checkout_end_us
                                                  : order->max_until_us;
    apr_time_t until = now + terms->hold_ttl;

    if (until > most) {
        until = most;
    }
    return until > order->until_us ? until : order->until_us;
}

void yk_deed_renew(yk_deed_t *deed, yk_order_row_t *row)
{
    row->order->until_us =
        later_until(row->order, &deed->desk->terms, deed->ledger->now_us);
    yk_deed_stamp_places(deed, row);
}

static yk_order_row_t *begin_order(yk_deed_t *deed, const yk_wish_t *wish)
{
    const yk_terms_t *terms = &deed->desk->terms;
    apr_time_t now = deed->ledger->now_us;
    yk_order_t *order = apr_pcalloc(deed->pt, sizeof(*order));
    uint32_t dice;

    yk_secret_random(&dice, sizeof(dice));
    /* 41 bits of the database's milliseconds, 22 of chance. */
    order->order_id =
        ((uint64_t)apr_time_as_msec(now) << 22) | (dice & 0x3fffff);
    order->tenant_id = terms->tenant_id;
    order->state = YK_ORDER_HELD;
    order->begun_us = now;
    order->pass = terms->pass;
    order->until_us = now + terms->hold_ttl;
    order->max_until_us = now + terms->hold_max_lifetime;
    if (order->until_us > order->max_until_us) {
        order->until_us = order->max_until_us;
    }
    order->booker = terms->booker;
    yk_booker_hash(order->booker_hash, terms->booker);
    yk_deed_make_token(deed);
    yk_token_hash(&order->token_hash, deed->token);
    order->reference = wish->reference != NULL ? wish->reference : "";
    order->contact = order->data = order->payment = "";
    order->next_line = 1;
    return yk_ledger_order_add(deed->ledger, order);
}

apr_status_t yk_hold_plan(yk_deed_t *deed)
{
    const yk_terms_t *terms = &deed->desk->terms;
    const yk_wish_t *wish = deed->ask->wish;
    apr_status_t rv = APR_SUCCESS;
    yk_take_t *take;

    if (terms->booker_required && terms->booker[0] == '\0') {
        yk_deed_refuse_field(deed, YK_ANSWER_FORBIDDEN, "booker", NULL);
        return APR_SUCCESS;
    }
    if (!wish->fresh) {
        rv = yk_deed_claim(deed);
    }
    if (rv == APR_SUCCESS && deed->seen != NULL) {
        rv = yk_deed_want_order(deed, deed->seen, 0);
    }
    if (rv == APR_SUCCESS && !deed->refused) {
        rv = yk_take_plan(deed, &take, wish);
        deed->own = take;
    }
    return rv;
}

/* May the claimed order take more? Sets the refusal. */
static yk_verdict_e may_add(yk_deed_t *deed)
{
    const yk_order_t *order = deed->row->order;

    if (yk_deed_in_time(deed, order)) {
        if (order->state == YK_ORDER_HELD) {
            return YK_VERDICT_DONE;
        }
        deed->reply->state = yk_order_state_name(order->state);
        return yk_deed_refuse(deed, YK_ANSWER_STATE);
    }
    if (deed->claim->weak) {
        deed->claim_void = 1;
        return YK_VERDICT_AGAIN;
    }
    return yk_deed_refuse_ended(deed, order);
}

yk_verdict_e yk_deed_refuse_ended(yk_deed_t *deed, const yk_order_t *order)
{
    if (order->state == YK_ORDER_HELD || order->state == YK_ORDER_LOCKED ||
        order->state == YK_ORDER_EXPIRED) {
        return yk_deed_refuse(deed, YK_ANSWER_EXPIRED);
    }
    deed->reply->state = yk_order_state_name(order->state);
    return yk_deed_refuse(deed, YK_ANSWER_STATE);
}

/* "confirm": true in a hold. */
static yk_verdict_e confirm_at_once(yk_deed_t *deed)
{
    if (!yk_deed_booker_may_confirm(deed, deed->row->order)) {
        return yk_deed_refuse_field(deed, YK_ANSWER_FORBIDDEN, "confirm",
                                    "a confirm by the shop");
    }
    yk_deed_book(deed, deed->row, "hold_confirm");
    deed->reply->answer = YK_ANSWER_OK;
    return YK_VERDICT_DONE;
}

yk_verdict_e yk_hold_decide(yk_deed_t *deed)
{
    const yk_wish_t *wish = deed->ask->wish;
    const yk_take_t *take = deed->own;
    yk_load_t *had, *asked;
    uint32_t nhad, nasked, taken;
    yk_verdict_e verdict;

    if (deed->seen != NULL) {
        verdict = may_add(deed);
        if (verdict != YK_VERDICT_DONE) {
            return verdict;
        }
    }
    else {
        deed->row = begin_order(deed, wish);
        deed->reply->token = deed->token;
    }
    had = yk_limit_loads(deed, &nhad, deed->row->order, 0);
    asked = yk_take_loads(deed, &nasked, take, deed->row->order);
    if (!yk_take_on_sale(deed, take) ||
        !yk_limit_size(deed, deed->row->order, had, nhad, had, nhad, asked,
                       nasked) ||
        !yk_limit_check(deed, deed->row->order, had, nhad, had, nhad, asked,
                        nasked)) {
        return YK_VERDICT_REFUSED;
    }
    yk_deed_touch(deed, deed->row, deed->seen != NULL ? "add" : "hold");
    verdict = yk_take_all(deed, deed->row, take, &taken);
    if (verdict != YK_VERDICT_DONE) {
        return verdict;
    }
    deed->reply->answer = YK_ANSWER_HELD;
    deed->reply->created = deed->seen == NULL;
    yk_deed_renew(deed, deed->row);
    return wish->confirm ? confirm_at_once(deed) : YK_VERDICT_DONE;
}
