/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_general.h>
#include <apr_strings.h>
#include <check.h>
#include <glob.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "explore.h"
#include "fuzz.h"
#include "inject.h"
#include "race.h"
#include <yoyaku/log.h>

/**
 * @file check_interleave.c
 * @brief Every race that is written down, in every order; every operation with
 *        every error; and many sessions at once.
 *
 *   CK_RUN_CASE=scripts          one of scripts, mutants, fuzz, errors, losses,
 *                                races
 *   YOYAKU_INTERLEAVE=take-over  only scripts and operations of that name
 *   YOYAKU_INTERLEAVE_FUZZ=1000  so many made-up scripts, from number
 *   YOYAKU_INTERLEAVE_SEED=5000  this on
 *   YOYAKU_INTERLEAVE_VERBOSE=1  every order of steps, and what was told
 *   YOYAKU_TEST_MARIADBD=...     more options for the server
 */

static apr_pool_t *pglobal;
static world_t *world;
static script_t *scripts[256];
static int nscripts;

typedef struct pair_t {
    script_t *script;
    const mutant_t *mutant;
} pair_t;
static pair_t mutants[256];
static int nmutants;

/* What the library logged since the last test began: shown with a failure. */
static char logged[16384];
static pthread_mutex_t log_mutex = PTHREAD_MUTEX_INITIALIZER;

static void log_line(yk_log_e level, apr_status_t rv, const char *line)
{
    size_t at;
    pthread_mutex_lock(&log_mutex);
    at = strlen(logged);
    apr_snprintf(logged + at, sizeof(logged) - at, "%s (%d)\n", line, rv);
    pthread_mutex_unlock(&log_mutex);
}

/* Check keeps only short messages; the whole story goes to standard output. */
static void demand(const char *wrong)
{
    if (wrong) {
        printf("\n==== %s\n-- log:\n%s====\n", wrong, logged);
        fflush(stdout);
    }
    logged[0] = '\0';
    ck_assert_msg(wrong == NULL, "%.300s", wrong);
}

static int is_wanted(const char *name)
{
    const char *only = getenv("YOYAKU_INTERLEAVE");
    return !only || strstr(name, only) != NULL;
}

static void say(const char *what, const char *name, int n, const char *unit,
                apr_time_t since)
{
    if (getenv("YOYAKU_INTERLEAVE_QUIET")) {
        return;
    }
    printf("%-10s %-44s %6d %s  %.1f s\n", what, name, n, unit,
           (double)(apr_time_now() - since) / APR_USEC_PER_SEC);
    fflush(stdout);
}

START_TEST(every_order_of_a_written_race_ends_well)
{
    apr_pool_t *p;
    apr_time_t since = apr_time_now();
    explored_t found;
    apr_pool_create(&p, pglobal);
    found = explore(world, scripts[_i], NULL, p);
    say("script", scripts[_i]->name, found.orders,
        found.complete ? "orders (all) " : "orders (some)", since);
    demand(found.failure);
    apr_pool_destroy(p);
}
END_TEST

START_TEST(whatever_is_done_at_once_the_book_agrees)
{
    const char *from = getenv("YOYAKU_INTERLEAVE_SEED");
    apr_pool_t *p;
    apr_time_t since = apr_time_now();
    explored_t found;
    script_t *script;
    apr_pool_create(&p, pglobal);
    script = fuzz_script((unsigned)_i + (from ? (unsigned)atoi(from) : 0), p);
    found = explore(world, script, NULL, p);
    if (found.failure || _i % 20 == 0) {
        say("fuzz", script->name, found.orders, "orders", since);
    }
    demand(found.failure);
    apr_pool_destroy(p);
}
END_TEST

START_TEST(a_product_broken_on_purpose_is_found_out)
{
    const pair_t *pair = &mutants[_i];
    apr_pool_t *p;
    apr_time_t since = apr_time_now();
    explored_t found;
    apr_pool_create(&p, pglobal);
    found = explore(world, pair->script, pair->mutant, p);
    say("mutant",
        apr_pstrcat(p, pair->script->name, " ", pair->mutant->name, NULL),
        found.orders, "orders", since);
    if (found.failure && getenv("YOYAKU_INTERLEAVE_VERBOSE")) {
        printf("%s\n", found.failure);
    }
    ck_assert_msg(found.failure != NULL,
                  "%s: the mutant '%s' was not noticed by '%s'",
                  pair->script->name, pair->mutant->name, pair->mutant->finds);
    apr_pool_destroy(p);
}
END_TEST

START_TEST(an_error_in_any_statement_leaves_no_half)
{
    apr_pool_t *p;
    apr_time_t since = apr_time_now();
    const char *wrong;
    int tries = 0;
    if (!is_wanted(inject_name(_i))) {
        return;
    }
    apr_pool_create(&p, pglobal);
    wrong = inject_errors(world, _i, &tries, p);
    say("errors in", inject_name(_i), tries, "tries", since);
    demand(wrong);
    apr_pool_destroy(p);
}
END_TEST

START_TEST(a_line_lost_at_any_packet_leaves_no_half)
{
    apr_pool_t *p;
    apr_time_t since = apr_time_now();
    const char *wrong;
    int tries = 0;
    if (!is_wanted(inject_name(_i))) {
        return;
    }
    apr_pool_create(&p, pglobal);
    wrong = inject_losses(world, _i, &tries, p);
    say("losses in", inject_name(_i), tries, "tries", since);
    demand(wrong);
    apr_pool_destroy(p);
}
END_TEST

START_TEST(two_hundred_places_are_sold_exactly)
{
    apr_pool_t *p;
    apr_time_t since = apr_time_now();
    const char *wrong;
    if (!is_wanted(race_name(_i))) {
        return;
    }
    apr_pool_create(&p, pglobal);
    wrong = race_run(world, _i, NULL, p);
    say("race", race_name(_i), 200, "places", since);
    demand(wrong);
    apr_pool_destroy(p);
}
END_TEST

START_TEST(released_by_fifty_at_once_it_gives_back_once)
{
    apr_pool_t *p;
    apr_pool_create(&p, pglobal);
    demand(race_release(world, p));
    apr_pool_destroy(p);
}
END_TEST

START_TEST(a_race_without_locks_is_found_out)
{
    static const mutant_t mutant = {
        "no-lock", {" FOR UPDATE"}, {""}, "sold to order"};
    apr_pool_t *p;
    const char *wrong;
    apr_pool_create(&p, pglobal);
    wrong = race_run(world, 0, &mutant, p);
    ck_assert_msg(wrong != NULL, "200 places and no locks: not noticed");
    apr_pool_destroy(p);
}
END_TEST

static void read_scripts(void)
{
    char *folder = apr_pstrdup(pglobal, __FILE__);
    glob_t found;
    size_t i;
    int k;
    *strrchr(folder, '/') = '\0';
    if (glob(apr_pstrcat(pglobal, folder, "/*.txt", NULL), 0, NULL, &found) !=
        0) {
        script_wrong("no scripts in", folder);
    }
    for (i = 0; i < found.gl_pathc && nscripts < 256; i++) {
        script_t *script = script_read(found.gl_pathv[i], pglobal);
        if (!is_wanted(script->name)) {
            continue;
        }
        scripts[nscripts++] = script;
        for (k = 0; k < script->mutants->nelts; k++) {
            mutants[nmutants].script = script;
            mutants[nmutants++].mutant = ITEM(script->mutants, k, mutant_t *);
        }
    }
    globfree(&found);
}

static TCase *looped(Suite *suite, const char *name, const TTest *test, int n)
{
    TCase *tcase = tcase_create(name);
    tcase_add_loop_test(tcase, test, 0, n);
    suite_add_tcase(suite, tcase);
    return tcase;
}

int main(void)
{
    Suite *suite = suite_create("interleave");
    SRunner *runner = srunner_create(suite);
    const char *fuzz = getenv("YOYAKU_INTERLEAVE_FUZZ");
    server_t *server;
    TCase *races;
    int failed;

    apr_initialize();
    apr_pool_create(&pglobal, NULL);
    yk_log_sink_set(log_line);
    read_scripts();
    server = server_start(pglobal);
    world = world_make(server, "yoyaku_interleave", pglobal);
    looped(suite, "scripts", every_order_of_a_written_race_ends_well, nscripts);
    looped(suite, "mutants", a_product_broken_on_purpose_is_found_out,
           nmutants);
    looped(suite, "fuzz", whatever_is_done_at_once_the_book_agrees,
           fuzz ? atoi(fuzz) : 80);
    looped(suite, "errors", an_error_in_any_statement_leaves_no_half,
           inject_operations());
    looped(suite, "losses", a_line_lost_at_any_packet_leaves_no_half,
           inject_operations());
    races = looped(suite, "races", two_hundred_places_are_sold_exactly,
                   race_count());
    tcase_add_test(races, released_by_fifty_at_once_it_gives_back_once);
    tcase_add_test(races, a_race_without_locks_is_found_out);
    /* one server, one world, threads: the tests run in this process */
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    world_destroy(world);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
