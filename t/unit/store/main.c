/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_general.h>
#include <check.h>
#include <stdlib.h>
#include "store.h"

apr_pool_t *pool;

static void pool_make(void)
{
    apr_pool_create(&pool, NULL);
}

static void pool_end(void)
{
    apr_pool_destroy(pool);
}

TCase *store_case(const char *name)
{
    TCase *tc = tcase_create(name);

    tcase_add_checked_fixture(tc, pool_make, pool_end);
    return tc;
}

int main(void)
{
    Suite *suite = suite_create("store");
    SRunner *runner;
    int failed;

    apr_initialize();
    suite_add_tcase(suite, sql_case());
    suite_add_tcase(suite, line_case());
    suite_add_tcase(suite, schema_case());
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    apr_terminate();
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
