/* SPDX-License-Identifier: Apache-2.0 */
#include "../../../mod_yoyaku/store/sql.h"
#include <float.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include "store.h"

START_TEST(a_users_bytes_reach_sql_as_hex_only)
{
    static const char digits[] = "0123456789abcdef";
    yk_sql_t sql;
    int c;

    for (c = 1; c < 256; c++) {
        char text[2] = {(char)c, '\0'};
        char hex[5] = {'0', 'x', digits[c >> 4], digits[c & 15], '\0'};
        yk_sql_make(&sql, pool);
        yk_sql_text(&sql, text);
        ck_assert_str_eq(sql.text, hex);
    }
}
END_TEST

START_TEST(nothing_is_a_literal_too)
{
    yk_sql_t sql;

    yk_sql_make(&sql, pool);
    yk_sql_text(&sql, "");
    yk_sql_text(&sql, NULL);
    yk_sql_hex(&sql, "x", 0);
    ck_assert_str_eq(sql.text, "X''X''X''");
}
END_TEST

START_TEST(numbers_are_written_whole)
{
    yk_sql_t sql;

    yk_sql_make(&sql, pool);
    yk_sql_row(&sql);
    yk_sql_int(&sql, INT64_MIN);
    yk_sql_int(&sql, INT64_MAX);
    yk_sql_uint(&sql, UINT64_MAX);
    yk_sql_null(&sql);
    yk_sql_row_end(&sql);
    ck_assert_str_eq(sql.text, "(-9223372036854775808,9223372036854775807,"
                               "18446744073709551615,NULL)");
}
END_TEST

START_TEST(a_double_comes_back_bit_by_bit)
{
    static const double numbers[] = {
        0.1, 1.0 / 3, DBL_MAX, DBL_MIN, -0.3, 5e-324, 123456789.123456789};
    size_t i;

    for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        yk_sql_t sql;
        double back;
        yk_sql_make(&sql, pool);
        yk_sql_double(&sql, numbers[i]);
        back = strtod(sql.text, NULL);
        ck_assert_mem_eq(&back, &numbers[i], sizeof(back));
        ck_assert_ptr_null(strchr(sql.text, ','));
    }
}
END_TEST

START_TEST(rows_and_lists_put_their_own_commas)
{
    yk_sql_t sql;
    uint32_t i;

    yk_sql_make(&sql, pool);
    yk_sql_put(&sql, "VALUES ");
    for (i = 0; i < 2; i++) {
        yk_sql_row(&sql);
        yk_sql_uint(&sql, i);
        yk_sql_text(&sql, "a");
        yk_sql_row_end(&sql);
    }
    yk_sql_put(&sql, ";(");
    for (i = 0; i < 3; i++) {
        yk_sql_item(&sql, i);
        yk_sql_item_uint(&sql, "a", 7 + i);
        yk_sql_item_hex(&sql, "b", "xy", 2);
    }
    yk_sql_put(&sql, ")");
    ck_assert_str_eq(sql.text,
                     "VALUES (0,0x61),(1,0x61);(SELECT 0 AS i,7 AS a,0x7879 AS "
                     "b UNION ALL SELECT 1,8,0x7879 UNION ALL SELECT "
                     "2,9,0x7879)");
}
END_TEST

START_TEST(a_long_statement_grows_without_losing_a_byte)
{
    yk_sql_t sql;
    int i;

    yk_sql_make(&sql, pool);
    for (i = 0; i < 30000; i++) {
        yk_sql_put(&sql, "ab");
        yk_sql_text(&sql, "cd");
    }
    ck_assert_uint_eq(sql.len, 30000 * 8);
    ck_assert_uint_eq(strlen(sql.text), sql.len);
    ck_assert_str_eq(sql.text + sql.len - 8, "ab0x6364");
}
END_TEST

START_TEST(a_text_is_cut_where_it_is_told_to_be)
{
    yk_sql_t sql;

    yk_sql_make(&sql, pool);
    yk_sql_text_cut(&sql, "abcdef", 3);
    yk_sql_text_cut(&sql, "ab", 3);
    ck_assert_str_eq(sql.text, "0x6162630x6162");
}
END_TEST

TCase *sql_case(void)
{
    TCase *tc = store_case("sql");

    tcase_add_test(tc, a_users_bytes_reach_sql_as_hex_only);
    tcase_add_test(tc, nothing_is_a_literal_too);
    tcase_add_test(tc, numbers_are_written_whole);
    tcase_add_test(tc, a_double_comes_back_bit_by_bit);
    tcase_add_test(tc, rows_and_lists_put_their_own_commas);
    tcase_add_test(tc, a_long_statement_grows_without_losing_a_byte);
    tcase_add_test(tc, a_text_is_cut_where_it_is_told_to_be);
    return tc;
}
