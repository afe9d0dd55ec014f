/* SPDX-License-Identifier: Apache-2.0 */
#include "journal.h"
#include <apr_strings.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define WHO_BYTES 250

typedef struct entry_t {
    uint64_t slot_id, order_id;
    const yk_order_row_t *row; /* NULL: an operator's change */
} entry_t;

static int entry_order(const void *a, const void *b)
{
    const entry_t *x = a;
    const entry_t *y = b;

    if (x->slot_id != y->slot_id) {
        return x->slot_id < y->slot_id ? -1 : 1;
    }
    return x->order_id < y->order_id ? -1 : x->order_id > y->order_id;
}

static const yk_order_row_t *row_of(const yk_change_t *c, uint64_t order_id)
{
    uint32_t i;

    for (i = 0; i < c->norders; i++) {
        if (c->orders[i]->order_id == order_id) {
            return c->orders[i];
        }
    }
    return NULL;
}

/* Every (slot, order) that has something to say, each once, ascending. */
static entry_t *entries_of(const yk_change_t *c, uint32_t *n, apr_pool_t *p)
{
    entry_t *entries;
    uint32_t i, j, space = c->nplaces, all = 0, kept = 0;

    for (i = 0; i < c->norders; i++) {
        space += c->orders[i]->order->nlines + c->orders[i]->ncounts;
    }
    entries = apr_palloc(p, (space + 1) * sizeof(*entries));
    for (i = 0; i < c->norders; i++) {
        const yk_order_row_t *row = c->orders[i];
        for (j = 0; j < row->order->nlines; j++) {
            entry_t e = {row->order->lines[j].slot_id, row->order_id, row};
            entries[all++] = e;
        }
        for (j = 0; j < row->ncounts; j++) {
            entry_t e = {row->counts[j].slot_id, row->order_id, row};
            entries[all++] = e;
        }
    }
    for (i = 0; i < c->nplaces; i++) {
        const yk_place_t *place = c->places[i];
        const yk_order_row_t *row = row_of(c, place->by_order);
        entry_t e = {place->slot_id, row != NULL ? place->by_order : 0, row};
        entries[all++] = e;
    }
    qsort(entries, all, sizeof(*entries), entry_order);
    for (i = 0; i < all; i++) {
        if (kept == 0 || entry_order(&entries[kept - 1], &entries[i]) != 0) {
            entries[kept++] = entries[i];
        }
    }
    *n = kept;
    return entries;
}

static int place_is_of(const yk_change_t *c, const yk_place_t *place,
                       const entry_t *e)
{
    if (place->slot_id != e->slot_id) {
        return 0;
    }
    return e->row != NULL ? place->by_order == e->order_id
                          : row_of(c, place->by_order) == NULL;
}

static void write_change(yk_sql_t *json, const yk_change_t *c, const entry_t *e)
{
    const char *comma = "";
    uint32_t i;

    yk_sql_put(json, "{\"until\":");
    yk_sql_int(json, e->row != NULL ? e->row->order->until_us : 0);
    yk_sql_put(json, ",\"places\":[");
    for (i = 0; i < c->nplaces; i++) {
        if (!place_is_of(c, c->places[i], e)) {
            continue;
        }
        yk_sql_put(json, comma);
        yk_sql_put(json, "[");
        yk_sql_uint(json, c->places[i]->place_no);
        yk_sql_put(json, ",");
        yk_sql_uint(json, c->places[i]->state);
        yk_sql_put(json, ",");
        yk_sql_uint(json, c->versions[i]);
        yk_sql_put(json, "]");
        comma = ",";
    }
    yk_sql_put(json, "],\"counts\":[");
    comma = "";
    for (i = 0; e->row != NULL && i < e->row->ncounts; i++) {
        const yk_count_t *count = &e->row->counts[i];
        yk_anchor_t *anchor;
        if (count->slot_id != e->slot_id) {
            continue;
        }
        anchor =
            yk_ledger_anchor(c->ledger, count->kind, count->slot_id, count->no);
        yk_sql_put(json, comma);
        yk_sql_put(json, "[");
        yk_sql_uint(json, count->kind);
        yk_sql_put(json, ",");
        yk_sql_uint(json, count->no);
        yk_sql_put(json, ",");
        yk_sql_int(json, count->delta);
        yk_sql_put(json, ",");
        yk_sql_uint(json, anchor != NULL ? anchor->version + 1 : 0);
        yk_sql_put(json, "]");
        comma = ",";
    }
    yk_sql_put(json, "]}");
}

/* New rows at the end of each slot's range, with the clock as it is now. */
void yk_journal_write(yk_packet_t *packet, const yk_change_t *c)
{
    yk_sql_t *sql = NULL;
    uint32_t i, n = 0;
    const entry_t *entries = entries_of(c, &n, packet->p);

    for (i = 0; i < n; i++) {
        const entry_t *e = &entries[i];
        yk_sql_t json;
        if (i == 0) {
            yk_sql_set_now(yk_packet_do(packet), packet->store->shift_us);
            sql = yk_packet_do(packet);
            yk_sql_put(sql, "INSERT INTO yoyaku_journal (slot_id,at_us,"
                            "order_id,change_id,why,who,`change`) VALUES ");
        }
        yk_sql_make(&json, packet->p);
        write_change(&json, c, e);
        yk_sql_row(sql);
        yk_sql_uint(sql, e->slot_id);
        yk_sql_now(sql);
        yk_sql_uint(sql, e->order_id);
        yk_sql_uint(sql, e->row != NULL ? e->row->change_id : 0);
        yk_sql_text_cut(sql, e->row != NULL ? e->row->why : "place", WHO_BYTES);
        yk_sql_text_cut(sql, e->row != NULL ? e->row->who : "", WHO_BYTES);
        yk_sql_hex(sql, json.text, json.len);
        yk_sql_row_end(sql);
    }
}
