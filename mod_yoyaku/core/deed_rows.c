/* SPDX-License-Identifier: Apache-2.0 */
#include "deed.h"
#include <string.h>

/* What deeds share: which rows an order is made of, and what is done to them.
 */

static void remember_slot(yk_deed_t *deed, const yk_slot_t *slot)
{
    if (deed->nslots == deed->slot_space) {
        const yk_slot_t **wider;

        deed->slot_space = deed->slot_space ? deed->slot_space * 2 : 4;
        wider = apr_pcalloc(deed->pt, deed->slot_space * sizeof(*wider));
        if (deed->nslots > 0) {
            memcpy(wider, deed->slots, deed->nslots * sizeof(*wider));
        }
        deed->slots = wider;
    }
    deed->slots[deed->nslots++] = slot;
    yk_ledger_want_version(deed->ledger, slot->slot_id);
}

const yk_slot_t *yk_deed_slot_known(const yk_deed_t *deed, uint64_t slot_id)
{
    for (uint32_t i = 0; i < deed->nslots; i++) {
        if (deed->slots[i]->slot_id == slot_id) {
            return deed->slots[i];
        }
    }
    return NULL;
}

apr_status_t yk_deed_slot(yk_deed_t *deed, const yk_slot_t **slot,
                          const char *key)
{
    yk_desk_t *desk = deed->desk;
    apr_status_t rv;
    int was_fresh;

    for (uint32_t i = 0; i < deed->nslots; i++) {
        if (strcmp(deed->slots[i]->key, key) == 0) {
            *slot = deed->slots[i];
            return APR_SUCCESS;
        }
    }
    rv = yk_catalogue_slot(desk->catalogue, slot, &was_fresh, desk->store,
                           desk->terms.tenant_id, key, deed->fresh, deed->pt);
    if (rv == APR_SUCCESS) {
        deed->stale |= !was_fresh;
        remember_slot(deed, *slot);
    }
    return rv;
}

apr_status_t yk_deed_slot_by_id(yk_deed_t *deed, const yk_slot_t **slot,
                                uint64_t slot_id)
{
    yk_desk_t *desk = deed->desk;
    apr_status_t rv;

    *slot = yk_deed_slot_known(deed, slot_id);
    if (*slot != NULL) {
        return APR_SUCCESS;
    }
    rv = yk_catalogue_slot_by_id(desk->catalogue, slot, desk->store, slot_id,
                                 deed->fresh, deed->pt);
    if (rv == APR_SUCCESS) {
        deed->stale |= !deed->fresh;
        remember_slot(deed, *slot);
    }
    return rv;
}

const yk_price_t *yk_deed_price(const yk_slot_t *slot, uint32_t price_no)
{
    for (uint32_t i = 0; price_no != 0 && i < slot->nprices; i++) {
        if (slot->prices[i].price_no == price_no) {
            return &slot->prices[i];
        }
    }
    return NULL;
}

apr_status_t yk_claim_read(const yk_claim_t *claim, yk_desk_t *desk,
                           yk_order_t **order, apr_time_t *now, apr_pool_t *p)
{
    uint32_t tenant_id = desk->terms.tenant_id;

    return claim->token != NULL
               ? yk_store_order_by_token(desk->store, order, now, tenant_id,
                                         claim->token, p)
               : yk_store_order(desk->store, order, now, tenant_id,
                                claim->order_id, p);
}

/* The claimed order as the book has it; deed->seen NULL: there is none. */
static apr_status_t read_claim(yk_deed_t *deed, apr_time_t *now)
{
    apr_status_t rv;

    if (deed->claimed != NULL && deed->claimed->is_whole) {
        deed->seen = deed->claimed->order;
        *now = deed->claimed_at;
        return APR_SUCCESS;
    }
    rv = yk_claim_read(deed->claim, deed->desk, &deed->seen, now, deed->pt);
    if (rv != APR_SUCCESS) {
        deed->seen = NULL;
    }
    return rv == APR_NOTFOUND ? APR_SUCCESS : rv;
}

apr_status_t yk_deed_claim(yk_deed_t *deed)
{
    const yk_claim_t *claim = deed->claim;
    int forgives = deed->begins && claim != NULL && claim->weak;
    yk_order_state_e state;
    apr_time_t now = 0;
    apr_status_t rv;

    if (claim == NULL || deed->claim_void) {
        return APR_SUCCESS;
    }
    rv = read_claim(deed, &now);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    if (deed->seen == NULL) {
        if (!forgives) {
            yk_deed_refuse_field(deed, YK_ANSWER_UNKNOWN, "order", NULL);
        }
        return APR_SUCCESS;
    }
    state = yk_order_state_at(deed->seen, now);
    if (forgives && state != YK_ORDER_HELD && state != YK_ORDER_LOCKED) {
        deed->seen = NULL;
    }
    return APR_SUCCESS;
}

void yk_deed_want_booker(yk_deed_t *deed, const yk_slot_t *slot,
                         const char *booker)
{
    unsigned char hash[16];

    if (booker[0] == '\0') {
        return;
    }
    for (uint32_t i = 0; i < slot->nlimits; i++) {
        if (slot->limits[i].per == YK_PER_BOOKER) {
            yk_booker_hash(hash, booker);
            yk_ledger_want_anchor(deed->ledger, YK_ANCHOR_BOOKER,
                                  slot->tenant_id, hash[0] << 8 | hash[1]);
            yk_ledger_want_booker(deed->ledger, slot->tenant_id, hash);
            return;
        }
    }
}

/* Lock order is the store's; here only what is wanted. */
static void want_line(yk_deed_t *deed, const yk_slot_t *slot,
                      const yk_line_t *line)
{
    const yk_area_t *area = &slot->areas[line->area_no];
    const yk_price_t *price = yk_deed_price(slot, line->price_no);

    if (area->mode == YK_MODE_POOLED || area->mode == YK_MODE_ASSIGNED) {
        yk_ledger_want_anchor(deed->ledger, YK_ANCHOR_AREA, slot->slot_id,
                              area->area_no);
    }
    if (price != NULL && price->counted) {
        yk_ledger_want_anchor(deed->ledger, YK_ANCHOR_QUOTA, slot->slot_id,
                              price->price_no);
    }
    if (line->place_no != YK_NO_PLACE) {
        yk_ledger_want_place(deed->ledger, slot->slot_id, area->area_no,
                             line->place_no, area->mode == YK_MODE_ASSIGNED);
    }
}

apr_status_t yk_deed_want_order(yk_deed_t *deed, const yk_order_t *order,
                                int all)
{
    const yk_slot_t *slot;

    for (uint32_t i = 0; i < order->nlines; i++) {
        const yk_line_t *line = &order->lines[i];
        apr_status_t rv;

        if (line->quantity == 0 || !(line->live || all)) {
            continue;
        }
        rv = yk_deed_slot_by_id(deed, &slot, line->slot_id);
        if (rv != APR_SUCCESS) {
            return rv;
        }
        want_line(deed, slot, line);
        yk_deed_want_booker(deed, slot, order->booker);
    }
    yk_ledger_want_order(deed->ledger, order->order_id, order);
    return APR_SUCCESS;
}

apr_status_t yk_deed_plan_order(yk_deed_t *deed)
{
    apr_status_t rv = yk_deed_claim(deed);

    if (rv != APR_SUCCESS || deed->refused) {
        return rv;
    }
    return yk_deed_want_order(deed, deed->seen, 0);
}

int yk_deed_in_time(yk_deed_t *deed, const yk_order_t *order)
{
    if ((order->state != YK_ORDER_HELD && order->state != YK_ORDER_LOCKED) ||
        deed->ledger->now_us >= order->until_us) {
        return 0;
    }
    for (uint32_t i = 0; i < order->nlines; i++) {
        const yk_line_t *line = &order->lines[i];
        const yk_place_t *place;

        if (!line->live || line->place_no == YK_NO_PLACE) {
            continue;
        }
        place = yk_ledger_place(deed->ledger, line->slot_id, line->place_no);
        if (place == NULL || place->order_id != order->order_id) {
            return 0;
        }
    }
    return 1;
}

void yk_deed_touch(yk_deed_t *deed, yk_order_row_t *row, const char *why)
{
    yk_ledger_touch_order(deed->ledger, row);
    row->why = why;
    row->who = deed->desk->terms.who;
    if (row == deed->row) {
        row->change_id = deed->change_id;
    }
    while (row->change_id == 0) {
        yk_secret_random(&row->change_id, sizeof(row->change_id));
        row->change_id &= INT64_MAX;
    }
}

void yk_deed_stamp_places(yk_deed_t *deed, yk_order_row_t *row)
{
    const yk_order_t *order = row->order;
    yk_place_state_e state =
        order->state == YK_ORDER_CONFIRMED ? YK_PLACE_BOOKED : YK_PLACE_HELD;
    apr_time_t until = state == YK_PLACE_BOOKED ? 0 : order->until_us;

    for (uint32_t i = 0; i < order->nlines; i++) {
        const yk_line_t *line = &order->lines[i];
        yk_place_t *place;

        if (!line->live || line->place_no == YK_NO_PLACE) {
            continue;
        }
        place = yk_ledger_place(deed->ledger, line->slot_id, line->place_no);
        if (place == NULL || place->order_id != order->order_id) {
            continue;
        }
        yk_ledger_touch_place(deed->ledger, place);
        place->state = state;
        place->until_us = until;
        place->by_order = order->order_id;
    }
}

void yk_deed_map(yk_deed_t *deed, const yk_slot_t *slot, uint32_t area_no,
                 uint32_t place_no, int is_free)
{
    yk_anchor_t *anchor =
        yk_ledger_anchor(deed->ledger, YK_ANCHOR_AREA, slot->slot_id, area_no);
    yk_plan_section_t section;
    uint32_t bit;

    yk_plan_section(slot->plan, &section, area_no);
    bit = place_no - section.first;
    if (bit / 8 >= anchor->map_bytes) {
        return;
    }
    yk_ledger_touch_anchor(deed->ledger, anchor);
    if (is_free) {
        anchor->map[bit / 8] |= 1 << bit % 8;
    }
    else {
        anchor->map[bit / 8] &= ~(1 << bit % 8);
    }
}

/* The counts a line is under: its area's and its tariff's. */
static uint32_t counts_of(yk_deed_t *deed, yk_anchor_t *counts[2],
                          const yk_line_t *line)
{
    const yk_slot_t *slot = yk_deed_slot_known(deed, line->slot_id);
    const yk_area_t *area = &slot->areas[line->area_no];
    const yk_price_t *price = yk_deed_price(slot, line->price_no);
    uint32_t n = 0;

    if (area->mode == YK_MODE_POOLED || area->mode == YK_MODE_ASSIGNED) {
        counts[n++] = yk_ledger_anchor(deed->ledger, YK_ANCHOR_AREA,
                                       slot->slot_id, area->area_no);
    }
    if (price != NULL && price->counted) {
        counts[n++] = yk_ledger_anchor(deed->ledger, YK_ANCHOR_QUOTA,
                                       slot->slot_id, price->price_no);
    }
    return n;
}

void yk_deed_bound(yk_deed_t *deed, const yk_anchor_key_t *anchor,
                   const unsigned char *booker_hash)
{
    yk_bound_t *bound;

    if (deed->nbounds == deed->bound_space) {
        yk_bound_t *wider;

        deed->bound_space = deed->bound_space ? deed->bound_space * 2 : 4;
        wider = apr_pcalloc(deed->pt, deed->bound_space * sizeof(*wider));
        if (deed->nbounds > 0) {
            memcpy(wider, deed->bounds, deed->nbounds * sizeof(*wider));
        }
        deed->bounds = wider;
    }
    bound = &deed->bounds[deed->nbounds++];
    bound->anchor = *anchor;
    if (booker_hash != NULL) {
        memcpy(bound->booker_hash, booker_hash, sizeof(bound->booker_hash));
    }
}

int64_t yk_deed_net(const yk_order_row_t *row, const yk_anchor_key_t *key)
{
    for (uint32_t i = 0; i < row->ncounts; i++) {
        const yk_count_t *count = &row->counts[i];

        if (count->slot_id == key->owner && count->kind == key->kind &&
            count->no == key->no) {
            return count->delta;
        }
    }
    return 0;
}

static void refuse_count(yk_deed_t *deed, const yk_anchor_t *anchor,
                         const yk_line_t *line)
{
    const yk_slot_t *slot = yk_deed_slot_known(deed, line->slot_id);
    yk_reply_t *reply = deed->reply;

    yk_deed_refuse(deed, YK_ANSWER_SOLD_OUT);
    reply->slot = slot->key;
    reply->area = slot->areas[line->area_no].name;
    reply->tariff = anchor->key.kind == YK_ANCHOR_QUOTA ? line->tariff : NULL;
    reply->free = anchor->max > anchor->used ? anchor->max - anchor->used : 0;
    yk_deed_bound(deed, &anchor->key, NULL);
}

int yk_deed_count(yk_deed_t *deed, yk_order_row_t *row, const yk_line_t *line,
                  int64_t quantity)
{
    yk_anchor_t *counts[2];
    uint32_t n = counts_of(deed, counts, line);

    for (uint32_t i = 0; i < n; i++) {
        const yk_anchor_t *anchor = counts[i];

        /* Only what the order takes on balance can pass a bound. */
        if (quantity > 0 && anchor->max >= 0 &&
            anchor->used + quantity > anchor->max &&
            yk_deed_net(row, &anchor->key) + quantity > 0) {
            refuse_count(deed, anchor, line);
            return 0;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        yk_ledger_touch_anchor(deed->ledger, counts[i]);
        counts[i]->used += quantity;
        yk_ledger_count(deed->ledger, row, &counts[i]->key, quantity);
    }
    return 1;
}

void yk_deed_give(yk_deed_t *deed, yk_order_row_t *row, yk_line_t *line,
                  uint32_t quantity, int remove)
{
    const yk_slot_t *slot = yk_deed_slot_known(deed, line->slot_id);
    yk_place_t *place;
    int whole = quantity == 0 || quantity >= line->quantity;

    if (line->live) {
        yk_deed_count(deed, row, line,
                      -(int64_t)(whole ? line->quantity : quantity));
    }
    if (!whole) {
        line->quantity -= quantity;
        return;
    }
    if (line->live && line->place_no != YK_NO_PLACE) {
        place = yk_ledger_place(deed->ledger, line->slot_id, line->place_no);
        if (place != NULL && place->order_id == row->order_id) {
            yk_ledger_touch_place(deed->ledger, place);
            place->state = YK_PLACE_FREE;
            place->order_id = 0;
            place->until_us = 0;
            place->by_order = row->order_id;
            if (slot->areas[line->area_no].mode == YK_MODE_ASSIGNED) {
                yk_deed_map(deed, slot, line->area_no, line->place_no, 1);
            }
        }
    }
    line->live = 0;
    if (remove) {
        line->quantity = 0;
    }
}

void yk_deed_end(yk_deed_t *deed, yk_order_row_t *row, yk_order_state_e state,
                 const char *why)
{
    yk_order_t *order = row->order;

    yk_deed_touch(deed, row, why);
    for (uint32_t i = 0; i < order->nlines; i++) {
        if (order->lines[i].live) {
            yk_deed_give(deed, row, &order->lines[i], 0, 0);
        }
    }
    order->state = state;
    order->until_us = 0;
}

void yk_deed_book(yk_deed_t *deed, yk_order_row_t *row, const char *why)
{
    yk_order_t *order = row->order;

    yk_deed_touch(deed, row, why);
    order->state = YK_ORDER_CONFIRMED;
    order->confirmed_us = deed->ledger->now_us;
    order->until_us = 0;
    yk_deed_stamp_places(deed, row);
}
