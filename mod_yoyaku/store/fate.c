/* SPDX-License-Identifier: Apache-2.0 */
#include "lock.h"

/* The journal's clock is later than the decision's; a clock set back between
 * them is forgiven so much. */
#define MARGIN_US (60 * APR_USEC_PER_SEC)
/* The longest YoyakuHoldWait: how long ago a wish may have been made. */
#define WAIT_MOST_US (120 * APR_USEC_PER_SEC)

static void seen(void *baton, char **row, const unsigned long *lengths)
{
    *(int *)baton = yk_column_uint(row[0]) > 0;
}

/* A changed order and a slot of it; all of a ledger stand or fall together. */
static const yk_order_row_t *witness(const yk_ledger_t *ledger,
                                     uint64_t *slot_id)
{
    uint32_t i;

    for (i = 0; i < ledger->norders; i++) {
        const yk_order_row_t *row = &ledger->orders[i];
        if ((row->changed || row->is_new) && row->order != NULL &&
            row->order->nlines > 0) {
            *slot_id = row->order->lines[0].slot_id;
            return row;
        }
    }
    return NULL;
}

/* Reads one slot's journal from `since_us` on, without locks. */
static void ask_journal(yk_packet_t *packet, int *found, uint64_t slot_id,
                        uint64_t order_id, uint64_t change_id,
                        apr_time_t since_us)
{
    yk_sql_t *sql = yk_packet_ask(packet, seen, found);

    yk_sql_put(sql, "SELECT COUNT(*) FROM yoyaku_journal FORCE INDEX"
                    " (PRIMARY) WHERE slot_id=");
    yk_sql_uint(sql, slot_id);
    yk_sql_put(sql, " AND at_us>=");
    yk_sql_int(sql, since_us);
    yk_sql_put(sql, " AND order_id=");
    yk_sql_uint(sql, order_id);
    yk_sql_put(sql, " AND change_id=");
    yk_sql_uint(sql, change_id);
}

apr_status_t yk_store_change_seen(yk_store_t *store, int *found,
                                  uint64_t slot_id, uint64_t order_id,
                                  uint64_t change_id, apr_time_t now_us)
{
    yk_packet_t *packet = yk_packet_make(store);

    *found = 0;
    ask_journal(packet, found, slot_id, order_id, change_id,
                now_us - WAIT_MOST_US - MARGIN_US);
    return yk_packet_run(packet);
}

/*
 * Locks what the lost transaction locked, in its order, and so waits for its
 * end: a look without the locks would find nothing while it is still going
 * on. Then reads one slot's journal from just before the decision on.
 */
apr_status_t yk_store_fate(yk_store_t *store, int *done,
                           const yk_ledger_t *ledger, apr_pool_t *ptemp)
{
    uint64_t slot_id = 0;
    const yk_order_row_t *row = witness(ledger, &slot_id);
    yk_packet_t *packet;
    int found = 0;
    apr_status_t rv;

    (void)ptemp;
    if (row == NULL) {
        return APR_EINVAL;
    }
    yk_line_drop(store);
    packet = yk_packet_make(store);
    yk_packet_begin(packet);
    /* blind: the ledger stays as it was decided */
    yk_lock_rows(packet, (yk_ledger_t *)ledger, 1);
    ask_journal(packet, &found, slot_id, row->order_id, row->change_id,
                ledger->now_us - MARGIN_US);
    rv = yk_packet_run(packet);
    yk_store_rollback(store);
    if (rv == APR_SUCCESS) {
        *done = found;
    }
    return rv;
}
