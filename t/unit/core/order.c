/* SPDX-License-Identifier: Apache-2.0 */
#include "core.h"

#include <string.h>
#include "yoyaku/order.h"

static yk_line_t lines[3];
static yk_order_t order;

static void setup(void)
{
    memset(&order, 0, sizeof(order));
    memset(lines, 0, sizeof(lines));
    for (int i = 0; i < 3; i++) {
        lines[i].quantity = 1;
        lines[i].live = 1;
    }
    lines[0].amount = 4500;
    lines[1].amount = 1000;
    lines[1].quantity = 3;
    lines[2].amount = 7;
    order.lines = lines;
    order.nlines = 3;
    order.state = YK_ORDER_HELD;
    order.until_us = 1000;
}

START_TEST(a_total_counts_each_of_a_line)
{
    ck_assert_int_eq(yk_order_total(&order), 7507);
    order.nlines = 0;
    ck_assert_int_eq(yk_order_total(&order), 0);
}
END_TEST

START_TEST(the_largest_order_there_can_be_has_a_total)
{
    static yk_line_t many[256];

    for (int i = 0; i < 256; i++) {
        many[i].amount = YK_MONEY_MAX;
        many[i].quantity = 256;
        many[i].live = 1;
    }
    order.lines = many;
    order.nlines = 256;
    ck_assert_int_eq(yk_order_total(&order), YK_MONEY_MAX * 65536);
}
END_TEST

START_TEST(held_and_locked_orders_end_at_their_deadline)
{
    static const yk_order_state_e timed[] = {YK_ORDER_HELD, YK_ORDER_LOCKED};

    for (int i = 0; i < 2; i++) {
        order.state = timed[i];
        ck_assert_int_eq(yk_order_state_at(&order, 999), timed[i]);
        ck_assert_int_eq(yk_order_state_at(&order, 1000), YK_ORDER_EXPIRED);
    }
}
END_TEST

START_TEST(other_states_do_not_pass_by_themselves)
{
    static const yk_order_state_e others[] = {
        YK_ORDER_CONFIRMED, YK_ORDER_RELEASED, YK_ORDER_EXPIRED,
        YK_ORDER_CANCELLED, YK_ORDER_REFUND_DUE};

    order.until_us = 0;
    for (int i = 0; i < 5; i++) {
        order.state = others[i];
        ck_assert_int_eq(yk_order_state_at(&order, 5000), others[i]);
    }
}
END_TEST

START_TEST(a_state_has_the_name_documents_use)
{
    ck_assert_str_eq(yk_order_state_name(YK_ORDER_HELD), "held");
    ck_assert_str_eq(yk_order_state_name(YK_ORDER_REFUND_DUE), "refund_due");
    ck_assert_str_eq(yk_order_state_name(0), "unheard_of");
}
END_TEST

START_TEST(a_booker_is_known_by_the_first_half_of_a_hash)
{
    /* SHA-256("abc"), FIPS 180-2 */
    static const unsigned char half[16] = {0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01,
                                           0xcf, 0xea, 0x41, 0x41, 0x40, 0xde,
                                           0x5d, 0xae, 0x22, 0x23};
    unsigned char hash[16];

    yk_booker_hash(hash, "abc");
    ck_assert_mem_eq(hash, half, 16);
}
END_TEST

Suite *order_suite(void)
{
    Suite *suite = suite_create("order");
    TCase *all = tcase_create("all");

    tcase_add_checked_fixture(all, setup, NULL);
    tcase_add_test(all, a_total_counts_each_of_a_line);
    tcase_add_test(all, the_largest_order_there_can_be_has_a_total);
    tcase_add_test(all, held_and_locked_orders_end_at_their_deadline);
    tcase_add_test(all, other_states_do_not_pass_by_themselves);
    tcase_add_test(all, a_state_has_the_name_documents_use);
    tcase_add_test(all, a_booker_is_known_by_the_first_half_of_a_hash);
    suite_add_tcase(suite, all);
    return suite;
}
