/* SPDX-License-Identifier: Apache-2.0 */
#include "take.h"
#include <apr_strings.h>
#include <string.h>

/*
 * The house seats a party from the area's free map, one locked row. Seats
 * whose grade does not offer every tariff asked are left out; where a quota of
 * a grade would be passed, only as many of its seats stay in as the quota
 * still has, and the party is seated anew.
 */

typedef struct party_t {
    yk_deed_t *deed;
    yk_order_row_t *row;
    const yk_take_line_t *line;
    yk_anchor_t *anchor;
    yk_plan_section_t section;
    unsigned char *map;        /* a copy, with the seats left out */
    uint32_t *seats;           /* ascending */
    const yk_price_t **prices; /* of each seat; NULL: free of charge */
    const char **tariffs;      /* of each seat */
} party_t;

static int bit_get(const unsigned char *map, uint32_t bit)
{
    return map[bit / 8] >> bit % 8 & 1;
}

static void bit_drop(unsigned char *map, uint32_t bit)
{
    map[bit / 8] &= ~(1 << bit % 8);
}

static int64_t bits_set(const unsigned char *map, uint32_t n)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < n; i++) {
        sum += bit_get(map, i);
    }
    return sum;
}

static const yk_price_t *price_of(const party_t *party, uint32_t place_no,
                                  const char *tariff)
{
    const yk_slot_t *slot = party->line->slot;
    yk_plan_place_t place;

    yk_plan_place(slot->plan, &place, place_no);
    return yk_slot_price(slot, party->line->area->area_no, place.grade, tariff);
}

/* Does some price depend on the grade? Else every seat is as good. */
static int grades_matter(const yk_slot_t *slot)
{
    for (uint32_t i = 0; i < slot->nprices; i++) {
        if (slot->prices[i].grade != NULL) {
            return 1;
        }
    }
    return 0;
}

static void leave_out_unoffered(party_t *party)
{
    const yk_take_line_t *line = party->line;

    if (!grades_matter(line->slot)) {
        return;
    }
    for (uint32_t i = 0; i < party->section.places; i++) {
        if (!bit_get(party->map, i)) {
            continue;
        }
        for (uint32_t j = 0; j < line->nparts; j++) {
            if (price_of(party, party->section.first + i,
                         line->parts[j].tariff) == NULL) {
                bit_drop(party->map, i);
                break;
            }
        }
    }
}

/* Who sits where: the parts in their order on the seats in theirs. */
static void set_prices(party_t *party)
{
    const yk_take_line_t *line = party->line;
    uint32_t seat = 0;

    for (uint32_t i = 0; i < line->nparts; i++) {
        for (uint32_t j = 0; j < line->parts[i].quantity; j++, seat++) {
            party->tariffs[seat] = line->parts[i].tariff;
            party->prices[seat] = line->slot->nprices == 0
                                      ? NULL
                                      : price_of(party, party->seats[seat],
                                                 line->parts[i].tariff);
        }
    }
}

/* The first price whose quota these seats would pass, and what it still has. */
static const yk_price_t *quota_passed(const party_t *party, int64_t *left)
{
    const yk_slot_t *slot = party->line->slot;

    for (uint32_t i = 0; i < party->line->quantity; i++) {
        const yk_price_t *price = party->prices[i];
        const yk_anchor_t *anchor;
        int64_t need = 0, net;

        if (price == NULL || !price->counted) {
            continue;
        }
        anchor = yk_ledger_anchor(party->deed->ledger, YK_ANCHOR_QUOTA,
                                  slot->slot_id, price->price_no);
        for (uint32_t j = 0; j < party->line->quantity; j++) {
            need += party->prices[j] == price;
        }
        net = yk_deed_net(party->row, &anchor->key);
        *left = anchor->max - anchor->used > -net ? anchor->max - anchor->used
                                                  : -net;
        if (anchor->max >= 0 && need > *left) {
            return price;
        }
    }
    return NULL;
}

/* Keep only `left` of the seats chosen at this price, and no others of it. */
static void leave_out_price(party_t *party, const yk_price_t *price,
                            int64_t left)
{
    uint32_t first = party->section.first;

    for (uint32_t i = 0; i < party->section.places; i++) {
        int keep = 0;

        if (!bit_get(party->map, i) ||
            price_of(party, first + i, price->tariff) != price) {
            continue;
        }
        for (uint32_t j = 0; j < party->line->quantity && !keep; j++) {
            keep = party->seats[j] == first + i && party->prices[j] == price;
        }
        if (keep && left > 0) {
            left--;
        }
        else {
            bit_drop(party->map, i);
        }
    }
}

static int refuse_party(party_t *party, yk_answer_e answer,
                        const yk_price_t *quota, int64_t left)
{
    yk_deed_t *deed = party->deed;
    yk_reply_t *reply = deed->reply;

    yk_deed_refuse(deed, answer);
    reply->slot = party->line->slot->key;
    reply->area = party->line->area->name;
    reply->tariff = quota != NULL ? quota->tariff : NULL;
    reply->free = quota != NULL
                      ? left
                      : bits_set(party->anchor->map, party->section.places);
    if (reply->free < 0) {
        reply->free = 0;
    }
    yk_deed_bound(deed, &party->anchor->key, NULL);
    return 0;
}

/* Choose the seats; 0 with the refusal set. */
static int choose_seats(party_t *party, int together)
{
    const yk_take_line_t *line = party->line;
    const yk_price_t *quota = NULL, *passed;
    yk_seating_e seating;
    int64_t left = 0;

    for (;;) {
        seating =
            yk_plan_seat(line->slot->plan, party->seats, line->area->area_no,
                         party->map, line->quantity, together);
        if (seating == YK_SEATING_NONE) {
            return refuse_party(party, YK_ANSWER_SOLD_OUT, quota, left);
        }
        if (seating == YK_SEATING_SPREAD && together) {
            return refuse_party(party, YK_ANSWER_NOT_TOGETHER, NULL, 0);
        }
        set_prices(party);
        passed = quota_passed(party, &left);
        if (passed == NULL) {
            break;
        }
        quota = passed;
        yk_deed_bound(party->deed,
                      &yk_ledger_anchor(party->deed->ledger, YK_ANCHOR_QUOTA,
                                        line->slot->slot_id, quota->price_no)
                           ->key,
                      NULL);
        leave_out_price(party, quota, left);
    }
    if (seating == YK_SEATING_SPREAD) {
        /* Before people are spread, what is due in the area is settled. */
        yk_deed_bound(party->deed, &party->anchor->key, NULL);
    }
    if ((int)seating > party->deed->reply->seating) {
        party->deed->reply->seating = seating;
    }
    return 1;
}

static int sit_down(party_t *party, uint32_t index)
{
    yk_deed_t *deed = party->deed;
    const yk_take_line_t *from = party->line;
    const yk_order_t *order = party->row->order;
    uint32_t place_no = party->seats[index];
    yk_line_t *line = yk_take_line_make(
        deed, party->row, from, party->tariffs[index], party->prices[index], 1);
    yk_place_t *place;

    if (line == NULL) {
        return 0;
    }
    line->place_no = place_no;
    if (!yk_deed_count(deed, party->row, line, 1)) {
        return 0;
    }
    yk_deed_map(deed, from->slot, from->area->area_no, place_no, 0);
    place = yk_ledger_seat(deed->ledger, from->slot->slot_id,
                           from->area->area_no, place_no);
    yk_ledger_touch_place(deed->ledger, place);
    place->state =
        order->state == YK_ORDER_CONFIRMED ? YK_PLACE_BOOKED : YK_PLACE_HELD;
    place->order_id = order->order_id;
    place->until_us = order->until_us;
    place->by_order = order->order_id;
    return 1;
}

int yk_take_party(yk_deed_t *deed, yk_order_row_t *row,
                  const yk_take_line_t *line, int together)
{
    party_t party = {0};
    uint32_t bytes;

    party.deed = deed;
    party.row = row;
    party.line = line;
    party.anchor = yk_ledger_anchor(deed->ledger, YK_ANCHOR_AREA,
                                    line->slot->slot_id, line->area->area_no);
    yk_plan_section(line->slot->plan, &party.section, line->area->area_no);
    bytes = (party.section.places + 7) / 8;
    party.map = apr_pcalloc(deed->pt, bytes + 1);
    memcpy(party.map, party.anchor->map,
           party.anchor->map_bytes < bytes ? party.anchor->map_bytes : bytes);
    party.seats = apr_pcalloc(deed->pt, line->quantity * sizeof(uint32_t));
    party.prices = apr_pcalloc(deed->pt, line->quantity * sizeof(void *));
    party.tariffs = apr_pcalloc(deed->pt, line->quantity * sizeof(char *));
    leave_out_unoffered(&party);
    if (!choose_seats(&party, together)) {
        return 0;
    }
    for (uint32_t i = 0; i < line->quantity; i++) {
        if (!sit_down(&party, i)) {
            return 0;
        }
    }
    return 1;
}
