/* SPDX-License-Identifier: Apache-2.0 */
#include "sample.h"
#include <apr_strings.h>
#include <string.h>

static apr_status_t acquire(void *baton, void **line)
{
    sample_t *s = baton;

    s->own = server_line("contract");
    s->opened++;
    *line = s->own;
    return yk_store_session_set(s->own, pool);
}

static void release(void *baton, void *line, int broken)
{
    sample_t *s = baton;

    mysql_close(line);
    s->own = NULL;
}

static yk_order_t *order_make(uint64_t order_id, const char *booker)
{
    yk_order_t *order = apr_pcalloc(pool, sizeof(*order));

    order->order_id = order_id;
    order->tenant_id = 1;
    order->state = YK_ORDER_HELD;
    order->until_us = apr_time_now() + apr_time_from_sec(600);
    order->begun_us = apr_time_now();
    order->max_until_us = order->until_us + 5;
    order->token_hash.bytes[0] = (unsigned char)order_id;
    order->booker = booker;
    yk_booker_hash(order->booker_hash, booker);
    order->reference = order->contact = order->data = order->payment = "";
    strcpy(order->currency, "EUR");
    order->next_line = 1;
    return order;
}

static yk_line_t *line_make(sample_t *s, yk_order_t *order, uint32_t area_no,
                            uint32_t place_no, uint32_t quantity)
{
    yk_line_t *line = yk_ledger_line_add(s->l, order);

    line->slot_id = s->slot_id;
    line->area_no = area_no;
    line->place_no = place_no;
    line->quantity = quantity;
    line->price_no = 1;
    line->tariff = "adult";
    line->amount = 900;
    strcpy(line->currency, "EUR");
    line->live = 1;
    return line;
}

static void take(sample_t *s, yk_place_t *place, const yk_order_t *order)
{
    yk_ledger_touch_place(s->l, place);
    place->state = YK_PLACE_HELD;
    place->order_id = order->order_id;
    place->until_us = order->until_us;
    place->by_order = order->order_id;
}

static void begin_old(sample_t *s)
{
    yk_order_t *order = order_make(SAMPLE_OLD, "");
    yk_order_row_t *row;

    s->l = yk_ledger_make(pool);
    yk_ledger_want_place(s->l, s->slot_id, 0, 0, 0);
    ck_ok(yk_store_lock(s->store, s->l));
    row = yk_ledger_order_add(s->l, order);
    row->why = "hold";
    row->who = "";
    row->change_id = 1;
    line_make(s, order, 0, 0, 1);
    take(s, yk_ledger_place(s->l, s->slot_id, 0), order);
    ck_ok(yk_store_write(s->store, s->l));
}

sample_t *sample_make(void)
{
    sample_t *s = apr_pcalloc(pool, sizeof(*s));
    yk_store_host_t host = {s, acquire, release};
    yk_store_t *store = book_make();
    yk_setup_slot_t slot;
    yk_setup_area_t areas[2];
    yk_slot_t *made;
    const char *say;

    book_hall(store, "house", 2, 10);
    memset(&slot, 0, sizeof(slot));
    memset(areas, 0, sizeof(areas));
    slot.key = "s";
    slot.hall = "house";
    slot.nareas = 2;
    slot.areas = areas;
    areas[0].name = server_text(book_line(),
                                "SELECT name FROM yoyaku_section"
                                " WHERE section_no=1",
                                pool);
    areas[0].mode = YK_MODE_ASSIGNED;
    areas[1].name = "Pool";
    areas[1].mode = YK_MODE_POOLED;
    areas[1].max = 100;
    ck_ok(yk_setup_slot(store, &say, 1, &slot, pool));
    ck_ok(yk_setup_price(store, &say, 1, "s", NULL, NULL, "adult", 900, "EUR",
                         50, pool));
    /* one of the 65,536 that a booker's limit makes */
    server_run(book_line(), "INSERT INTO yoyaku_lock_anchor"
                            " (kind,owner,no,used,max,version)"
                            " VALUES (1,1,4242,0,0,1)");
    ck_ok(yk_setup_slot_state(store, &say, 1, "s", YK_SLOT_OPEN, pool));
    ck_ok(yk_store_slot(store, &made, 1, "s", pool));
    s->slot_id = made->slot_id;
    ck_ok(yk_store_attach(&s->store, &host, pool));
    begin_old(s);
    return s;
}

void sample_want(sample_t *s)
{
    yk_hash_t scope;
    unsigned char hash[16];
    uint32_t i;

    s->l = yk_ledger_make(pool);
    memset(&scope, 7, sizeof(scope));
    yk_booker_hash(hash, "anna");
    yk_ledger_want_once(s->l, 1, &scope);
    yk_ledger_want_version(s->l, s->slot_id);
    yk_ledger_want_booker(s->l, 1, hash);
    yk_ledger_want_order(s->l, SAMPLE_OLD, NULL);
    yk_ledger_want_place(s->l, s->slot_id, 1, 12, 1);
    for (i = 4; i-- > 1;) {
        yk_ledger_want_place(s->l, s->slot_id, 0, i, 0);
    }
    yk_ledger_want_anchor(s->l, YK_ANCHOR_QUOTA, s->slot_id, 1);
    yk_ledger_want_anchor(s->l, YK_ANCHOR_AREA, s->slot_id, 2);
    yk_ledger_want_anchor(s->l, YK_ANCHOR_AREA, s->slot_id, 1);
    yk_ledger_want_anchor(s->l, YK_ANCHOR_BOOKER, 1, 4242);
}

static void use(sample_t *s, yk_order_row_t *row, yk_anchor_e kind, uint32_t no,
                int64_t n)
{
    yk_anchor_t *anchor = yk_ledger_anchor(s->l, kind, s->slot_id, no);

    yk_ledger_touch_anchor(s->l, anchor);
    anchor->used += n;
    yk_ledger_count(s->l, row, &anchor->key, n);
}

void sample_decide(sample_t *s)
{
    yk_ledger_t *l = s->l;
    yk_order_t *order = order_make(SAMPLE_NEW, "anna");
    yk_order_row_t *row = yk_ledger_order_add(l, order);
    yk_order_row_t *old = yk_ledger_order(l, SAMPLE_OLD);
    uint32_t i;

    row->why = "hold";
    row->who = "anna";
    row->change_id = SAMPLE_CHANGE;
    for (i = 1; i <= 3; i++) {
        take(s, yk_ledger_place(l, s->slot_id, i), order);
        line_make(s, order, 0, i, 1);
    }
    take(s, yk_ledger_seat(l, s->slot_id, 1, 12), order);
    line_make(s, order, 1, 12, 1);
    line_make(s, order, 2, YK_NO_PLACE, 2);
    use(s, row, YK_ANCHOR_QUOTA, 1, 6);
    use(s, row, YK_ANCHOR_AREA, 1, 1);
    use(s, row, YK_ANCHOR_AREA, 2, 2);
    yk_ledger_anchor(l, YK_ANCHOR_AREA, s->slot_id, 1)->map[0] &= 0xfb;
    yk_ledger_touch_anchor(l, yk_ledger_anchor(l, YK_ANCHOR_BOOKER, 1, 4242));
    yk_ledger_touch_order(l, old);
    old->order->reference = "R-1";
    old->why = "patch";
    old->who = "";
    old->change_id = SAMPLE_CHANGE + 1;
    l->onces[0].is_new = 1;
    l->onces[0].order_id = SAMPLE_NEW;
    l->onces[0].answer = YK_ANSWER_HELD;
    l->onces[0].status = 201;
    l->onces[0].extra = "{\"together\":true}";
    memset(l->onces[0].salt, 9, sizeof(l->onces[0].salt));
}

const char *sample_state(MYSQL *line)
{
    static const char *const tables[] = {"lock_anchor", "slot_place",
                                         "order",       "booking",
                                         "journal",     "idempotency"};
    const char *state = "";
    size_t i;

    for (i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        MYSQL_RES *result;
        MYSQL_ROW row;
        const char *sql =
            apr_pstrcat(pool, "CHECKSUM TABLE yoyaku_", tables[i], NULL);
        ck_assert_int_eq(mysql_query(line, sql), 0);
        result = mysql_store_result(line);
        ck_assert_ptr_nonnull(result);
        row = mysql_fetch_row(result);
        state = apr_pstrcat(pool, state, " ", row[1], NULL);
        mysql_free_result(result);
    }
    return state;
}

int sample_is_open(const sample_t *s)
{
    return s->own != NULL &&
           server_number(s->own, "SELECT @@in_transaction") != 0;
}
