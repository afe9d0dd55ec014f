/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include "packet.h"

typedef struct reading_t {
    yk_board_t *board;
    const yk_slot_t *slot;
    uint32_t space;
    apr_pool_t *p;
} reading_t;

static void clock_row(void *baton, char **row, const unsigned long *lengths)
{
    reading_t *r = baton;
    r->board->now_us = yk_column_int(row[0]);
}

static void anchor_row(void *baton, char **row, const unsigned long *lengths)
{
    reading_t *r = baton;
    uint64_t no = yk_column_uint(row[0]);

    if (no < r->board->nareas) {
        r->board->area_versions[no] = yk_column_uint(row[3]);
        if (r->slot->areas[no].mode == YK_MODE_POOLED) {
            int64_t left = yk_column_int(row[2]) - yk_column_int(row[1]);
            r->board->area_free[no] = left > 0 ? left : 0;
        }
    }
}

static void widen(reading_t *r, uint32_t space)
{
    yk_board_t *b = r->board;
    unsigned char *states = apr_palloc(r->p, space + 1);
    uint64_t *versions = apr_palloc(r->p, space * sizeof(*versions));
    apr_time_t *untils = apr_palloc(r->p, space * sizeof(*untils));

    if (b->nplaces > 0) {
        memcpy(states, b->states, b->nplaces);
        memcpy(versions, b->versions, b->nplaces * sizeof(*versions));
        memcpy(untils, b->untils, b->nplaces * sizeof(*untils));
    }
    b->states = states;
    b->versions = versions;
    b->untils = untils;
    r->space = space;
}

static void place_row(void *baton, char **row, const unsigned long *lengths)
{
    reading_t *r = baton;
    yk_board_t *b = r->board;
    uint64_t state = yk_column_uint(row[1]);
    apr_time_t until = yk_column_int(row[2]);

    /* place numbers have no gaps: the row's number is the place's */
    if (yk_column_uint(row[0]) != b->nplaces) {
        return;
    }
    if (b->nplaces == r->space) {
        widen(r, r->space > 0 ? 2 * r->space : 1024);
    }
    if (state == YK_PLACE_HELD && until <= b->now_us) {
        state = YK_PLACE_FREE;
        until = 0;
    }
    b->states[b->nplaces] = (unsigned char)('0' + state);
    b->untils[b->nplaces] = until;
    b->versions[b->nplaces] = yk_column_uint(row[3]);
    b->nplaces++;
}

/* Clock, anchors, places: locks nothing. A change between two of them shows
 * in the versions, which only grow. */
apr_status_t yk_store_board(yk_store_t *store, yk_board_t **board,
                            const yk_slot_t *slot, apr_pool_t *p)
{
    reading_t r = {NULL, slot, 0, p};
    yk_packet_t *packet;
    yk_sql_t *sql;
    uint32_t i;
    apr_status_t rv;

    r.board = apr_pcalloc(p, sizeof(*r.board));
    r.board->nareas = slot->nareas;
    r.board->area_free =
        apr_palloc(p, (slot->nareas + 1) * sizeof(*r.board->area_free));
    r.board->area_versions =
        apr_pcalloc(p, (slot->nareas + 1) * sizeof(*r.board->area_versions));
    for (i = 0; i < slot->nareas; i++) {
        r.board->area_free[i] = -1;
    }
    widen(&r, 1024);
    packet = yk_packet_make(store);
    sql = yk_packet_ask(packet, clock_row, &r);
    yk_sql_put(sql, "SELECT ");
    yk_sql_clock(sql, store->shift_us);
    sql = yk_packet_ask(packet, anchor_row, &r);
    yk_sql_put(sql, "SELECT no,used,max,version FROM yoyaku_lock_anchor"
                    " FORCE INDEX (PRIMARY) WHERE kind=2 AND owner=");
    yk_sql_uint(sql, slot->slot_id);
    sql = yk_packet_ask(packet, place_row, &r);
    yk_sql_put(sql, "SELECT place_no,state,until_us,version"
                    " FROM yoyaku_slot_place FORCE INDEX (PRIMARY)"
                    " WHERE slot_id=");
    yk_sql_uint(sql, slot->slot_id);
    yk_sql_put(sql, " ORDER BY place_no");
    rv = yk_packet_run(packet);
    if (rv == APR_SUCCESS) {
        r.board->states[r.board->nplaces] = '\0';
        *board = r.board;
    }
    return rv;
}
