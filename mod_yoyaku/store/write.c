/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include "journal.h"
#include "packet.h"
#include "rows.h"
#include "yoyaku/state.h"

/* Rows of one INSERT; more are several, in key order. */
#define WRITE_ROWS 512

static int place_order(const void *a, const void *b)
{
    const yk_place_t *x = *(yk_place_t *const *)a;
    const yk_place_t *y = *(yk_place_t *const *)b;

    if (x->slot_id != y->slot_id) {
        return x->slot_id < y->slot_id ? -1 : 1;
    }
    return x->place_no < y->place_no ? -1 : x->place_no > y->place_no;
}

static int order_order(const void *a, const void *b)
{
    const yk_order_row_t *x = *(yk_order_row_t *const *)a;
    const yk_order_row_t *y = *(yk_order_row_t *const *)b;

    return x->order_id < y->order_id ? -1 : x->order_id > y->order_id;
}

/* The changed rows in lock order, with their new versions. */
static yk_change_t *gather(yk_ledger_t *ledger, apr_pool_t *p)
{
    yk_change_t *c = apr_pcalloc(p, sizeof(*c));
    uint32_t i;

    c->ledger = ledger;
    c->places = apr_palloc(p, (ledger->nplaces + 1) * sizeof(*c->places));
    c->orders = apr_palloc(p, (ledger->norders + 1) * sizeof(*c->orders));
    for (i = 0; i < ledger->nplaces; i++) {
        if (ledger->places[i].changed) {
            c->places[c->nplaces++] = &ledger->places[i];
        }
    }
    for (i = 0; i < ledger->norders; i++) {
        if (ledger->orders[i].changed) {
            c->orders[c->norders++] = &ledger->orders[i];
        }
    }
    qsort(c->places, c->nplaces, sizeof(*c->places), place_order);
    qsort(c->orders, c->norders, sizeof(*c->orders), order_order);
    c->versions = apr_palloc(p, (c->nplaces + 1) * sizeof(*c->versions));
    for (i = 0; i < c->nplaces; i++) {
        const yk_place_t *place = c->places[i];
        yk_anchor_t *anchor = NULL;
        if (place->seat) {
            anchor = yk_ledger_anchor(ledger, YK_ANCHOR_AREA, place->slot_id,
                                      place->area_no);
        }
        c->versions[i] = place->version + 1;
        if (anchor != NULL) {
            /* who writes a seat has decided from its anchor: write that too */
            anchor->changed = 1;
            c->versions[i] = anchor->version + 1;
        }
    }
    return c;
}

/* Writes rows that are locked: the anchors. max is for operators to change. */
static void write_anchors(yk_packet_t *packet, const yk_ledger_t *ledger)
{
    yk_sql_t *sql = NULL;
    uint32_t i, n = 0;

    for (i = 0; i < ledger->nanchors; i++) {
        const yk_anchor_t *anchor = &ledger->anchors[i];
        if (!anchor->changed) {
            continue;
        }
        if (n++ == 0) {
            sql = yk_packet_do(packet);
            yk_sql_put(sql, "INSERT INTO yoyaku_lock_anchor "
                            "(kind,owner,no,used,max,version,map) VALUES ");
        }
        yk_sql_row(sql);
        yk_sql_uint(sql, anchor->key.kind);
        yk_sql_uint(sql, anchor->key.owner);
        yk_sql_uint(sql, anchor->key.no);
        yk_sql_int(sql, anchor->used);
        yk_sql_int(sql, anchor->max);
        yk_sql_uint(sql, anchor->version + 1);
        if (anchor->map != NULL) {
            yk_sql_hex(sql, anchor->map, anchor->map_bytes);
        }
        else {
            yk_sql_null(sql);
        }
        yk_sql_row_end(sql);
    }
    if (n > 0) {
        yk_sql_put(sql, " ON DUPLICATE KEY UPDATE used=VALUES(used),"
                        "version=VALUES(version),map=VALUES(map)");
    }
}

/* Writes rows that are locked, or whose anchor is: the places. */
static void write_places(yk_packet_t *packet, const yk_change_t *c)
{
    yk_sql_t *sql = NULL;
    uint32_t i;

    for (i = 0; i < c->nplaces; i++) {
        const yk_place_t *place = c->places[i];
        if (i % WRITE_ROWS == 0) {
            sql = yk_packet_do(packet);
            yk_sql_put(sql, "INSERT INTO yoyaku_slot_place "
                            "(slot_id,place_no,order_id,state,until_us,version)"
                            " VALUES ");
        }
        yk_sql_row(sql);
        yk_sql_uint(sql, place->slot_id);
        yk_sql_uint(sql, place->place_no);
        yk_sql_uint(sql, place->order_id);
        yk_sql_uint(sql, place->state);
        yk_sql_int(sql, place->until_us);
        yk_sql_uint(sql, c->versions[i]);
        yk_sql_row_end(sql);
        if (i % WRITE_ROWS == WRITE_ROWS - 1 || i + 1 == c->nplaces) {
            yk_sql_put(sql, " ON DUPLICATE KEY UPDATE "
                            "order_id=VALUES(order_id),state=VALUES(state),"
                            "until_us=VALUES(until_us),"
                            "version=VALUES(version)");
        }
    }
}

/* Orders that are locked are written over; new ones are inserted alone, so
 * that a number met twice is an error and not somebody else's order. */
static void write_orders(yk_packet_t *packet, const yk_change_t *c, int is_new)
{
    yk_sql_t *sql = NULL;
    yk_columns_t columns = 0;

    for (uint32_t i = 0; i < c->norders; i++) {
        const yk_order_row_t *row = c->orders[i];
        if ((row->is_new != 0) == (is_new != 0)) {
            columns |= yk_order_columns(row->order, row->was);
        }
    }
    for (uint32_t i = 0; i < c->norders; i++) {
        const yk_order_row_t *row = c->orders[i];
        if ((row->is_new != 0) != (is_new != 0)) {
            continue;
        }
        if (sql == NULL) {
            sql = yk_packet_do(packet);
            yk_order_insert(sql, columns);
        }
        yk_order_write(sql, row->order, columns);
    }
    if (sql != NULL && !is_new) {
        yk_order_update(sql, columns);
    }
}

typedef struct changed_line_t {
    const yk_order_t *order;
    const yk_line_t *line;
} changed_line_t;

/* Lines to be written, and the columns they need together. */
static uint32_t gather_lines(const yk_change_t *c, int is_new,
                             changed_line_t *lines, yk_columns_t *columns)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < c->norders; i++) {
        const yk_order_t *order = c->orders[i]->order;
        const yk_order_t *was = c->orders[i]->was;

        for (uint32_t j = 0; j < order->nlines; j++) {
            const yk_line_t *line = &order->lines[j];
            yk_columns_t differ;

            if ((was == NULL || j >= was->nlines) != (is_new != 0)) {
                continue;
            }
            /* lines are only ever added, at the end */
            differ = yk_line_columns(line, is_new ? NULL : &was->lines[j]);
            if (is_new || differ != 0) {
                lines[n].order = order;
                lines[n++].line = line;
                *columns |= differ;
            }
        }
    }
    return n;
}

/* Lines stand under their order's lock. */
static void write_lines(yk_packet_t *packet, const yk_change_t *c, int is_new)
{
    yk_sql_t *sql = NULL;
    yk_columns_t columns = 0;
    changed_line_t *lines;
    uint32_t n = 1;

    for (uint32_t i = 0; i < c->norders; i++) {
        n += c->orders[i]->order->nlines;
    }
    lines = apr_palloc(packet->p, n * sizeof(*lines));
    n = gather_lines(c, is_new, lines, &columns);
    for (uint32_t i = 0; i < n; i++) {
        if (i % WRITE_ROWS == 0) {
            sql = yk_packet_do(packet);
            yk_line_insert(sql, columns, is_new);
        }
        yk_line_write(sql, lines[i].order, lines[i].line, columns, is_new);
        if (!is_new && (i % WRITE_ROWS == WRITE_ROWS - 1 || i + 1 == n)) {
            yk_line_update(sql, columns);
        }
    }
}

/* Last, so that a twin waits as late and as shortly as may be. */
static void write_onces(yk_packet_t *packet, const yk_ledger_t *ledger)
{
    yk_sql_t *sql = NULL;
    uint32_t i, n = 0;

    for (i = 0; i < ledger->nonces; i++) {
        const yk_once_row_t *once = &ledger->onces[i];
        if (!once->is_new) {
            continue;
        }
        if (n++ == 0) {
            sql = yk_packet_do(packet);
            yk_sql_put(sql, "INSERT INTO yoyaku_idempotency "
                            "(tenant_id,scope,request,order_id,salt,answer,"
                            "status,at_us,extra) VALUES ");
        }
        yk_sql_row(sql);
        yk_sql_uint(sql, once->tenant_id);
        yk_sql_hash(sql, &once->scope);
        yk_sql_hash(sql, &once->request);
        yk_sql_uint(sql, once->order_id);
        yk_sql_hex(sql, once->salt, sizeof(once->salt));
        yk_sql_uint(sql, once->answer);
        yk_sql_int(sql, once->status);
        yk_sql_clock(sql, packet->store->shift_us);
        yk_sql_text(sql, once->extra);
        yk_sql_row_end(sql);
    }
}

/* What was written is what stands there now. */
static void advance(const yk_change_t *c)
{
    uint32_t i;

    for (i = 0; i < c->nplaces; i++) {
        c->places[i]->version = c->versions[i];
    }
    for (i = 0; i < c->ledger->nanchors; i++) {
        if (c->ledger->anchors[i].changed) {
            c->ledger->anchors[i].version++;
        }
    }
    for (i = 0; i < c->norders; i++) {
        c->orders[i]->order->version++;
    }
}

apr_status_t yk_store_write(yk_store_t *store, yk_ledger_t *ledger)
{
    yk_packet_t *packet;
    yk_change_t *c;
    apr_time_t began;
    apr_status_t rv;

    if (!store->open) {
        /* the line, and with it every lock, is gone */
        return APR_ECONNRESET;
    }
    packet = yk_packet_make(store);
    c = gather(ledger, packet->p);
    write_anchors(packet, ledger);
    write_places(packet, c);
    write_orders(packet, c, 0);
    write_orders(packet, c, 1);
    write_lines(packet, c, 0);
    write_lines(packet, c, 1);
    yk_journal_write(packet, c);
    write_onces(packet, ledger);
    yk_packet_commit(packet);
    began = yk_state_now();
    rv = yk_packet_send(packet);
    if (rv == APR_SUCCESS) {
        advance(c);
        if (store->written != NULL) {
            store->written(store->written_baton, ledger,
                           yk_state_now() - began);
        }
    }
    yk_packet_end(packet);
    return rv;
}
