/* SPDX-License-Identifier: Apache-2.0 */
#include "throttle.h"

#include <apr_pools.h>
#include <string.h>
#include "yoyaku/rule.h"

static apr_pool_t *p;
static yk_rule_terms_t terms;
static const char *problem;

static void setup(void)
{
    apr_pool_create(&p, NULL);
    yk_rule_terms_default(&terms);
    problem = NULL;
}

static void teardown(void)
{
    apr_pool_destroy(p);
}

static apr_status_t parse(const char *argument)
{
    return yk_rule_terms_parse(&terms, &problem, argument, p);
}

START_TEST(the_short_form_says_what_the_named_form_says)
{
    static const char *const named[] = {
        "limit=4", "per-user=1",  "overflow=20",     "resume=30",
        "busy=60", "run-after=0", "refuse-after=30s"};
    yk_rule_terms_t by_name;

    for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
        ck_assert_int_eq(parse(named[i]), APR_SUCCESS);
    }
    by_name = terms;
    yk_rule_terms_default(&terms);
    ck_assert_int_eq(parse("4/1,20,30,60,0,0:30"), APR_SUCCESS);
    ck_assert_mem_eq(&terms, &by_name, sizeof(terms));
}
END_TEST

START_TEST(what_is_empty_in_the_short_form_is_off)
{
    ck_assert_int_eq(parse("4,,,,,"), APR_SUCCESS);
    ck_assert_uint_eq(terms.limit, 4);
    ck_assert_uint_eq(terms.overflow, 0);
    ck_assert_uint_eq(terms.busy, 0);
    ck_assert_int_eq(terms.refuse_after_us, 0);
}
END_TEST

START_TEST(times_of_the_short_form_are_hours_minutes_seconds)
{
    static const struct {
        const char *text;
        int64_t seconds;
    } rows[] = {{"90", 90},    {"1:30", 90}, {"1:00:01", 3601},
                {"2min", 120}, {"30s", 30},  {"1h", 3600}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int64_t us;

        ck_assert_int_eq(yk_rule_time_parse(&us, rows[i].text), APR_SUCCESS);
        ck_assert_int_eq(us, rows[i].seconds * APR_USEC_PER_SEC);
    }
}
END_TEST

START_TEST(an_error_names_the_value_the_range_and_an_example)
{
    ck_assert_int_eq(parse("limit=four"), APR_EINVAL);
    ck_assert_ptr_nonnull(strstr(problem, "limit=four"));
    ck_assert_ptr_nonnull(strstr(problem, "from 0 (off) to 1000000"));
    ck_assert_ptr_nonnull(strstr(problem, "for example"));
    ck_assert_int_eq(parse("run-after=soon"), APR_EINVAL);
    ck_assert_ptr_nonnull(strstr(problem, "run-after=soon"));
    ck_assert_int_eq(parse("4,5,6,7,8,9,10"), APR_EINVAL);
    ck_assert_int_eq(parse("colour=red"), APR_NOTFOUND);
}
END_TEST

static int fits(const char *arguments)
{
    char text[200], *word, *rest;

    yk_rule_terms_default(&terms);
    strcpy(text, arguments);
    for (word = strtok_r(text, " ", &rest); word != NULL;
         word = strtok_r(NULL, " ", &rest)) {
        ck_assert_int_eq(parse(word), APR_SUCCESS);
    }
    return yk_rule_terms_check(&terms, &problem, 10, p) == APR_SUCCESS;
}

START_TEST(numbers_must_stand_in_their_order)
{
    ck_assert(fits("limit=4 overflow=20 resume=30 busy=60"));
    ck_assert(fits("limit=4 overflow=5 resume=6 busy=6"));
    ck_assert(fits("limit=4"));
    ck_assert(fits("per-user=2"));
    ck_assert(!fits("limit=4 overflow=4"));
    ck_assert(!fits("limit=4 overflow=20 resume=20"));
    ck_assert(!fits("limit=4 overflow=20 resume=30 busy=29"));
    ck_assert(!fits("limit=4 busy=3"));
    ck_assert(!fits("limit=4 overflow=20"));
    ck_assert(!fits("limit=4 per-user=5"));
    ck_assert(!fits("limit=4 run-after=30s"));
    ck_assert(fits("limit=4 run-after=30s refuse-after=0"));
}
END_TEST

START_TEST(what_is_written_reads_the_same_again)
{
    yk_rule_terms_t before;

    ck_assert(fits("limit=4 per-user=2 overflow=20 resume=30 busy=60 "
                   "run-after=1500ms refuse-after=90s dry-run"));
    before = terms;
    ck_assert(fits(yk_rule_terms_write(&terms, p)));
    ck_assert_mem_eq(&terms, &before, sizeof(terms));
}
END_TEST

Suite *rule_suite(void)
{
    Suite *suite = suite_create("rule");
    TCase *all = tcase_create("all");

    tcase_add_checked_fixture(all, setup, teardown);
    tcase_add_test(all, the_short_form_says_what_the_named_form_says);
    tcase_add_test(all, what_is_empty_in_the_short_form_is_off);
    tcase_add_test(all, times_of_the_short_form_are_hours_minutes_seconds);
    tcase_add_test(all, an_error_names_the_value_the_range_and_an_example);
    tcase_add_test(all, numbers_must_stand_in_their_order);
    tcase_add_test(all, what_is_written_reads_the_same_again);
    suite_add_tcase(suite, all);
    return suite;
}
