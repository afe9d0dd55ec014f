/* SPDX-License-Identifier: Apache-2.0 */
#include "ask.h"
#include <apr_strings.h>
#include <string.h>

/*
 * Confirming. A booker confirms in time and only as the terms allow. The shop
 * brings a payment, which may come late: then everything is taken again in
 * this one transaction, or the order becomes refund_due.
 */

int yk_deed_booker_may_confirm(const yk_deed_t *deed, const yk_order_t *order)
{
    const yk_terms_t *terms = &deed->desk->terms;

    if (terms->shop || terms->confirm == YK_CONFIRM_BOOKER) {
        return 1;
    }
    return terms->confirm == YK_CONFIRM_FREE && yk_order_total(order) == 0;
}

apr_status_t yk_confirm_plan(yk_deed_t *deed)
{
    apr_status_t rv = yk_deed_claim(deed);

    if (rv != APR_SUCCESS || deed->refused) {
        return rv;
    }
    return yk_deed_want_order(deed, deed->seen, deed->ask->payment != NULL);
}

static yk_verdict_e confirm_by_booker(yk_deed_t *deed)
{
    const yk_order_t *order = deed->row->order;

    deed->reply->answer = YK_ANSWER_OK;
    if (order->state == YK_ORDER_CONFIRMED) {
        deed->reply->late = order->late;
        return YK_VERDICT_DONE;
    }
    if (!yk_deed_in_time(deed, order)) {
        return yk_deed_refuse_ended(deed, order);
    }
    if (!yk_deed_booker_may_confirm(deed, order)) {
        return yk_deed_refuse_field(deed, YK_ANSWER_FORBIDDEN, "order",
                                    "a confirm by the shop");
    }
    yk_deed_book(deed, deed->row, "confirm");
    return YK_VERDICT_DONE;
}

/* An order that was paid before: the same payment gets the same answer. */
static yk_verdict_e paid_before(yk_deed_t *deed, const yk_payment_t *payment)
{
    const yk_order_t *order = deed->row->order;

    deed->reply->answer = order->state == YK_ORDER_CONFIRMED
                              ? YK_ANSWER_OK
                              : YK_ANSWER_REFUND_DUE;
    deed->reply->late = order->late;
    deed->reply->state = yk_order_state_name(order->state);
    if (strcmp(order->payment, payment->payment) != 0) {
        yk_deed_touch(deed, deed->row, "paid_twice");
        deed->reply->answer = YK_ANSWER_STATE;
    }
    return YK_VERDICT_DONE;
}

static int is_what_is_due(yk_deed_t *deed, const yk_order_t *order,
                          const yk_payment_t *payment)
{
    yk_reply_t *reply = deed->reply;
    int64_t total = yk_order_total(order);

    if (payment->attempt != order->attempt) {
        reply->attempt = order->attempt;
        yk_deed_refuse(deed, YK_ANSWER_ATTEMPT);
        return 0;
    }
    if (payment->amount != total ||
        strcmp(payment->currency, order->currency) != 0) {
        reply->total = total;
        reply->currency = apr_pstrdup(deed->p, order->currency);
        yk_deed_refuse(deed, YK_ANSWER_AMOUNT);
        return 0;
    }
    return 1;
}

/* Is the line's place still to be had: its own, free, or due to be free? */
static int place_is_to_be_had(yk_deed_t *deed, const yk_order_t *order,
                              const yk_line_t *line)
{
    const yk_slot_t *slot = yk_deed_slot_known(deed, line->slot_id);
    const yk_place_t *place =
        yk_ledger_place(deed->ledger, line->slot_id, line->place_no);
    int seat = slot->areas[line->area_no].mode == YK_MODE_ASSIGNED;

    if (place->order_id == order->order_id && line->live) {
        return 1;
    }
    if (place->state == YK_PLACE_FREE) {
        return 1;
    }
    if (place->state != YK_PLACE_HELD ||
        place->until_us > deed->ledger->now_us) {
        return 0;
    }
    if (seat) {
        /* The map gives it back when that order is settled. */
        yk_deed_bound(deed,
                      &yk_ledger_anchor(deed->ledger, YK_ANCHOR_AREA,
                                        line->slot_id, line->area_no)
                           ->key,
                      NULL);
    }
    return !seat;
}

static int retake_line(yk_deed_t *deed, yk_order_row_t *row, yk_line_t *line)
{
    const yk_slot_t *slot = yk_deed_slot_known(deed, line->slot_id);
    yk_place_t *place;

    if (line->place_no != YK_NO_PLACE &&
        !place_is_to_be_had(deed, row->order, line)) {
        return 0;
    }
    if (!line->live) {
        if (!yk_deed_count(deed, row, line, line->quantity)) {
            return 0;
        }
        if (slot->areas[line->area_no].mode == YK_MODE_ASSIGNED) {
            yk_deed_map(deed, slot, line->area_no, line->place_no, 0);
        }
        line->live = 1;
    }
    if (line->place_no != YK_NO_PLACE) {
        place = yk_ledger_place(deed->ledger, line->slot_id, line->place_no);
        yk_ledger_touch_place(deed->ledger, place);
        place->order_id = row->order_id;
    }
    return 1;
}

/* Take everything again; only what no longer counts needs room. */
static int retake(yk_deed_t *deed, yk_order_row_t *row)
{
    yk_order_t *order = row->order;
    uint32_t nhad, nasked = 0;
    yk_load_t *had = yk_limit_loads(deed, &nhad, order, 0);
    yk_load_t *asked =
        apr_pcalloc(deed->pt, (order->nlines + 1) * sizeof(*asked));

    for (uint32_t i = 0; i < order->nlines; i++) {
        if (!order->lines[i].live && order->lines[i].quantity > 0) {
            asked[nasked].slot =
                yk_deed_slot_known(deed, order->lines[i].slot_id);
            asked[nasked++].quantity = order->lines[i].quantity;
        }
    }
    if (!yk_limit_check(deed, order, had, nhad, had, nhad, asked, nasked)) {
        return 0;
    }
    yk_deed_touch(deed, row, "confirm_late");
    for (uint32_t i = 0; i < order->nlines; i++) {
        if (order->lines[i].quantity > 0 &&
            !retake_line(deed, row, &order->lines[i])) {
            return 0;
        }
    }
    order->late = 1;
    yk_deed_book(deed, row, "confirm_late");
    return 1;
}

static yk_verdict_e refund_due(yk_deed_t *deed, const yk_payment_t *payment)
{
    yk_deed_end(deed, deed->row, YK_ORDER_REFUND_DUE, "refund_due");
    deed->row->order->payment = payment->payment;
    deed->reply->answer = YK_ANSWER_REFUND_DUE;
    deed->reply->state = yk_order_state_name(YK_ORDER_REFUND_DUE);
    return YK_VERDICT_DONE;
}

static yk_verdict_e confirm_late(yk_deed_t *deed, const yk_payment_t *payment)
{
    apr_time_t now = deed->reply->now_us;

    if (!retake(deed, deed->row)) {
        /* Nothing of the attempt stays but the counts it may wait for. */
        yk_ledger_undo(deed->ledger);
        memset(deed->reply, 0, sizeof(*deed->reply));
        deed->reply->now_us = now;
        deed->refused = 0;
        return refund_due(deed, payment);
    }
    deed->reply->late = 1;
    return YK_VERDICT_DONE;
}

yk_verdict_e yk_confirm_decide(yk_deed_t *deed)
{
    const yk_payment_t *payment = deed->ask->payment;
    const yk_order_t *order = deed->row->order;
    yk_verdict_e verdict;

    if (payment == NULL) {
        return confirm_by_booker(deed);
    }
    if (order->state == YK_ORDER_CONFIRMED ||
        order->state == YK_ORDER_REFUND_DUE) {
        return paid_before(deed, payment);
    }
    if (order->state == YK_ORDER_CANCELLED) {
        return yk_deed_refuse_ended(deed, order);
    }
    if (!is_what_is_due(deed, order, payment)) {
        return YK_VERDICT_REFUSED;
    }
    deed->reply->answer = YK_ANSWER_OK;
    if (order->state == YK_ORDER_RELEASED) {
        return refund_due(deed, payment);
    }
    if (yk_deed_in_time(deed, order)) {
        yk_deed_book(deed, deed->row, "confirm");
        verdict = YK_VERDICT_DONE;
    }
    else {
        verdict = confirm_late(deed, payment);
    }
    deed->row->order->payment = payment->payment;
    return verdict;
}
