/* SPDX-License-Identifier: Apache-2.0 */
#include "ask.h"
#include <apr_strings.h>

/* Everything else that happens to one order: checkout, reopen, release,
 * cancel, patch. */

yk_verdict_e yk_checkout_decide(yk_deed_t *deed)
{
    yk_order_t *order = deed->row->order;
    apr_time_t now = deed->ledger->now_us;

    if (!yk_deed_in_time(deed, order)) {
        return yk_deed_refuse_ended(deed, order);
    }
    deed->reply->answer = YK_ANSWER_OK;
    if (order->state == YK_ORDER_LOCKED) {
        return YK_VERDICT_DONE;
    }
    yk_deed_touch(deed, deed->row, "checkout");
    order = deed->row->order;
    order->state = YK_ORDER_LOCKED;
    order->attempt++;
    if (order->checkout_end_us == 0) {
        order->checkout_end_us = now + deed->desk->terms.checkout_ttl;
    }
    order->until_us = order->checkout_end_us;
    yk_deed_stamp_places(deed, deed->row);
    return YK_VERDICT_DONE;
}

yk_verdict_e yk_reopen_decide(yk_deed_t *deed)
{
    yk_order_t *order = deed->row->order;
    apr_time_t until;

    if (!yk_deed_in_time(deed, order)) {
        return yk_deed_refuse_ended(deed, order);
    }
    deed->reply->answer = YK_ANSWER_OK;
    if (order->state == YK_ORDER_HELD) {
        return YK_VERDICT_DONE;
    }
    until = deed->ledger->now_us + deed->desk->terms.hold_ttl;
    yk_deed_touch(deed, deed->row, "reopen");
    order->state = YK_ORDER_HELD;
    order->until_us =
        until < order->checkout_end_us ? until : order->checkout_end_us;
    yk_deed_stamp_places(deed, deed->row);
    return YK_VERDICT_DONE;
}

/* Releasing what is over anyway is done: nothing happens. */
yk_verdict_e yk_release_decide(yk_deed_t *deed)
{
    const yk_order_t *order = deed->row->order;

    deed->reply->answer = YK_ANSWER_OK;
    switch (order->state) {
    case YK_ORDER_HELD:
    case YK_ORDER_LOCKED:
        if (yk_deed_in_time(deed, order)) {
            yk_deed_end(deed, deed->row, YK_ORDER_RELEASED, deed->ask->why);
        }
        return YK_VERDICT_DONE;
    case YK_ORDER_RELEASED:
    case YK_ORDER_EXPIRED:
        return YK_VERDICT_DONE;
    default:
        return yk_deed_refuse_ended(deed, order);
    }
}

yk_verdict_e yk_cancel_decide(yk_deed_t *deed)
{
    const yk_order_t *order = deed->row->order;

    deed->reply->answer = YK_ANSWER_OK;
    if (order->state == YK_ORDER_CONFIRMED) {
        yk_deed_end(deed, deed->row, YK_ORDER_CANCELLED, deed->ask->why);
        return YK_VERDICT_DONE;
    }
    if (order->state == YK_ORDER_CANCELLED) {
        return YK_VERDICT_DONE;
    }
    deed->reply->state =
        yk_order_state_name(yk_order_state_at(order, deed->ledger->now_us));
    return yk_deed_refuse(deed, YK_ANSWER_STATE);
}

/* Texts change neither state nor deadline: the order's own lock is enough. */
apr_status_t yk_patch_plan(yk_deed_t *deed)
{
    const yk_slot_t *slot;
    apr_status_t rv = yk_deed_claim(deed);

    if (rv != APR_SUCCESS || deed->refused) {
        return rv;
    }
    yk_ledger_want_order(deed->ledger, deed->seen->order_id, deed->seen);
    for (uint32_t i = 0; rv == APR_SUCCESS && i < deed->seen->nlines; i++) {
        rv = yk_deed_slot_by_id(deed, &slot, deed->seen->lines[i].slot_id);
    }
    return rv;
}

static yk_verdict_e set_holders(yk_deed_t *deed, const yk_patch_t *patch)
{
    yk_order_t *order = deed->row->order;

    for (uint32_t i = 0; i < patch->nholders; i++) {
        yk_line_t *line = NULL;

        for (uint32_t j = 0; j < order->nlines && line == NULL; j++) {
            if (order->lines[j].line == patch->holders[i].line &&
                order->lines[j].quantity > 0) {
                line = &order->lines[j];
            }
        }
        if (line == NULL) {
            return yk_deed_refuse_field(
                deed, YK_ANSWER_INVALID,
                apr_psprintf(deed->p, "holders[%u].line", i),
                "a line of this order");
        }
        line->holder = patch->holders[i].holder;
    }
    return YK_VERDICT_DONE;
}

yk_verdict_e yk_patch_decide(yk_deed_t *deed)
{
    const yk_patch_t *patch = deed->ask->patch;
    yk_order_t *order = deed->row->order;
    yk_order_state_e state = yk_order_state_at(order, deed->ledger->now_us);

    if (state != YK_ORDER_HELD && state != YK_ORDER_LOCKED &&
        state != YK_ORDER_CONFIRMED) {
        return yk_deed_refuse_ended(deed, order);
    }
    yk_deed_touch(deed, deed->row, "patch");
    if (patch->reference != NULL) {
        order->reference = patch->reference;
    }
    if (patch->contact != NULL) {
        order->contact = patch->contact;
    }
    if (patch->data != NULL) {
        order->data = patch->data;
    }
    deed->reply->answer = YK_ANSWER_OK;
    return set_holders(deed, patch);
}
