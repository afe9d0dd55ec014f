/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "hdr.h"
#include "script.h"
#include "view.h"

START_TEST(every_value_is_read_back_within_a_thousandth)
{
    for (uint64_t v = 0; v < UINT64_C(1) << 34; v += 1 + v / 777) {
        uint32_t i = load_hdr_index(v);

        ck_assert_uint_lt(i, LOAD_HDR_CELLS);
        ck_assert_uint_le(load_hdr_low(i), v);
        ck_assert_uint_ge(load_hdr_high(i), v);
        ck_assert_uint_le((load_hdr_high(i) - v) * 1000, v < 1000 ? 1000 : v);
    }
}
END_TEST

START_TEST(cells_join_without_gap_or_overlap)
{
    for (uint32_t i = 0; i + 1 < LOAD_HDR_CELLS; i++) {
        ck_assert_uint_eq(load_hdr_high(i) + 1, load_hdr_low(i + 1));
        ck_assert_uint_eq(load_hdr_index(load_hdr_low(i)), i);
        ck_assert_uint_eq(load_hdr_index(load_hdr_high(i)), i);
    }
    ck_assert_uint_eq(load_hdr_index(UINT64_MAX), LOAD_HDR_CELLS - 1);
}
END_TEST

START_TEST(a_percentile_is_the_value_at_its_rank)
{
    load_hdr_t *hdr = load_hdr_create();

    ck_assert_uint_eq(load_hdr_at(hdr, 50), 0);
    for (uint64_t v = 1; v <= 1000; v++) {
        load_hdr_record(hdr, v);
    }
    ck_assert_uint_eq(load_hdr_at(hdr, 0), 1);
    ck_assert_uint_eq(load_hdr_at(hdr, 50), 500);
    ck_assert_uint_eq(load_hdr_at(hdr, 99.9), 999);
    ck_assert_uint_eq(load_hdr_at(hdr, 100), 1000);
    load_hdr_destroy(hdr);
}
END_TEST

START_TEST(two_added_are_the_one_of_both)
{
    load_hdr_t *a = load_hdr_create(), *b = load_hdr_create();
    load_hdr_t *both = load_hdr_create();

    for (uint64_t v = 1; v < 3000000; v += 997) {
        load_hdr_record(v % 2 == 0 ? a : b, v);
        load_hdr_record(both, v);
    }
    load_hdr_add(a, b);
    ck_assert_int_eq(memcmp(a, both, sizeof(*both)), 0);
    load_hdr_destroy(a);
    load_hdr_destroy(b);
    load_hdr_destroy(both);
}
END_TEST

static load_script_t *script_of(const char *text)
{
    FILE *in = fmemopen((void *)text, strlen(text), "r");
    load_script_t *script = load_script_read(in);

    fclose(in);
    return script;
}

START_TEST(the_same_seed_plans_the_same_arrivals)
{
    static const char text[] = "url http://127.0.0.1:1\nslot a\nsteps board\n"
                               "bookers 10\nthreads 2\nplan open\nrate 500\n"
                               "seconds 4\nseed 3\n";
    load_script_t *script = script_of(text);
    uint64_t n[2], again;
    int64_t *due[2], *twin;

    ck_assert_ptr_nonnull(script);
    for (uint32_t t = 0; t < 2; t++) {
        due[t] = load_script_due(script, &n[t], t);
        for (uint64_t i = 1; i < n[t]; i++) {
            ck_assert_int_ge(due[t][i], due[t][i - 1]);
        }
    }
    ck_assert_uint_eq(n[0] + n[1], 2000);
    /* 2000 arrivals at 500 a second: about four seconds */
    ck_assert_int_gt(due[1][n[1] - 1], 3500000);
    ck_assert_int_lt(due[1][n[1] - 1], 4500000);
    twin = load_script_due(script, &again, 1);
    ck_assert_uint_eq(again, n[1]);
    ck_assert_int_eq(memcmp(twin, due[1], again * sizeof(*twin)), 0);
    free(twin);
    free(due[0]);
    free(due[1]);
    load_script_drop(script);
}
END_TEST

START_TEST(a_word_nobody_knows_is_refused)
{
    ck_assert_ptr_null(script_of("url http://127.0.0.1:1\nslot a\n"
                                 "steps board\nbookers 1\nbrowsing 3\n"));
    ck_assert_ptr_null(script_of("url http://127.0.0.1:1\nslot a\n"
                                 "steps bord\nbookers 1\n"));
    ck_assert_ptr_null(script_of("slot a\nsteps board\nbookers 1\n"));
}
END_TEST

START_TEST(a_board_of_another_hall_is_not_believed)
{
    static const char small[] = "{\"sections\":[{\"places\":\"0110\"}]}";
    static const char right[] =
        "{\"sections\":[{\"places\":\"01\"},{\"places\":\"200\"}]}";
    load_script_t script = {.nplaces = 5};
    load_view_t view = {0};
    uint32_t places[5];
    uint64_t random = 1;

    load_view_init(&view, &script);
    ck_assert_int_eq(load_view_read(&view, small, strlen(small)), 0);
    ck_assert_int_eq(load_view_read(&view, right, strlen(right)), 1);
    ck_assert_str_eq(view.states, "01200");
    ck_assert_uint_eq(view.nfree, 3);
    ck_assert_uint_eq(
        load_view_choose(&view, places, 5, LOAD_SPREAD_EVEN, 0, &random), 3);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(view.states[places[i]], '0');
    }
    free(view.states);
}
END_TEST

START_TEST(where_the_house_seats_people_no_place_is_named)
{
    static const char board[] =
        "{\"free\":46,\"sections\":["
        "{\"section\":\"Stalls\",\"mode\":\"placed\",\"free\":1,\"places\":"
        "\"01\"},"
        "{\"section\":\"Upper Balcony\",\"mode\":\"assigned\",\"free\":3,"
        "\"places\":\"000\"},"
        "{\"section\":\"Floor\",\"mode\":\"pooled\",\"free\":42}]}";
    load_script_t *script = script_of(
        "url http://127.0.0.1:1\nslot a\nsteps board hold\nbookers 1\n"
        "action hold-area POST /a {\"area\":\"{area}\"}\n"
        "area Floor pooled:50 30\narea \"Upper Balcony\" assigned 40\n");
    load_view_t view = {0};
    uint32_t places[5];
    uint64_t random = 1;

    ck_assert_ptr_nonnull(script);
    ck_assert_int_eq(script->areas[0].pooled, 1);
    ck_assert_int_eq(script->areas[1].pooled, 0);
    script->nplaces = 5;
    load_view_init(&view, script);
    ck_assert_int_eq(load_view_read(&view, board, strlen(board)), 1);
    ck_assert_str_eq(view.states, "01---");
    ck_assert_uint_eq(view.nfree, 1);
    ck_assert_uint_eq(view.left[0], 42);
    ck_assert_uint_eq(view.left[1], 3);
    ck_assert_uint_eq(
        load_view_choose(&view, places, 5, LOAD_SPREAD_EVEN, 0, &random), 1);
    ck_assert_uint_eq(places[0], 0);
    free(view.states);
    script->nplaces = 0;
    load_script_drop(script);
}
END_TEST

START_TEST(an_area_needs_its_click_and_no_more_than_everybody)
{
    ck_assert_ptr_null(script_of("url http://127.0.0.1:1\nslot a\n"
                                 "steps hold\nbookers 1\n"
                                 "area Floor pooled 30\n"));
    ck_assert_ptr_null(script_of("url http://127.0.0.1:1\nslot a\n"
                                 "steps hold\nbookers 1\n"
                                 "action hold-area POST /a {}\n"
                                 "area A assigned 60\narea B assigned 41\n"));
    ck_assert_ptr_null(script_of("url http://127.0.0.1:1\nslot a\n"
                                 "steps hold\nbookers 1\n"
                                 "action hold-area POST /a {}\n"
                                 "area A placed 60\n"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("load");
    TCase *tc = tcase_create("driver");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_test(tc, every_value_is_read_back_within_a_thousandth);
    tcase_add_test(tc, cells_join_without_gap_or_overlap);
    tcase_add_test(tc, a_percentile_is_the_value_at_its_rank);
    tcase_add_test(tc, two_added_are_the_one_of_both);
    tcase_add_test(tc, the_same_seed_plans_the_same_arrivals);
    tcase_add_test(tc, a_word_nobody_knows_is_refused);
    tcase_add_test(tc, a_board_of_another_hall_is_not_believed);
    tcase_add_test(tc, where_the_house_seats_people_no_place_is_named);
    tcase_add_test(tc, an_area_needs_its_click_and_no_more_than_everybody);
    suite_add_tcase(suite, tc);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
