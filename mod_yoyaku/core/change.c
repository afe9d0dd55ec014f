/* SPDX-License-Identifier: Apache-2.0 */
#include "deed.h"
#include <apr_strings.h>

/* Everything else that happens to one order: checkout, reopen, release,
 * cancel, patch, and looking at it. */

yk_desk_t *yk_desk_make(yk_store_t *store, yk_catalogue_t *catalogue,
                        const yk_terms_t *terms, apr_pool_t *p)
{
    yk_desk_t *desk = apr_pcalloc(p, sizeof(*desk));

    desk->store = store;
    desk->catalogue = catalogue;
    desk->terms = *terms;
    desk->p = p;
    return desk;
}

const char *yk_deed_why(const char *why, const char *reason, apr_pool_t *p)
{
    return reason == NULL || reason[0] == '\0'
               ? why
               : apr_pstrcat(p, why, ": ", reason, NULL);
}

static yk_verdict_e decide_checkout(yk_deed_t *deed)
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

static yk_verdict_e decide_reopen(yk_deed_t *deed)
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
static yk_verdict_e decide_release(yk_deed_t *deed)
{
    const yk_order_t *order = deed->row->order;

    deed->reply->answer = YK_ANSWER_OK;
    switch (order->state) {
    case YK_ORDER_HELD:
    case YK_ORDER_LOCKED:
        if (yk_deed_in_time(deed, order)) {
            yk_deed_end(deed, deed->row, YK_ORDER_RELEASED, deed->why);
        }
        return YK_VERDICT_DONE;
    case YK_ORDER_RELEASED:
    case YK_ORDER_EXPIRED:
        return YK_VERDICT_DONE;
    default:
        return yk_deed_refuse_ended(deed, order);
    }
}

static yk_verdict_e decide_cancel(yk_deed_t *deed)
{
    const yk_order_t *order = deed->row->order;

    deed->reply->answer = YK_ANSWER_OK;
    if (order->state == YK_ORDER_CONFIRMED) {
        yk_deed_end(deed, deed->row, YK_ORDER_CANCELLED, deed->why);
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
static apr_status_t plan_patch(yk_deed_t *deed)
{
    const yk_slot_t *slot;
    apr_status_t rv = yk_deed_claim(deed);

    if (rv != APR_SUCCESS || deed->refused) {
        return rv;
    }
    yk_ledger_want_order(deed->ledger, deed->seen->order_id);
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
        line->changed = 1;
    }
    return YK_VERDICT_DONE;
}

static yk_verdict_e decide_patch(yk_deed_t *deed)
{
    const yk_patch_t *patch = deed->what;
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

static apr_status_t run(yk_desk_t *desk, yk_reply_t *reply, yk_plan_fn *plan,
                        yk_decide_fn *decide, const char *why, const void *what,
                        const yk_claim_t *claim, const yk_once_t *once,
                        apr_pool_t *p)
{
    yk_deed_t deed = {.desk = desk,
                      .plan = plan,
                      .decide = decide,
                      .reply = reply,
                      .claim = claim,
                      .once = once,
                      .why = why,
                      .what = what,
                      .p = p};

    return yk_deed_run(&deed);
}

apr_status_t yk_desk_checkout(yk_desk_t *desk, yk_reply_t *reply,
                              const yk_claim_t *claim, const yk_once_t *once,
                              apr_pool_t *p)
{
    return run(desk, reply, yk_deed_plan_order, decide_checkout, NULL, NULL,
               claim, once, p);
}

apr_status_t yk_desk_reopen(yk_desk_t *desk, yk_reply_t *reply,
                            const yk_claim_t *claim, const yk_once_t *once,
                            apr_pool_t *p)
{
    return run(desk, reply, yk_deed_plan_order, decide_reopen, NULL, NULL,
               claim, once, p);
}

apr_status_t yk_desk_release(yk_desk_t *desk, yk_reply_t *reply,
                             const char *reason, const yk_claim_t *claim,
                             const yk_once_t *once, apr_pool_t *p)
{
    return run(desk, reply, yk_deed_plan_order, decide_release,
               yk_deed_why("release", reason, p), NULL, claim, once, p);
}

apr_status_t yk_desk_cancel(yk_desk_t *desk, yk_reply_t *reply,
                            const char *reason, const yk_claim_t *claim,
                            const yk_once_t *once, apr_pool_t *p)
{
    return run(desk, reply, yk_deed_plan_order, decide_cancel,
               yk_deed_why("cancel", reason, p), NULL, claim, once, p);
}

apr_status_t yk_desk_patch(yk_desk_t *desk, yk_reply_t *reply,
                           const yk_patch_t *patch, const yk_claim_t *claim,
                           const yk_once_t *once, apr_pool_t *p)
{
    return run(desk, reply, plan_patch, decide_patch, "patch", patch, claim,
               once, p);
}

apr_status_t yk_desk_look(yk_desk_t *desk, yk_reply_t *reply,
                          const yk_claim_t *claim, apr_pool_t *p)
{
    yk_deed_t deed = {.desk = desk, .reply = reply, .claim = claim, .p = p};
    yk_order_t *order;
    apr_status_t rv;

    *reply = (yk_reply_t){0};
    rv = claim->token != NULL
             ? yk_store_order_by_token(desk->store, &order, &reply->now_us,
                                       desk->terms.tenant_id, claim->token, p)
             : yk_store_order(desk->store, &order, &reply->now_us,
                              desk->terms.tenant_id, claim->order_id, p);
    if (rv == APR_NOTFOUND) {
        yk_deed_refuse_field(&deed, YK_ANSWER_UNKNOWN, "order", NULL);
        return APR_SUCCESS;
    }
    if (rv == APR_SUCCESS) {
        reply->answer = YK_ANSWER_OK;
        reply->order = order;
    }
    return rv;
}
