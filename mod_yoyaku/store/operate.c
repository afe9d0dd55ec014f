/* SPDX-License-Identifier: Apache-2.0 */
#include "operate.h"
#include <apr_tables.h>
#include <string.h>
#include "yoyaku/state.h"
#include "yoyaku/text.h"

#define PATIENCE_US (60 * APR_USEC_PER_SEC)
#define TWINS 8
#define PIECE 2000

apr_status_t yk_operate(yk_store_t *store, yk_operate_fn *fn, void *baton)
{
    apr_time_t end = yk_state_now() + PATIENCE_US;
    int twins = 0;
    apr_status_t rv;

    for (;;) {
        unsigned char jitter;
        rv = fn(store, baton);
        yk_store_rollback(store);
        if (rv != APR_TIMEUP && rv != APR_EBUSY && rv != APR_EEXIST) {
            return rv;
        }
        if (rv == APR_EEXIST && ++twins == TWINS) {
            return APR_TIMEUP;
        }
        if (yk_state_now() > end) {
            return APR_TIMEUP;
        }
        yk_secret_random(&jitter, 1);
        apr_sleep(1000 + jitter * 100);
    }
}

static void turn_row(void *baton, char **row, const unsigned long *lengths)
{
    *(int *)baton = 1;
}

/* Locks one row of yoyaku_tenant, before everything else an operator locks. */
apr_status_t yk_operate_begin(yk_store_t *store, uint32_t tenant_id)
{
    yk_packet_t *packet = yk_packet_make(store);
    yk_sql_t *sql;
    int found = 0;
    apr_status_t rv;

    yk_packet_begin(packet);
    sql = yk_packet_ask(packet, turn_row, &found);
    yk_sql_put(sql, "SELECT version FROM yoyaku_tenant WHERE tenant_id=");
    yk_sql_uint(sql, tenant_id);
    yk_sql_put(sql, " FOR UPDATE");
    rv = yk_packet_run(packet);
    if (rv == APR_SUCCESS && !found) {
        yk_store_rollback(store);
        return APR_NOTFOUND;
    }
    return rv;
}

void yk_operate_touch_slot(yk_packet_t *packet, uint64_t slot_id)
{
    yk_sql_t *sql = yk_packet_do(packet);

    yk_sql_put(sql, "UPDATE yoyaku_slot SET version=version+1 WHERE slot_id=");
    yk_sql_uint(sql, slot_id);
}

void yk_operate_touch_tenant(yk_packet_t *packet, uint32_t tenant_id)
{
    yk_sql_t *sql = yk_packet_do(packet);

    yk_sql_put(sql,
               "UPDATE yoyaku_tenant SET version=version+1 WHERE tenant_id=");
    yk_sql_uint(sql, tenant_id);
}

uint64_t yk_operate_number(void)
{
    uint64_t number = 0;

    while (number == 0) {
        yk_secret_random(&number, sizeof(number));
        number &= (UINT64_C(1) << 53) - 1;
    }
    return number;
}

int yk_operate_is_text(const char *text, apr_size_t most)
{
    apr_size_t len = text != NULL ? strlen(text) : 0;

    return len > 0 && len <= most && yk_text_is_utf8(text, len);
}

/* ---- the barrier ---- */

typedef struct piece_t {
    uint64_t slot_id;
    uint32_t from; /* UINT32_MAX: the anchors */
    uint32_t seen;
} piece_t;

static void count_row(void *baton, char **row, const unsigned long *lengths)
{
    piece_t *piece = baton;
    piece->seen++;
}

/* Locks a slot's anchors, areas before quotas. */
static void lock_anchors(yk_packet_t *packet, piece_t *piece)
{
    int kind;

    for (kind = YK_ANCHOR_AREA; kind <= YK_ANCHOR_QUOTA; kind++) {
        yk_sql_t *sql = yk_packet_ask(packet, count_row, piece);
        yk_sql_put(sql, "SELECT no FROM yoyaku_lock_anchor FORCE INDEX"
                        " (PRIMARY) WHERE kind=");
        yk_sql_int(sql, kind);
        yk_sql_put(sql, " AND owner=");
        yk_sql_uint(sql, piece->slot_id);
        yk_sql_put(sql, " ORDER BY no FOR UPDATE");
    }
}

/* Locks a piece of a slot's places, ascending. */
static void lock_places(yk_packet_t *packet, piece_t *piece)
{
    yk_sql_t *sql = yk_packet_ask(packet, count_row, piece);

    yk_sql_put(sql, "SELECT place_no FROM yoyaku_slot_place FORCE INDEX"
                    " (PRIMARY) WHERE slot_id=");
    yk_sql_uint(sql, piece->slot_id);
    yk_sql_put(sql, " AND place_no BETWEEN ");
    yk_sql_uint(sql, piece->from);
    yk_sql_put(sql, " AND ");
    yk_sql_uint(sql, piece->from + PIECE - 1);
    yk_sql_put(sql, " ORDER BY place_no FOR UPDATE");
}

static apr_status_t pass(yk_store_t *store, void *baton)
{
    piece_t *piece = baton;
    yk_packet_t *packet = yk_packet_make(store);

    piece->seen = 0;
    yk_packet_begin(packet);
    if (piece->from == UINT32_MAX) {
        lock_anchors(packet, piece);
    }
    else {
        lock_places(packet, piece);
    }
    yk_packet_commit(packet);
    return yk_packet_run(packet);
}

apr_status_t yk_operate_barrier(yk_store_t *store, uint64_t slot_id)
{
    piece_t piece = {slot_id, UINT32_MAX, 0};
    apr_status_t rv = yk_operate(store, pass, &piece);

    piece.from = 0;
    while (rv == APR_SUCCESS) {
        rv = yk_operate(store, pass, &piece);
        if (piece.seen < PIECE) {
            break;
        }
        piece.from += PIECE;
    }
    return rv;
}

static void slot_row(void *baton, char **row, const unsigned long *lengths)
{
    apr_array_header_t *ids = baton;
    APR_ARRAY_PUSH(ids, uint64_t) = yk_column_uint(row[0]);
}

apr_status_t yk_operate_barrier_over(yk_store_t *store, uint32_t tenant_id,
                                     yk_over_e over, const char *key,
                                     apr_pool_t *p)
{
    static const char *const column[] = {
        " AND slot_key=", " AND resource=", " AND series=", NULL};
    apr_array_header_t *ids = apr_array_make(p, 64, sizeof(uint64_t));
    yk_packet_t *packet = yk_packet_make(store);
    yk_sql_t *sql = yk_packet_ask(packet, slot_row, ids);
    int i;
    apr_status_t rv;

    yk_sql_put(sql, "SELECT slot_id FROM yoyaku_slot WHERE tenant_id=");
    yk_sql_uint(sql, tenant_id);
    if (column[over] != NULL) {
        yk_sql_put(sql, column[over]);
        yk_sql_text(sql, key);
    }
    yk_sql_put(sql, " ORDER BY slot_id");
    rv = yk_packet_run(packet);
    for (i = 0; i < ids->nelts && rv == APR_SUCCESS; i++) {
        rv = yk_operate_barrier(store, APR_ARRAY_IDX(ids, i, uint64_t));
    }
    /* of the reading above; the rest has been tried again already */
    return rv == APR_EBUSY ? APR_TIMEUP : rv;
}
