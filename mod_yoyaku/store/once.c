/* SPDX-License-Identifier: Apache-2.0 */
#include "packet.h"

#define DAY_US (INT64_C(24) * 3600 * APR_USEC_PER_SEC)
#define SWEEP_MOST 1000

typedef struct old_t {
    uint32_t n;
    struct {
        uint32_t tenant_id;
        yk_hash_t scope;
    } rows[SWEEP_MOST];
} old_t;

static void old_row(void *baton, char **row, const unsigned long *lengths)
{
    old_t *old = baton;

    if (old->n < SWEEP_MOST) {
        old->rows[old->n].tenant_id = (uint32_t)yk_column_uint(row[0]);
        yk_column_bytes(old->rows[old->n].scope.bytes, YK_HASH_BYTES, row[1],
                        lengths[1]);
        old->n++;
    }
}

/* Finds by age without a lock, then locks and deletes by primary key: a
 * deletion along the age index would lock gaps a hold inserts into. */
apr_status_t yk_store_once_sweep(yk_store_t *store)
{
    yk_packet_t *packet = yk_packet_make(store);
    old_t *old = apr_pcalloc(packet->p, sizeof(*old));
    yk_packet_t *second;
    yk_sql_t *sql = yk_packet_ask(packet, old_row, old);
    uint32_t i;
    apr_status_t rv;

    yk_sql_put(sql, "SELECT tenant_id,scope FROM yoyaku_idempotency"
                    " FORCE INDEX (by_age) WHERE at_us<");
    yk_sql_clock(sql, store->shift_us - DAY_US);
    yk_sql_put(sql, " ORDER BY at_us LIMIT ");
    yk_sql_uint(sql, SWEEP_MOST);
    rv = yk_packet_send(packet);
    if (rv != APR_SUCCESS || old->n == 0) {
        yk_packet_end(packet);
        return rv;
    }
    second = yk_packet_make(store);
    for (i = 0; i < old->n; i++) {
        if (i % 200 == 0) {
            sql = yk_packet_do(second);
            yk_sql_put(sql, "DELETE k FROM (");
        }
        yk_sql_item(sql, i);
        yk_sql_item_uint(sql, "t", old->rows[i].tenant_id);
        yk_sql_item_hex(sql, "h", old->rows[i].scope.bytes, YK_HASH_BYTES);
        if (i % 200 == 199 || i + 1 == old->n) {
            yk_sql_put(sql, ") w STRAIGHT_JOIN yoyaku_idempotency k"
                            " FORCE INDEX (PRIMARY)"
                            " ON k.tenant_id=w.t AND k.scope=w.h");
        }
    }
    rv = yk_packet_run(second);
    yk_packet_end(packet);
    return rv;
}
