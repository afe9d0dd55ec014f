/* SPDX-License-Identifier: Apache-2.0 */
#include "throttle.h"

#include <apr_pools.h>
#include <string.h>
#include <sys/mman.h>
#include "yoyaku/room.h"

/*
 * A room on a table of one's own: no lock, and time is what the test says.
 */

#define SECOND APR_USEC_PER_SEC

static yk_room_table_t *table;
static yk_room_t *room;
static yk_room_now_t now;
static yk_room_answer_t answer;
static apr_pool_t *p;

static void setup(void)
{
    apr_pool_create(&p, NULL);
    table = mmap(NULL, sizeof(*table), PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ck_assert_ptr_ne(table, MAP_FAILED);
    yk_room_fresh(table);
    room = &table->room[0];
    strcpy(room->name, "sale");
    yk_room_terms_default(&room->configured);
    room->configured.active = 2;
    room->configured.grace_us = 10 * SECOND;
    room->configured.idle_us = 60 * SECOND;
    room->configured.visit_us = 300 * SECOND;
    room->rate_milli = 1000000;
    now.steady = 1000 * SECOND;
    now.wall = INT64_C(1700000000) * SECOND;
    table->head.made_us = (uint64_t)now.wall - 500 * SECOND;
    room->begun_us = now.steady - 500 * SECOND;
}

static void teardown(void)
{
    munmap(table, sizeof(*table));
    apr_pool_destroy(p);
}

static void pass_time(apr_time_t time)
{
    now.steady += time;
    now.wall += time;
}

/* A visitor who comes for the first time: his number. */
static uint64_t first(void)
{
    static uint32_t address;
    yk_room_ask_t ask = {0};

    ask.may_issue = ask.may_return = ask.is_reading = 1;
    ask.address = ++address;
    pass_time(1);
    yk_room_arrive(table, room, &answer, &ask, &now);
    return answer.number;
}

static yk_room_e with_number(uint64_t number)
{
    yk_room_ask_t ask = {0};

    ask.number = number;
    ask.may_issue = ask.is_reading = 1;
    yk_room_arrive(table, room, &answer, &ask, &now);
    return answer.what;
}

static yk_room_e with_pass(uint64_t pass, int is_reading)
{
    yk_room_ask_t ask = {0};

    ask.pass = pass;
    ask.pass_issued = now.wall;
    ask.is_reading = is_reading;
    yk_room_arrive(table, room, &answer, &ask, &now);
    return answer.what;
}

/* Number and pass, as long as there is room. */
static uint64_t enters(void)
{
    uint64_t number = first();

    ck_assert_int_eq(with_number(number), YK_ROOM_ENTER);
    return number;
}

START_TEST(with_room_a_fresh_number_is_sent_back_and_then_enters)
{
    uint64_t number = first();

    ck_assert_int_eq(answer.what, YK_ROOM_BACK);
    ck_assert_int_eq(answer.is_new, 1);
    ck_assert_int_eq(with_number(number), YK_ROOM_ENTER);
    ck_assert_int_eq(with_pass(number, 0), YK_ROOM_PASS);
    ck_assert_uint_eq(room->inside, 1);
}
END_TEST

START_TEST(a_number_whose_cookie_did_not_come_back_is_never_called)
{
    for (int i = 0; i < 50; i++) {
        first();
    }
    pass_time(SECOND);
    yk_room_move(room, &now);
    ck_assert_uint_eq(room->called, 0);
    enters();
}
END_TEST

START_TEST(passes_and_calls_never_exceed_active)
{
    uint64_t third;

    enters();
    enters();
    third = first();
    ck_assert_int_eq(answer.what, YK_ROOM_WAIT);
    ck_assert_int_eq(with_number(third), YK_ROOM_WAIT);
    ck_assert_uint_eq(answer.ahead, 0);
    ck_assert_int_eq(answer.is_known, 1);
}
END_TEST

START_TEST(of_a_crowd_that_comes_at_once_not_everybody_is_first)
{
    uint64_t line[5];

    enters();
    enters();
    for (int i = 0; i < 5; i++) {
        line[i] = first();
        ck_assert_int_eq(answer.what, YK_ROOM_WAIT);
        ck_assert_uint_eq(answer.ahead, (uint32_t)i);
        ck_assert_uint_eq(answer.key, 0); /* the marks do not know him */
    }
    with_number(line[1]);
    ck_assert_uint_ne(answer.key, 0);
    first(); /* who returned counts as before */
    ck_assert_uint_eq(answer.ahead, 5);
}
END_TEST

START_TEST(the_line_is_in_order_of_numbers)
{
    uint64_t inside[2] = {enters(), enters()}, line[5];

    for (int i = 0; i < 5; i++) {
        line[i] = first();
    }
    for (int i = 4; i >= 0; i--) {
        with_number(line[i]); /* they come back in another order */
    }
    pass_time(SECOND);
    for (int i = 0; i < 5; i++) {
        with_number(line[i]);
        ck_assert_uint_eq(answer.ahead, (uint32_t)i);
    }
    yk_room_leave(room, inside[0]);
    pass_time(SECOND);
    ck_assert_int_eq(with_number(line[1]), YK_ROOM_WAIT);
    ck_assert_int_eq(with_number(line[0]), YK_ROOM_ENTER);
    yk_room_leave(room, inside[1]);
    pass_time(SECOND);
    ck_assert_int_eq(with_number(line[1]), YK_ROOM_ENTER);
}
END_TEST

START_TEST(no_more_are_called_in_a_second_than_the_rate_says)
{
    uint64_t line[10];

    room->configured.active = 100;
    room->paused = 1;
    for (int i = 0; i < 10; i++) {
        line[i] = first();
        with_number(line[i]);
    }
    room->paused = 0;
    room->rate_milli = 2000;
    room->refilled_us = now.steady;
    room->tokens_micro = 0;
    pass_time(2 * SECOND);
    yk_room_move(room, &now);
    ck_assert_uint_eq(room->called, 2); /* a bucket of one second */
    pass_time(SECOND / 2);
    yk_room_move(room, &now);
    ck_assert_uint_eq(room->called, 3);
}
END_TEST

START_TEST(who_comes_after_his_grace_enters_before_the_next_call)
{
    uint64_t a = enters(), late, next;

    enters();
    late = first();
    with_number(late);
    next = first();
    with_number(next);
    yk_room_leave(room, a);
    pass_time(SECOND);
    yk_room_move(room, &now); /* calls `late` */
    ck_assert_uint_eq(room->calls, 1);
    pass_time(11 * SECOND);
    yk_room_move(room, &now);
    ck_assert_uint_eq(room->passed_over, 1);
    ck_assert_uint_eq(room->called, 4); /* and now `next` */
    ck_assert_int_eq(with_number(late), YK_ROOM_WAIT);
    ck_assert_int_eq(with_number(next), YK_ROOM_ENTER);
    yk_room_leave(room, next);
    ck_assert_int_eq(with_number(late), YK_ROOM_ENTER);
}
END_TEST

START_TEST(a_number_not_heard_of_is_dropped_and_jams_nothing)
{
    uint64_t a = enters(), gone, stays;

    enters();
    gone = first();
    with_number(gone);
    stays = first();
    with_number(stays);
    for (int i = 0; i < 7; i++) {
        pass_time(30 * SECOND);
        with_number(stays);
        with_pass(a, 1);
    }
    ck_assert_ptr_null(yk_room_visitor(room, gone));
    /* the other one idled out, and `stays` was next */
    ck_assert_int_eq(with_number(stays), YK_ROOM_PASS);
    ck_assert_int_eq(with_number(gone), YK_ROOM_WAIT); /* a fresh one */
    ck_assert_uint_ne(answer.number, gone);
}
END_TEST

START_TEST(idle_and_visit_end_a_pass_unless_an_order_stays)
{
    uint64_t a = enters(), b = enters();

    pass_time(61 * SECOND);
    ck_assert_int_ne(with_pass(a, 1), YK_ROOM_PASS);
    yk_room_move(room, &now);
    ck_assert_uint_eq(room->inside, 0);
    b = enters();
    yk_room_stay(room, b, now.steady + 400 * SECOND);
    pass_time(390 * SECOND);
    ck_assert_int_eq(with_pass(b, 0), YK_ROOM_PASS);
    pass_time(11 * SECOND);
    ck_assert_int_ne(with_pass(b, 0), YK_ROOM_PASS); /* visit is over */
    ck_assert_uint_eq(room->visited, 1);
}
END_TEST

START_TEST(any_order_alive_keeps_a_pass_and_each_is_released_for_itself)
{
    uint64_t a = enters();

    room->configured.orders = 3;
    yk_room_held(room, a, 11, now.steady + 1000 * SECOND);
    yk_room_held(room, a, 12, now.steady + 800 * SECOND);
    yk_room_held(room, a, 13, now.steady + 900 * SECOND);
    yk_room_held(room, a, 11, now.steady + 990 * SECOND); /* once more */
    yk_room_released(room, a, 13);
    yk_room_released(room, a, 77); /* nobody's */
    yk_room_bought(room, a, 11, &now);
    pass_time(790 * SECOND); /* longer than idle and visit */
    ck_assert_int_eq(with_pass(a, 0), YK_ROOM_PASS);
    pass_time(12 * SECOND);
    ck_assert_int_ne(with_pass(a, 0), YK_ROOM_PASS);
    /* who comes into that row afterwards is kept by no old order */
    a = enters();
    yk_room_held(room, a, 12, now.steady + 800 * SECOND);
    yk_room_released(room, a, 12);
    pass_time(61 * SECOND);
    ck_assert_int_ne(with_pass(a, 0), YK_ROOM_PASS);
}
END_TEST

START_TEST(of_many_orders_those_that_end_last_are_remembered)
{
    uint64_t a = enters();

    room->configured.orders = 0;
    for (uint64_t n = 1; n <= 3 * YK_ROOM_HELD; n++) {
        yk_room_held(room, a, n,
                     now.steady + (apr_time_t)(100 + n * 10) * SECOND);
    }
    for (uint64_t n = 1; n < 3 * YK_ROOM_HELD; n++) {
        yk_room_released(room, a, n);
    }
    pass_time(330 * SECOND);
    ck_assert_int_eq(with_pass(a, 0), YK_ROOM_PASS);
    pass_time(12 * SECOND);
    ck_assert_int_ne(with_pass(a, 0), YK_ROOM_PASS);
}
END_TEST

START_TEST(after_the_last_order_a_pass_reads_for_one_idle_and_counts_no_more)
{
    uint64_t a = enters();

    room->configured.orders = 2;
    yk_room_bought(room, a, 1, &now);
    ck_assert_int_eq(with_pass(a, 0), YK_ROOM_PASS);
    yk_room_bought(room, a, 2, &now);
    ck_assert_uint_eq(room->inside, 0);
    ck_assert_int_eq(with_pass(a, 1), YK_ROOM_PASS);
    ck_assert_int_ne(with_pass(a, 0), YK_ROOM_PASS);
    pass_time(61 * SECOND);
    ck_assert_int_ne(with_pass(a, 1), YK_ROOM_PASS);
    /* nor does its number get in a second time */
    ck_assert_int_ne(with_number(a), YK_ROOM_ENTER);
    ck_assert_uint_ne(answer.number, a);
}
END_TEST

START_TEST(before_the_opening_nobody_is_called_and_then_the_draw_decides)
{
    uint64_t numbers[40];
    uint32_t moved = 0, ahead[40];

    room->configured.opens_us = now.wall + 100 * SECOND;
    memset(room->seed, 7, sizeof(room->seed));
    for (int i = 0; i < 40; i++) {
        numbers[i] = first();
        ck_assert_int_eq(answer.what, YK_ROOM_WAIT);
        with_number(numbers[i]);
        ck_assert_int_eq(answer.is_known, 0);
    }
    ck_assert_uint_eq(room->called, 0);
    room->paused = 1;
    pass_time(100 * SECOND);
    for (int i = 0; i < 40; i++) {
        with_number(numbers[i]);
        ck_assert_int_eq(answer.is_known, 1);
        ahead[i] = answer.ahead;
        moved += ahead[i] != (uint32_t)i;
    }
    ck_assert_uint_gt(moved, 30); /* not the order of arrival */
    with_number(first());
    ck_assert_uint_eq(answer.ahead, 40); /* later ones are behind all */
    /* whoever knows the seed finds the same order */
    for (int i = 0; i < 40; i++) {
        for (int j = 0; j < 40; j++) {
            yk_hash_t x, y;

            yk_secret_hmac(&x, room->seed, 32, &numbers[i], 8);
            yk_secret_hmac(&y, room->seed, 32, &numbers[j], 8);
            x.bytes[0] &= 0x7f;
            y.bytes[0] &= 0x7f;
            ck_assert(i == j || (memcmp(x.bytes, y.bytes, 8) < 0) ==
                                    (ahead[i] < ahead[j]));
        }
    }
}
END_TEST

START_TEST(a_room_that_is_paused_keeps_everybody_where_he_is)
{
    uint64_t number;

    room->paused = 1;
    number = first();
    ck_assert_int_eq(answer.what, YK_ROOM_WAIT);
    ck_assert_int_eq(with_number(number), YK_ROOM_WAIT);
    room->paused = 0;
    pass_time(SECOND);
    ck_assert_int_eq(with_number(number), YK_ROOM_ENTER);
}
END_TEST

START_TEST(with_a_new_file_old_numbers_and_passes_are_taken_in_again)
{
    uint64_t old = (uint64_t)now.wall - 1000;
    yk_room_ask_t ask = {0};

    table->head.made_us = (uint64_t)now.wall;
    room->begun_us = now.steady;
    ck_assert_int_eq(with_number(old), YK_ROOM_WAIT); /* one grace */
    ck_assert_uint_eq(answer.number, old);
    ask.pass = old - 5;
    ask.pass_issued = now.wall - 100 * SECOND;
    yk_room_arrive(table, room, &answer, &ask, &now);
    ck_assert_int_eq(answer.what, YK_ROOM_PASS);
    ask.pass = old - 6;
    ask.pass_issued = now.wall - 301 * SECOND; /* longer than a visit */
    yk_room_arrive(table, room, &answer, &ask, &now);
    ck_assert_int_ne(answer.what, YK_ROOM_PASS);
    pass_time(11 * SECOND);
    ck_assert_int_eq(with_number(old), YK_ROOM_ENTER);
    ck_assert_uint_eq(room->recovered, 2);
}
END_TEST

START_TEST(asking_admits_nobody_but_is_heard)
{
    uint64_t number;

    room->paused = 1;
    number = first();
    with_number(number);
    room->paused = 0;
    for (int i = 0; i < 20; i++) {
        pass_time(9 * SECOND);
        yk_room_ask(table, room, &answer, number, &now);
    }
    ck_assert_int_eq(answer.what, YK_ROOM_ENTER); /* nothing to wait for */
    ck_assert_uint_eq(room->inside, 0);
    ck_assert_ptr_nonnull(yk_room_visitor(room, number));
    ck_assert_int_eq(with_number(number), YK_ROOM_ENTER);
}
END_TEST

START_TEST(one_address_gets_only_so_many_numbers_a_minute)
{
    yk_room_ask_t ask = {0};

    ask.may_issue = 1;
    ask.address = 42;
    for (int i = 0; i < YK_ROOM_PER_ADDRESS; i++) {
        yk_room_arrive(table, room, &answer, &ask, &now);
        ck_assert_uint_ne(answer.number, 0);
    }
    yk_room_arrive(table, room, &answer, &ask, &now);
    ck_assert_int_eq(answer.what, YK_ROOM_FULL);
    ask.address = 43;
    yk_room_arrive(table, room, &answer, &ask, &now);
    ck_assert_uint_ne(answer.number, 0);
    pass_time(60 * SECOND);
    ask.address = 42;
    yk_room_arrive(table, room, &answer, &ask, &now);
    ck_assert_uint_ne(answer.number, 0);
}
END_TEST

START_TEST(a_room_has_only_so_many_numbers)
{
    for (int i = 0; i < YK_ROOM_LIVE; i++) {
        ck_assert_uint_ne(first(), 0);
    }
    ck_assert_uint_eq(first(), 0);
    ck_assert_int_eq(answer.what, YK_ROOM_FULL);
    ck_assert_uint_eq(room->full, 1);
}
END_TEST

START_TEST(numbers_grow_even_when_the_clock_does_not)
{
    uint64_t a = first(), b;

    now.wall -= 3600 * SECOND;
    b = first();
    ck_assert_uint_eq(b, a + 1);
}
END_TEST

START_TEST(a_recount_finds_everybody_again)
{
    uint64_t inside = enters(), waits;

    enters();
    waits = first();
    with_number(waits);
    memset(room->chain, 0xff, sizeof(room->chain));
    room->waiting = 77;
    room->inside = 99;
    room->free = 3;
    yk_room_recount(room);
    ck_assert_uint_eq(room->inside, 2);
    ck_assert_uint_eq(room->waiting, 1);
    ck_assert_int_eq(with_pass(inside, 0), YK_ROOM_PASS);
    ck_assert_int_eq(with_number(waits), YK_ROOM_WAIT);
}
END_TEST

START_TEST(only_our_cookies_of_this_room_and_kind_are_read)
{
    yk_hash_t keys[3];
    uint64_t number = 0;
    apr_time_t issued;
    char *text;

    for (int i = 0; i < 3; i++) {
        yk_secret_random(keys[i].bytes, sizeof(keys[i].bytes));
    }
    text = yk_room_cookie_write('N', "sale", 123456, 99, &keys[1], p);
    ck_assert_int_eq(
        yk_room_cookie_read(&number, &issued, text, 'N', "sale", keys, 2),
        APR_SUCCESS); /* under the old key */
    ck_assert_uint_eq(number, 123456);
    ck_assert_int_eq(
        yk_room_cookie_read(&number, &issued, text, 'N', "sale", &keys[2], 1),
        APR_EINVAL);
    ck_assert_int_eq(
        yk_room_cookie_read(&number, &issued, text, 'N', "sold", keys, 2),
        APR_EINVAL);
    ck_assert_int_eq(
        yk_room_cookie_read(&number, &issued, text, 'P', "sale", keys, 2),
        APR_EINVAL);
    for (size_t i = 0; i < strlen(text); i++) {
        char was = text[i];

        text[i] = was == '1' ? '2' : '1';
        ck_assert_int_eq(
            yk_room_cookie_read(&number, &issued, text, 'N', "sale", keys, 2),
            APR_EINVAL);
        text[i] = was;
    }
    ck_assert_int_eq(
        yk_room_cookie_read(&number, &issued, "", 'N', "sale", keys, 2),
        APR_EINVAL);
}
END_TEST

START_TEST(terms_are_read_and_errors_name_the_value)
{
    yk_room_terms_t terms;
    const char *problem = NULL;
    uint32_t rate;

    yk_room_terms_default(&terms);
    ck_assert_int_eq(yk_room_terms_parse(&terms, &problem, "Rate=90/min", p),
                     APR_SUCCESS);
    ck_assert_uint_eq(terms.rate_milli, 1500);
    ck_assert_int_eq(
        yk_room_terms_parse(&terms, &problem, "opens=2026-12-24T18:00:00Z", p),
        APR_SUCCESS);
    ck_assert_int_eq(yk_room_rate_parse(&rate, "0.5/s"), APR_SUCCESS);
    ck_assert_uint_eq(rate, 500);
    ck_assert_int_eq(yk_room_terms_parse(&terms, &problem, "active=0", p),
                     APR_EINVAL);
    ck_assert_ptr_nonnull(strstr(problem, "active=0"));
    ck_assert_ptr_nonnull(strstr(problem, "for example"));
    ck_assert_int_eq(yk_room_terms_parse(&terms, &problem, "rate=fast", p),
                     APR_EINVAL);
    ck_assert_int_eq(yk_room_terms_parse(&terms, &problem, "colour=1", p),
                     APR_NOTFOUND);
}
END_TEST

Suite *room_suite(void)
{
    const TTest *const rows[] = {
        with_room_a_fresh_number_is_sent_back_and_then_enters,
        a_number_whose_cookie_did_not_come_back_is_never_called,
        passes_and_calls_never_exceed_active,
        of_a_crowd_that_comes_at_once_not_everybody_is_first,
        the_line_is_in_order_of_numbers,
        no_more_are_called_in_a_second_than_the_rate_says,
        who_comes_after_his_grace_enters_before_the_next_call,
        a_number_not_heard_of_is_dropped_and_jams_nothing,
        idle_and_visit_end_a_pass_unless_an_order_stays,
        any_order_alive_keeps_a_pass_and_each_is_released_for_itself,
        of_many_orders_those_that_end_last_are_remembered,
        after_the_last_order_a_pass_reads_for_one_idle_and_counts_no_more,
        before_the_opening_nobody_is_called_and_then_the_draw_decides,
        a_room_that_is_paused_keeps_everybody_where_he_is,
        with_a_new_file_old_numbers_and_passes_are_taken_in_again,
        asking_admits_nobody_but_is_heard,
        one_address_gets_only_so_many_numbers_a_minute,
        a_room_has_only_so_many_numbers,
        numbers_grow_even_when_the_clock_does_not,
        a_recount_finds_everybody_again,
        only_our_cookies_of_this_room_and_kind_are_read,
        terms_are_read_and_errors_name_the_value,
    };
    Suite *suite = suite_create("room");
    TCase *all = tcase_create("all");

    tcase_add_checked_fixture(all, setup, teardown);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        tcase_add_test(all, rows[i]);
    }
    suite_add_tcase(suite, all);
    return suite;
}
