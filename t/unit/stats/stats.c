/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_general.h>
#include <apr_strings.h>
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "yoyaku/stats.h"
#include "yoyaku/throttle.h"
#include "yoyaku/template.h"
#include "yoyaku/text.h"

#define MINUTE (60 * APR_USEC_PER_SEC)

static apr_pool_t *p;
static char folder[64];
static yk_stats_t *stats;
static apr_time_t now;

static void setup(void)
{
    apr_pool_create(&p, NULL);
    strcpy(folder, "/tmp/yk-stats-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(yk_stats_create(&stats, folder, YK_STATS_MINUTES, p),
                     APR_SUCCESS);
    now = INT64_C(1700000000) * APR_USEC_PER_SEC;
}

static void teardown(void)
{
    char command[100];

    apr_pool_destroy(p);
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}

static uint32_t minute(void)
{
    return (uint32_t)(now / MINUTE);
}

static void request(const char *path, uint64_t wall_us)
{
    yk_sample_t sample = {path, "php", 200, 100, 300, wall_us, 7, 4, 0};

    yk_stats_request(stats, &sample, now);
}

START_TEST(a_minute_is_a_record_of_that_minute_only)
{
    yk_minute_t sum;

    request("/a", 1);
    request("/a", 1);
    now += MINUTE;
    request("/a", 1);
    yk_stats_period(stats, &sum, minute(), minute());
    ck_assert_uint_eq(sum.requests, 1);
    yk_stats_period(stats, &sum, minute() - 1, minute());
    ck_assert_uint_eq(sum.requests, 3);
    ck_assert_uint_eq(sum.bytes_sent, 300);
    ck_assert_uint_eq(sum.bytes_before, 900);
    /* the same place in the ring, 28 days later */
    now += (YK_STATS_MINUTES - 1) * MINUTE;
    yk_stats_period(stats, &sum, minute(), minute());
    ck_assert_uint_eq(sum.requests, 0);
    request("/a", 1);
    yk_stats_period(stats, &sum, minute(), minute());
    ck_assert_uint_eq(sum.requests, 1);
    ck_assert_uint_eq(yk_stats_total(stats, YK_TOTAL_REQUESTS), 4);
}
END_TEST

START_TEST(a_period_has_the_highest_of_its_peaks)
{
    yk_minute_t sum;

    yk_stats_peak(stats, 5, 9, now);
    now += MINUTE;
    yk_stats_peak(stats, 8, 2, now);
    yk_stats_peak(stats, 3, 1, now);
    yk_stats_period(stats, &sum, minute() - 1, minute());
    ck_assert_uint_eq(sum.peak_running, 8);
    ck_assert_uint_eq(sum.peak_queued, 9);
}
END_TEST

START_TEST(counters_are_kept_over_a_restart)
{
    apr_pool_t *later;
    yk_stats_t *next;
    yk_minute_t sum;

    request("/a", 1);
    apr_pool_create(&later, NULL);
    ck_assert_int_eq(yk_stats_create(&next, folder, YK_STATS_MINUTES, later),
                     APR_SUCCESS);
    ck_assert_uint_eq(yk_stats_total(next, YK_TOTAL_REQUESTS), 1);
    yk_stats_period(next, &sum, minute(), minute());
    ck_assert_uint_eq(sum.requests, 1);
    apr_pool_destroy(later);
}
END_TEST

START_TEST(a_rule_s_minute_has_bytes_connections_and_503s)
{
    yk_rule_t rule = {.name = "app", .running = 3, .waiting = 1};
    yk_sample_t sample = {
        .status = 200, .is_first = 1, .bytes_sent = 10, .bytes_before = 40};
    yk_rule_visit_t waited = {.running = 3, .queued = 2, .waited_us = 7000};
    yk_rule_visit_t refused = {.running = 3, .refused = 1};
    yk_rule_minute_t sum;

    yk_stats_rule_peak(stats, 5, &rule, now);
    yk_stats_rule_answer(stats, 5, &rule, &waited, &sample, now);
    sample.status = 503;
    sample.is_first = 0;
    yk_stats_rule_answer(stats, 5, &rule, &refused, &sample, now + MINUTE);
    yk_stats_rule_period(stats, &sum, 5, "app", minute(), minute() + 1);
    ck_assert_uint_eq(sum.requests, 2);
    ck_assert_uint_eq(sum.refused, 1);
    ck_assert_uint_eq(sum.connections, 1);
    ck_assert_uint_eq(sum.unavailable, 1);
    ck_assert_uint_eq(sum.bytes_sent, 20);
    ck_assert_uint_eq(sum.bytes_before, 80);
    ck_assert_uint_eq(sum.wait_us, 7000);
    ck_assert_uint_eq(sum.peak_queued, 2);
    yk_stats_rule_period(stats, &sum, 5, "other", minute(), minute() + 1);
    ck_assert_uint_eq(sum.requests, 0);
}
END_TEST

/* A file as layout 1 had it: half the room for a rule's minute. */
#define OLD_RULES ((apr_size_t)YK_STATS_RULES * YK_STATS_MINUTES * 32)

static void nothing(void *memory)
{
}

START_TEST(a_new_layout_takes_over_what_was_counted)
{
    const apr_size_t front = sizeof(yk_state_head_t) + 16 * sizeof(uint64_t) +
                             sizeof(yk_lock_t) +
                             YK_STATS_PATHS * sizeof(yk_path_t) +
                             YK_STATS_MINUTES * sizeof(yk_minute_t);
    yk_state_kind_t old = {"stats", 1, front + OLD_RULES, nothing, nothing};
    yk_rule_minute_t sum;
    yk_minute_t all;
    yk_state_t *state;
    uint32_t *row;
    char *memory;

    strcat(folder, "/old");
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    ck_assert_int_eq(yk_state_create(&state, &old, folder, p), APR_SUCCESS);
    memory = yk_state_memory(state);
    ((uint64_t *)(memory + sizeof(yk_state_head_t)))[YK_TOTAL_REQUESTS] = 77;
    ((yk_minute_t *)(memory + front))[(int)(minute() % YK_STATS_MINUTES) -
                                      YK_STATS_MINUTES]
        .minute = minute();
    ((yk_minute_t *)(memory + front))[(int)(minute() % YK_STATS_MINUTES) -
                                      YK_STATS_MINUTES]
        .requests = 5;
    row = (uint32_t *)(memory + front +
                       32 * (apr_size_t)(minute() % YK_STATS_MINUTES));
    row[0] = minute();
    row[1] = 0x1f6a832c; /* FNV-1a of "app" */
    row[2] = 9;
    ck_assert_int_eq(yk_stats_create(&stats, folder, YK_STATS_MINUTES, p),
                     APR_SUCCESS);
    ck_assert_uint_eq(yk_stats_total(stats, YK_TOTAL_REQUESTS), 77);
    yk_stats_period(stats, &all, minute(), minute());
    ck_assert_uint_eq(all.requests, 5);
    yk_stats_rule_period(stats, &sum, 0, "app", minute(), minute());
    ck_assert_uint_eq(sum.requests, 9);
    *strrchr(folder, '/') = '\0';
}
END_TEST

START_TEST(many_at_once_lose_nothing)
{
    yk_minute_t sum;

    for (int i = 0; i < 4; i++) {
        if (fork() == 0) {
            for (int j = 0; j < 20000; j++) {
                yk_stats_connection(stats, now);
            }
            _exit(0);
        }
    }
    while (wait(NULL) > 0) {
    }
    yk_stats_period(stats, &sum, minute(), minute());
    ck_assert_uint_eq(yk_stats_total(stats, YK_TOTAL_CONNECTIONS), 80000);
    /* who comes while a minute is set to nought may go into none */
    ck_assert_uint_ge(sum.connections, 79990);
}
END_TEST

START_TEST(a_path_is_known_by_its_first_two_parts)
{
    static const char *const rows[][2] = {
        {"/", "/"},           {"/a", "/a"},
        {"/a/b", "/a/b"},     {"/a/b/c/d.php", "/a/b"},
        {"/a//b/c", "/a//b"}, {"/a b<x>\x01", "/a?b?x??"}};
    char prefix[YK_STATS_PATH];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        yk_stats_prefix(prefix, rows[i][0]);
        ck_assert_str_eq(prefix, rows[i][1]);
    }
}
END_TEST

START_TEST(the_heaviest_paths_stay_in_a_full_table)
{
    yk_path_t *paths = apr_palloc(p, YK_STATS_PATHS * sizeof(*paths));
    uint32_t n;

    for (int i = 0; i < 50; i++) {
        request("/guilty/app", 1000000);
    }
    for (int i = 0; i < 5000; i++) {
        request(apr_psprintf(p, "/scan/%d", i), 10);
    }
    n = yk_stats_paths(stats, paths, p);
    ck_assert_uint_le(n, YK_STATS_PATHS);
    ck_assert_str_eq(paths[0].prefix, "/guilty/app");
    ck_assert_uint_eq(paths[0].count, 50);
    ck_assert_uint_eq(paths[0].wall_us, 50000000);
    ck_assert_uint_eq(paths[0].cpu_us, 350);
    ck_assert_uint_eq(paths[0].grown_kb, 200);
    ck_assert_uint_gt(yk_stats_total(stats, YK_TOTAL_PATHS_EVICTED), 0);
}
END_TEST

START_TEST(a_lock_counts_what_it_costs)
{
    yk_lock_t *lock = yk_stats_lock(stats);
    int died;
    pid_t pid;

    ck_assert_int_eq(yk_lock_take(lock, &died, YK_LOCK_READ, 0), APR_SUCCESS);
    yk_lock_give(lock);
    ck_assert_int_eq(yk_lock_take(lock, &died, YK_LOCK_WRITE, 0), APR_SUCCESS);
    pid = fork();
    if (pid == 0) {
        _exit(yk_lock_take(lock, &died, YK_LOCK_WRITE, 20000) == APR_TIMEUP
                  ? 0
                  : 1);
    }
    ck_assert_int_eq(waitpid(pid, &died, 0), pid);
    ck_assert_int_eq(died, 0);
    ck_assert_uint_eq(lock->write_locks - lock->write_unlocks, 1);
    yk_lock_give(lock);
    ck_assert_uint_eq(lock->read_locks, 1);
    ck_assert_uint_eq(lock->read_unlocks, 1);
    ck_assert_uint_eq(lock->write_unlocks, 1);
    ck_assert_uint_eq(lock->timeouts, 1);
    ck_assert_uint_eq(lock->waits[0], 2);
}
END_TEST

/* Whatever a question asks for: one row holds all there is. */
START_TEST(a_history_has_no_steps_longer_than_itself)
{
    yk_throttle_t *throttle;
    apr_time_t late;
    json_t *history, *row;

    ck_assert_int_eq(yk_throttle_create(&throttle, folder, 4, 0, 4, p),
                     APR_SUCCESS);
    ck_assert_int_eq(yk_time_parse(&late, "9999-12-31T23:59Z"), APR_SUCCESS);
    history = yk_stats_document_history(stats, throttle, 60, 1U << 30, late, p);
    ck_assert_uint_eq(json_array_size(json_object_get(history, "rows")), 1);
    row = json_array_get(json_object_get(history, "rows"), 0);
    ck_assert_int_eq(json_integer_value(json_object_get(row, "minutes")), 60);
    json_decref(history);
}
END_TEST

START_TEST(a_template_escapes_loops_and_leaves_out)
{
    json_t *v =
        json_pack("{s:s,s:[{s:i},{s:i}],s:b,s:{s:s}}", "name", "<b>&\"'",
                  "rows", "n", 1, "n", 2, "no", 0, "in", "deep", "x");
    apr_size_t len;

    ck_assert_str_eq(
        yk_template_fill(&len,
                         "{{name}}|{{#rows}}{{n}}{{name}};{{/rows}}|"
                         "{{#no}}a{{/no}}{{^no}}b{{/no}}|{{in.deep}}|"
                         "{{missing}}|{{#missing}}c{{/missing}}",
                         v, p),
        "&lt;b&gt;&amp;&quot;&#39;|1&lt;b&gt;&amp;&quot;&#39;;"
        "2&lt;b&gt;&amp;&quot;&#39;;|b|x||");
    ck_assert_str_eq(yk_template_fill(&len, "{{#rows}}open", v, p), "openopen");
    ck_assert_str_eq(yk_template_fill(&len, "a {{ b", v, p), "a {{ b");
    json_decref(v);
}
END_TEST

int main(void)
{
    const TTest *const rows[] = {
        a_minute_is_a_record_of_that_minute_only,
        a_period_has_the_highest_of_its_peaks,
        counters_are_kept_over_a_restart,
        a_rule_s_minute_has_bytes_connections_and_503s,
        a_new_layout_takes_over_what_was_counted,
        many_at_once_lose_nothing,
        a_path_is_known_by_its_first_two_parts,
        the_heaviest_paths_stay_in_a_full_table,
        a_lock_counts_what_it_costs,
        a_history_has_no_steps_longer_than_itself,
        a_template_escapes_loops_and_leaves_out,
    };
    Suite *suite = suite_create("stats");
    TCase *all = tcase_create("all");
    SRunner *runner;
    int failed;

    apr_initialize();
    tcase_set_timeout(all, 60);
    tcase_add_checked_fixture(all, setup, teardown);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        tcase_add_test(all, rows[i]);
    }
    suite_add_tcase(suite, all);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    apr_terminate();
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
