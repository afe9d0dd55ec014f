/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include "rows.h"

/* Who claims what: many orders, each by its token or its number, in one
 * packet. Nothing is locked; whoever decides compares versions after locking.
 */

typedef struct claims_t {
    yk_claimed_t *claimed;
    uint32_t n;
    apr_time_t *now;
    apr_pool_t *p;
} claims_t;

/* One row a line, the order before each; an order without lines has one. Texts
 * come with the first line: without it the order is not whole. */
static void order_row(void *baton, char **row, const unsigned long *lengths)
{
    claims_t *c = baton;
    yk_claimed_t *claimed = &c->claimed[yk_column_uint(row[0])];
    const uint32_t lines = 1 + yk_order_ncolumns;

    if (claimed->order == NULL) {
        claimed->order = yk_order_read(row + 1, lengths + 1, c->p);
        claimed->is_whole =
            row[lines] == NULL || yk_column_uint(row[lines]) == 1;
    }
    if (row[lines] != NULL) {
        yk_line_read(claimed->order, row + lines, lengths + lines, c->p);
    }
}

static void clock_row(void *baton, char **row, const unsigned long *lengths)
{
    claims_t *c = baton;
    *c->now = yk_column_int(row[0]);
}

/* The list of claims of one kind, joined to their orders. */
static int list_of(yk_sql_t *sql, const claims_t *c, int by_token)
{
    int n = 0;

    for (uint32_t i = 0; i < c->n; i++) {
        n += (c->claimed[i].token != NULL) == by_token;
    }
    if (sql == NULL || n == 0) {
        return n;
    }
    yk_sql_put(sql, " FROM (");
    for (uint32_t i = 0; i < c->n; i++) {
        const yk_claimed_t *claimed = &c->claimed[i];

        if ((claimed->token != NULL) != by_token) {
            continue;
        }
        yk_sql_item(sql, i);
        yk_sql_item_uint(sql, "t", claimed->tenant_id);
        if (by_token) {
            yk_sql_item_hex(sql, "h", claimed->token->bytes, YK_HASH_BYTES);
        }
        else {
            yk_sql_item_uint(sql, "o", claimed->order_id);
        }
    }
    yk_sql_put(sql, by_token ? ") w STRAIGHT_JOIN yoyaku_order o"
                               " FORCE INDEX (by_token)"
                               " ON o.token_hash=w.h AND o.tenant_id=w.t"
                             : ") w STRAIGHT_JOIN yoyaku_order o"
                               " FORCE INDEX (PRIMARY)"
                               " ON o.order_id=w.o AND o.tenant_id=w.t");
    return n;
}

/* Order and lines are one statement: what it sees, it sees at one moment. */
static void ask(yk_packet_t *packet, claims_t *c, int by_token)
{
    yk_sql_t *sql;

    if (list_of(NULL, c, by_token) == 0) {
        return;
    }
    sql = yk_packet_ask(packet, order_row, c);
    yk_sql_put(sql, "SELECT w.i,o.order_id,o.version");
    yk_sql_put(sql, yk_order_select_joined);
    yk_sql_put(sql, yk_line_select);
    list_of(sql, c, by_token);
    yk_sql_put(sql, " LEFT JOIN yoyaku_booking b FORCE INDEX (PRIMARY)"
                    " ON b.order_id=o.order_id");
}

apr_status_t yk_store_claimed(yk_store_t *store, yk_claimed_t *claimed,
                              uint32_t n, apr_time_t *now, apr_pool_t *p)
{
    claims_t c = {claimed, n, now, p};
    yk_packet_t *packet = yk_packet_make(store);
    yk_sql_t *sql;

    for (uint32_t i = 0; i < n; i++) {
        claimed[i].order = NULL;
        claimed[i].is_whole = 1;
    }
    ask(packet, &c, 1);
    ask(packet, &c, 0);
    sql = yk_packet_ask(packet, clock_row, &c);
    yk_sql_put(sql, "SELECT ");
    yk_sql_clock(sql, store->shift_us);
    return yk_packet_run(packet);
}
