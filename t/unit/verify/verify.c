/* SPDX-License-Identifier: Apache-2.0 */
#include "yoyaku/verify.h"
#include <apr_general.h>
#include <apr_strings.h>
#include <check.h>
#include <stdlib.h>
#include <string.h>

/*
 * A small book that agrees with itself, and one lie at a time. Slot "s": a
 * placed section of four, an assigned one of four, a pool of ten, a quota.
 *
 *   order 7   held until 2000    places 0 1        quota price 1
 *   order 8   confirmed          place 2, seat 4, three of the pool
 *   order 9   held until 900     place 3: past its deadline, not settled
 */

#define NOW 1000

static apr_pool_t *p;

static const yk_seen_order_t orders[] = {{7, YK_ORDER_HELD, 2000},
                                         {8, YK_ORDER_CONFIRMED, 0},
                                         {9, YK_ORDER_HELD, 900}};

static const yk_seen_place_t places[] = {
    {.place_no = 0,
     .order_id = 7,
     .state = YK_PLACE_HELD,
     .until_us = 2000,
     .version = 2},
    {.place_no = 1,
     .order_id = 7,
     .state = YK_PLACE_HELD,
     .until_us = 2000,
     .version = 4},
    {.place_no = 2, .order_id = 8, .state = YK_PLACE_BOOKED, .version = 3},
    {.place_no = 3,
     .order_id = 9,
     .state = YK_PLACE_HELD,
     .until_us = 900,
     .version = 2},
    {.place_no = 4, .order_id = 8, .state = YK_PLACE_BOOKED, .version = 9},
    {.place_no = 5, .version = 1},
    {.place_no = 6, .version = 1},
    {.place_no = 7, .state = YK_PLACE_NOT_FOR_SALE, .version = 1}};

static const yk_seen_line_t lines[] = {
    {7, 1, 0, 0, 1, 1, YK_ORDER_HELD, 2000},
    {7, 2, 0, 1, 1, 1, YK_ORDER_HELD, 2000},
    {8, 1, 0, 2, 1, 0, YK_ORDER_CONFIRMED, 0},
    {8, 2, 1, 4, 1, 0, YK_ORDER_CONFIRMED, 0},
    {8, 3, 2, YK_NO_PLACE, 3, 0, YK_ORDER_CONFIRMED, 0},
    {9, 1, 0, 3, 1, 0, YK_ORDER_HELD, 900}};

static const char *const journal[] = {
    "{\"until\":2000,\"places\":[[0,1,2],[1,1,2]],\"counts\":[]}",
    "{\"until\":0,\"places\":[[1,0,3]],\"counts\":[]}",
    "{\"until\":2000,\"places\":[[1,1,4]],\"counts\":[]}",
    "{\"until\":1000,\"places\":[[2,1,2],[4,1,5]],\"counts\":[[2,2,4,2]]}",
    "{\"until\":0,\"places\":[[2,2,3],[4,2,9]],\"counts\":[[2,2,-1,3]]}",
    "{\"until\":900,\"places\":[[3,1,2]],\"counts\":[]}"};

static yk_evidence_t *book(void)
{
    yk_evidence_t *e = apr_pcalloc(p, sizeof(*e));
    static unsigned char map[1];

    e->p = p;
    e->now_us = NOW;
    e->key = "s";
    e->nplaces = 8;
    e->places = apr_pmemdup(p, places, sizeof(places));
    e->nlines = 6;
    e->lines = apr_pmemdup(p, lines, sizeof(lines));
    e->norders = 3;
    e->orders = apr_pmemdup(p, orders, sizeof(orders));
    e->nareas = 3;
    e->areas = apr_pcalloc(p, 3 * sizeof(*e->areas));
    e->areas[0] = (yk_seen_area_t){0, YK_MODE_PLACED, 4, 0, 4, 0};
    e->areas[1] = (yk_seen_area_t){1, YK_MODE_ASSIGNED, 4, 4, 4, 0};
    e->areas[2] = (yk_seen_area_t){2, YK_MODE_POOLED, 10, 8, 0, 0};
    e->nprices = 1;
    e->prices = apr_pcalloc(p, sizeof(*e->prices));
    e->prices[0] = (yk_seen_price_t){1, 2, 1};
    e->nanchors = 3;
    e->anchors = apr_pcalloc(p, 3 * sizeof(*e->anchors));
    map[0] = 0x06; /* seats 5 and 6 are free */
    e->anchors[0].key = (yk_anchor_key_t){YK_ANCHOR_AREA, 1, 1};
    e->anchors[0].map = map;
    e->anchors[0].map_bytes = 1;
    e->anchors[1].key = (yk_anchor_key_t){YK_ANCHOR_AREA, 1, 2};
    e->anchors[1].used = 3;
    e->anchors[2].key = (yk_anchor_key_t){YK_ANCHOR_QUOTA, 1, 1};
    e->anchors[2].used = 2;
    return e;
}

static void replay(yk_evidence_t *e, size_t without)
{
    for (size_t i = 0; i < sizeof(journal) / sizeof(*journal); i++) {
        if (i != without) {
            yk_evidence_replay(e, journal[i], strlen(journal[i]));
        }
    }
}

/** How many findings of a kind, and none of another kind but `beside`. */
static int found(const yk_evidence_t *e, yk_finding_e kind, int beside)
{
    yk_verified_t *v = yk_verified_make(p);
    int n = 0;

    yk_verify_slot(v, e);
    for (uint32_t i = 0; i < v->nfindings; i++) {
        n += v->findings[i].kind == kind;
        ck_assert_msg(v->findings[i].kind == kind ||
                          (int)v->findings[i].kind == beside,
                      "%s: %s", yk_finding_name(v->findings[i].kind),
                      v->findings[i].text);
    }
    return n;
}

static int count(const yk_evidence_t *e, yk_finding_e kind)
{
    yk_verified_t *v = yk_verified_make(p);
    int n = 0;

    yk_verify_slot(v, e);
    for (uint32_t i = 0; i < v->nfindings; i++) {
        n += v->findings[i].kind == kind;
    }
    return n;
}

START_TEST(a_book_that_agrees_has_no_findings)
{
    yk_evidence_t *e = book();
    yk_verified_t *v = yk_verified_make(p);

    replay(e, 99);
    yk_verify_slot(v, e);
    ck_assert_msg(v->faults == 0, "%s", v->findings[0].text);
    ck_assert_uint_eq(v->held, 3);
    ck_assert_uint_eq(v->booked, 2);
    ck_assert_uint_eq(v->free, 2);
    ck_assert_uint_eq(v->not_for_sale, 1);
    ck_assert_uint_eq(v->pooled, 3);
}
END_TEST

START_TEST(a_place_that_two_orders_have_is_sold_twice)
{
    yk_evidence_t *e = book();

    replay(e, 99);
    /* place 2 went to order 7 as well, which says so in a line */
    e->lines[1].place_no = 2;
    ck_assert_int_eq(count(e, YK_FINDING_TWICE), 1);
}
END_TEST

START_TEST(a_take_over_past_the_deadline_is_not_sold_twice)
{
    yk_evidence_t *e = book();

    replay(e, 99);
    e->places[3].order_id = 7;
    e->places[3].until_us = 2000;
    e->places[3].version = 3;
    e->lines[2].order_id = 8;
    e->nlines = 7;
    e->lines = apr_pcalloc(p, 7 * sizeof(*e->lines));
    memcpy(e->lines, lines, sizeof(lines));
    e->lines[6] = (yk_seen_line_t){7, 3, 0, 3, 1, 0, YK_ORDER_HELD, 2000};
    yk_evidence_replay(e, "{\"places\":[[3,1,3]]}", 20);
    ck_assert_int_eq(found(e, YK_FINDING_TWICE, -1), 0);
}
END_TEST

START_TEST(a_lost_owner_is_found)
{
    yk_evidence_t *e = book();

    replay(e, 99);
    e->places[0].order_id = 5; /* no such order */
    ck_assert_int_ge(found(e, YK_FINDING_PLACE, YK_FINDING_LINE), 1);
}
END_TEST

START_TEST(a_freed_place_of_a_living_line_is_found)
{
    yk_evidence_t *e = book();

    replay(e, 99);
    e->places[0].order_id = 0;
    e->places[0].version++;
    e->places[0].state = YK_PLACE_FREE;
    e->places[0].until_us = 0;
    ck_assert_int_eq(found(e, YK_FINDING_LINE, YK_FINDING_JOURNAL), 1);
}
END_TEST

START_TEST(a_line_that_counts_for_a_released_order_is_found)
{
    yk_evidence_t *e = book();

    replay(e, 99);
    e->lines[4].state = YK_ORDER_RELEASED;
    ck_assert_int_eq(found(e, YK_FINDING_LINE, -1), 1);
}
END_TEST

START_TEST(a_lost_count_is_found)
{
    yk_evidence_t *e = book();

    replay(e, 99);
    e->anchors[2].used = 1;
    ck_assert_int_eq(found(e, YK_FINDING_COUNT, -1), 1);
}
END_TEST

START_TEST(a_pool_that_lost_a_count_is_found_twice_over)
{
    yk_evidence_t *e = book();

    replay(e, 99);
    e->anchors[1].used = 2;
    ck_assert_int_eq(found(e, YK_FINDING_COUNT, YK_FINDING_JOURNAL), 1);
}
END_TEST

START_TEST(a_passed_quota_is_found)
{
    yk_evidence_t *e = book();

    replay(e, 99);
    e->prices[0].quota = 1;
    ck_assert_int_eq(found(e, YK_FINDING_BOUND, -1), 1);
}
END_TEST

START_TEST(a_map_that_differs_from_its_rows_is_found)
{
    yk_evidence_t *e = book();

    replay(e, 99);
    e->anchors[0].map[0] = 0x02;
    ck_assert_int_eq(found(e, YK_FINDING_MAP, -1), 1);
}
END_TEST

START_TEST(every_missing_journal_row_is_found)
{
    for (size_t without = 0; without < 6; without++) {
        yk_evidence_t *e = book();

        replay(e, without);
        ck_assert_msg(found(e, YK_FINDING_JOURNAL, -1) >= 1,
                      "row %d of the journal is missing and nobody says so",
                      (int)without);
    }
}
END_TEST

static void setup(void)
{
    apr_pool_create(&p, NULL);
}

static void teardown(void)
{
    apr_pool_destroy(p);
}

int main(void)
{
    Suite *suite = suite_create("verify");
    TCase *tc = tcase_create("one lie at a time");
    SRunner *runner;
    int failed;

    apr_initialize();
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_book_that_agrees_has_no_findings);
    tcase_add_test(tc, a_place_that_two_orders_have_is_sold_twice);
    tcase_add_test(tc, a_take_over_past_the_deadline_is_not_sold_twice);
    tcase_add_test(tc, a_lost_owner_is_found);
    tcase_add_test(tc, a_freed_place_of_a_living_line_is_found);
    tcase_add_test(tc, a_line_that_counts_for_a_released_order_is_found);
    tcase_add_test(tc, a_lost_count_is_found);
    tcase_add_test(tc, a_pool_that_lost_a_count_is_found_twice_over);
    tcase_add_test(tc, a_passed_quota_is_found);
    tcase_add_test(tc, a_map_that_differs_from_its_rows_is_found);
    tcase_add_test(tc, every_missing_journal_row_is_found);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    apr_terminate();
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
