/* SPDX-License-Identifier: Apache-2.0 */
#include "yoyaku/verify.h"
#include <apr_strings.h>
#include <string.h>
#include "packet.h"
#include "yoyaku/setup.h"

/** Rows of the journal in one packet: its answer is kept in memory. */
#define JOURNAL_ROWS 20000
/** Of those past one limit so many are named. */
#define OVER_ROWS 20

/** The next element of an array that grows in a pool. */
static void *next(void *array, uint32_t *n, uint32_t *space, apr_size_t size,
                  void **parray, apr_pool_t *p)
{
    if (*n == *space) {
        uint32_t wider = *space == 0 ? 256 : 2 * *space;
        char *grown = apr_pcalloc(p, wider * size);

        if (*n > 0) {
            memcpy(grown, array, *n * size);
        }
        *parray = array = grown;
        *space = wider;
    }
    return (char *)array + (*n)++ * size;
}

#define NEXT(e, what)                                                          \
    next((e)->what##s, &(e)->n##what##s, &(e)->what##_space,                   \
         sizeof(*(e)->what##s), (void **)&(e)->what##s, (e)->p)

static void clock_row(void *baton, char **row, const unsigned long *lengths)
{
    yk_evidence_t *e = baton;

    e->now_us = yk_column_int(row[0]);
}

static void slot_row(void *baton, char **row, const unsigned long *lengths)
{
    yk_evidence_t *e = baton;

    e->slot_id = yk_column_uint(row[0]);
}

static void place_row(void *baton, char **row, const unsigned long *lengths)
{
    yk_evidence_t *e = baton;
    yk_seen_place_t *place = NEXT(e, place);

    place->place_no = (uint32_t)yk_column_uint(row[0]);
    place->order_id = yk_column_uint(row[1]);
    place->state = (yk_place_state_e)yk_column_uint(row[2]);
    place->until_us = yk_column_int(row[3]);
    place->version = yk_column_uint(row[4]);
}

static void area_row(void *baton, char **row, const unsigned long *lengths)
{
    yk_evidence_t *e = baton;
    yk_seen_area_t *area = NEXT(e, area);

    area->area_no = (uint32_t)yk_column_uint(row[0]);
    area->mode = (yk_mode_e)yk_column_uint(row[1]);
    area->max = yk_column_int(row[2]);
    area->first_place = (uint32_t)yk_column_uint(row[3]);
    area->places = (uint32_t)yk_column_uint(row[4]);
}

static void price_row(void *baton, char **row, const unsigned long *lengths)
{
    yk_evidence_t *e = baton;
    yk_seen_price_t *price = NEXT(e, price);

    price->price_no = (uint32_t)yk_column_uint(row[0]);
    price->quota = yk_column_int(row[1]);
    price->counted = (int)yk_column_int(row[2]);
}

static void anchor_row(void *baton, char **row, const unsigned long *lengths)
{
    yk_evidence_t *e = baton;
    yk_anchor_t *anchor = NEXT(e, anchor);

    anchor->found = 1;
    anchor->key.kind = (yk_anchor_e)yk_column_uint(row[0]);
    anchor->key.owner = e->slot_id;
    anchor->key.no = (uint32_t)yk_column_uint(row[1]);
    anchor->used = yk_column_int(row[2]);
    anchor->max = yk_column_int(row[3]);
    anchor->version = yk_column_uint(row[4]);
    if (row[5] != NULL) {
        anchor->map = apr_pmemdup(e->p, row[5], lengths[5]);
        anchor->map_bytes = (uint32_t)lengths[5];
    }
}

static void line_row(void *baton, char **row, const unsigned long *lengths)
{
    yk_evidence_t *e = baton;
    yk_seen_line_t *line = NEXT(e, line);

    line->order_id = yk_column_uint(row[0]);
    line->line = (uint32_t)yk_column_uint(row[1]);
    line->area_no = (uint32_t)yk_column_uint(row[2]);
    line->place_no = (uint32_t)yk_column_uint(row[3]);
    line->quantity = (uint32_t)yk_column_uint(row[4]);
    line->price_no = (uint32_t)yk_column_uint(row[5]);
    line->state = (yk_order_state_e)yk_column_uint(row[6]);
    line->until_us = yk_column_int(row[7]);
}

static void order_row(void *baton, char **row, const unsigned long *lengths)
{
    yk_evidence_t *e = baton;
    yk_seen_order_t *order = NEXT(e, order);

    order->order_id = yk_column_uint(row[0]);
    order->state = (yk_order_state_e)yk_column_uint(row[1]);
    order->until_us = yk_column_int(row[2]);
}

/** Where the reading of the journal stands. */
typedef struct pages_t {
    yk_evidence_t *e;
    int64_t at_us;
    uint64_t order_id;
    uint32_t rows;
} pages_t;

static void journal_row(void *baton, char **row, const unsigned long *lengths)
{
    pages_t *pages = baton;

    pages->at_us = yk_column_int(row[0]);
    pages->order_id = yk_column_uint(row[1]);
    pages->rows++;
    yk_evidence_replay(pages->e, row[2], lengths[2]);
}

static void ask_of_slot(yk_packet_t *packet, yk_row_fn *row, yk_evidence_t *e,
                        const char *before, const char *behind)
{
    yk_sql_t *sql = yk_packet_ask(packet, row, e);

    yk_sql_put(sql, before);
    yk_sql_uint(sql, e->slot_id);
    yk_sql_put(sql, behind);
}

/* Locks nothing: one snapshot for this packet and those behind it. The
 * session's own isolation would show each statement a newer book. */
static apr_status_t begin(yk_store_t *store, yk_evidence_t *e,
                          uint32_t tenant_id)
{
    yk_packet_t *packet = yk_packet_make(store);
    yk_sql_t *sql;

    yk_sql_put(yk_packet_do(packet), "ROLLBACK");
    yk_sql_put(yk_packet_do(packet),
               "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ");
    yk_sql_put(yk_packet_do(packet),
               "START TRANSACTION WITH CONSISTENT SNAPSHOT");
    packet->begins = 1;
    sql = yk_packet_ask(packet, clock_row, e);
    yk_sql_put(sql, "SELECT ");
    yk_sql_clock(sql, store->shift_us);
    sql = yk_packet_ask(packet, slot_row, e);
    yk_sql_put(sql, "SELECT slot_id FROM yoyaku_slot WHERE tenant_id=");
    yk_sql_uint(sql, tenant_id);
    yk_sql_put(sql, " AND slot_key=");
    yk_sql_text(sql, e->key);
    return yk_packet_run(packet);
}

static apr_status_t read_rows(yk_store_t *store, yk_evidence_t *e)
{
    yk_packet_t *packet = yk_packet_make(store);

    ask_of_slot(packet, area_row, e,
                "SELECT area_no,mode,max,first_place,places FROM yoyaku_area "
                "WHERE slot_id=",
                " ORDER BY area_no");
    ask_of_slot(packet, price_row, e,
                "SELECT price_no,quota,counted FROM yoyaku_price "
                "WHERE slot_id=",
                "");
    ask_of_slot(packet, anchor_row, e,
                "SELECT kind,no,used,max,version,map FROM yoyaku_lock_anchor "
                "WHERE kind IN (2,3) AND owner=",
                "");
    ask_of_slot(packet, place_row, e,
                "SELECT place_no,order_id,state,until_us,version "
                "FROM yoyaku_slot_place WHERE slot_id=",
                " ORDER BY place_no");
    ask_of_slot(packet, order_row, e,
                "SELECT DISTINCT o.order_id,o.state,o.until_us "
                "FROM yoyaku_slot_place s JOIN yoyaku_order o "
                "ON o.order_id=s.order_id WHERE s.slot_id=",
                " AND s.order_id<>0 ORDER BY o.order_id");
    ask_of_slot(packet, line_row, e,
                "SELECT b.order_id,b.line,b.area_no,b.place_no,b.quantity,"
                "b.price_no,o.state,o.until_us FROM yoyaku_booking b "
                "LEFT JOIN yoyaku_order o ON o.order_id=b.order_id "
                "WHERE b.live=1 AND b.slot_id=",
                " ORDER BY b.order_id,b.line");
    return yk_packet_run(packet);
}

/* Page by page along the primary key, in the snapshot begun above. */
static apr_status_t read_journal(yk_store_t *store, yk_evidence_t *e)
{
    pages_t pages = {e, -1, 0, JOURNAL_ROWS};
    apr_status_t rv = APR_SUCCESS;

    while (rv == APR_SUCCESS && pages.rows == JOURNAL_ROWS) {
        yk_packet_t *packet = yk_packet_make(store);
        yk_sql_t *sql = yk_packet_ask(packet, journal_row, &pages);

        pages.rows = 0;
        yk_sql_put(sql, "SELECT at_us,order_id,`change` FROM yoyaku_journal "
                        "WHERE slot_id=");
        yk_sql_uint(sql, e->slot_id);
        yk_sql_put(sql, " AND at_us>=");
        yk_sql_int(sql, pages.at_us);
        yk_sql_put(sql, " AND (at_us,order_id)>(");
        yk_sql_int(sql, pages.at_us);
        yk_sql_put(sql, ",");
        yk_sql_uint(sql, pages.order_id);
        yk_sql_put(sql, ") ORDER BY at_us,order_id LIMIT ");
        yk_sql_uint(sql, JOURNAL_ROWS);
        rv = yk_packet_run(packet);
    }
    return rv;
}

apr_status_t yk_store_evidence(yk_store_t *store, yk_evidence_t **evidence,
                               uint32_t tenant_id, const char *key,
                               apr_pool_t *p)
{
    yk_evidence_t *e = apr_pcalloc(p, sizeof(*e));
    apr_status_t rv;

    e->p = p;
    e->key = key;
    rv = begin(store, e, tenant_id);
    if (rv == APR_SUCCESS && e->slot_id == 0) {
        rv = APR_NOTFOUND;
    }
    if (rv == APR_SUCCESS) {
        rv = read_rows(store, e);
    }
    if (rv == APR_SUCCESS) {
        rv = read_journal(store, e);
    }
    yk_store_rollback(store);
    *evidence = e;
    return rv;
}

/* ---- keys ---- */

typedef struct keys_t {
    apr_pool_t *p;
    uint32_t nkeys, key_space;
    const char **keys;
} keys_t;

static void key_row(void *baton, char **row, const unsigned long *lengths)
{
    keys_t *k = baton;
    const char **key = NEXT(k, key);

    *key = yk_column_text(row[0], lengths[0], k->p);
}

apr_status_t yk_store_slot_keys(yk_store_t *store, const char ***keys,
                                uint32_t *n, uint32_t tenant_id, apr_pool_t *p)
{
    keys_t all = {p, 0, 0, NULL};
    yk_packet_t *packet = yk_packet_make(store);
    yk_sql_t *sql = yk_packet_ask(packet, key_row, &all);
    apr_status_t rv;

    yk_sql_put(sql, "SELECT slot_key FROM yoyaku_slot WHERE tenant_id=");
    yk_sql_uint(sql, tenant_id);
    yk_sql_put(sql, " ORDER BY slot_key");
    rv = yk_packet_run(packet);
    *keys = all.keys;
    *n = all.nkeys;
    return rv;
}

/* ---- limits ---- */

typedef struct overs_t {
    apr_pool_t *p;
    uint32_t novers, over_space;
    yk_over_t *overs;
    const char *limit; /**< the one being looked at */
    int by_number;
    int64_t max;
} overs_t;

static void over_row(void *baton, char **row, const unsigned long *lengths)
{
    overs_t *o = baton;
    yk_over_t *over = NEXT(o, over);

    over->limit = o->limit;
    over->max = o->max;
    over->who = o->by_number ? yk_number_write(yk_column_uint(row[0]), o->p)
                             : yk_column_text(row[0], lengths[0], o->p);
    over->have = yk_column_int(row[1]);
}

static const char *limit_name(const yk_limit_t *limit, apr_pool_t *p)
{
    static const char *const counted[] = {"places", "slots", "resources"};
    static const char *const reach[] = {"slot ", "resource ", "series ",
                                        "everything"};

    return apr_pstrcat(p, counted[limit->count], " per ",
                       limit->per == YK_PER_ORDER ? "order" : "booker",
                       " over ", reach[limit->over], limit->key, NULL);
}

/* Locks nothing. Counts what holds count: lines that are live, due ones too. */
static apr_status_t over_one(yk_store_t *store, overs_t *overs,
                             const yk_limit_t *limit, uint32_t tenant_id)
{
    static const char *const what[] = {"SUM(b.quantity)",
                                       "COUNT(DISTINCT b.slot_id)",
                                       "COUNT(DISTINCT s.resource)"};
    static const char *const reach[] = {"s.slot_key", "s.resource", "s.series",
                                        NULL};
    int per_order = limit->per == YK_PER_ORDER;
    yk_packet_t *packet = yk_packet_make(store);
    yk_sql_t *sql = yk_packet_ask(packet, over_row, overs);

    overs->limit = limit_name(limit, overs->p);
    overs->by_number = per_order;
    overs->max = limit->max;
    yk_sql_put(sql, per_order ? "SELECT b.order_id," : "SELECT MIN(o.booker),");
    yk_sql_put(sql, what[limit->count]);
    yk_sql_put(sql, " AS have FROM yoyaku_booking b JOIN yoyaku_slot s ON "
                    "s.slot_id=b.slot_id JOIN yoyaku_order o ON "
                    "o.order_id=b.order_id WHERE b.live=1 AND b.tenant_id=");
    yk_sql_uint(sql, tenant_id);
    if (reach[limit->over] != NULL) {
        yk_sql_put(sql, " AND ");
        yk_sql_put(sql, reach[limit->over]);
        yk_sql_put(sql, "=");
        yk_sql_text(sql, limit->key);
    }
    if (limit->count == YK_COUNT_RESOURCES) {
        yk_sql_put(sql, " AND s.resource<>''");
    }
    yk_sql_put(sql, per_order ? " GROUP BY b.order_id HAVING have>"
                              : " AND o.booker<>'' GROUP BY b.booker_hash "
                                "HAVING have>");
    yk_sql_int(sql, limit->max);
    yk_sql_put(sql, " LIMIT ");
    yk_sql_uint(sql, OVER_ROWS);
    return yk_packet_run(packet);
}

apr_status_t yk_store_over(yk_store_t *store, yk_over_t **over, uint32_t *n,
                           uint32_t tenant_id, apr_pool_t *p)
{
    overs_t overs = {p, 0, 0, NULL, NULL, 0, 0};
    yk_limit_t *limits;
    uint32_t nlimits;
    apr_status_t rv = yk_setup_limits(store, &limits, &nlimits, tenant_id, p);

    for (uint32_t i = 0; i < nlimits && rv == APR_SUCCESS; i++) {
        if (limits[i].in_force) {
            rv = over_one(store, &overs, &limits[i], tenant_id);
        }
    }
    *over = overs.overs;
    *n = overs.novers;
    return rv;
}
