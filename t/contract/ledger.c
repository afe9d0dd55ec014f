/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_strings.h>
#include <string.h>
#include "sample.h"

/* ---- lock order, and what is left out ---- */

static const char *keep_text(void *baton, const char *sql, apr_pool_t *p)
{
    const char **kept = baton;

    *kept = apr_pstrdup(pool, sql);
    return sql;
}

static apr_size_t at(const char *text, const char *what)
{
    const char *found = strstr(text, what);

    ck_assert_msg(found != NULL, "%s is missing in: %s", what, text);
    return (apr_size_t)(found - text);
}

START_TEST(locks_are_taken_in_one_order_and_the_clock_is_read_last)
{
    sample_t *s = sample_make();
    const char *sql = NULL;
    uint32_t i;

    sample_want(s);
    yk_store_watch(s->store, keep_text, &sql);
    ck_ok(yk_store_lock(s->store, s->l));
    ck_assert_uint_lt(at(sql, "BEGIN"), at(sql, "yoyaku_lock_anchor"));
    ck_assert_uint_lt(at(sql, "yoyaku_lock_anchor"),
                      at(sql, "yoyaku_slot_place"));
    ck_assert_uint_lt(at(sql, "yoyaku_slot_place"), at(sql, "yoyaku_order o"));
    ck_assert_uint_lt(at(sql, "yoyaku_order o"), at(sql, "yoyaku_slot s"));
    ck_assert_uint_lt(at(sql, "yoyaku_idempotency"), at(sql, "UNIX_TIMESTAMP"));
    ck_assert_ptr_null(strstr(sql + at(sql, "UNIX_TIMESTAMP"), "FOR UPDATE"));
    for (i = 0; i < s->l->nanchors; i++) {
        ck_assert(s->l->anchors[i].found);
        ck_assert(i == 0 ||
                  s->l->anchors[i - 1].key.kind <= s->l->anchors[i].key.kind);
    }
    for (i = 0; i < s->l->nplaces; i++) {
        ck_assert(s->l->places[i].found);
    }
    ck_assert_int_eq(s->l->anchors[1].map_bytes, 2);
    ck_assert_int_eq(s->l->anchors[3].max, 50);
    ck_assert(s->l->versions[0].found);
    ck_assert_str_eq(s->l->orders[0].order->currency, "EUR");
    ck_assert_uint_eq(s->l->orders[0].order->nlines, 1);
    yk_store_rollback(s->store);
    ck_assert_int_eq(sample_is_open(s), 0);
}
END_TEST

START_TEST(a_statement_with_nothing_to_do_is_left_out)
{
    sample_t *s = sample_make();
    const char *sql = NULL;

    s->l = yk_ledger_make(pool);
    yk_ledger_want_place(s->l, s->slot_id, 0, 5, 0);
    yk_store_watch(s->store, keep_text, &sql);
    ck_ok(yk_store_lock(s->store, s->l));
    ck_assert_ptr_null(strstr(sql, "lock_anchor"));
    ck_assert_ptr_null(strstr(sql, "yoyaku_order"));
    ck_assert_ptr_null(strstr(sql, "yoyaku_booking"));
    ck_assert_ptr_null(strstr(sql, "idempotency"));
    ck_ok(yk_store_write(s->store, s->l));
    ck_assert_str_eq(sql, "COMMIT");
}
END_TEST

/* ---- what is written ---- */

START_TEST(versions_grow_by_one_and_a_seat_has_its_anchors)
{
    sample_t *s = sample_make();
    MYSQL *line = book_line();
    yk_board_t *board;
    yk_slot_t *slot;
    yk_entry_t *entries;
    yk_order_t *order;
    uint32_t n;

    server_run(line, "UPDATE yoyaku_lock_anchor SET version=40"
                     " WHERE kind=2 AND no=1");
    sample_want(s);
    ck_ok(yk_store_lock(s->store, s->l));
    sample_decide(s);
    ck_ok(yk_store_write(s->store, s->l));
    ck_assert_str_eq(
        server_text(line,
                    "SELECT GROUP_CONCAT(place_no,':',state,':',order_id,':',"
                    "version ORDER BY place_no) FROM yoyaku_slot_place"
                    " WHERE order_id<>0",
                    pool),
        "0:1:500:2,1:1:600:2,2:1:600:2,3:1:600:2,12:1:600:41");
    ck_assert_str_eq(
        server_text(line,
                    "SELECT GROUP_CONCAT(kind,':',no,':',used,':',version,':',"
                    "COALESCE(HEX(map),'-') ORDER BY kind,no)"
                    " FROM yoyaku_lock_anchor WHERE version>1 OR used>0",
                    pool),
        "1:4242:0:2:-,2:1:1:41:FB03,2:2:2:2:-,3:1:6:2:-");
    ck_assert_uint_eq(yk_ledger_seat(s->l, s->slot_id, 1, 12)->version, 41);
    ck_assert_uint_eq(yk_ledger_order(s->l, SAMPLE_OLD)->order->version, 2);
    ck_assert_uint_eq(yk_ledger_order(s->l, SAMPLE_NEW)->order->version, 1);
    ck_ok(yk_store_order(s->store, &order, NULL, 1, SAMPLE_NEW, pool));
    ck_assert_uint_eq(order->version, 1);
    ck_assert_uint_eq(order->nlines, 5);
    ck_assert_str_eq(order->booker, "anna");
    ck_assert_uint_eq(order->lines[4].place_no, YK_NO_PLACE);
    ck_assert_uint_eq(order->lines[4].quantity, 2);

    ck_ok(yk_store_journal(s->store, &entries, &n, NULL, s->slot_id,
                           s->l->now_us, 10, pool));
    ck_assert_uint_eq(n, 2);
    ck_assert_uint_eq(entries[0].order_id, SAMPLE_OLD);
    ck_assert_str_eq(entries[0].why, "patch");
    ck_assert_uint_eq(entries[0].nplaces + entries[0].ncounts, 0);
    ck_assert_uint_eq(entries[1].change_id, SAMPLE_CHANGE);
    ck_assert_int_ge(entries[1].at_us, s->l->now_us);
    ck_assert_uint_eq(entries[1].nplaces, 4);
    ck_assert_uint_eq(entries[1].places[3].version, 41);
    ck_assert_uint_eq(entries[1].ncounts, 3);
    ck_assert_int_eq(entries[1].counts[0].delta, 6);

    ck_ok(yk_store_slot(s->store, &slot, 1, "s", pool));
    ck_ok(yk_store_board(s->store, &board, slot, pool));
    ck_assert_str_eq((const char *)board->states, "11110000000010000000");
    ck_assert_int_eq(board->area_free[0], -1);
    ck_assert_int_eq(board->area_free[1], -1);
    ck_assert_int_eq(board->area_free[2], 98);
    ck_assert_uint_eq(board->versions[12], 41);
    ck_assert_uint_eq(board->area_versions[1], 41);
    yk_store_clock_shift(s->store, apr_time_from_sec(700));
    ck_ok(yk_store_board(s->store, &board, slot, pool));
    ck_assert_str_eq((const char *)board->states, "00000000000000000000");
}
END_TEST

START_TEST(nothing_is_sent_after_a_commit)
{
    static const char count[] = "SELECT VARIABLE_VALUE FROM"
                                " information_schema.SESSION_STATUS WHERE"
                                " VARIABLE_NAME='QUESTIONS'";
    sample_t *s = sample_make();
    long long before;

    sample_want(s);
    ck_ok(yk_store_lock(s->store, s->l));
    sample_decide(s);
    ck_ok(yk_store_write(s->store, s->l));
    before = server_number(s->own, count);
    yk_store_rollback(s->store);
    ck_assert_int_eq(server_number(s->own, count), before + 1);
}
END_TEST

START_TEST(the_key_is_read_as_it_was_written)
{
    sample_t *s = sample_make();

    sample_want(s);
    ck_ok(yk_store_lock(s->store, s->l));
    ck_assert_int_eq(s->l->onces[0].found, 0);
    sample_decide(s);
    memset(s->l->onces[0].request.bytes, 0, YK_HASH_BYTES);
    ck_ok(yk_store_write(s->store, s->l));
    sample_want(s);
    ck_ok(yk_store_lock(s->store, s->l));
    ck_assert_int_eq(s->l->onces[0].found, 1);
    ck_assert_uint_eq(s->l->onces[0].order_id, SAMPLE_NEW);
    ck_assert_int_eq(s->l->onces[0].answer, YK_ANSWER_HELD);
    ck_assert_int_eq(s->l->onces[0].status, 201);
    ck_assert_int_eq(s->l->onces[0].salt[15], 9);
    ck_assert_str_eq(s->l->onces[0].extra, "{\"together\":true}");
    ck_assert_uint_eq(s->l->bookers[0].nbooked, 5);
    ck_assert_str_eq(s->l->bookers[0].booked[0].slot, "s");
    yk_store_rollback(s->store);

    ck_ok(yk_store_once_sweep(s->store));
    ck_assert_int_eq(
        server_number(book_line(), "SELECT COUNT(*) FROM yoyaku_idempotency"),
        1);
    yk_store_clock_shift(s->store, apr_time_from_sec(24 * 3600 + 5));
    ck_ok(yk_store_once_sweep(s->store));
    ck_assert_int_eq(
        server_number(book_line(), "SELECT COUNT(*) FROM yoyaku_idempotency"),
        0);
}
END_TEST

START_TEST(a_number_met_twice_is_told_and_changes_nothing)
{
    sample_t *s = sample_make();
    MYSQL *line = book_line();
    const char *before;

    sample_want(s);
    ck_ok(yk_store_lock(s->store, s->l));
    sample_decide(s);
    ck_ok(yk_store_write(s->store, s->l));
    before = sample_state(line);
    sample_want(s);
    ck_ok(yk_store_lock(s->store, s->l));
    sample_decide(s);
    ck_assert_int_eq(yk_store_write(s->store, s->l), APR_EEXIST);
    ck_assert_int_eq(sample_is_open(s), 0);
    ck_assert_str_eq(before, sample_state(line));
    /* not the key alone: somebody's order is never written over */
    sample_want(s);
    ck_ok(yk_store_lock(s->store, s->l));
    sample_decide(s);
    s->l->onces[0].is_new = 0;
    ck_assert_int_eq(yk_store_write(s->store, s->l), APR_EEXIST);
    ck_assert_int_eq(sample_is_open(s), 0);
    ck_assert_str_eq(before, sample_state(line));
}
END_TEST

START_TEST(a_count_never_goes_below_nought)
{
    sample_t *s = sample_make();
    MYSQL *line = book_line();
    const char *before = sample_state(line);

    sample_want(s);
    ck_ok(yk_store_lock(s->store, s->l));
    sample_decide(s);
    yk_ledger_anchor(s->l, YK_ANCHOR_QUOTA, s->slot_id, 1)->used = -1;
    ck_assert_int_eq(yk_store_write(s->store, s->l), APR_EGENERAL);
    ck_assert_int_eq(sample_is_open(s), 0);
    ck_assert_str_eq(before, sample_state(line));
}
END_TEST

/* ---- what is locked ---- */

static void want_places(sample_t *s, uint32_t n, uint32_t places,
                        uint32_t not_this)
{
    uint32_t i, no = 0;

    s->l = yk_ledger_make(pool);
    for (i = 0; i < n; i++) {
        /* spread over the hall, never the one kept out */
        no = (uint32_t)((uint64_t)i * (places - 1) / n);
        no = no >= not_this ? no + 1 : no;
        yk_ledger_want_place(s->l, s->slot_id, 0, no, 0);
    }
}

static long long rows_read(const sample_t *s)
{
    return server_number(
        s->own, "SELECT SUM(VARIABLE_VALUE) FROM"
                " information_schema.SESSION_STATUS WHERE VARIABLE_NAME IN"
                " ('HANDLER_READ_KEY','HANDLER_READ_NEXT','HANDLER_READ_FIRST',"
                "'HANDLER_READ_RND','HANDLER_READ_RND_NEXT',"
                "'HANDLER_READ_PREV','HANDLER_READ_LAST')");
}

/* What reading the counters costs by itself. */
static long long cost_of_looking(const sample_t *s)
{
    long long before = rows_read(s);
    return rows_read(s) - before;
}

static sample_t *hall_of(uint32_t sections, uint32_t places)
{
    sample_t *s = sample_make();
    yk_store_t *store = book_open();

    book_hall(store, "hall", sections, places);
    s->slot_id = book_slot(store, "big", "hall", YK_MODE_PLACED);
    return s;
}

static void lock_lists(uint32_t sections, uint32_t each)
{
    sample_t *s = hall_of(sections, each);
    uint32_t places = sections * each, kept = places / 3, n;
    MYSQL *foreign = book_line(), *counter = book_line();
    const char *free_rows =
        apr_psprintf(pool,
                     "SELECT COUNT(*) FROM (SELECT place_no FROM "
                     "yoyaku_slot_place WHERE slot_id=%" APR_UINT64_T_FMT
                     " FOR UPDATE SKIP LOCKED) x",
                     s->slot_id);
    long long looking;

    server_run(foreign,
               apr_psprintf(pool,
                            "BEGIN; SELECT * FROM yoyaku_slot_place WHERE "
                            "slot_id=%" APR_UINT64_T_FMT
                            " AND place_no=%u FOR UPDATE",
                            s->slot_id, kept));
    want_places(s, 1, places, kept);
    ck_ok(yk_store_lock(s->store, s->l));
    looking = cost_of_looking(s);
    yk_store_rollback(s->store);
    for (n = 1; n <= 256 && n<places; n += places> 5000 ? 15 : 1) {
        long long before = rows_read(s), read;
        want_places(s, n, places, kept);
        ck_assert_msg(yk_store_lock(s->store, s->l) == APR_SUCCESS,
                      "%u of %u places waited for one not named", n, places);
        ck_assert_uint_eq(s->l->nplaces, n);
        ck_assert(s->l->places[n - 1].found);
        if (n % 16 == 1) {
            ck_assert_int_eq(server_number(counter, free_rows), places - n - 1);
        }
        read = rows_read(s) - before - looking;
        ck_assert_msg(read <= 3 * (long long)n + 8,
                      "%u of %u places: %lld rows read", n, places, read);
        yk_store_rollback(s->store);
    }
}

START_TEST(a_list_locks_what_it_names_in_a_hall_of_12)
{
    lock_lists(1, 12);
}
END_TEST

START_TEST(a_list_locks_what_it_names_in_a_hall_of_200)
{
    lock_lists(2, 100);
}
END_TEST

START_TEST(a_list_locks_what_it_names_in_a_hall_of_1011)
{
    lock_lists(3, 337);
}
END_TEST

START_TEST(a_list_locks_what_it_names_in_a_hall_of_80000)
{
    lock_lists(40, 2000);
}
END_TEST

START_TEST(a_lane_passes_over_what_others_hold)
{
    sample_t *s = sample_make();
    MYSQL *foreign = book_line();
    yk_anchor_t *booker;

    server_run(foreign, "BEGIN; SELECT * FROM yoyaku_slot_place WHERE"
                        " place_no=2 FOR UPDATE; SELECT * FROM"
                        " yoyaku_lock_anchor WHERE kind=1 AND owner=1"
                        " AND no=4242 FOR UPDATE");
    sample_want(s);
    s->l->skip_locked = 1;
    ck_ok(yk_store_lock(s->store, s->l));
    ck_assert(yk_ledger_place(s->l, s->slot_id, 1)->found);
    ck_assert(!yk_ledger_place(s->l, s->slot_id, 2)->found);
    booker = yk_ledger_anchor(s->l, YK_ANCHOR_BOOKER, 1, 4242);
    ck_assert(!booker->found);
    ck_assert(yk_ledger_anchor(s->l, YK_ANCHOR_AREA, s->slot_id, 1)->found);
    yk_store_rollback(s->store);
    sample_want(s);
    ck_assert_int_eq(yk_store_lock(s->store, s->l), APR_TIMEUP);
    ck_assert_int_eq(sample_is_open(s), 0);
}
END_TEST

TCase *ledger_case(void)
{
    TCase *tc = tcase_create("ledger");

    tcase_set_timeout(tc, 120);
    tcase_add_checked_fixture(tc, pool_make, pool_end);
    tcase_add_test(tc, locks_are_taken_in_one_order_and_the_clock_is_read_last);
    tcase_add_test(tc, a_statement_with_nothing_to_do_is_left_out);
    tcase_add_test(tc, versions_grow_by_one_and_a_seat_has_its_anchors);
    tcase_add_test(tc, nothing_is_sent_after_a_commit);
    tcase_add_test(tc, the_key_is_read_as_it_was_written);
    tcase_add_test(tc, a_number_met_twice_is_told_and_changes_nothing);
    tcase_add_test(tc, a_count_never_goes_below_nought);
    tcase_add_test(tc, a_list_locks_what_it_names_in_a_hall_of_12);
    tcase_add_test(tc, a_list_locks_what_it_names_in_a_hall_of_200);
    tcase_add_test(tc, a_list_locks_what_it_names_in_a_hall_of_1011);
    tcase_add_test(tc, a_list_locks_what_it_names_in_a_hall_of_80000);
    tcase_add_test(tc, a_lane_passes_over_what_others_hold);
    return tc;
}
