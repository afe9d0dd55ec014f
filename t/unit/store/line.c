/* SPDX-License-Identifier: Apache-2.0 */
#include "../../../mod_yoyaku/store/line.h"
#include "store.h"

START_TEST(every_error_has_one_meaning)
{
    ck_assert_int_eq(yk_line_status(1205), APR_TIMEUP);
    ck_assert_int_eq(yk_line_status(1213), APR_EBUSY);
    ck_assert_int_eq(yk_line_status(1020), APR_EBUSY);
    ck_assert_int_eq(yk_line_status(1062), APR_EEXIST);
    ck_assert_int_eq(yk_line_status(2006), APR_ECONNRESET);
    ck_assert_int_eq(yk_line_status(2013), APR_ECONNRESET);
    ck_assert_int_eq(yk_line_status(5014), APR_ECONNRESET);
    ck_assert_int_eq(yk_line_status(1290), APR_ENOTIMPL);
    ck_assert_int_eq(yk_line_status(1064), APR_EGENERAL);
    ck_assert_int_eq(yk_line_status(4025), APR_EGENERAL);
}
END_TEST

START_TEST(a_store_asks_for_no_line_before_it_needs_one)
{
    yk_store_t *store;

    ck_assert_int_eq(
        yk_store_open(&store, "sock=/nowhere/at/all,user=x,dbname=y", pool),
        APR_SUCCESS);
    yk_store_rollback(store);
    yk_store_rest(store);
}
END_TEST

START_TEST(a_database_that_is_not_there_is_away)
{
    yk_store_t *store;
    uint32_t tenant_id;

    ck_assert_int_eq(
        yk_store_open(&store, "sock=/nowhere/at/all,user=x,dbname=y", pool),
        APR_SUCCESS);
    ck_assert_int_eq(yk_store_tenant(store, &tenant_id, "default"),
                     APR_ECONNRESET);
}
END_TEST

START_TEST(a_parameter_nobody_knows_is_refused)
{
    yk_store_t *store;

    ck_assert_int_eq(yk_store_open(&store, "hots=x", pool), APR_EINVAL);
    ck_assert_int_eq(yk_store_open(&store, "nothing", pool), APR_EINVAL);
}
END_TEST

TCase *line_case(void)
{
    TCase *tc = store_case("line");

    tcase_add_test(tc, every_error_has_one_meaning);
    tcase_add_test(tc, a_store_asks_for_no_line_before_it_needs_one);
    tcase_add_test(tc, a_database_that_is_not_there_is_away);
    tcase_add_test(tc, a_parameter_nobody_knows_is_refused);
    return tc;
}
