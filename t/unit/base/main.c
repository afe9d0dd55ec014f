/* SPDX-License-Identifier: Apache-2.0 */
#include "base.h"

#include <apr_general.h>
#include <stdlib.h>

int main(void)
{
    SRunner *runner;
    int failed;

    apr_initialize();
    runner = srunner_create(answer_suite());
    srunner_add_suite(runner, body_suite());
    srunner_add_suite(runner, log_suite());
    srunner_add_suite(runner, secret_suite());
    srunner_add_suite(runner, text_suite());
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    apr_terminate();
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
