/* SPDX-License-Identifier: Apache-2.0 */
#include "throttle.h"

#include <apr_general.h>
#include <stdlib.h>

int main(void)
{
    SRunner *runner;
    int failed;

    apr_initialize();
    runner = srunner_create(rule_suite());
    srunner_add_suite(runner, queue_suite());
    srunner_add_suite(runner, queue_model_suite());
    srunner_add_suite(runner, shared_suite());
    srunner_add_suite(runner, room_suite());
    srunner_add_suite(runner, steps_suite());
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    apr_terminate();
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
