/* SPDX-License-Identifier: Apache-2.0 */
#include "base.h"

#include <string.h>
#include "yoyaku/text.h"

static apr_pool_t *p;

static void setup(void)
{
    apr_pool_create(&p, NULL);
}

static void teardown(void)
{
    apr_pool_destroy(p);
}

static const struct {
    const char *bytes;
    apr_size_t len;
    int is;
} utf8[] = {
    {"", 0, 1},
    {"Sitz A-12", 9, 1},
    {"\xc3\xa9", 2, 1},
    {"\xe4\xba\x88\xe7\xb4\x84", 6, 1},
    {"\xf0\x9f\x8e\xad", 4, 1},
    {"\xf4\x8f\xbf\xbf", 4, 1},
    {"a\0b", 3, 0},
    {"\xc3", 1, 0},
    {"\xe4\xba", 2, 0},
    {"\xf0\x9f\x8e", 3, 0},
    {"\x80", 1, 0},
    {"\xc0\xaf", 2, 0},         /* overlong */
    {"\xe0\x9f\xbf", 3, 0},     /* overlong */
    {"\xf0\x8f\xbf\xbf", 4, 0}, /* overlong */
    {"\xed\xa0\x80", 3, 0},     /* surrogate */
    {"\xf4\x90\x80\x80", 4, 0}, /* past U+10FFFF */
    {"\xff", 1, 0},
    {"\xc3\x28", 2, 0},
    {"\xe4\xba\x28", 3, 0},
};

START_TEST(utf8_is_told_from_what_only_looks_like_it)
{
    ck_assert_int_eq(yk_text_is_utf8(utf8[_i].bytes, utf8[_i].len),
                     utf8[_i].is);
}
END_TEST

START_TEST(a_key_is_fit_for_a_url)
{
    char key[YK_TEXT_KEY + 2];

    ck_assert(yk_text_is_key("hamlet-24_A.b"));
    ck_assert(!yk_text_is_key(""));
    ck_assert(!yk_text_is_key("a b"));
    ck_assert(!yk_text_is_key("a/b"));
    ck_assert(!yk_text_is_key("\xc3\xa9"));
    memset(key, 'k', sizeof(key));
    key[YK_TEXT_KEY] = '\0';
    ck_assert(yk_text_is_key(key));
    key[YK_TEXT_KEY] = 'k';
    key[YK_TEXT_KEY + 1] = '\0';
    ck_assert(!yk_text_is_key(key));
}
END_TEST

START_TEST(hex_has_two_digits_a_byte)
{
    ck_assert_str_eq(yk_text_hex("\x00\x9f\xff", 3, p), "009fff");
}
END_TEST

static const struct {
    const char *text, *currency;
    int64_t minor; /* -1: refused */
} money[] = {
    {"90.00", "EUR", 9000},
    {"90", "EUR", 9000},
    {"90.5", "EUR", 9050},
    {"0.00", "EUR", 0},
    {"0", "", 0},
    {"007.10", "EUR", 710},
    {"90", "JPY", 90},
    {"1.234", "BHD", 1234},
    {"1.23", "KWD", 1230},
    {"999999999999.99", "EUR", YK_MONEY_MAX},
    {"99999999999999", "JPY", YK_MONEY_MAX},
    {"100000000000000", "JPY", -1},
    {"1000000000000.00", "EUR", -1},
    {"1000000000000", "EUR", -1},
    {"99999999999999999999999999", "EUR", -1},
    {"90.0", "JPY", -1},
    {"90.", "JPY", -1},
    {"90.", "EUR", -1},
    {".50", "EUR", -1},
    {"90.000", "EUR", -1},
    {"1.2.3", "EUR", -1},
    {"-1.00", "EUR", -1},
    {"+1.00", "EUR", -1},
    {"1,00", "EUR", -1},
    {" 1", "EUR", -1},
    {"1 ", "EUR", -1},
    {"1e3", "EUR", -1},
    {"", "EUR", -1},
};

START_TEST(money_is_read_in_its_currency_and_nothing_else)
{
    int64_t minor = -1;
    apr_status_t rv =
        yk_money_parse(&minor, money[_i].text, money[_i].currency);

    ck_assert_int_eq(rv, money[_i].minor < 0 ? APR_EINVAL : APR_SUCCESS);
    ck_assert_int_eq(minor, money[_i].minor);
}
END_TEST

START_TEST(money_is_written_as_it_is_read)
{
    ck_assert_str_eq(yk_money_write(9000, "EUR", p), "90.00");
    ck_assert_str_eq(yk_money_write(5, "EUR", p), "0.05");
    ck_assert_str_eq(yk_money_write(-1250, "EUR", p), "-12.50");
    ck_assert_str_eq(yk_money_write(-5, "EUR", p), "-0.05");
    ck_assert_str_eq(yk_money_write(90, "JPY", p), "90");
    ck_assert_str_eq(yk_money_write(-90, "JPY", p), "-90");
    ck_assert_str_eq(yk_money_write(1234, "TND", p), "1.234");
    ck_assert_str_eq(yk_money_write(0, "", p), "0.00");
    ck_assert_str_eq(yk_money_write(YK_MONEY_MAX, "EUR", p), "999999999999.99");
}
END_TEST

START_TEST(a_currency_is_three_capital_letters)
{
    ck_assert(yk_money_is_currency("EUR"));
    ck_assert(!yk_money_is_currency("eur"));
    ck_assert(!yk_money_is_currency("EU"));
    ck_assert(!yk_money_is_currency("EURO"));
    ck_assert(!yk_money_is_currency(""));
    ck_assert(!yk_money_is_currency("P P"));
}
END_TEST

static const struct {
    const char *text;
    int64_t us; /* -1: refused */
} times[] = {
    {"1970-01-01T00:00:00Z", 0},
    {"2026-12-24T18:00:00Z", INT64_C(1798135200000000)},
    {"2026-12-24T19:00:00+01:00", INT64_C(1798135200000000)},
    {"2026-12-24T12:30:00-05:30", INT64_C(1798135200000000)},
    {"2026-12-24 18:00Z", INT64_C(1798135200000000)},
    {"2026-12-24t18:00:00.25z", INT64_C(1798135200250000)},
    {"2026-12-24T18:00:00.1234567Z", INT64_C(1798135200123456)},
    {"2024-02-29T00:00:00Z", INT64_C(1709164800000000)},
    {"2000-02-29T00:00:00Z", INT64_C(951782400000000)},
    {"2024-03-01T00:00:00Z", INT64_C(1709251200000000)},
    {"2100-03-01T00:00:00Z", INT64_C(4107542400000000)},
    {"9999-12-31T23:59:59Z", INT64_C(253402300799000000)},
    {"2100-02-29T00:00:00Z", -1},
    {"2026-12-24T18:00:00", -1},
    {"2026-12-24", -1},
    {"2026-13-01T00:00:00Z", -1},
    {"2026-00-01T00:00:00Z", -1},
    {"2026-04-31T00:00:00Z", -1},
    {"2026-04-00T00:00:00Z", -1},
    {"2026-04-01T24:00:00Z", -1},
    {"2026-04-01T23:60:00Z", -1},
    {"2026-04-01T23:00:61Z", -1},
    {"2026-04-01T23:00:00.Z", -1},
    {"2026-04-01T23:00:00+0100", -1},
    {"2026-04-01T23:00:00+24:00", -1},
    {"2026-04-01T23:00:00+01:60", -1},
    {"2026-04-01T23:00:00Zz", -1},
    {"26-04-01T23:00:00Z", -1},
    {"1970-01-01T00:00:00+01:00", -1},
    {"", -1},
};

START_TEST(a_time_is_read_with_its_zone_or_refused)
{
    apr_time_t when = -1;
    apr_status_t rv = yk_time_parse(&when, times[_i].text);

    ck_assert_int_eq(rv, times[_i].us < 0 ? APR_EINVAL : APR_SUCCESS);
    ck_assert_int_eq(when, times[_i].us);
}
END_TEST

START_TEST(a_time_is_written_in_utc_rounded_down)
{
    ck_assert_str_eq(yk_time_write(INT64_C(1798135200999999), p),
                     "2026-12-24T18:00:00Z");
}
END_TEST

START_TEST(a_day_written_is_the_day_read)
{
    /* every 17th day from 1970 to 2200 and the second before it */
    for (int64_t day = 1; day < 84000; day += 17) {
        for (int64_t s = day * 86400 - 1; s <= day * 86400; s++) {
            apr_time_t when = -1;
            char *text = yk_time_write(s * APR_USEC_PER_SEC, p);

            ck_assert_int_eq(yk_time_parse(&when, text), APR_SUCCESS);
            ck_assert_int_eq(when, s * APR_USEC_PER_SEC);
        }
        apr_pool_clear(p);
    }
}
END_TEST

START_TEST(an_order_number_comes_back)
{
    static const uint64_t ids[] = {0,
                                   1,
                                   31,
                                   32,
                                   UINT64_C(0x7fffffffffffffff),
                                   UINT64_C(0x123456789abcdef)};

    for (unsigned i = 0; i < sizeof(ids) / sizeof(*ids); i++) {
        uint64_t back = 7;
        char *number = yk_number_write(ids[i], p);

        ck_assert_uint_eq(strlen(number), YK_NUMBER_CHARS);
        ck_assert_int_eq(yk_number_parse(&back, number), APR_SUCCESS);
        ck_assert_uint_eq(back, ids[i]);
    }
}
END_TEST

START_TEST(an_order_number_forgives_what_people_misread)
{
    uint64_t a = 0, b = 1;

    ck_assert_int_eq(yk_number_parse(&a, "00000000ABC01"), APR_SUCCESS);
    ck_assert_int_eq(yk_number_parse(&b, "oO000000abcOl"), APR_SUCCESS);
    ck_assert_uint_eq(a, b);
    ck_assert_int_eq(yk_number_parse(&b, "oO000000abcoi"), APR_SUCCESS);
    ck_assert_uint_eq(a, b);
}
END_TEST

START_TEST(what_is_no_order_number_is_refused)
{
    uint64_t id;

    ck_assert_int_eq(yk_number_parse(&id, ""), APR_EINVAL);
    ck_assert_int_eq(yk_number_parse(&id, "000000000000"), APR_EINVAL);
    ck_assert_int_eq(yk_number_parse(&id, "00000000000000"), APR_EINVAL);
    ck_assert_int_eq(yk_number_parse(&id, "8000000000000"), APR_EINVAL);
    ck_assert_int_eq(yk_number_parse(&id, "000000000000U"), APR_EINVAL);
    ck_assert_int_eq(yk_number_parse(&id, "00000000000-0"), APR_EINVAL);
}
END_TEST

#define COUNT_OF(list) ((int)(sizeof(list) / sizeof(*(list))))

static const struct {
    const char *text;
    int64_t bytes; /* -1: refused */
} sizes[] = {
    {"0", 0},
    {"1048576", 1048576},
    {"1K", 1024},
    {"64m", 64 << 20},
    {"1024G", INT64_C(1) << 40},
    {"8589934591G", INT64_C(8589934591) << 30},
    {"", -1},
    {"M", -1},
    {"-1M", -1},
    {" 1M", -1},
    {"1MB", -1},
    {"1T", -1},
    {"1.5G", -1},
    /* times 2^30 they would come to 1G and to nought */
    {"17179869185G", -1},
    {"17179869184G", -1},
    {"9223372036854775807", -1},
    {"99999999999999999999", -1},
    {"99999999999999999999G", -1},
};

START_TEST(a_size_is_read_or_refused_and_never_wraps)
{
    int64_t bytes = -1;
    apr_status_t rv = yk_text_size(&bytes, sizes[_i].text);

    ck_assert_int_eq(rv, sizes[_i].bytes < 0 ? APR_EINVAL : APR_SUCCESS);
    ck_assert_int_eq(bytes, sizes[_i].bytes);
}
END_TEST

Suite *text_suite(void)
{
    Suite *suite = suite_create("text");
    TCase *all = tcase_create("all");

    tcase_set_timeout(all, 60); /* also under valgrind */
    tcase_add_checked_fixture(all, setup, teardown);
    tcase_add_loop_test(all, utf8_is_told_from_what_only_looks_like_it, 0,
                        COUNT_OF(utf8));
    tcase_add_test(all, a_key_is_fit_for_a_url);
    tcase_add_test(all, hex_has_two_digits_a_byte);
    tcase_add_loop_test(all, money_is_read_in_its_currency_and_nothing_else, 0,
                        COUNT_OF(money));
    tcase_add_test(all, money_is_written_as_it_is_read);
    tcase_add_test(all, a_currency_is_three_capital_letters);
    tcase_add_loop_test(all, a_time_is_read_with_its_zone_or_refused, 0,
                        COUNT_OF(times));
    tcase_add_test(all, a_time_is_written_in_utc_rounded_down);
    tcase_add_test(all, a_day_written_is_the_day_read);
    tcase_add_test(all, an_order_number_comes_back);
    tcase_add_test(all, an_order_number_forgives_what_people_misread);
    tcase_add_test(all, what_is_no_order_number_is_refused);
    tcase_add_loop_test(all, a_size_is_read_or_refused_and_never_wraps, 0,
                        sizeof(sizes) / sizeof(sizes[0]));
    suite_add_tcase(suite, all);
    return suite;
}
