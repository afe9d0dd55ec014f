/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_general.h>
#include <string.h>
#include "contract.h"
#include "yoyaku/log.h"

/* What the tests provoke is not for the reader of their output. */
static void quiet(yk_log_e level, apr_status_t rv, const char *line)
{
    if (getenv("CONTRACT_LOG") != NULL) {
        fprintf(stderr, "%s\n", line);
    }
}

int main(int argc, char **argv)
{
    SRunner *runner;
    Suite *suite = suite_create("contract");
    int failed;

    apr_initialize();
    mysql_library_init(0, NULL, NULL);
    yk_log_sink_set(quiet);
    server_start();
#define ADD(name) suite_add_tcase(suite, name##_case());
    CONTRACTS(ADD)
#undef ADD
    runner = srunner_create(suite);
    /* one process: the server's line to its parent is ours */
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    server_stop();
    mysql_library_end();
    apr_terminate();
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
