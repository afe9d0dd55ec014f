/* SPDX-License-Identifier: Apache-2.0 */
#include "packet.h"

#define DUE_MOST 64

typedef struct found_t {
    uint64_t *ids;
    uint32_t n, most;
} found_t;

static void id_row(void *baton, char **row, const unsigned long *lengths)
{
    found_t *found = baton;

    if (found->n < found->most) {
        found->ids[found->n++] = yk_column_uint(row[0]);
    }
}

/* Due orders of one state, oldest first, along index (state, until_us). Locks
 * nothing. `now` is a number, or the clock when it is 0. */
static void due_in_state(yk_packet_t *packet, yk_sql_t *sql, int state,
                         apr_time_t now_us)
{
    yk_sql_put(sql, "SELECT o.order_id AS id,o.until_us AS u"
                    " FROM yoyaku_order o FORCE INDEX (due) WHERE o.state=");
    yk_sql_int(sql, state);
    yk_sql_put(sql, " AND o.until_us<=");
    if (now_us != 0) {
        yk_sql_int(sql, now_us);
    }
    else {
        yk_sql_clock(sql, packet->store->shift_us);
    }
}

/* A live line of the order under the anchor, by primary key. A count in a
 * scalar subquery cannot be turned into a join from the other side. */
static void has_line_under(yk_sql_t *sql, const yk_anchor_key_t *anchor)
{
    yk_sql_put(sql, " AND (SELECT COUNT(*) FROM yoyaku_booking b FORCE INDEX"
                    " (PRIMARY) WHERE b.order_id=o.order_id AND b.live=1"
                    " AND b.slot_id=");
    yk_sql_uint(sql, anchor->owner);
    yk_sql_put(sql, anchor->kind == YK_ANCHOR_QUOTA ? " AND b.price_no="
                                                    : " AND b.area_no=");
    yk_sql_uint(sql, anchor->no);
    yk_sql_put(sql, ")>0");
}

static void oldest(yk_sql_t *sql, uint32_t most)
{
    yk_sql_put(sql, " ORDER BY o.until_us LIMIT ");
    yk_sql_uint(sql, most);
}

/* Both states, each cut to `most`, then the oldest of both. */
static void ask_due(yk_packet_t *packet, found_t *found,
                    const yk_anchor_key_t *anchor, apr_time_t now_us)
{
    yk_sql_t *sql = yk_packet_ask(packet, id_row, found);
    int state;

    yk_sql_put(sql, "SELECT d.id FROM (");
    for (state = YK_ORDER_HELD; state <= YK_ORDER_LOCKED; state++) {
        yk_sql_put(sql, state == YK_ORDER_HELD ? "(" : " UNION ALL (");
        due_in_state(packet, sql, state, now_us);
        if (anchor != NULL) {
            has_line_under(sql, anchor);
        }
        oldest(sql, found->most);
        yk_sql_put(sql, ")");
    }
    yk_sql_put(sql, ") d ORDER BY d.u,d.id LIMIT ");
    yk_sql_uint(sql, found->most);
}

/* A booker's own lines are few: from them to their orders by primary key. */
static void ask_due_of_booker(yk_packet_t *packet, found_t *found,
                              const yk_anchor_key_t *anchor,
                              const unsigned char *hash, apr_time_t now_us)
{
    yk_sql_t *sql = yk_packet_ask(packet, id_row, found);

    yk_sql_put(sql, "SELECT o.order_id FROM yoyaku_booking b FORCE INDEX"
                    " (by_booker) STRAIGHT_JOIN yoyaku_order o FORCE INDEX"
                    " (PRIMARY) ON o.order_id=b.order_id"
                    " WHERE b.tenant_id=");
    yk_sql_uint(sql, anchor->owner);
    yk_sql_put(sql, " AND b.booker_hash=");
    yk_sql_hex(sql, hash, 16);
    yk_sql_put(sql, " AND b.live=1 AND o.state IN (1,2) AND o.until_us<=");
    yk_sql_int(sql, now_us);
    yk_sql_put(sql, " GROUP BY o.order_id,o.until_us"
                    " ORDER BY o.until_us,o.order_id LIMIT ");
    yk_sql_uint(sql, found->most);
}

apr_status_t yk_store_due_under(yk_store_t *store, uint64_t **order_ids,
                                uint32_t *n, const yk_ledger_t *ledger,
                                const yk_anchor_key_t *anchor,
                                const unsigned char *booker_hash, apr_pool_t *p)
{
    found_t found = {NULL, 0, DUE_MOST};
    yk_packet_t *packet;
    apr_status_t rv;

    if (anchor->kind == YK_ANCHOR_BOOKER && booker_hash == NULL) {
        return APR_EINVAL;
    }
    found.ids = apr_palloc(p, DUE_MOST * sizeof(*found.ids));
    packet = yk_packet_make(store);
    if (anchor->kind == YK_ANCHOR_BOOKER) {
        ask_due_of_booker(packet, &found, anchor, booker_hash, ledger->now_us);
    }
    else {
        ask_due(packet, &found, anchor, ledger->now_us);
    }
    rv = yk_packet_run(packet);
    if (rv == APR_SUCCESS) {
        *order_ids = found.ids;
        *n = found.n;
    }
    return rv;
}

apr_status_t yk_store_due(yk_store_t *store, uint64_t **order_ids, uint32_t *n,
                          uint32_t most, apr_pool_t *p)
{
    found_t found = {NULL, 0, most};
    yk_packet_t *packet;
    apr_status_t rv;

    found.ids = apr_palloc(p, (most + 1) * sizeof(*found.ids));
    packet = yk_packet_make(store);
    ask_due(packet, &found, NULL, 0);
    rv = yk_packet_run(packet);
    if (rv == APR_SUCCESS) {
        *order_ids = found.ids;
        *n = found.n;
    }
    return rv;
}
