/* SPDX-License-Identifier: Apache-2.0 */
#include "lock.h"
#include <apr_strings.h>
#include <string.h>
#include "rows.h"

/*
 * Every list is a derived table read in its own order and joined to its rows
 * by primary key. An IN list turns into a scan of the hall when it is long
 * enough, and locks, or waits for, rows nobody named; STRAIGHT_JOIN and FORCE
 * INDEX leave the server no such choice. Column i is the row's number in the
 * ledger, so that an answer finds its row.
 */
#define FROM_LIST " FROM ("
#define JOIN_ANCHOR                                                            \
    ") w STRAIGHT_JOIN yoyaku_lock_anchor a FORCE INDEX (PRIMARY)"             \
    " ON a.kind=w.k AND a.owner=w.o AND a.no=w.n"
#define JOIN_PLACE                                                             \
    ") w STRAIGHT_JOIN yoyaku_slot_place s FORCE INDEX (PRIMARY)"              \
    " ON s.slot_id=w.s AND s.place_no=w.n"
#define JOIN_ORDER                                                             \
    ") w STRAIGHT_JOIN yoyaku_order o FORCE INDEX (PRIMARY)"                   \
    " ON o.order_id=w.o"

/* ---- what answers ---- */

static void anchor_row(void *baton, char **row, const unsigned long *lengths)
{
    yk_ledger_t *ledger = baton;
    yk_anchor_t *anchor = &ledger->anchors[yk_column_uint(row[0])];

    anchor->found = 1;
    anchor->used = yk_column_int(row[1]);
    anchor->max = yk_column_int(row[2]);
    anchor->version = yk_column_uint(row[3]);
    anchor->map = NULL;
    anchor->map_bytes = 0;
    if (row[4] != NULL) {
        anchor->map_bytes = (uint32_t)lengths[4];
        anchor->map = apr_pmemdup(ledger->p, row[4], lengths[4]);
    }
}

static void place_row(void *baton, char **row, const unsigned long *lengths)
{
    yk_ledger_t *ledger = baton;
    yk_place_t *place = &ledger->places[yk_column_uint(row[0])];

    place->found = 1;
    place->order_id = yk_column_uint(row[1]);
    place->state = (yk_place_state_e)yk_column_uint(row[2]);
    place->until_us = yk_column_int(row[3]);
    place->version = yk_column_uint(row[4]);
}

static void order_row(void *baton, char **row, const unsigned long *lengths)
{
    yk_ledger_t *ledger = baton;
    yk_order_row_t *order = &ledger->orders[yk_column_uint(row[0])];

    order->found = 1;
    order->order = yk_order_read(row + 1, lengths + 1, ledger->p);
}

/* Seen before: at the same version it is what it was, lines too. At another it
 * counts as not found: of two who saw it at different times one is right, but
 * the row has one content. */
static void seen_row(void *baton, char **row, const unsigned long *lengths)
{
    yk_ledger_t *ledger = baton;
    yk_order_row_t *order = &ledger->orders[yk_column_uint(row[0])];

    if (yk_column_uint(row[1]) != order->seen->version) {
        return;
    }
    order->found = 1;
    order->was = order->seen;
    order->order = yk_order_copy(order->seen, ledger->p);
}

static void line_row(void *baton, char **row, const unsigned long *lengths)
{
    yk_ledger_t *ledger = baton;
    yk_order_row_t *order = &ledger->orders[yk_column_uint(row[0])];

    if (order->found) {
        yk_line_read(order->order, row + 1, lengths + 1, ledger->p);
    }
}

static void version_row(void *baton, char **row, const unsigned long *lengths)
{
    yk_ledger_t *ledger = baton;
    yk_version_t *version = &ledger->versions[yk_column_uint(row[0])];

    version->found = 1;
    version->version = yk_column_uint(row[1]);
    version->tenant_version = yk_column_uint(row[2]);
}

static void booked_row(void *baton, char **row, const unsigned long *lengths)
{
    yk_ledger_t *ledger = baton;
    yk_booker_t *booker = &ledger->bookers[yk_column_uint(row[0])];
    yk_booked_t *booked;

    /* the array doubles when its length is a power of two */
    if ((booker->nbooked & (booker->nbooked - 1)) == 0) {
        yk_booked_t *all = apr_palloc(
            ledger->p,
            (booker->nbooked > 0 ? 2 * booker->nbooked : 1) * sizeof(*all));
        if (booker->nbooked > 0) {
            memcpy(all, booker->booked, booker->nbooked * sizeof(*all));
        }
        booker->booked = all;
    }
    booked = &booker->booked[booker->nbooked++];
    booked->order_id = yk_column_uint(row[1]);
    booked->slot_id = yk_column_uint(row[2]);
    booked->quantity = (uint32_t)yk_column_uint(row[3]);
    booked->slot = yk_column_text(row[4], lengths[4], ledger->p);
    booked->resource = yk_column_text(row[5], lengths[5], ledger->p);
    booked->series = yk_column_text(row[6], lengths[6], ledger->p);
}

static void once_row(void *baton, char **row, const unsigned long *lengths)
{
    yk_ledger_t *ledger = baton;
    yk_once_row_t *once = &ledger->onces[yk_column_uint(row[0])];

    once->found = 1;
    yk_column_bytes(once->request.bytes, sizeof(once->request.bytes), row[1],
                    lengths[1]);
    once->order_id = yk_column_uint(row[2]);
    yk_column_bytes(once->salt, sizeof(once->salt), row[3], lengths[3]);
    once->answer = (yk_answer_e)yk_column_uint(row[4]);
    once->status = (int)yk_column_int(row[5]);
    once->extra = yk_column_text(row[6], lengths[6], ledger->p);
}

static void clock_row(void *baton, char **row, const unsigned long *lengths)
{
    yk_ledger_t *ledger = baton;
    ledger->now_us = yk_column_int(row[0]);
}

static void nothing(void *baton, char **row, const unsigned long *lengths)
{
}

/* ---- what is asked under locks ---- */

/* Locks the anchors named, ascending by (kind, owner, no), and nothing else.
 * Only bookers' anchors may be skipped: whoever skips an area's or a quota's
 * could not decide. */
static void lock_anchors(yk_packet_t *packet, yk_ledger_t *ledger, int blind)
{
    uint32_t i = 0;

    while (i < ledger->nanchors) {
        int skips = ledger->skip_locked && !blind &&
                    ledger->anchors[i].key.kind == YK_ANCHOR_BOOKER;
        int bookers = ledger->anchors[i].key.kind == YK_ANCHOR_BOOKER;
        uint32_t end = i + YK_LIST_ROWS;
        yk_sql_t *sql =
            yk_packet_ask(packet, blind ? nothing : anchor_row, ledger);
        yk_sql_put(sql, "SELECT w.i,a.used,a.max,a.version,a.map" FROM_LIST);
        while (i < ledger->nanchors && i < end) {
            const yk_anchor_key_t *key = &ledger->anchors[i].key;
            if (bookers != (key->kind == YK_ANCHOR_BOOKER)) {
                break;
            }
            yk_sql_item(sql, i);
            yk_sql_item_uint(sql, "k", key->kind);
            yk_sql_item_uint(sql, "o", key->owner);
            yk_sql_item_uint(sql, "n", key->no);
            i++;
        }
        yk_sql_put(sql, JOIN_ANCHOR " FOR UPDATE");
        if (skips) {
            yk_sql_put(sql, " SKIP LOCKED");
        }
    }
}

/* Places (seat 0): locks those named, ascending by (slot_id, place_no), and
 * nothing else. Seats (seat 1): locks nothing, their anchor is locked. */
static void ask_places(yk_packet_t *packet, yk_ledger_t *ledger, int seat,
                       int blind)
{
    yk_sql_t *sql = NULL;
    uint32_t i, n = 0;

    for (i = 0; i < ledger->nplaces; i++) {
        const yk_place_t *place = &ledger->places[i];
        if ((place->seat != 0) != (seat != 0)) {
            continue;
        }
        if (n % YK_LIST_ROWS == 0) {
            if (n > 0) {
                yk_sql_put(sql, JOIN_PLACE);
                yk_sql_put(sql, seat ? "" : " FOR UPDATE");
                yk_sql_put(sql, !seat && !blind && ledger->skip_locked
                                    ? " SKIP LOCKED"
                                    : "");
            }
            sql = yk_packet_ask(packet, blind ? nothing : place_row, ledger);
            yk_sql_put(sql, "SELECT w.i,s.order_id,s.state,s.until_us,"
                            "s.version" FROM_LIST);
        }
        yk_sql_item(sql, i);
        yk_sql_item_uint(sql, "s", place->slot_id);
        yk_sql_item_uint(sql, "n", place->place_no);
        n++;
    }
    if (n > 0) {
        yk_sql_put(sql, JOIN_PLACE);
        yk_sql_put(sql, seat ? "" : " FOR UPDATE");
        yk_sql_put(sql, !seat && !blind && ledger->skip_locked ? " SKIP LOCKED"
                                                               : "");
    }
}

/* What is asked of orders: of some that were seen before the version alone. */
typedef enum asked_e { ASK_SEEN, ASK_ORDERS, ASK_LINES } asked_e;

static void ask_of_orders(yk_packet_t *packet, yk_ledger_t *ledger,
                          asked_e asked, uint32_t from, uint32_t to, int blind)
{
    static yk_row_fn *const row_of[] = {seen_row, order_row, line_row};
    yk_sql_t *sql =
        yk_packet_ask(packet, blind ? nothing : row_of[asked], ledger);

    yk_sql_put(sql, asked == ASK_SEEN     ? "SELECT w.i,o.version"
                    : asked == ASK_ORDERS ? "SELECT w.i,o.order_id,o.version"
                                          : "SELECT w.i");
    yk_sql_put(sql, asked == ASK_SEEN     ? ""
                    : asked == ASK_ORDERS ? yk_order_select
                                          : yk_line_select);
    yk_sql_put(sql, FROM_LIST);
    for (uint32_t i = from; i < to; i++) {
        yk_sql_item(sql, i);
        yk_sql_item_uint(sql, "o", ledger->orders[i].order_id);
    }
    yk_sql_put(sql, asked == ASK_LINES
                        ? ") w STRAIGHT_JOIN yoyaku_booking b"
                          " FORCE INDEX (PRIMARY) ON b.order_id=w.o"
                        : JOIN_ORDER " FOR UPDATE");
}

/* Orders: locks those named, ascending by order_id, whether seen before or
 * not. Lines of those not seen: locks nothing; whoever writes lines holds the
 * order. */
static void ask_orders(yk_packet_t *packet, yk_ledger_t *ledger, int lines,
                       int blind)
{
    uint32_t to;

    for (uint32_t i = 0; i < ledger->norders && !ledger->orders[i].is_new;
         i = to) {
        int seen = ledger->orders[i].seen != NULL;

        to = i + 1;
        while (to < ledger->norders && to < i + YK_LIST_ROWS &&
               !ledger->orders[to].is_new &&
               (ledger->orders[to].seen != NULL) == seen) {
            to++;
        }
        if (!lines) {
            ask_of_orders(packet, ledger, seen ? ASK_SEEN : ASK_ORDERS, i, to,
                          blind);
        }
        else if (!seen) {
            ask_of_orders(packet, ledger, ASK_LINES, i, to, blind);
        }
    }
}

void yk_lock_rows(yk_packet_t *packet, yk_ledger_t *ledger, int blind)
{
    lock_anchors(packet, ledger, blind);
    ask_places(packet, ledger, 0, blind);
    ask_orders(packet, ledger, 0, blind);
}

/* ---- what is read without locks, after them ---- */

static void ask_versions(yk_packet_t *packet, yk_ledger_t *ledger)
{
    yk_sql_t *sql;
    uint32_t i;

    if (ledger->nversions == 0) {
        return;
    }
    sql = yk_packet_ask(packet, version_row, ledger);
    yk_sql_put(sql, "SELECT w.i,s.version,t.version" FROM_LIST);
    for (i = 0; i < ledger->nversions; i++) {
        yk_sql_item(sql, i);
        yk_sql_item_uint(sql, "s", ledger->versions[i].slot_id);
    }
    yk_sql_put(sql, ") w STRAIGHT_JOIN yoyaku_slot s FORCE INDEX (PRIMARY)"
                    " ON s.slot_id=w.s"
                    " STRAIGHT_JOIN yoyaku_tenant t FORCE INDEX (PRIMARY)"
                    " ON t.tenant_id=s.tenant_id");
}

static void ask_bookers(yk_packet_t *packet, yk_ledger_t *ledger)
{
    yk_sql_t *sql;
    uint32_t i;

    if (ledger->nbookers == 0) {
        return;
    }
    sql = yk_packet_ask(packet, booked_row, ledger);
    yk_sql_put(sql, "SELECT w.i,b.order_id,b.slot_id,b.quantity,s.slot_key,"
                    "s.resource,s.series" FROM_LIST);
    for (i = 0; i < ledger->nbookers; i++) {
        const yk_booker_t *booker = &ledger->bookers[i];
        yk_sql_item(sql, i);
        yk_sql_item_uint(sql, "t", booker->tenant_id);
        yk_sql_item_hex(sql, "h", booker->hash, sizeof(booker->hash));
    }
    yk_sql_put(sql, ") w STRAIGHT_JOIN yoyaku_booking b FORCE INDEX"
                    " (by_booker) ON b.tenant_id=w.t AND b.booker_hash=w.h"
                    " AND b.live=1"
                    " STRAIGHT_JOIN yoyaku_slot s FORCE INDEX (PRIMARY)"
                    " ON s.slot_id=b.slot_id");
}

static void ask_onces(yk_packet_t *packet, yk_ledger_t *ledger)
{
    yk_sql_t *sql;
    uint32_t i;

    if (ledger->nonces == 0) {
        return;
    }
    sql = yk_packet_ask(packet, once_row, ledger);
    yk_sql_put(sql, "SELECT w.i,k.request,k.order_id,k.salt,k.answer,"
                    "k.status,k.extra" FROM_LIST);
    for (i = 0; i < ledger->nonces; i++) {
        const yk_once_row_t *once = &ledger->onces[i];
        yk_sql_item(sql, i);
        yk_sql_item_uint(sql, "t", once->tenant_id);
        yk_sql_item_hex(sql, "h", once->scope.bytes, sizeof(once->scope.bytes));
    }
    yk_sql_put(sql, ") w STRAIGHT_JOIN yoyaku_idempotency k FORCE INDEX"
                    " (PRIMARY) ON k.tenant_id=w.t AND k.scope=w.h");
}

static void ask_clock(yk_packet_t *packet, yk_ledger_t *ledger)
{
    /* NOW() stands still inside a statement: this one comes after the locks */
    yk_sql_t *sql = yk_packet_ask(packet, clock_row, ledger);
    yk_sql_put(sql, "SELECT ");
    yk_sql_clock(sql, packet->store->shift_us);
}

/* A ledger may be locked again after a rollback. */
static void forget(yk_ledger_t *ledger)
{
    uint32_t i;

    for (i = 0; i < ledger->nanchors; i++) {
        ledger->anchors[i].found = 0;
    }
    for (i = 0; i < ledger->nplaces; i++) {
        ledger->places[i].found = 0;
    }
    for (i = 0; i < ledger->norders; i++) {
        ledger->orders[i].found = ledger->orders[i].is_new;
        ledger->orders[i].was = NULL;
    }
    for (i = 0; i < ledger->nversions; i++) {
        ledger->versions[i].found = 0;
    }
    for (i = 0; i < ledger->nbookers; i++) {
        ledger->bookers[i].nbooked = 0;
    }
    for (i = 0; i < ledger->nonces; i++) {
        ledger->onces[i].found = 0;
    }
}

/* What a decision will change stays as it was beside it. */
static void keep_orders(yk_ledger_t *ledger)
{
    for (uint32_t i = 0; i < ledger->norders; i++) {
        yk_order_row_t *row = &ledger->orders[i];

        if (row->found && !row->is_new && row->was == NULL) {
            row->was = yk_order_copy(row->order, ledger->p);
        }
    }
}

apr_status_t yk_store_lock(yk_store_t *store, yk_ledger_t *ledger)
{
    yk_packet_t *packet = yk_packet_make(store);
    apr_status_t rv;

    yk_ledger_sort(ledger);
    forget(ledger);
    yk_packet_begin(packet);
    yk_lock_rows(packet, ledger, 0);
    ask_orders(packet, ledger, 1, 0);
    ask_places(packet, ledger, 1, 0);
    ask_versions(packet, ledger);
    ask_bookers(packet, ledger);
    ask_onces(packet, ledger);
    ask_clock(packet, ledger);
    rv = yk_packet_run(packet);
    keep_orders(ledger);
    return rv;
}
