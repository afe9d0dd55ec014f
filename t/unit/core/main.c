/* SPDX-License-Identifier: Apache-2.0 */
#include "board.h"
#include "core.h"

#include <apr_general.h>
#include <stdlib.h>

int main(void)
{
    SRunner *runner;
    int failed;

    apr_initialize();
    runner = srunner_create(hall_csv_suite());
    srunner_add_suite(runner, board_suite());
    srunner_add_suite(runner, board_life_suite());
    srunner_add_suite(runner, board_reused_suite());
    srunner_add_suite(runner, hall_json_suite());
    srunner_add_suite(runner, lane_queue_suite());
    srunner_add_suite(runner, order_suite());
    srunner_add_suite(runner, plan_suite());
    srunner_add_suite(runner, plan_seat_suite());
    srunner_add_suite(runner, request_suite());
    srunner_add_suite(runner, slot_suite());
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    apr_terminate();
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
