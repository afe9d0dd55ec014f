/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_strings.h>
#include "ctl.h"

static int number_parse(yk_ctl_t *ctl, yk_claim_t *claim)
{
    const char *text = ctl->args->words[0];

    claim->token = NULL;
    claim->weak = 0;
    if (yk_number_parse(&claim->order_id, text) != APR_SUCCESS) {
        return yk_ctl_usage(ctl, "\"%s\" is not an order's number", text);
    }
    return YK_CTL_DONE;
}

/* ---- an order as people read it ---- */

/** Where a line's place is; every text "" in a pool. */
typedef struct seat_t {
    const char *slot, *area, *place, *row, *seat, *grade;
} seat_t;

static void seat_find(yk_ctl_t *ctl, seat_t *seat, const yk_line_t *line)
{
    const yk_slot_t *slot;
    yk_plan_place_t place;

    *seat = (seat_t){"", "", "", "", "", ""};
    if (yk_catalogue_slot_by_id(ctl->catalogue, &slot, ctl->store,
                                line->slot_id, 0, ctl->p) != APR_SUCCESS) {
        return;
    }
    seat->slot = slot->key;
    if (line->area_no < slot->nareas) {
        seat->area = slot->areas[line->area_no].name;
    }
    if (slot->plan != NULL && line->place_no < yk_plan_places(slot->plan)) {
        yk_plan_place(slot->plan, &place, line->place_no);
        seat->place = place.guid;
        seat->row = place.row;
        seat->seat = place.seat;
        seat->grade = place.grade;
    }
}

static json_t *line_json(yk_ctl_t *ctl, const yk_line_t *line)
{
    seat_t seat;
    json_t *object;

    seat_find(ctl, &seat, line);
    object =
        json_pack("{s:i, s:s, s:s, s:i, s:s, s:s, s:b}", "line",
                  (int)line->line, "slot", seat.slot, "area", seat.area,
                  "quantity", (int)line->quantity, "tariff", line->tariff,
                  "price", yk_money_write(line->amount, line->currency, ctl->p),
                  "live", line->live);
    if (line->place_no != YK_NO_PLACE) {
        json_object_set_new(object, "place", json_string(seat.place));
        json_object_set_new(object, "row", json_string(seat.row));
        json_object_set_new(object, "seat", json_string(seat.seat));
        json_object_set_new(object, "grade", json_string(seat.grade));
    }
    if (*line->holder != '\0') {
        json_object_set_new(object, "holder", json_string(line->holder));
    }
    return object;
}

static json_t *order_json(yk_ctl_t *ctl, const yk_order_t *order,
                          apr_time_t now)
{
    json_t *lines = json_array();

    for (uint32_t i = 0; i < order->nlines; i++) {
        json_array_append_new(lines, line_json(ctl, &order->lines[i]));
    }
    return json_pack(
        "{s:s, s:s, s:o, s:s, s:s, s:s, s:s, s:s, s:s, s:o}", "number",
        yk_number_write(order->order_id, ctl->p), "state",
        yk_order_state_name(yk_order_state_at(order, now)), "expires",
        order->until_us != 0
            ? json_string(yk_time_write(order->until_us, ctl->p))
            : json_null(),
        "total", yk_money_write(yk_order_total(order), order->currency, ctl->p),
        "currency", order->currency, "booker", order->booker, "reference",
        order->reference, "contact", order->contact, "payment", order->payment,
        "lines", lines);
}

static const char *order_text(yk_ctl_t *ctl, const yk_order_t *order,
                              apr_time_t now)
{
    apr_pool_t *p = ctl->p;
    const char *text =
        apr_psprintf(p, "%s  %s  %s %s", yk_number_write(order->order_id, p),
                     yk_order_state_name(yk_order_state_at(order, now)),
                     yk_money_write(yk_order_total(order), order->currency, p),
                     order->currency);

    if (order->until_us != 0) {
        text = apr_pstrcat(p, text, "  until ",
                           yk_time_write(order->until_us, p), NULL);
    }
    for (uint32_t i = 0; i < order->nlines; i++) {
        const yk_line_t *line = &order->lines[i];
        seat_t seat;

        seat_find(ctl, &seat, line);
        text = apr_psprintf(
            p, "%s\n  %3u %s %s %s%s%s %s %u x %s%s", text, line->line,
            seat.slot, seat.area, line->place_no != YK_NO_PLACE ? "row " : "",
            seat.row, line->place_no != YK_NO_PLACE ? " seat " : "", seat.seat,
            line->quantity, yk_money_write(line->amount, line->currency, p),
            line->live ? "" : "  (not any more)");
    }
    return text;
}

/** What came of a call about one order. */
static int reply_say(yk_ctl_t *ctl, apr_status_t rv, const yk_reply_t *reply)
{
    if (rv != APR_SUCCESS) {
        return yk_ctl_status(ctl, rv, NULL);
    }
    if (reply->answer == YK_ANSWER_UNKNOWN || reply->order == NULL) {
        return yk_ctl_fail(ctl, "there is no order %s", ctl->args->words[0]);
    }
    if (reply->answer != YK_ANSWER_OK) {
        return yk_ctl_fail(ctl, "%s It is %s.", yk_answer_text(reply->answer),
                           yk_order_state_name(
                               yk_order_state_at(reply->order, reply->now_us)));
    }
    return yk_ctl_done(ctl, order_text(ctl, reply->order, reply->now_us),
                       order_json(ctl, reply->order, reply->now_us));
}

int yk_ctl_order_show(yk_ctl_t *ctl)
{
    yk_reply_t reply = {0};
    yk_claim_t claim;
    yk_desk_t *desk;
    int status = number_parse(ctl, &claim);

    if (status == YK_CTL_DONE) {
        status = yk_ctl_open_desk(ctl, &desk);
    }
    if (status != YK_CTL_DONE) {
        return status;
    }
    return reply_say(ctl, yk_desk_look(desk, &reply, &claim, ctl->p), &reply);
}

/** Release and cancel differ in one call. */
static int end_order(yk_ctl_t *ctl,
                     apr_status_t (*end)(yk_desk_t *, yk_reply_t *,
                                         const char *, const yk_claim_t *,
                                         const yk_once_t *, apr_pool_t *))
{
    const char *reason = yk_ctl_args_get(ctl->args, "reason");
    yk_reply_t reply = {0};
    yk_claim_t claim;
    yk_desk_t *desk;
    int status = number_parse(ctl, &claim);

    if (status == YK_CTL_DONE) {
        status = yk_ctl_open_desk(ctl, &desk);
    }
    if (status != YK_CTL_DONE) {
        return status;
    }
    return reply_say(
        ctl,
        end(desk, &reply, reason != NULL ? reason : "", &claim, NULL, ctl->p),
        &reply);
}

int yk_ctl_order_release(yk_ctl_t *ctl)
{
    return end_order(ctl, yk_desk_release);
}

int yk_ctl_order_cancel(yk_ctl_t *ctl)
{
    return end_order(ctl, yk_desk_cancel);
}

int yk_ctl_order_find(yk_ctl_t *ctl)
{
    json_t *list = json_array();
    const char *text = "";
    yk_order_t **orders;
    yk_desk_t *desk;
    apr_time_t now;
    uint32_t n;
    apr_status_t rv;
    int status = yk_ctl_open_desk(ctl, &desk);

    if (status != YK_CTL_DONE) {
        return status;
    }
    rv = yk_store_orders(ctl->store, &orders, &n, &now, ctl->tenant_id,
                         yk_ctl_args_get(ctl->args, "reference"),
                         yk_ctl_args_get(ctl->args, "booker"),
                         yk_ctl_args_get(ctl->args, "contact"), ctl->p);
    if (rv != APR_SUCCESS) {
        return yk_ctl_status(ctl, rv, NULL);
    }
    for (uint32_t i = 0; i < n; i++) {
        json_array_append_new(list, order_json(ctl, orders[i], now));
        text = apr_pstrcat(ctl->p, text, i > 0 ? "\n" : "",
                           order_text(ctl, orders[i], now), NULL);
    }
    return yk_ctl_done(ctl, n > 0 ? text : "No such order.",
                       json_pack("{s:o}", "orders", list));
}
