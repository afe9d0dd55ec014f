/* SPDX-License-Identifier: Apache-2.0 */
#include "../memcached.h"
#include "yoyaku/cache.h"

#include <apr_general.h>
#include <apr_strings.h>
#include <check.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* As many as may be under way at once. */
#define THREADS 8
#define PROCESSES 60 /* that begin with all their threads at once */
#define CALLS 3

static memcached_t server;
static apr_pool_t *pool;

static void setup(void)
{
    apr_initialize();
    apr_pool_create(&pool, NULL);
    memcached_start(&server, pool);
}

static void teardown(void)
{
    memcached_stop(&server);
    apr_pool_destroy(pool);
    apr_terminate();
}

typedef struct process_t {
    yk_cache_t *cache;
    pthread_barrier_t start;
    _Atomic int lost; /* calls that memcached, which is there, did not answer */
} process_t;

static void *thread(void *data)
{
    process_t *process = data;
    apr_pool_t *p;

    apr_pool_create_unmanaged_ex(&p, NULL, NULL);
    pthread_barrier_wait(&process->start);
    for (int i = 0; i < CALLS; i++) {
        const char *bytes;
        apr_size_t len;
        apr_status_t rv = yk_cache_get(process->cache, &bytes, &len,
                                       YK_CACHE_NEWS, (uint64_t)i, p);

        process->lost += rv != APR_NOTFOUND;
    }
    apr_pool_destroy(p);
    return NULL;
}

static int process_run(yk_cache_shared_t *shared)
{
    process_t process = {.lost = 0};
    pthread_t threads[THREADS];

    ck_assert_int_eq(
        yk_cache_open(&process.cache, server.servers, shared, pool),
        APR_SUCCESS);
    pthread_barrier_init(&process.start, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, thread, &process);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    pthread_barrier_destroy(&process.start);
    return process.lost;
}

START_TEST(threads_that_begin_at_once_all_reach_memcached)
{
    yk_cache_shared_t *shared = apr_pcalloc(pool, sizeof(*shared));

    for (int i = 0; i < PROCESSES; i++) {
        ck_assert_int_eq(process_run(shared), 0);
    }
    ck_assert_uint_eq(shared->digests[YK_CACHE_NEWS].errors, 0);
    ck_assert_uint_eq(shared->digests[YK_CACHE_NEWS].misses,
                      PROCESSES * THREADS * CALLS);
}
END_TEST

START_TEST(what_is_set_is_there_for_every_line)
{
    yk_cache_shared_t *shared = apr_pcalloc(pool, sizeof(*shared));
    yk_cache_t *one, *two;
    const char *bytes = NULL;
    apr_size_t len = 0;

    ck_assert_int_eq(yk_cache_open(&one, server.servers, shared, pool),
                     APR_SUCCESS);
    ck_assert_int_eq(yk_cache_open(&two, server.servers, shared, pool),
                     APR_SUCCESS);
    ck_assert_int_eq(yk_cache_set(one, YK_CACHE_READ, 7, "seven", 5, 5),
                     APR_SUCCESS);
    ck_assert_int_eq(yk_cache_get(two, &bytes, &len, YK_CACHE_READ, 7, pool),
                     APR_SUCCESS);
    ck_assert_int_eq(len, 5);
    ck_assert_int_eq(memcmp(bytes, "seven", 5), 0);
    ck_assert_int_eq(yk_cache_add(one, YK_CACHE_READ, 7, "x", 1, 5),
                     APR_EEXIST);
    ck_assert_int_eq(yk_cache_drop(two, YK_CACHE_READ, 7), APR_SUCCESS);
    ck_assert_int_eq(yk_cache_get(one, &bytes, &len, YK_CACHE_READ, 7, pool),
                     APR_NOTFOUND);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cache");
    TCase *cases = tcase_create("memcached");
    SRunner *runner;
    int failed;

    tcase_set_timeout(cases, 30);
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, threads_that_begin_at_once_all_reach_memcached);
    tcase_add_test(cases, what_is_set_is_there_for_every_line);
    suite_add_tcase(suite, cases);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
