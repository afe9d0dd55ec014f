/* SPDX-License-Identifier: Apache-2.0 */
#include "yoyaku/ledger.h"
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

/* What stood in a row before its first change since the mark. */
typedef enum undo_e { UNDO_ANCHOR, UNDO_PLACE, UNDO_ORDER } undo_e;

typedef struct yk_undo_t {
    struct yk_undo_t *next;
    undo_e kind;
    uint32_t index;
    union {
        yk_anchor_t anchor;
        yk_place_t place;
        yk_order_row_t order;
    } was;
} yk_undo_t;

yk_ledger_t *yk_ledger_make(apr_pool_t *p)
{
    yk_ledger_t *l = apr_pcalloc(p, sizeof(*l));

    l->p = p;
    l->mark = 1;
    return l;
}

/* Room for one more row; the array doubles. */
static void *room(yk_ledger_t *l, void *rows, uint32_t n, uint32_t *space,
                  apr_size_t size)
{
    void *wider;

    if (n < *space) {
        return rows;
    }
    *space = n < 4 ? 8 : n * 2;
    wider = apr_pcalloc(l->p, *space * size);
    if (n > 0) {
        memcpy(wider, rows, n * size);
    }
    return wider;
}

void yk_ledger_want_anchor(yk_ledger_t *l, yk_anchor_e kind, uint64_t owner,
                           uint32_t no)
{
    yk_anchor_t *a;

    l->anchors =
        room(l, l->anchors, l->nanchors, &l->anchor_space, sizeof(*l->anchors));
    a = &l->anchors[l->nanchors++];
    a->key.kind = kind;
    a->key.owner = owner;
    a->key.no = no;
}

static yk_place_t *place_add(yk_ledger_t *l, uint64_t slot_id, uint32_t area_no,
                             uint32_t place_no, int seat)
{
    yk_place_t *place;

    l->places =
        room(l, l->places, l->nplaces, &l->place_space, sizeof(*l->places));
    place = &l->places[l->nplaces++];
    memset(place, 0, sizeof(*place));
    place->slot_id = slot_id;
    place->area_no = area_no;
    place->place_no = place_no;
    place->seat = seat;
    return place;
}

void yk_ledger_want_place(yk_ledger_t *l, uint64_t slot_id, uint32_t area_no,
                          uint32_t place_no, int seat)
{
    place_add(l, slot_id, area_no, place_no, seat);
}

void yk_ledger_want_order(yk_ledger_t *l, uint64_t order_id,
                          const yk_order_t *seen)
{
    yk_order_row_t *row;

    l->orders =
        room(l, l->orders, l->norders, &l->order_space, sizeof(*l->orders));
    row = &l->orders[l->norders++];
    row->order_id = order_id;
    row->seen = seen;
}

void yk_ledger_want_version(yk_ledger_t *l, uint64_t slot_id)
{
    if (yk_ledger_version(l, slot_id) != NULL) {
        return;
    }
    l->versions = room(l, l->versions, l->nversions, &l->version_space,
                       sizeof(*l->versions));
    l->versions[l->nversions++].slot_id = slot_id;
}

void yk_ledger_want_booker(yk_ledger_t *l, uint32_t tenant_id,
                           const unsigned char hash[16])
{
    yk_booker_t *booker;

    if (yk_ledger_booker(l, tenant_id, hash) != NULL) {
        return;
    }
    l->bookers =
        room(l, l->bookers, l->nbookers, &l->booker_space, sizeof(*l->bookers));
    booker = &l->bookers[l->nbookers++];
    booker->tenant_id = tenant_id;
    memcpy(booker->hash, hash, sizeof(booker->hash));
}

void yk_ledger_want_once(yk_ledger_t *l, uint32_t tenant_id,
                         const yk_hash_t *scope)
{
    yk_once_row_t *once;

    if (yk_ledger_once(l, tenant_id, scope) != NULL) {
        return;
    }
    l->onces = room(l, l->onces, l->nonces, &l->once_space, sizeof(*l->onces));
    once = &l->onces[l->nonces++];
    once->tenant_id = tenant_id;
    once->scope = *scope;
}

static int by_size(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int anchor_order(const void *a, const void *b)
{
    const yk_anchor_key_t *x = &((const yk_anchor_t *)a)->key;
    const yk_anchor_key_t *y = &((const yk_anchor_t *)b)->key;

    if (x->kind != y->kind) {
        return by_size(x->kind, y->kind);
    }
    return x->owner != y->owner ? by_size(x->owner, y->owner)
                                : by_size(x->no, y->no);
}

static int place_order(const void *a, const void *b)
{
    const yk_place_t *x = a, *y = b;

    return x->slot_id != y->slot_id ? by_size(x->slot_id, y->slot_id)
                                    : by_size(x->place_no, y->place_no);
}

static int order_order(const void *a, const void *b)
{
    const yk_order_row_t *x = a, *y = b;

    return by_size(x->order_id, y->order_id);
}

/* Sort, drop repeated rows, and say how many are left. */
static uint32_t in_order(void *rows, uint32_t n, apr_size_t size,
                         int (*compare)(const void *, const void *))
{
    char *row = rows;
    uint32_t last = 0;

    if (n < 2) {
        return n;
    }
    qsort(rows, n, size, compare);
    for (uint32_t i = 1; i < n; i++) {
        if (compare(row + last * size, row + i * size) != 0) {
            last++;
            if (last != i) {
                memcpy(row + last * size, row + i * size, size);
            }
        }
    }
    return last + 1;
}

void yk_ledger_sort(yk_ledger_t *l)
{
    l->nanchors =
        in_order(l->anchors, l->nanchors, sizeof(*l->anchors), anchor_order);
    l->nplaces =
        in_order(l->places, l->nplaces, sizeof(*l->places), place_order);
    l->norders =
        in_order(l->orders, l->norders, sizeof(*l->orders), order_order);
    l->sorted_places = l->nplaces;
    l->sorted_orders = l->norders;
}

yk_anchor_t *yk_ledger_anchor(yk_ledger_t *l, yk_anchor_e kind, uint64_t owner,
                              uint32_t no)
{
    yk_anchor_t wanted;

    wanted.key.kind = kind;
    wanted.key.owner = owner;
    wanted.key.no = no;
    return l->nanchors == 0 ? NULL
                            : bsearch(&wanted, l->anchors, l->nanchors,
                                      sizeof(wanted), anchor_order);
}

yk_place_t *yk_ledger_place(yk_ledger_t *l, uint64_t slot_id, uint32_t place_no)
{
    yk_place_t wanted, *found = NULL;

    wanted.slot_id = slot_id;
    wanted.place_no = place_no;
    if (l->sorted_places > 0) {
        found = bsearch(&wanted, l->places, l->sorted_places, sizeof(wanted),
                        place_order);
    }
    for (uint32_t i = l->sorted_places; found == NULL && i < l->nplaces; i++) {
        if (place_order(&wanted, &l->places[i]) == 0) {
            found = &l->places[i];
        }
    }
    return found;
}

yk_order_row_t *yk_ledger_order(yk_ledger_t *l, uint64_t order_id)
{
    yk_order_row_t wanted, *found = NULL;

    wanted.order_id = order_id;
    if (l->sorted_orders > 0) {
        found = bsearch(&wanted, l->orders, l->sorted_orders, sizeof(wanted),
                        order_order);
    }
    for (uint32_t i = l->sorted_orders; found == NULL && i < l->norders; i++) {
        if (l->orders[i].order_id == order_id) {
            found = &l->orders[i];
        }
    }
    return found;
}

yk_version_t *yk_ledger_version(yk_ledger_t *l, uint64_t slot_id)
{
    for (uint32_t i = 0; i < l->nversions; i++) {
        if (l->versions[i].slot_id == slot_id) {
            return &l->versions[i];
        }
    }
    return NULL;
}

yk_booker_t *yk_ledger_booker(yk_ledger_t *l, uint32_t tenant_id,
                              const unsigned char hash[16])
{
    for (uint32_t i = 0; i < l->nbookers; i++) {
        if (l->bookers[i].tenant_id == tenant_id &&
            memcmp(l->bookers[i].hash, hash, 16) == 0) {
            return &l->bookers[i];
        }
    }
    return NULL;
}

yk_once_row_t *yk_ledger_once(yk_ledger_t *l, uint32_t tenant_id,
                              const yk_hash_t *scope)
{
    for (uint32_t i = 0; i < l->nonces; i++) {
        if (l->onces[i].tenant_id == tenant_id &&
            memcmp(&l->onces[i].scope, scope, sizeof(*scope)) == 0) {
            return &l->onces[i];
        }
    }
    return NULL;
}

yk_place_t *yk_ledger_seat(yk_ledger_t *l, uint64_t slot_id, uint32_t area_no,
                           uint32_t place_no)
{
    yk_place_t *place = yk_ledger_place(l, slot_id, place_no);

    if (place == NULL) {
        place = place_add(l, slot_id, area_no, place_no, 1);
        place->found = 1;
    }
    return place;
}

static yk_undo_t *keep(yk_ledger_t *l, undo_e kind, uint32_t index)
{
    yk_undo_t *undo = apr_pcalloc(l->p, sizeof(*undo));

    undo->kind = kind;
    undo->index = index;
    undo->next = l->undo;
    l->undo = undo;
    return undo;
}

void yk_ledger_touch_anchor(yk_ledger_t *l, yk_anchor_t *anchor)
{
    if (anchor->mark != l->mark) {
        yk_undo_t *undo = keep(l, UNDO_ANCHOR, anchor - l->anchors);

        undo->was.anchor = *anchor;
        if (anchor->map_bytes > 0) {
            undo->was.anchor.map =
                apr_pmemdup(l->p, anchor->map, anchor->map_bytes);
        }
        anchor->mark = l->mark;
    }
    anchor->changed = 1;
}

void yk_ledger_touch_place(yk_ledger_t *l, yk_place_t *place)
{
    if (place->mark != l->mark) {
        keep(l, UNDO_PLACE, place - l->places)->was.place = *place;
        place->mark = l->mark;
    }
    place->changed = 1;
}

void yk_ledger_touch_order(yk_ledger_t *l, yk_order_row_t *row)
{
    if (row->mark != l->mark) {
        yk_undo_t *undo = keep(l, UNDO_ORDER, row - l->orders);

        undo->was.order = *row;
        undo->was.order.order = yk_order_copy(row->order, l->p);
        if (row->ncounts > 0) {
            undo->was.order.counts = apr_pmemdup(
                l->p, row->counts, row->ncounts * sizeof(*row->counts));
            undo->was.order.count_space = row->ncounts;
        }
        row->mark = l->mark;
    }
    row->changed = 1;
}

void yk_ledger_count(yk_ledger_t *l, yk_order_row_t *row,
                     const yk_anchor_key_t *key, int64_t delta)
{
    yk_count_t *count;

    for (uint32_t i = 0; i < row->ncounts; i++) {
        count = &row->counts[i];
        if (count->slot_id == key->owner && count->kind == key->kind &&
            count->no == key->no) {
            count->delta += delta;
            return;
        }
    }
    row->counts = room(l, row->counts, row->ncounts, &row->count_space,
                       sizeof(*row->counts));
    count = &row->counts[row->ncounts++];
    count->slot_id = key->owner;
    count->kind = key->kind;
    count->no = key->no;
    count->delta = delta;
}

yk_order_row_t *yk_ledger_order_add(yk_ledger_t *l, yk_order_t *order)
{
    yk_order_row_t *row;

    l->orders =
        room(l, l->orders, l->norders, &l->order_space, sizeof(*l->orders));
    row = &l->orders[l->norders++];
    memset(row, 0, sizeof(*row));
    row->order_id = order->order_id;
    row->order = order;
    row->found = 1;
    row->changed = 1;
    row->is_new = 1;
    row->mark = l->mark;
    return row;
}

void yk_ledger_reserve_orders(yk_ledger_t *l, uint32_t n)
{
    yk_order_row_t *wider;

    if (l->norders + n <= l->order_space) {
        return;
    }
    l->order_space = l->norders + n;
    wider = apr_pcalloc(l->p, l->order_space * sizeof(*wider));
    if (l->norders > 0) {
        memcpy(wider, l->orders, l->norders * sizeof(*wider));
    }
    l->orders = wider;
}

yk_line_t *yk_ledger_line_add(yk_ledger_t *l, yk_order_t *order)
{
    yk_line_t *line;

    order->lines = room(l, order->lines, order->nlines, &order->line_space,
                        sizeof(*order->lines));
    line = &order->lines[order->nlines++];
    memset(line, 0, sizeof(*line));
    line->line = order->next_line++;
    line->tariff = "";
    line->holder = "";
    return line;
}

void yk_ledger_mark(yk_ledger_t *l)
{
    l->mark++;
    l->undo = NULL;
}

void yk_ledger_undo(yk_ledger_t *l)
{
    /* Orders begun since the mark go; they stand last. */
    while (l->norders > l->sorted_orders &&
           l->orders[l->norders - 1].mark == l->mark &&
           l->orders[l->norders - 1].is_new) {
        l->norders--;
    }
    for (yk_undo_t *undo = l->undo; undo != NULL; undo = undo->next) {
        switch (undo->kind) {
        case UNDO_ANCHOR:
            l->anchors[undo->index] = undo->was.anchor;
            break;
        case UNDO_PLACE:
            l->places[undo->index] = undo->was.place;
            break;
        case UNDO_ORDER:
            l->orders[undo->index] = undo->was.order;
            break;
        }
    }
    l->undo = NULL;
    l->mark++;
}

int yk_ledger_is_clean(const yk_ledger_t *l)
{
    for (uint32_t i = 0; i < l->nanchors; i++) {
        if (l->anchors[i].changed) {
            return 0;
        }
    }
    for (uint32_t i = 0; i < l->nplaces; i++) {
        if (l->places[i].changed) {
            return 0;
        }
    }
    for (uint32_t i = 0; i < l->norders; i++) {
        if (l->orders[i].changed) {
            return 0;
        }
    }
    return 1;
}
