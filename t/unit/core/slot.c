/* SPDX-License-Identifier: Apache-2.0 */
#include "core.h"

#include <string.h>
#include "yoyaku/slot.h"

static apr_pool_t *p;

static yk_area_t areas[] = {{0, YK_MODE_PLACED, "Stalls", 10},
                            {1, YK_MODE_POOLED, "Standing", 100}};

/* price_no, tariff, grade, area_no, amount */
static yk_price_t prices[] = {
    {1, "adult", NULL, -1, 100, "EUR", -1, 0},
    {2, "adult", "good", -1, 200, "EUR", -1, 0},
    {3, "adult", NULL, 1, 300, "EUR", -1, 0},
    {4, "child", "good", -1, 50, "EUR", -1, 0},
    {5, "press", NULL, 1, 0, "EUR", -1, 0},
};
static yk_slot_t slot;

static void setup(void)
{
    apr_pool_create(&p, NULL);
    memset(&slot, 0, sizeof(slot));
    slot.state = YK_SLOT_OPEN;
    slot.areas = areas;
    slot.nareas = 2;
    slot.prices = prices;
    slot.nprices = 5;
}

static void teardown(void)
{
    apr_pool_destroy(p);
}

START_TEST(an_area_is_found_by_its_bytes)
{
    ck_assert_uint_eq(yk_slot_area(&slot, "Standing")->area_no, 1);
    ck_assert_ptr_null(yk_slot_area(&slot, "standing"));
    ck_assert_ptr_null(yk_slot_area(&slot, ""));
}
END_TEST

static const struct {
    uint32_t area_no;
    const char *grade, *tariff;
    uint32_t price_no; /* 0: not offered */
} offers[] = {
    {0, "good", "adult", 2}, /* the grade's before everybody's */
    {0, "poor", "adult", 1},
    {1, NULL, "adult", 3},   /* the area's before everybody's */
    {1, "good", "adult", 3}, /* the area's before the grade's */
    {0, "good", "child", 4},
    {0, "poor", "child", 0},
    {1, NULL, "child", 0}, /* a pool has no grade */
    {1, NULL, "press", 5},
    {0, "good", "press", 0},
    {0, "good", "Adult", 0},
};

START_TEST(the_price_nearest_to_a_place_holds)
{
    const yk_price_t *price = yk_slot_price(
        &slot, offers[_i].area_no, offers[_i].grade, offers[_i].tariff);

    if (offers[_i].price_no == 0) {
        ck_assert_ptr_null(price);
    }
    else {
        ck_assert_ptr_nonnull(price);
        ck_assert_uint_eq(price->price_no, offers[_i].price_no);
    }
}
END_TEST

START_TEST(the_only_tariff_need_not_be_named)
{
    const char *choices = NULL;

    ck_assert_str_eq(yk_slot_only_tariff(&slot, &choices, 0, "poor", p),
                     "adult");
}
END_TEST

START_TEST(of_several_tariffs_each_is_named_once)
{
    const char *choices = NULL;

    ck_assert_ptr_null(yk_slot_only_tariff(&slot, &choices, 0, "good", p));
    ck_assert_str_eq(choices, "adult, child");
    ck_assert_ptr_null(yk_slot_only_tariff(&slot, &choices, 1, NULL, p));
    ck_assert_str_eq(choices, "adult, press");
    slot.nprices = 0;
    ck_assert_ptr_null(yk_slot_only_tariff(&slot, &choices, 1, NULL, p));
    ck_assert_str_eq(choices, "");
}
END_TEST

static const struct {
    yk_slot_state_e state;
    apr_time_t opens, closes, starts, now;
    const char *name;
} times[] = {
    {YK_SLOT_OPEN, 0, 0, 0, 50, "open"},
    {YK_SLOT_OPEN, 50, 0, 0, 49, "before"},
    {YK_SLOT_OPEN, 50, 0, 0, 50, "open"},
    {YK_SLOT_OPEN, 0, 60, 0, 59, "open"},
    {YK_SLOT_OPEN, 0, 60, 0, 60, "over"},
    {YK_SLOT_OPEN, 0, 60, 90, 60, "over"},
    {YK_SLOT_OPEN, 0, 0, 60, 59, "open"},
    {YK_SLOT_OPEN, 0, 0, 60, 60, "over"},  /* closes not said: starts */
    {YK_SLOT_OPEN, 0, 70, 60, 65, "open"}, /* late entry */
    {YK_SLOT_CLOSED, 0, 0, 0, 50, "closed"},
    {YK_SLOT_CLOSED, 50, 60, 0, 70, "closed"},
};

START_TEST(a_slot_is_on_sale_between_its_times)
{
    slot.state = times[_i].state;
    slot.opens = times[_i].opens;
    slot.closes = times[_i].closes;
    slot.starts = times[_i].starts;
    ck_assert_str_eq(yk_slot_state_name(&slot, times[_i].now), times[_i].name);
    ck_assert_int_eq(yk_slot_on_sale(&slot, times[_i].now),
                     strcmp(times[_i].name, "open") == 0);
}
END_TEST

START_TEST(a_mode_has_the_name_commands_use)
{
    ck_assert_str_eq(yk_mode_name(YK_MODE_ASSIGNED), "assigned");
    ck_assert_str_eq(yk_mode_name(YK_MODE_CLOSED), "closed");
    ck_assert_str_eq(yk_mode_name(YK_MODE_COUNT), "unheard_of");
}
END_TEST

Suite *slot_suite(void)
{
    Suite *suite = suite_create("slot");
    TCase *all = tcase_create("all");

    tcase_add_checked_fixture(all, setup, teardown);
    tcase_add_test(all, an_area_is_found_by_its_bytes);
    tcase_add_loop_test(all, the_price_nearest_to_a_place_holds, 0,
                        COUNT_OF(offers));
    tcase_add_test(all, the_only_tariff_need_not_be_named);
    tcase_add_test(all, of_several_tariffs_each_is_named_once);
    tcase_add_loop_test(all, a_slot_is_on_sale_between_its_times, 0,
                        COUNT_OF(times));
    tcase_add_test(all, a_mode_has_the_name_commands_use);
    suite_add_tcase(suite, all);
    return suite;
}
