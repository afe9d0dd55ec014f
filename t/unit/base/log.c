/* SPDX-License-Identifier: Apache-2.0 */
#include "base.h"

#include <string.h>
#include "yoyaku/log.h"

static char heard[4096];
static yk_log_e heard_level;
static apr_status_t heard_rv;

static void hear(yk_log_e level, apr_status_t rv, const char *line)
{
    heard_level = level;
    heard_rv = rv;
    strcpy(heard, line);
}

START_TEST(a_line_reaches_the_sink_with_level_and_status)
{
    yk_log_sink_set(hear);
    yk_log(YK_LOG_NOTICE, APR_ENOENT, "YK0000: test: %d of %s", 3, "four");
    yk_log_sink_set(NULL);
    ck_assert_str_eq(heard, "YK0000: test: 3 of four");
    ck_assert_int_eq(heard_level, YK_LOG_NOTICE);
    ck_assert_int_eq(heard_rv, APR_ENOENT);
}
END_TEST

START_TEST(an_argument_cannot_begin_a_line_of_its_own)
{
    yk_log_sink_set(hear);
    yk_log(YK_LOG_DEBUG, APR_SUCCESS, "YK0000: test: %s", "a\nYK0001: b\x1b[");
    yk_log_sink_set(NULL);
    ck_assert_str_eq(heard, "YK0000: test: a?YK0001: b?[");
}
END_TEST

START_TEST(a_very_long_line_is_cut)
{
    char text[5000];

    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    yk_log_sink_set(hear);
    yk_log(YK_LOG_DEBUG, APR_SUCCESS, "%s", text);
    yk_log_sink_set(NULL);
    ck_assert_uint_lt(strlen(heard), 4096);
    ck_assert_uint_gt(strlen(heard), 1000);
}
END_TEST

Suite *log_suite(void)
{
    Suite *suite = suite_create("log");
    TCase *all = tcase_create("all");

    tcase_add_test(all, a_line_reaches_the_sink_with_level_and_status);
    tcase_add_test(all, an_argument_cannot_begin_a_line_of_its_own);
    tcase_add_test(all, a_very_long_line_is_cut);
    suite_add_tcase(suite, all);
    return suite;
}
