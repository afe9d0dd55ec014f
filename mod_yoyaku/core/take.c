/* SPDX-License-Identifier: Apache-2.0 */
#include "take.h"
#include <apr_strings.h>
#include <string.h>

/*
 * Taking. The plan finds the names of a wish and wants the rows; the decision
 * takes them: first what is counted (pools, parties, quotas), then the places,
 * so that of several reasons the one further up in the list is given.
 */

static const char *sub_field(yk_deed_t *deed, const char *field,
                             const char *member)
{
    return field == NULL || field[0] == '\0'
               ? member
               : apr_pstrcat(deed->p, field, ".", member, NULL);
}

/* ---- the plan: names ---- */

/* The only tariff of an area over all its grades. */
static const char *only_tariff_of_area(yk_deed_t *deed, const char **choices,
                                       const yk_slot_t *slot,
                                       const yk_area_t *area)
{
    const char *only = NULL;
    int n = 0;

    *choices = "";
    for (uint32_t i = 0; i < slot->nprices; i++) {
        const yk_price_t *price = &slot->prices[i];
        int known = 0;

        if (price->area_no >= 0 && (uint32_t)price->area_no != area->area_no) {
            continue;
        }
        for (uint32_t j = 0; j < i && !known; j++) {
            known = (slot->prices[j].area_no < 0 ||
                     (uint32_t)slot->prices[j].area_no == area->area_no) &&
                    strcmp(slot->prices[j].tariff, price->tariff) == 0;
        }
        if (!known) {
            only = price->tariff;
            *choices = n++ == 0
                           ? only
                           : apr_pstrcat(deed->p, *choices, ", ", only, NULL);
        }
    }
    return n == 1 ? only : NULL;
}

static int tariff_in_area(const yk_slot_t *slot, const yk_area_t *area,
                          const char *tariff)
{
    for (uint32_t i = 0; i < slot->nprices; i++) {
        const yk_price_t *price = &slot->prices[i];

        if ((price->area_no < 0 || (uint32_t)price->area_no == area->area_no) &&
            strcmp(price->tariff, tariff) == 0) {
            return 1;
        }
    }
    return 0;
}

/* Find the tariff of one part. Sets the refusal and returns 0, or 1. */
static int find_tariff(yk_deed_t *deed, yk_take_part_t *part,
                       const yk_take_line_t *line, const char *tariff,
                       const char *grade)
{
    const yk_slot_t *slot = line->slot;
    int party = line->area->mode == YK_MODE_ASSIGNED;
    const char *choices = "", *only;

    part->tariff = "";
    if (slot->nprices == 0 && tariff == NULL) {
        return 1;
    }
    only = party ? only_tariff_of_area(deed, &choices, slot, line->area)
                 : yk_slot_only_tariff(slot, &choices, line->area->area_no,
                                       grade, deed->p);
    if (tariff == NULL) {
        tariff = only;
    }
    if (tariff != NULL && party && tariff_in_area(slot, line->area, tariff)) {
        part->tariff = apr_pstrdup(deed->p, tariff);
        return 1;
    }
    if (tariff != NULL && !party) {
        part->price = yk_slot_price(slot, line->area->area_no, grade, tariff);
        if (part->price != NULL) {
            part->tariff = part->price->tariff;
            return 1;
        }
    }
    deed->may_be_old = 1;
    yk_deed_refuse_field(deed, YK_ANSWER_TARIFF_NOT_OFFERED,
                         sub_field(deed, line->field, "tariff"),
                         only != NULL ? only : choices);
    return 0;
}

static int find_place(yk_deed_t *deed, yk_take_line_t *line,
                      const yk_wish_line_t *wish, const char **grade)
{
    const yk_slot_t *slot = line->slot;
    yk_plan_place_t place;

    line->place_no = slot->plan != NULL ? yk_plan_find(slot->plan, wish->place)
                                        : YK_PLAN_NONE;
    if (line->place_no == YK_PLAN_NONE) {
        deed->reply->slot = slot->key;
        yk_deed_refuse_field(deed, YK_ANSWER_UNKNOWN_PLACE,
                             sub_field(deed, line->field, "place"), NULL);
        return 0;
    }
    yk_plan_place(slot->plan, &place, line->place_no);
    line->area = &slot->areas[place.section_no];
    *grade = place.grade;
    if (line->area->mode == YK_MODE_ASSIGNED ||
        line->area->mode == YK_MODE_POOLED) {
        yk_deed_refuse_field(
            deed, YK_ANSWER_INVALID, sub_field(deed, line->field, "place"),
            apr_pstrcat(deed->p, "area \"", line->area->name,
                        "\" and a quantity: seats are not chosen there", NULL));
        return 0;
    }
    return 1;
}

static int find_area(yk_deed_t *deed, yk_take_line_t *line,
                     const yk_wish_line_t *wish)
{
    line->place_no = YK_NO_PLACE;
    line->area = yk_slot_area(line->slot, wish->area);
    if (line->area == NULL) {
        deed->reply->slot = line->slot->key;
        yk_deed_refuse_field(deed, YK_ANSWER_UNKNOWN_AREA,
                             sub_field(deed, line->field, "area"), NULL);
        return 0;
    }
    if (line->area->mode == YK_MODE_PLACED) {
        yk_deed_refuse_field(deed, YK_ANSWER_INVALID,
                             sub_field(deed, line->field, "quantity"),
                             "places by name: seats are chosen there");
        return 0;
    }
    return 1;
}

static int is_repeated(const yk_take_t *take, uint32_t index)
{
    const yk_take_line_t *line = &take->lines[index];

    for (uint32_t i = 0; line->place_no != YK_NO_PLACE && i < index; i++) {
        if (take->lines[i].slot == line->slot &&
            take->lines[i].place_no == line->place_no) {
            return 1;
        }
    }
    return 0;
}

/* Sets deed->refused, or finds everything a line names. */
static apr_status_t find_line(yk_deed_t *deed, yk_take_t *take, uint32_t index)
{
    const yk_wish_line_t *wish = &take->wish->lines[index];
    yk_take_line_t *line = &take->lines[index];
    const char *grade = NULL;
    apr_status_t rv = yk_deed_slot(deed, &line->slot, wish->slot);

    line->field = wish->field;
    if (rv == APR_NOTFOUND) {
        deed->reply->slot = wish->slot;
        yk_deed_refuse_field(deed, YK_ANSWER_UNKNOWN,
                             sub_field(deed, line->field, "slot"), NULL);
        return APR_SUCCESS;
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    if (wish->place != NULL ? !find_place(deed, line, wish, &grade)
                            : !find_area(deed, line, wish)) {
        return APR_SUCCESS;
    }
    if (is_repeated(take, index)) {
        yk_deed_refuse_field(deed, YK_ANSWER_INVALID,
                             sub_field(deed, line->field, "place"),
                             "each place once");
        return APR_SUCCESS;
    }
    if (line->area->mode == YK_MODE_CLOSED) {
        return APR_SUCCESS; /* not_on_sale, decided with the clock */
    }
    line->nparts = wish->nparts;
    for (uint32_t i = 0; i < wish->nparts; i++) {
        line->parts[i].quantity = wish->parts[i].quantity;
        line->quantity += wish->parts[i].quantity;
        if (!find_tariff(deed, &line->parts[i], line, wish->parts[i].tariff,
                         grade)) {
            return APR_SUCCESS;
        }
    }
    return APR_SUCCESS;
}

/* ---- the plan: rows ---- */

static void want_quota(yk_deed_t *deed, const yk_slot_t *slot,
                       const yk_price_t *price)
{
    if (price != NULL && price->counted) {
        yk_ledger_want_anchor(deed->ledger, YK_ANCHOR_QUOTA, slot->slot_id,
                              price->price_no);
    }
}

static void want_take_line(yk_deed_t *deed, const yk_take_line_t *line,
                           const char *booker)
{
    const yk_slot_t *slot = line->slot;
    const yk_area_t *area = line->area;

    if (area->mode == YK_MODE_POOLED || area->mode == YK_MODE_ASSIGNED) {
        yk_ledger_want_anchor(deed->ledger, YK_ANCHOR_AREA, slot->slot_id,
                              area->area_no);
    }
    if (line->place_no != YK_NO_PLACE) {
        yk_ledger_want_place(deed->ledger, slot->slot_id, area->area_no,
                             line->place_no, 0);
    }
    for (uint32_t i = 0; i < line->nparts; i++) {
        want_quota(deed, slot, line->parts[i].price);
        /* A seat of any grade may be the one: all quotas of the tariff. */
        for (uint32_t j = 0;
             area->mode == YK_MODE_ASSIGNED && j < slot->nprices; j++) {
            if (strcmp(slot->prices[j].tariff, line->parts[i].tariff) == 0) {
                want_quota(deed, slot, &slot->prices[j]);
            }
        }
    }
    yk_deed_want_booker(deed, slot, booker);
}

apr_status_t yk_take_plan(yk_deed_t *deed, yk_take_t **ptake,
                          const yk_wish_t *wish)
{
    yk_take_t *take = apr_pcalloc(deed->pt, sizeof(*take));
    const char *booker =
        deed->seen != NULL ? deed->seen->booker : deed->desk->terms.booker;

    *ptake = take;
    take->wish = wish;
    take->n = wish->nlines;
    take->lines = apr_pcalloc(deed->pt, (take->n + 1) * sizeof(yk_take_line_t));
    for (uint32_t i = 0; i < take->n; i++) {
        apr_status_t rv = find_line(deed, take, i);

        if (rv != APR_SUCCESS || deed->refused) {
            return rv;
        }
        want_take_line(deed, &take->lines[i], booker);
    }
    return APR_SUCCESS;
}

/* ---- the decision ---- */

int yk_take_on_sale(yk_deed_t *deed, const yk_take_t *take)
{
    apr_time_t now = deed->ledger->now_us;

    for (uint32_t i = 0; i < take->n; i++) {
        const yk_take_line_t *line = &take->lines[i];
        int closed = line->area->mode == YK_MODE_CLOSED;

        if (yk_slot_on_sale(line->slot, now) && !closed) {
            continue;
        }
        yk_deed_refuse(deed, YK_ANSWER_NOT_ON_SALE);
        deed->reply->slot = line->slot->key;
        deed->reply->area = closed ? line->area->name : NULL;
        deed->reply->state =
            closed ? "closed" : yk_slot_state_name(line->slot, now);
        deed->reply->opens = line->slot->opens;
        deed->reply->closes = line->slot->closes;
        return 0;
    }
    return 1;
}

static int is_own(yk_deed_t *deed, const yk_take_line_t *line,
                  const yk_order_t *order)
{
    const yk_place_t *place;

    if (line->place_no == YK_NO_PLACE || order == NULL) {
        return 0;
    }
    place = yk_ledger_place(deed->ledger, line->slot->slot_id, line->place_no);
    return place != NULL && place->order_id == order->order_id;
}

yk_load_t *yk_take_loads(yk_deed_t *deed, uint32_t *n, const yk_take_t *take,
                         const yk_order_t *order)
{
    yk_load_t *loads = apr_pcalloc(deed->pt, (take->n + 1) * sizeof(*loads));

    *n = 0;
    for (uint32_t i = 0; i < take->n; i++) {
        if (!is_own(deed, &take->lines[i], order)) {
            loads[*n].slot = take->lines[i].slot;
            loads[*n].quantity = take->lines[i].quantity;
            ++*n;
        }
    }
    return loads;
}

yk_line_t *yk_take_line_make(yk_deed_t *deed, yk_order_row_t *row,
                             const yk_take_line_t *from, const char *tariff,
                             const yk_price_t *price, uint32_t quantity)
{
    yk_order_t *order = row->order;
    yk_line_t *line;

    if (price != NULL && order->currency[0] != '\0' &&
        strcmp(order->currency, price->currency) != 0) {
        yk_deed_refuse_field(
            deed, YK_ANSWER_INVALID, sub_field(deed, from->field, "tariff"),
            apr_pstrcat(deed->p, "prices in ", order->currency, NULL));
        return NULL;
    }
    line = yk_ledger_line_add(deed->ledger, order);
    line->slot_id = from->slot->slot_id;
    line->area_no = from->area->area_no;
    line->place_no = from->place_no;
    line->quantity = quantity;
    line->live = 1;
    line->tariff = tariff;
    if (price != NULL) {
        line->price_no = price->price_no;
        line->amount = price->amount;
        memcpy(line->currency, price->currency, sizeof(line->currency));
        memcpy(order->currency, price->currency, sizeof(order->currency));
    }
    return line;
}

/* A line that only counts: in a pool, or a named place's quota. */
static int take_counted(yk_deed_t *deed, yk_order_row_t *row,
                        const yk_take_line_t *from)
{
    for (uint32_t i = 0; i < from->nparts; i++) {
        const yk_take_part_t *part = &from->parts[i];
        yk_line_t *line = yk_take_line_make(deed, row, from, part->tariff,
                                            part->price, part->quantity);

        if (line == NULL || !yk_deed_count(deed, row, line, part->quantity)) {
            return 0;
        }
    }
    return 1;
}

static int take_place(yk_deed_t *deed, yk_order_row_t *row,
                      const yk_take_line_t *from)
{
    const yk_order_t *order = row->order;
    yk_place_t *place =
        yk_ledger_place(deed->ledger, from->slot->slot_id, from->place_no);
    int confirmed = order->state == YK_ORDER_CONFIRMED;

    if (!place->found || place->state == YK_PLACE_NOT_FOR_SALE ||
        place->state == YK_PLACE_BOOKED ||
        (place->state == YK_PLACE_HELD &&
         place->until_us > deed->ledger->now_us)) {
        return 0;
    }
    yk_ledger_touch_place(deed->ledger, place);
    place->state = confirmed ? YK_PLACE_BOOKED : YK_PLACE_HELD;
    place->order_id = order->order_id;
    place->until_us = confirmed ? 0 : order->until_us;
    place->by_order = order->order_id;
    return 1;
}

static void note_taken(yk_deed_t *deed, const yk_take_line_t *line,
                       const yk_take_t *take)
{
    yk_reply_t *reply = deed->reply;
    yk_plan_place_t place;

    if (reply->places == NULL) {
        reply->places = apr_pcalloc(deed->p, take->n * sizeof(*reply->places));
    }
    yk_plan_place(line->slot->plan, &place, line->place_no);
    reply->places[reply->nplaces].slot = line->slot->key;
    reply->places[reply->nplaces].place = place.guid;
    reply->nplaces++;
}

yk_verdict_e yk_take_all(yk_deed_t *deed, yk_order_row_t *row,
                         const yk_take_t *take, uint32_t *taken)
{
    char *own = apr_pcalloc(deed->pt, take->n + 1);

    *taken = 0;
    for (uint32_t i = 0; i < take->n; i++) {
        const yk_take_line_t *line = &take->lines[i];
        int party = line->area->mode == YK_MODE_ASSIGNED;

        own[i] = is_own(deed, line, row->order);
        if (own[i]) {
            continue;
        }
        if (party ? !yk_take_party(deed, row, line, take->wish->together)
                  : !take_counted(deed, row, line)) {
            return YK_VERDICT_REFUSED;
        }
        *taken += line->quantity;
    }
    for (uint32_t i = 0; i < take->n; i++) {
        const yk_take_line_t *line = &take->lines[i];

        if (!own[i] && line->place_no != YK_NO_PLACE &&
            !take_place(deed, row, line)) {
            note_taken(deed, line, take);
        }
    }
    if (deed->reply->nplaces > 0) {
        deed->reply->complete = 1;
        return yk_deed_refuse(deed, YK_ANSWER_TAKEN);
    }
    return YK_VERDICT_DONE;
}
