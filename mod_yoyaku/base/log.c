/* SPDX-License-Identifier: Apache-2.0 */
#include "yoyaku/log.h"

#include <stdarg.h>
#include <stdio.h>

#define LINE_BYTES 2048

static void write_to_stderr(yk_log_e level, apr_status_t rv, const char *line)
{
    char why[160];

    if (level > YK_LOG_WARNING) {
        return;
    }
    if (rv == APR_SUCCESS) {
        fprintf(stderr, "%s\n", line);
    }
    else {
        fprintf(stderr, "(%d)%s: %s\n", (int)rv,
                apr_strerror(rv, why, sizeof(why)), line);
    }
}

static yk_log_sink_fn *sink = write_to_stderr;

void yk_log_sink_set(yk_log_sink_fn *set)
{
    sink = set != NULL ? set : write_to_stderr;
}

void yk_log(yk_log_e level, apr_status_t rv, const char *format, ...)
{
    char line[LINE_BYTES];
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    /* An argument may come from outside; it cannot begin a line of its own. */
    for (char *c = line; *c != '\0'; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f) {
            *c = '?';
        }
    }
    sink(level, rv, line);
}
