/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include "rows.h"

/* An order and its lines are two statements. When it was written between
 * them, their versions differ and both are read again, so often at most. */
#define READINGS 8
#define LIST_ROWS 256

typedef struct reading_t {
    yk_order_t **orders; /* ascending by number while lines come in */
    uint32_t n, space;
    apr_time_t now_us;
    int torn;
    apr_pool_t *p;
} reading_t;

static void clock_row(void *baton, char **row, const unsigned long *lengths)
{
    reading_t *r = baton;
    r->now_us = yk_column_int(row[0]);
}

static void order_row(void *baton, char **row, const unsigned long *lengths)
{
    reading_t *r = baton;

    if (r->n < r->space) {
        r->orders[r->n++] = yk_order_read(row, lengths, r->p);
    }
}

static int by_number(const void *a, const void *b)
{
    const yk_order_t *x = *(yk_order_t *const *)a;
    const yk_order_t *y = *(yk_order_t *const *)b;

    return x->order_id < y->order_id ? -1 : x->order_id > y->order_id;
}

static void line_row(void *baton, char **row, const unsigned long *lengths)
{
    reading_t *r = baton;
    yk_order_t wanted;
    yk_order_t *key = &wanted;
    yk_order_t **found;

    wanted.order_id = yk_column_uint(row[0]);
    found = r->n == 0
                ? NULL
                : bsearch(&key, r->orders, r->n, sizeof(*r->orders), by_number);
    if (found == NULL) {
        return;
    }
    if ((*found)->version != yk_column_uint(row[1])) {
        r->torn = 1;
        return;
    }
    yk_line_read(*found, row + 2, lengths + 2, r->p);
}

/* ---- one order, by number or token ---- */

typedef struct name_t {
    uint32_t tenant_id;
    uint64_t order_id;
    const yk_hash_t *token; /* NULL: by number */
} name_t;

static void where(yk_sql_t *sql, const name_t *name)
{
    yk_sql_put(sql, " WHERE o.tenant_id=");
    yk_sql_uint(sql, name->tenant_id);
    if (name->token != NULL) {
        yk_sql_put(sql, " AND o.token_hash=");
        yk_sql_hash(sql, name->token);
        return;
    }
    yk_sql_put(sql, " AND o.order_id=");
    yk_sql_uint(sql, name->order_id);
}

static apr_status_t read_once(yk_store_t *store, reading_t *r,
                              const name_t *name)
{
    yk_packet_t *packet = yk_packet_make(store);
    yk_sql_t *sql = yk_packet_ask(packet, order_row, r);

    yk_sql_put(sql, "SELECT o.order_id,o.version");
    yk_sql_put(sql, yk_order_select);
    yk_sql_put(sql, " FROM yoyaku_order o");
    where(sql, name);
    sql = yk_packet_ask(packet, line_row, r);
    yk_sql_put(sql, "SELECT o.order_id,o.version");
    yk_sql_put(sql, yk_line_select);
    yk_sql_put(sql, " FROM yoyaku_order o STRAIGHT_JOIN yoyaku_booking b"
                    " FORCE INDEX (PRIMARY) ON b.order_id=o.order_id");
    where(sql, name);
    sql = yk_packet_ask(packet, clock_row, r);
    yk_sql_put(sql, "SELECT ");
    yk_sql_clock(sql, store->shift_us);
    return yk_packet_run(packet);
}

static apr_status_t read_order(yk_store_t *store, yk_order_t **order,
                               apr_time_t *now, const name_t *name,
                               apr_pool_t *p)
{
    int i;

    for (i = 0; i < READINGS; i++) {
        yk_order_t *one = NULL;
        reading_t r = {&one, 0, 1, 0, 0, p};
        apr_status_t rv = read_once(store, &r, name);
        if (rv != APR_SUCCESS) {
            return rv;
        }
        if (r.n == 0) {
            return APR_NOTFOUND;
        }
        if (!r.torn) {
            *order = one;
            if (now != NULL) {
                *now = r.now_us;
            }
            return APR_SUCCESS;
        }
    }
    return APR_EBUSY;
}

apr_status_t yk_store_order(yk_store_t *store, yk_order_t **order,
                            apr_time_t *now, uint32_t tenant_id,
                            uint64_t order_id, apr_pool_t *p)
{
    name_t name = {tenant_id, order_id, NULL};
    return read_order(store, order, now, &name, p);
}

apr_status_t yk_store_order_by_token(yk_store_t *store, yk_order_t **order,
                                     apr_time_t *now, uint32_t tenant_id,
                                     const yk_hash_t *token, apr_pool_t *p)
{
    name_t name = {tenant_id, 0, token};
    return read_order(store, order, now, &name, p);
}

/* ---- several orders ---- */

static void list_of(yk_sql_t *sql, const uint64_t *ids, uint32_t from,
                    uint32_t to)
{
    uint32_t i;

    yk_sql_put(sql, " FROM (");
    for (i = from; i < to; i++) {
        yk_sql_item(sql, i);
        yk_sql_item_uint(sql, "o", ids[i]);
    }
    yk_sql_put(sql, ") w STRAIGHT_JOIN yoyaku_order o FORCE INDEX (PRIMARY)"
                    " ON o.order_id=w.o");
}

static void ask_lists(yk_packet_t *packet, reading_t *r, const uint64_t *ids,
                      uint32_t nids, int lines)
{
    uint32_t from;

    for (from = 0; from < nids; from += LIST_ROWS) {
        uint32_t to = from + LIST_ROWS < nids ? from + LIST_ROWS : nids;
        yk_sql_t *sql = yk_packet_ask(packet, lines ? line_row : order_row, r);
        yk_sql_put(sql, "SELECT o.order_id,o.version");
        yk_sql_put(sql, lines ? yk_line_select : yk_order_select);
        list_of(sql, ids, from, to);
        if (lines) {
            yk_sql_put(sql, " STRAIGHT_JOIN yoyaku_booking b FORCE INDEX"
                            " (PRIMARY) ON b.order_id=o.order_id");
        }
    }
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

apr_status_t yk_store_orders_by_id(yk_store_t *store, yk_order_t ***orders,
                                   uint32_t *n, const uint64_t *order_ids,
                                   uint32_t nids, apr_pool_t *p)
{
    uint64_t *ids = apr_palloc(p, (nids + 1) * sizeof(*ids));
    uint32_t i, kept = 0;
    int turn;

    if (nids > 0) {
        memcpy(ids, order_ids, nids * sizeof(*ids));
        qsort(ids, nids, sizeof(*ids), by_size);
    }
    for (i = 0; i < nids; i++) {
        if (kept == 0 || ids[kept - 1] != ids[i]) {
            ids[kept++] = ids[i];
        }
    }
    for (turn = 0; turn < READINGS && kept > 0; turn++) {
        reading_t r = {NULL, 0, kept, 0, 0, p};
        yk_packet_t *packet = yk_packet_make(store);
        apr_status_t rv;
        r.orders = apr_palloc(p, kept * sizeof(*r.orders));
        ask_lists(packet, &r, ids, kept, 0);
        ask_lists(packet, &r, ids, kept, 1);
        rv = yk_packet_run(packet);
        if (rv != APR_SUCCESS) {
            return rv;
        }
        if (!r.torn) {
            *orders = r.orders;
            *n = r.n;
            return APR_SUCCESS;
        }
    }
    *orders = NULL;
    *n = 0;
    return kept == 0 ? APR_SUCCESS : APR_EBUSY;
}

/* ---- the shop's search ---- */

typedef struct hits_t {
    uint64_t ids[YK_LIST_MAX];
    uint32_t n;
    apr_time_t now_us;
} hits_t;

static void hit_row(void *baton, char **row, const unsigned long *lengths)
{
    hits_t *hits = baton;

    if (hits->n < YK_LIST_MAX) {
        hits->ids[hits->n++] = yk_column_uint(row[0]);
    }
}

static void hit_clock_row(void *baton, char **row, const unsigned long *lengths)
{
    hits_t *hits = baton;
    hits->now_us = yk_column_int(row[0]);
}

static apr_status_t search(yk_store_t *store, hits_t *hits, uint32_t tenant_id,
                           const char *reference, const char *booker,
                           const char *contact)
{
    yk_packet_t *packet = yk_packet_make(store);
    yk_sql_t *sql = yk_packet_ask(packet, hit_row, hits);

    yk_sql_put(sql, "SELECT o.order_id FROM yoyaku_order o"
                    " WHERE o.tenant_id=");
    yk_sql_uint(sql, tenant_id);
    if (reference != NULL) {
        yk_sql_put(sql, " AND o.reference=");
        yk_sql_text(sql, reference);
    }
    if (booker != NULL) {
        unsigned char hash[16];
        yk_booker_hash(hash, booker);
        yk_sql_put(sql, " AND o.booker_hash=");
        yk_sql_hex(sql, hash, sizeof(hash));
        yk_sql_put(sql, " AND o.booker=");
        yk_sql_text(sql, booker);
    }
    if (contact != NULL) {
        yk_sql_put(sql, " AND o.contact=");
        yk_sql_text(sql, contact);
    }
    yk_sql_put(sql, " ORDER BY o.order_id DESC LIMIT ");
    yk_sql_uint(sql, YK_LIST_MAX);
    sql = yk_packet_ask(packet, hit_clock_row, hits);
    yk_sql_put(sql, "SELECT ");
    yk_sql_clock(sql, store->shift_us);
    return yk_packet_run(packet);
}

apr_status_t yk_store_orders(yk_store_t *store, yk_order_t ***orders,
                             uint32_t *n, apr_time_t *now, uint32_t tenant_id,
                             const char *reference, const char *booker,
                             const char *contact, apr_pool_t *p)
{
    hits_t hits;
    uint32_t i, all = 0;
    apr_status_t rv;

    memset(&hits, 0, sizeof(hits));
    rv = search(store, &hits, tenant_id, reference, booker, contact);
    if (rv == APR_SUCCESS) {
        rv = yk_store_orders_by_id(store, orders, &all, hits.ids, hits.n, p);
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    for (i = 0; i < all / 2; i++) {
        /* newest first: numbers begin with the time */
        yk_order_t *other = (*orders)[i];
        (*orders)[i] = (*orders)[all - 1 - i];
        (*orders)[all - 1 - i] = other;
    }
    *n = all;
    if (now != NULL) {
        *now = hits.now_us;
    }
    return APR_SUCCESS;
}
