/* SPDX-License-Identifier: Apache-2.0 */
#include "deed.h"
#include <apr_strings.h>
#include <string.h>

/*
 * Limits are nested: each one that reaches a slot of the wish is counted over
 * everything it is about, the request included. Two lists are compared: what
 * counted before the deed, and what will count after it. So an exchange is
 * refused only for what it adds on balance, and a limit that was lowered later
 * does not stop anybody from giving places back.
 */

typedef struct loads_t {
    const yk_load_t *loads;
    uint32_t n;
} loads_t;

static const char *load_key(const yk_load_t *load, yk_over_e over)
{
    switch (over) {
    case YK_OVER_SLOT:
        return load->slot != NULL ? load->slot->key : load->key;
    case YK_OVER_RESOURCE:
        return load->slot != NULL ? load->slot->resource : load->resource;
    case YK_OVER_SERIES:
        return load->slot != NULL ? load->slot->series : load->series;
    case YK_OVER_ALL:
        break;
    }
    return "";
}

static int counts_under(const yk_limit_t *limit, const yk_load_t *load)
{
    return load->quantity > 0 &&
           strcmp(load_key(load, limit->over), limit->key) == 0;
}

/* Does an earlier load under this limit stand for the same slot or resource? */
static int seen_before(const yk_limit_t *limit, const loads_t lists[],
                       uint32_t list, uint32_t index)
{
    yk_over_e by =
        limit->count == YK_COUNT_SLOTS ? YK_OVER_SLOT : YK_OVER_RESOURCE;
    const char *key = load_key(&lists[list].loads[index], by);

    for (uint32_t i = 0; i <= list; i++) {
        uint32_t end = i == list ? index : lists[i].n;

        for (uint32_t j = 0; j < end; j++) {
            const yk_load_t *load = &lists[i].loads[j];

            if (counts_under(limit, load) &&
                strcmp(load_key(load, by), key) == 0) {
                return 1;
            }
        }
    }
    return 0;
}

static int64_t count_lists(const yk_limit_t *limit, const loads_t lists[],
                           uint32_t nlists)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < nlists; i++) {
        for (uint32_t j = 0; j < lists[i].n; j++) {
            const yk_load_t *load = &lists[i].loads[j];

            if (!counts_under(limit, load)) {
                continue;
            }
            if (limit->count == YK_COUNT_PLACES) {
                sum += load->quantity;
            }
            else if (!seen_before(limit, lists, i, j)) {
                sum++;
            }
        }
    }
    return sum;
}

static const char *over_name(yk_over_e over)
{
    static const char *const names[] = {"slot", "resource", "series", "all"};

    return names[over];
}

static int refuse_limit(yk_deed_t *deed, const char *limit, const char *scope,
                        int64_t max, int64_t have, int64_t asked)
{
    yk_reply_t *reply = deed->reply;

    yk_deed_refuse(deed, YK_ANSWER_LIMIT);
    reply->limit = limit;
    reply->scope = scope;
    reply->max = max;
    reply->have = have;
    reply->asked = asked;
    return 0;
}

static int check_one(yk_deed_t *deed, const yk_order_t *order,
                     const yk_limit_t *limit, loads_t before[2],
                     loads_t after[3])
{
    static const char *const counts[] = {"places", "slots", "resources"};
    int64_t had, have, all;
    const char *name;

    had = count_lists(limit, before, 2);
    have = count_lists(limit, after, 2);
    all = count_lists(limit, after, 3);
    if (!limit->in_force || all <= limit->max || all <= had) {
        return 1;
    }
    name = apr_psprintf(deed->p, "%s per %s over %s%s%s", counts[limit->count],
                        limit->per == YK_PER_ORDER ? "order" : "booker",
                        over_name(limit->over), limit->key[0] ? " " : "",
                        limit->key);
    if (limit->per == YK_PER_BOOKER) {
        const yk_anchor_key_t anchor = {YK_ANCHOR_BOOKER, order->tenant_id,
                                        order->booker_hash[0] << 8 |
                                            order->booker_hash[1]};

        yk_deed_bound(deed, &anchor, order->booker_hash);
    }
    return refuse_limit(deed, name, over_name(limit->over), limit->max, have,
                        all - have);
}

/* A booker's line that this transaction has not touched, as the book has it. */
static void add_booked(yk_deed_t *deed, loads_t *list, yk_load_t *loads,
                       const yk_booked_t *booked)
{
    if (yk_ledger_order(deed->ledger, booked->order_id) != NULL) {
        return; /* the ledger knows better */
    }
    loads[list->n].slot_id = booked->slot_id;
    loads[list->n].key = booked->slot;
    loads[list->n].resource = booked->resource;
    loads[list->n].series = booked->series;
    loads[list->n].quantity = booked->quantity;
    list->n++;
}

/* The lines of another order of his in this ledger. */
static void add_ledger_order(yk_deed_t *deed, loads_t *list, yk_load_t *loads,
                             const yk_order_t *order)
{
    yk_desk_t *desk = deed->desk;

    for (uint32_t i = 0; i < order->nlines; i++) {
        const yk_line_t *line = &order->lines[i];
        const yk_slot_t *slot = yk_deed_slot_known(deed, line->slot_id);

        if (!line->live) {
            continue;
        }
        if (slot == NULL && yk_catalogue_slot_by_id(
                                desk->catalogue, &slot, desk->store,
                                line->slot_id, 0, deed->pt) != APR_SUCCESS) {
            continue;
        }
        loads[list->n].slot = slot;
        loads[list->n].quantity = line->quantity;
        list->n++;
    }
}

static int is_of_booker(const yk_order_row_t *row, const yk_order_t *order)
{
    return row->found && row->order_id != order->order_id &&
           row->order->tenant_id == order->tenant_id &&
           memcmp(row->order->booker_hash, order->booker_hash, 16) == 0;
}

/* The booker's lines in other orders. */
static loads_t elsewhere(yk_deed_t *deed, const yk_order_t *order)
{
    yk_ledger_t *l = deed->ledger;
    loads_t list = {NULL, 0};
    const yk_booker_t *booker = NULL;
    uint32_t most = 0;
    yk_load_t *loads;

    if (order->booker[0] != '\0') {
        booker = yk_ledger_booker(l, order->tenant_id, order->booker_hash);
    }
    if (booker == NULL) {
        return list;
    }
    most = booker->nbooked;
    for (uint32_t i = 0; i < l->norders; i++) {
        most +=
            is_of_booker(&l->orders[i], order) ? l->orders[i].order->nlines : 0;
    }
    loads = apr_pcalloc(deed->pt, (most + 1) * sizeof(*loads));
    for (uint32_t i = 0; i < booker->nbooked; i++) {
        add_booked(deed, &list, loads, &booker->booked[i]);
    }
    for (uint32_t i = 0; i < l->norders; i++) {
        if (is_of_booker(&l->orders[i], order)) {
            add_ledger_order(deed, &list, loads, l->orders[i].order);
        }
    }
    list.loads = loads;
    return list;
}

/* What a decision rests on is written, also where its value stays: a cluster
 * certifies writes, not locking reads. */
static void touch_booker(yk_deed_t *deed, const yk_order_t *order)
{
    yk_anchor_t *anchor = yk_ledger_anchor(
        deed->ledger, YK_ANCHOR_BOOKER, order->tenant_id,
        (uint32_t)(order->booker_hash[0] << 8 | order->booker_hash[1]));

    if (anchor != NULL) {
        yk_ledger_touch_anchor(deed->ledger, anchor);
    }
}

static int64_t sum_of(const yk_load_t *loads, uint32_t n)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < n; i++) {
        sum += loads[i].quantity;
    }
    return sum;
}

int yk_limit_size(yk_deed_t *deed, const yk_order_t *order,
                  const yk_load_t *had, uint32_t nhad, const yk_load_t *kept,
                  uint32_t nkept, const yk_load_t *asked, uint32_t nasked)
{
    int64_t most = deed->desk->terms.hold_places;
    int64_t have = sum_of(kept, nkept), more = sum_of(asked, nasked);

    if (have + more > most && have + more > sum_of(had, nhad)) {
        return refuse_limit(deed, "places per order", "order", most, have,
                            more);
    }
    if (nasked > 0 && (int64_t)order->nlines + nasked > YK_ORDER_LINES) {
        return refuse_limit(deed, "lines per order", "order", YK_ORDER_LINES,
                            order->nlines, nasked);
    }
    return 1;
}

int yk_limit_check(yk_deed_t *deed, const yk_order_t *order,
                   const yk_load_t *had, uint32_t nhad, const yk_load_t *kept,
                   uint32_t nkept, const yk_load_t *asked, uint32_t nasked)
{
    loads_t none = {NULL, 0}, other = elsewhere(deed, order);
    loads_t before[2] = {{had, nhad}, none};
    loads_t after[3] = {{kept, nkept}, none, {asked, nasked}};

    for (uint32_t i = 0; i < deed->nslots; i++) {
        const yk_slot_t *slot = deed->slots[i];

        for (uint32_t j = 0; j < slot->nlimits; j++) {
            const yk_limit_t *limit = &slot->limits[j];
            int of_booker = limit->per == YK_PER_BOOKER;

            if (of_booker && order->booker[0] == '\0') {
                continue;
            }
            before[1] = after[1] = of_booker ? other : none;
            if (!check_one(deed, order, limit, before, after)) {
                return 0;
            }
        }
    }
    if (nasked > 0 && order->booker[0] != '\0') {
        touch_booker(deed, order);
    }
    return 1;
}

yk_load_t *yk_limit_loads(yk_deed_t *deed, uint32_t *n, const yk_order_t *order,
                          uint32_t more)
{
    yk_load_t *loads =
        apr_pcalloc(deed->pt, (order->nlines + more + 1) * sizeof(*loads));

    *n = 0;
    for (uint32_t i = 0; i < order->nlines; i++) {
        const yk_line_t *line = &order->lines[i];

        if (line->live) {
            loads[*n].slot = yk_deed_slot_known(deed, line->slot_id);
            loads[*n].quantity = line->quantity;
            ++*n;
        }
    }
    return loads;
}
