/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_strings.h>
#include <string.h>
#include "sample.h"

static const char *text_of(char c, apr_size_t len)
{
    char *text = apr_palloc(pool, len + 1);

    memset(text, c, len);
    text[len] = '\0';
    return text;
}

/* Everything a user may send, and its nearest neighbours. */
static const char *const texts[] = {"",
                                    " ",
                                    "  ",
                                    "a",
                                    "A",
                                    "a ",
                                    "a  ",
                                    "\303\244",
                                    "\303\204",
                                    "a\314\210",
                                    "\360\237\230\200",
                                    "\360\237\230\201",
                                    "'",
                                    "\"",
                                    "\\",
                                    "\\'",
                                    "'; DROP",
                                    "/*",
                                    "--",
                                    "%",
                                    "_",
                                    "\001",
                                    "\n",
                                    "x'41'",
                                    "0x41",
                                    "NULL",
                                    "\303\237",
                                    "ss",
                                    "\357\277\277"};
#define TEXTS (sizeof(texts) / sizeof(texts[0]))

/* Write order 500's texts, from a transaction of their own. */
static void write_texts(sample_t *s, const char *text)
{
    yk_order_row_t *row;

    s->l = yk_ledger_make(pool);
    yk_ledger_want_place(s->l, s->slot_id, 0, 0, 0);
    yk_ledger_want_order(s->l, SAMPLE_OLD, NULL);
    ck_ok(yk_store_lock(s->store, s->l));
    row = yk_ledger_order(s->l, SAMPLE_OLD);
    yk_ledger_touch_order(s->l, row);
    row->why = "patch";
    row->who = text;
    row->order->reference = row->order->contact = row->order->data = text;
    row->order->booker = row->order->payment = text;
    yk_booker_hash(row->order->booker_hash, text);
    row->order->lines[0].holder = text;
    ck_ok(yk_store_write(s->store, s->l));
}

static void check_texts(sample_t *s, const char *text)
{
    yk_order_t *order;

    write_texts(s, text);
    ck_ok(yk_store_order(s->store, &order, NULL, 1, SAMPLE_OLD, pool));
    ck_assert_str_eq(order->reference, text);
    ck_assert_str_eq(order->contact, text);
    ck_assert_str_eq(order->data, text);
    ck_assert_str_eq(order->booker, text);
    ck_assert_str_eq(order->payment, text);
    ck_assert_str_eq(order->lines[0].holder, text);
}

START_TEST(texts_come_back_byte_for_byte)
{
    sample_t *s = sample_make();
    size_t i;

    for (i = 0; i < TEXTS; i++) {
        check_texts(s, texts[i]);
    }
    check_texts(s, text_of('\'', YK_TEXT_NAME));
    check_texts(s, text_of(' ', YK_TEXT_NAME));
}
END_TEST

START_TEST(texts_that_differ_stay_different)
{
    sample_t *s = sample_make();
    yk_order_t **orders;
    uint32_t n;
    size_t i, j;

    for (i = 0; i < TEXTS; i++) {
        write_texts(s, texts[i]);
        for (j = 0; j < TEXTS; j++) {
            ck_ok(yk_store_orders(s->store, &orders, &n, NULL, 1, texts[j],
                                  NULL, NULL, pool));
            ck_assert_msg((n == 1) == (i == j), "'%s' found by '%s'", texts[i],
                          texts[j]);
            ck_ok(yk_store_orders(s->store, &orders, &n, NULL, 1, NULL,
                                  texts[j], texts[j], pool));
            ck_assert_uint_eq(n, i == j);
        }
    }
}
END_TEST

START_TEST(a_text_too_long_is_refused_and_not_cut)
{
    sample_t *s = sample_make();
    const char *before = sample_state(book_line());
    yk_order_row_t *row;

    s->l = yk_ledger_make(pool);
    yk_ledger_want_order(s->l, SAMPLE_OLD, NULL);
    ck_ok(yk_store_lock(s->store, s->l));
    row = yk_ledger_order(s->l, SAMPLE_OLD);
    yk_ledger_touch_order(s->l, row);
    row->order->reference = text_of('x', YK_TEXT_NAME + 1);
    ck_assert_int_eq(yk_store_write(s->store, s->l), APR_EGENERAL);
    ck_assert_str_eq(before, sample_state(book_line()));
}
END_TEST

/* Two who saw an order at different times share a ledger: one of them is wrong
 * about it, and the row has one content. */
START_TEST(an_order_seen_at_another_version_is_not_found)
{
    sample_t *s = sample_make();
    yk_order_t *seen, *later;

    ck_ok(yk_store_order(s->store, &seen, NULL, 1, SAMPLE_OLD, pool));
    write_texts(s, "later");
    ck_ok(yk_store_order(s->store, &later, NULL, 1, SAMPLE_OLD, pool));
    ck_assert_uint_eq(later->version, seen->version + 1);
    for (int i = 0; i < 3; i++) {
        yk_order_row_t *row;

        s->l = yk_ledger_make(pool);
        yk_ledger_want_order(s->l, SAMPLE_OLD, i == 0 ? later : seen);
        yk_ledger_want_order(s->l, SAMPLE_OLD, i == 2 ? seen : later);
        ck_ok(yk_store_lock(s->store, s->l));
        yk_store_rollback(s->store);
        row = yk_ledger_order(s->l, SAMPLE_OLD);
        ck_assert_int_eq(row->found, row->seen == later);
        ck_assert_int_eq(row->order != NULL, row->found);
        if (row->found) {
            ck_assert_str_eq(row->order->reference, "later");
            ck_assert_uint_eq(row->order->nlines, 1);
        }
        ck_assert(i == 1 || row->found == (i == 0));
    }
}
END_TEST

START_TEST(an_order_is_found_by_its_token_and_only_by_it)
{
    sample_t *s = sample_make();
    yk_order_t *order;
    apr_time_t now = 0;
    yk_hash_t token;

    memset(&token, 0, sizeof(token));
    token.bytes[0] = (unsigned char)SAMPLE_OLD;
    ck_ok(yk_store_order_by_token(s->store, &order, &now, 1, &token, pool));
    ck_assert_uint_eq(order->order_id, SAMPLE_OLD);
    ck_assert_uint_eq(order->nlines, 1);
    ck_assert_int_gt(now, 0);
    ck_assert_int_eq(
        yk_store_order_by_token(s->store, &order, NULL, 2, &token, pool),
        APR_NOTFOUND);
    token.bytes[31] ^= 1;
    ck_assert_int_eq(
        yk_store_order_by_token(s->store, &order, NULL, 1, &token, pool),
        APR_NOTFOUND);
    ck_assert_int_eq(yk_store_order(s->store, &order, NULL, 1, 1, pool),
                     APR_NOTFOUND);
}
END_TEST

/* ---- what is due ---- */

static void insert_orders(MYSQL *line, uint64_t slot_id)
{
    static const struct {
        int id, state, until, area, price, live;
    } rows[] = {
        /* due: 1 to 4, oldest 3; 5 is not yet; 6 is confirmed; 7 gave back */
        {1, 1, 400, 1, 1, 1}, {2, 2, 300, 1, 2, 1},  {3, 1, 100, 2, 1, 1},
        {4, 2, 200, 2, 2, 1}, {5, 1, 9000, 1, 1, 1}, {6, 3, 0, 1, 1, 1},
        {7, 1, 50, 1, 1, 0}};
    size_t i;

    server_run(line, "DELETE FROM yoyaku_booking; DELETE FROM yoyaku_order");
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        server_run(
            line,
            apr_psprintf(
                pool,
                "INSERT INTO yoyaku_order VALUES (%d,1,%d,1,%d,0,0,0,0,0,0,3,"
                "0,'t%d','h','EUR','b','','','','');"
                "INSERT INTO yoyaku_booking VALUES"
                "(%d,1,1,'h',%d,%" APR_UINT64_T_FMT
                ",%d,5,1,%d,9,'EUR','a',''),(%d,2,1,'h',%d,%" APR_UINT64_T_FMT
                ",%d,6,1,%d,9,'EUR','a','')",
                rows[i].id, rows[i].state, rows[i].until, rows[i].id,
                rows[i].id, rows[i].live, slot_id, rows[i].area, rows[i].price,
                rows[i].id, rows[i].live, slot_id, rows[i].area,
                rows[i].price));
    }
}

static const char *ids_text(const uint64_t *ids, uint32_t n)
{
    const char *text = "";
    uint32_t i;

    for (i = 0; i < n; i++) {
        text = apr_psprintf(pool, "%s%s%" APR_UINT64_T_FMT, text,
                            i > 0 ? " " : "", ids[i]);
    }
    return text;
}

START_TEST(due_orders_come_oldest_first_and_only_those_under_the_bound)
{
    sample_t *s = sample_make();
    yk_anchor_key_t area = {YK_ANCHOR_AREA, s->slot_id, 1};
    yk_anchor_key_t quota = {YK_ANCHOR_QUOTA, s->slot_id, 2};
    yk_anchor_key_t booker = {YK_ANCHOR_BOOKER, 1, 7};
    unsigned char hash[16] = "h";
    uint64_t *ids;
    uint32_t n;

    insert_orders(book_line(), s->slot_id);
    s->l = yk_ledger_make(pool);
    yk_ledger_want_anchor(s->l, YK_ANCHOR_AREA, s->slot_id, 1);
    ck_ok(yk_store_lock(s->store, s->l));
    s->l->now_us = 400;
    ck_ok(yk_store_due_under(s->store, &ids, &n, s->l, &area, NULL, pool));
    ck_assert_str_eq(ids_text(ids, n), "2 1");
    ck_ok(yk_store_due_under(s->store, &ids, &n, s->l, &quota, NULL, pool));
    ck_assert_str_eq(ids_text(ids, n), "4 2");
    ck_ok(yk_store_due_under(s->store, &ids, &n, s->l, &booker, hash, pool));
    ck_assert_str_eq(ids_text(ids, n), "3 4 2 1");
    s->l->now_us = 250;
    ck_ok(yk_store_due_under(s->store, &ids, &n, s->l, &booker, hash, pool));
    ck_assert_str_eq(ids_text(ids, n), "3 4");
    s->l->now_us = 99;
    ck_ok(yk_store_due_under(s->store, &ids, &n, s->l, &area, NULL, pool));
    ck_assert_uint_eq(n, 0);
    ck_assert_int_eq(server_number(s->own, "SELECT @@in_transaction"), 1);
    yk_store_rollback(s->store);
    ck_ok(yk_store_due(s->store, &ids, &n, 64, pool));
    ck_assert_str_eq(ids_text(ids, n), "7 3 4 2 1 5");
    ck_ok(yk_store_due(s->store, &ids, &n, 2, pool));
    ck_assert_str_eq(ids_text(ids, n), "7 3");
}
END_TEST

/* Looking for what is due costs as much as is due, not as much as there is. */
START_TEST(looking_for_due_orders_does_not_read_the_others)
{
    sample_t *s = sample_make();
    MYSQL *line = book_line();
    yk_anchor_key_t area = {YK_ANCHOR_AREA, s->slot_id, 1};
    uint64_t *ids;
    uint32_t n;
    long long before, after;

    insert_orders(line, s->slot_id);
    server_run(
        line, "INSERT INTO yoyaku_order SELECT 1000+seq,1,1,1,4102444800000000,"
              "0,0,0,0,0,0,3,0,CONCAT('x',seq),'h','EUR','b','','','',''"
              " FROM seq_1_to_5000;"
              "INSERT INTO yoyaku_booking SELECT 1000+seq,1,1,'h',1,7,1,5,1,1,"
              "9,'EUR','a','' FROM seq_1_to_5000; ANALYZE TABLE yoyaku_order,"
              " yoyaku_booking");
    s->l = yk_ledger_make(pool);
    yk_ledger_want_anchor(s->l, YK_ANCHOR_AREA, s->slot_id, 1);
    ck_ok(yk_store_lock(s->store, s->l));
    server_run(s->own, "FLUSH STATUS");
    ck_ok(yk_store_due_under(s->store, &ids, &n, s->l, &area, NULL, pool));
    ck_assert_uint_eq(n, 3);
    before = server_number(s->own, "SELECT SUM(VARIABLE_VALUE) FROM"
                                   " information_schema.SESSION_STATUS WHERE"
                                   " VARIABLE_NAME LIKE 'HANDLER_READ%'");
    ck_assert_msg(before < 60, "%lld rows read", before);
    yk_store_rollback(s->store);
    server_run(s->own, "FLUSH STATUS");
    ck_ok(yk_store_due(s->store, &ids, &n, 64, pool));
    after = server_number(s->own, "SELECT SUM(VARIABLE_VALUE) FROM"
                                  " information_schema.SESSION_STATUS WHERE"
                                  " VARIABLE_NAME LIKE 'HANDLER_READ%'");
    ck_assert_msg(after < 60, "%lld rows read", after);
}
END_TEST

/* ---- lists ---- */

START_TEST(slots_are_listed_page_by_page)
{
    yk_store_t *store = book_make();
    MYSQL *line = book_line();
    yk_listed_t *list;
    uint32_t n;
    int more;
    apr_time_t now = 0;
    const char *say;

    book_hall(store, "house", 1, 10);
    book_slot(store, "seated", "house", YK_MODE_PLACED);
    book_slot(store, "pool", NULL, YK_MODE_POOLED);
    ck_ok(yk_setup_slot_state(store, &say, 1, "pool", YK_SLOT_CLOSED, pool));
    server_run(line,
               "UPDATE yoyaku_slot_place SET state=1,until_us="
               "IF(place_no<2,5,4102444800000000) WHERE place_no<4;"
               "UPDATE yoyaku_lock_anchor SET used=30 WHERE kind=2;"
               "UPDATE yoyaku_slot SET starts_us=7 WHERE slot_key='pool'");
    ck_ok(yk_store_slots(store, &list, &n, &more, &now, 1, NULL, NULL, NULL,
                         NULL, pool));
    ck_assert_uint_eq(n, 2);
    ck_assert_int_eq(more, 0);
    ck_assert_str_eq(list[0].slot->key, "seated");
    ck_assert_int_eq(list[0].places, 10);
    ck_assert_int_eq(list[0].free, 8);
    ck_assert_int_eq(list[1].places, 100);
    ck_assert_int_eq(list[1].free, 70);
    ck_ok(yk_store_slots(store, &list, &n, &more, &now, 1, NULL, NULL, "closed",
                         NULL, pool));
    ck_assert_uint_eq(n, 1);
    ck_assert_str_eq(list[0].slot->key, "pool");
    ck_ok(yk_store_slots(store, &list, &n, &more, &now, 1, NULL, NULL, NULL,
                         "seated", pool));
    ck_assert_uint_eq(n, 1);
    ck_assert_str_eq(list[0].slot->key, "pool");
    ck_assert_int_eq(yk_store_slots(store, &list, &n, &more, &now, 1, NULL,
                                    NULL, "odd", NULL, pool),
                     APR_EINVAL);
    server_run(line, "INSERT INTO yoyaku_slot SELECT seq,1,CONCAT('k',seq),1,"
                     "1,'','r','',0,0,9,0,0,0 FROM seq_1_to_150");
    ck_ok(yk_store_slots(store, &list, &n, &more, &now, 1, "r", NULL, "over",
                         NULL, pool));
    ck_assert_uint_eq(n, YK_LIST_MAX);
    ck_assert_int_eq(more, 1);
    ck_ok(yk_store_slots(store, &list, &n, &more, &now, 1, "r", NULL, NULL,
                         list[n - 1].slot->key, pool));
    ck_assert_uint_eq(n, 50);
    ck_assert_int_eq(more, 0);
}
END_TEST

/* The state in the list is the state a slot says of itself. */
START_TEST(a_listed_state_is_the_slots_own)
{
    static const char *const states[] = {"open", "closed", "before", "over"};
    yk_store_t *store = book_make();
    MYSQL *line = book_line();
    const char *clock = "CAST(UNIX_TIMESTAMP()*1000000 AS SIGNED)";
    uint32_t n, i, j, seen[4] = {0, 0, 0, 0};
    yk_listed_t *list;
    int more;
    apr_time_t now;

    server_run(
        line,
        apr_psprintf(
            pool,
            "INSERT INTO yoyaku_slot SELECT 1+a.seq*27+b.seq*9+c.seq*3+d.seq,1,"
            "CONCAT('k',a.seq,b.seq,c.seq,d.seq),1,a.seq,'','','',0,0,"
            "IF(b.seq=0,0,%s+(b.seq-1.5)*60000000),0,"
            "IF(c.seq=0,0,%s+(c.seq-1.5)*60000000),"
            "IF(d.seq=0,0,%s+(d.seq-1.5)*60000000)"
            " FROM seq_0_to_1 a, seq_0_to_2 b, seq_0_to_2 c, seq_0_to_2 d",
            clock, clock, clock));
    for (i = 0; i < 4; i++) {
        ck_ok(yk_store_slots(store, &list, &n, &more, &now, 1, NULL, NULL,
                             states[i], NULL, pool));
        for (j = 0; j < n; j++) {
            ck_assert_str_eq(yk_slot_state_name(list[j].slot, now), states[i]);
        }
        seen[i] = n;
    }
    ck_assert_uint_eq(seen[0] + seen[1] + seen[2] + seen[3], 54);
    ck_assert_uint_gt(seen[0], 0);
    ck_assert_uint_gt(seen[2], 0);
    ck_assert_uint_gt(seen[3], 0);
}
END_TEST

START_TEST(the_shops_search_gives_the_newest_first)
{
    sample_t *s = sample_make();
    yk_order_t **orders;
    apr_time_t now = 0;
    uint32_t n;

    sample_want(s);
    ck_ok(yk_store_lock(s->store, s->l));
    sample_decide(s);
    ck_ok(yk_store_write(s->store, s->l));
    ck_ok(yk_store_orders(s->store, &orders, &n, &now, 1, NULL, NULL, NULL,
                          pool));
    ck_assert_uint_eq(n, 2);
    ck_assert_uint_eq(orders[0]->order_id, SAMPLE_NEW);
    ck_assert_uint_eq(orders[0]->nlines, 5);
    ck_assert_uint_eq(orders[1]->nlines, 1);
    ck_ok(yk_store_orders(s->store, &orders, &n, &now, 1, NULL, "anna", NULL,
                          pool));
    ck_assert_uint_eq(n, 1);
    ck_ok(yk_store_orders(s->store, &orders, &n, &now, 1, "R-1", NULL, NULL,
                          pool));
    ck_assert_uint_eq(orders[0]->order_id, SAMPLE_OLD);
    ck_ok(yk_store_orders(s->store, &orders, &n, &now, 2, "R-1", NULL, NULL,
                          pool));
    ck_assert_uint_eq(n, 0);
}
END_TEST

START_TEST(every_table_of_the_schema_is_looked_for)
{
    yk_store_t *store = book_make();
    MYSQL *line = book_line();
    const char *why = NULL;
    int i, n = 0;

    for (i = 0;; i++) {
        const char *table = server_text(
            line,
            apr_psprintf(pool,
                         "SELECT TABLE_NAME FROM information_schema.TABLES"
                         " WHERE TABLE_SCHEMA='contract' ORDER BY 1"
                         " LIMIT %d,1",
                         i),
            pool);
        if (table == NULL) {
            break;
        }
        server_run(line, apr_psprintf(pool, "RENAME TABLE %s TO away", table));
        ck_assert_int_eq(yk_store_probe(store, &why, pool), APR_ENOTIMPL);
        ck_assert_ptr_nonnull(strstr(why, table));
        server_run(line, apr_psprintf(pool, "RENAME TABLE away TO %s", table));
        n++;
    }
    ck_assert_int_eq(n, 17);
    ck_ok(yk_store_probe(store, &why, pool));
}
END_TEST

TCase *reads_case(void)
{
    TCase *tc = tcase_create("reads");

    tcase_set_timeout(tc, 120);
    tcase_add_checked_fixture(tc, pool_make, pool_end);
    tcase_add_test(tc, texts_come_back_byte_for_byte);
    tcase_add_test(tc, texts_that_differ_stay_different);
    tcase_add_test(tc, an_order_seen_at_another_version_is_not_found);
    tcase_add_test(tc, a_text_too_long_is_refused_and_not_cut);
    tcase_add_test(tc, an_order_is_found_by_its_token_and_only_by_it);
    tcase_add_test(tc,
                   due_orders_come_oldest_first_and_only_those_under_the_bound);
    tcase_add_test(tc, looking_for_due_orders_does_not_read_the_others);
    tcase_add_test(tc, slots_are_listed_page_by_page);
    tcase_add_test(tc, a_listed_state_is_the_slots_own);
    tcase_add_test(tc, the_shops_search_gives_the_newest_first);
    tcase_add_test(tc, every_table_of_the_schema_is_looked_for);
    return tc;
}
