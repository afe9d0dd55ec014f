/* SPDX-License-Identifier: Apache-2.0 */
#include "packet.h"

#define POOLS_AT_ONCE 64

typedef struct reading_t {
    yk_board_part_t *part;
    uint32_t most, pool_space;
    apr_pool_t *p;
} reading_t;

static void clock_row(void *baton, char **row, const unsigned long *lengths)
{
    reading_t *r = baton;

    r->part->now_us = yk_column_int(row[0]);
}

static void anchor_row(void *baton, char **row, const unsigned long *lengths)
{
    reading_t *r = baton;
    yk_board_part_t *part = r->part;
    yk_pool_row_t *pool;

    if (part->npools == r->pool_space) {
        yk_pool_row_t *old = part->pools;

        r->pool_space += r->pool_space + POOLS_AT_ONCE;
        part->pools = apr_palloc(r->p, r->pool_space * sizeof(*part->pools));
        for (uint32_t i = 0; i < part->npools; i++) {
            part->pools[i] = old[i];
        }
    }
    pool = &part->pools[part->npools++];
    pool->area_no = (uint32_t)yk_column_uint(row[0]);
    pool->left = yk_column_int(row[2]) - yk_column_int(row[1]);
    pool->version = yk_column_uint(row[3]);
}

static void place_row(void *baton, char **row, const unsigned long *lengths)
{
    reading_t *r = baton;
    yk_board_row_t *to;

    if (r->part->nrows == r->most) {
        return;
    }
    to = &r->part->rows[r->part->nrows++];
    to->place_no = (uint32_t)yk_column_uint(row[0]);
    to->state = (yk_place_state_e)(yk_column_uint(row[1]) & 3);
    to->until_us = yk_column_int(row[2]);
    to->version = yk_column_uint(row[3]);
}

/* Clock, anchors, a range of places by primary key: locks nothing. */
apr_status_t yk_store_board_part(yk_store_t *store, yk_board_part_t *part,
                                 uint64_t slot_id, uint32_t first,
                                 uint32_t most, apr_pool_t *p)
{
    reading_t r = {part, most, 0, p};
    yk_packet_t *packet = yk_packet_make(store);
    yk_sql_t *sql;

    part->now_us = 0;
    part->nrows = part->npools = 0;
    part->pools = NULL;
    part->rows = apr_palloc(p, (most + 1) * sizeof(*part->rows));
    sql = yk_packet_ask(packet, clock_row, &r);
    yk_sql_put(sql, "SELECT ");
    yk_sql_clock(sql, store->shift_us);
    if (first == 0) {
        sql = yk_packet_ask(packet, anchor_row, &r);
        yk_sql_put(sql, "SELECT no,used,max,version FROM yoyaku_lock_anchor"
                        " FORCE INDEX (PRIMARY) WHERE kind=2 AND owner=");
        yk_sql_uint(sql, slot_id);
    }
    sql = yk_packet_ask(packet, place_row, &r);
    yk_sql_put(sql, "SELECT place_no,state,until_us,version"
                    " FROM yoyaku_slot_place FORCE INDEX (PRIMARY)"
                    " WHERE slot_id=");
    yk_sql_uint(sql, slot_id);
    yk_sql_put(sql, " AND place_no>=");
    yk_sql_uint(sql, first);
    yk_sql_put(sql, " ORDER BY place_no LIMIT ");
    yk_sql_uint(sql, most);
    return yk_packet_run(packet);
}
