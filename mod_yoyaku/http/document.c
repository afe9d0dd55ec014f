/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include "call.h"

/** Where a line's seat is, as far as the catalogue can still tell: an order
 *  that stands in the book is answered even when it cannot. */
static void line_place(yk_http_call_t *call, yk_http_json_t *j,
                       const yk_line_t *line)
{
    const yk_slot_t *slot = NULL;
    const yk_area_t *area = NULL;
    yk_plan_place_t place;

    yk_catalogue_slot_by_id(call->catalogue, &slot, call->store, line->slot_id,
                            0, j->p);
    if (slot != NULL && line->area_no < slot->nareas) {
        area = &slot->areas[line->area_no];
    }
    yk_http_json_text(j, "slot", slot != NULL ? slot->key : NULL);
    if (line->place_no == YK_NO_PLACE) {
        yk_http_json_text(j, "area", area != NULL ? area->name : NULL);
        yk_http_json_number(j, "quantity", line->quantity);
        return;
    }
    memset(&place, 0, sizeof(place));
    if (slot != NULL && slot->plan != NULL &&
        line->place_no < yk_plan_places(slot->plan)) {
        yk_plan_place(slot->plan, &place, line->place_no);
    }
    yk_http_json_text(j, "section", area != NULL ? area->name : NULL);
    yk_http_json_text(j, "row", place.row);
    yk_http_json_text(j, "seat", place.seat);
    yk_http_json_text(j, "place", place.guid);
    yk_http_json_text(j, "grade", place.grade);
}

static void lines_write(yk_http_call_t *call, yk_http_json_t *j,
                        const yk_order_t *order)
{
    yk_http_json_array(j, "lines");
    for (uint32_t i = 0; i < order->nlines; i++) {
        const yk_line_t *line = &order->lines[i];

        if (line->quantity == 0) {
            continue; /* taken out of the order */
        }
        yk_http_json_object(j, NULL);
        yk_http_json_number(j, "line", line->line);
        line_place(call, j, line);
        yk_http_json_said(j, "tariff", line->tariff);
        yk_http_json_text(j, "price",
                          yk_money_write(line->amount, line->currency, j->p));
        if (line->holder != NULL && *line->holder != '\0') {
            yk_http_json_text(j, "holder", line->holder);
        }
        yk_http_json_end(j);
    }
    yk_http_json_end(j);
}

/** What was said about an order, where it was said. */
static void texts_write(yk_http_call_t *call, yk_http_json_t *j,
                        const yk_order_t *order)
{
    const struct {
        const char *name, *text;
        int shop;
    } texts[] = {{"reference", order->reference, 0},
                 {"contact", order->contact, 0},
                 {"data", order->data, 0},
                 {"booker", order->booker, 1},
                 {"payment", order->payment, 1}};

    for (apr_size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (texts[i].text != NULL && *texts[i].text != '\0' &&
            (call->shop || !texts[i].shop)) {
            yk_http_json_text(j, texts[i].name, texts[i].text);
        }
    }
}

void yk_http_document_order(yk_http_call_t *call, yk_http_json_t *j,
                            const yk_order_t *order, apr_time_t now)
{
    yk_order_state_e state = yk_order_state_at(order, now);
    int has_end = state == YK_ORDER_HELD || state == YK_ORDER_LOCKED;

    yk_http_json_text(j, "state", yk_order_state_name(state));
    yk_http_json_time(j, "expires", has_end ? order->until_us : 0);
    yk_http_json_number(j, "seconds_left",
                        has_end ? apr_time_sec(order->until_us - now) : 0);
    yk_http_json_text(
        j, "total",
        yk_money_write(yk_order_total(order), order->currency, j->p));
    yk_http_json_said(j, "currency", order->currency);
    if (order->attempt != 0) {
        yk_http_json_number(j, "attempt", order->attempt);
    }
    if (order->confirmed_us != 0) {
        yk_http_json_time(j, "confirmed", order->confirmed_us);
    }
    texts_write(call, j, order);
    lines_write(call, j, order);
}
