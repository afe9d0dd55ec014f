/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <string.h>
#include "packet.h"

#define MOST 10000

typedef struct reading_t {
    yk_entry_t *entries;
    uint32_t n, most;
    apr_time_t now_us;
    int bad;
    apr_pool_t *p;
} reading_t;

static void clock_row(void *baton, char **row, const unsigned long *lengths)
{
    reading_t *r = baton;
    r->now_us = yk_column_int(row[0]);
}

static json_int_t number(const json_t *row, size_t i)
{
    return json_integer_value(json_array_get(row, i));
}

static void read_places(yk_entry_t *entry, const json_t *rows, apr_pool_t *p)
{
    size_t i, n = json_array_size(rows);

    entry->places = apr_palloc(p, (n + 1) * sizeof(*entry->places));
    for (i = 0; i < n; i++) {
        const json_t *row = json_array_get(rows, i);
        yk_entry_place_t *place = &entry->places[entry->nplaces++];
        place->place_no = (uint32_t)number(row, 0);
        place->state = (yk_place_state_e)number(row, 1);
        place->version = (uint64_t)number(row, 2);
    }
}

static void read_counts(yk_entry_t *entry, const json_t *rows, apr_pool_t *p)
{
    size_t i, n = json_array_size(rows);

    entry->counts = apr_palloc(p, (n + 1) * sizeof(*entry->counts));
    for (i = 0; i < n; i++) {
        const json_t *row = json_array_get(rows, i);
        yk_entry_count_t *count = &entry->counts[entry->ncounts++];
        count->kind = (yk_anchor_e)number(row, 0);
        count->no = (uint32_t)number(row, 1);
        count->delta = number(row, 2);
        count->version = (uint64_t)number(row, 3);
    }
}

static void entry_row(void *baton, char **row, const unsigned long *lengths)
{
    reading_t *r = baton;
    yk_entry_t *entry;
    json_t *change;

    if (r->n == r->most) {
        return;
    }
    entry = &r->entries[r->n++];
    memset(entry, 0, sizeof(*entry));
    entry->slot_id = yk_column_uint(row[0]);
    entry->at_us = yk_column_int(row[1]);
    entry->order_id = yk_column_uint(row[2]);
    entry->change_id = yk_column_uint(row[3]);
    entry->why = yk_column_text(row[4], lengths[4], r->p);
    entry->who = yk_column_text(row[5], lengths[5], r->p);
    change = row[6] != NULL ? json_loadb(row[6], lengths[6], 0, NULL) : NULL;
    if (change == NULL) {
        r->bad = 1;
        return;
    }
    entry->until_us = json_integer_value(json_object_get(change, "until"));
    read_places(entry, json_object_get(change, "places"), r->p);
    read_counts(entry, json_object_get(change, "counts"), r->p);
    json_decref(change);
}

/* The clock first: what is journalled after it is for the next reading. */
apr_status_t yk_store_journal(yk_store_t *store, yk_entry_t **entries,
                              uint32_t *n, apr_time_t *now, uint64_t slot_id,
                              apr_time_t from_us, uint32_t most, apr_pool_t *p)
{
    reading_t r = {NULL, 0, most < MOST ? most : MOST, 0, 0, p};
    yk_packet_t *packet = yk_packet_make(store);
    yk_sql_t *sql;
    apr_status_t rv;

    r.entries = apr_palloc(p, (r.most + 1) * sizeof(*r.entries));
    sql = yk_packet_ask(packet, clock_row, &r);
    yk_sql_put(sql, "SELECT ");
    yk_sql_clock(sql, store->shift_us);
    sql = yk_packet_ask(packet, entry_row, &r);
    yk_sql_put(sql, "SELECT slot_id,at_us,order_id,change_id,why,who,`change`"
                    " FROM yoyaku_journal FORCE INDEX (PRIMARY)"
                    " WHERE slot_id=");
    yk_sql_uint(sql, slot_id);
    yk_sql_put(sql, " AND at_us>=");
    yk_sql_int(sql, from_us);
    yk_sql_put(sql, " ORDER BY at_us,order_id LIMIT ");
    yk_sql_uint(sql, r.most);
    rv = yk_packet_run(packet);
    if (rv == APR_SUCCESS && r.bad) {
        return APR_EGENERAL;
    }
    if (rv == APR_SUCCESS) {
        *entries = r.entries;
        *n = r.n;
        if (now != NULL) {
            *now = r.now_us;
        }
    }
    return rv;
}
