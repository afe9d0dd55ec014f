/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YOYAKU_LOG_H
#define YOYAKU_LOG_H

#include <apr_errno.h>

/**
 * @file log.h
 * @brief Where the library's few log lines go.
 *
 * The host (module, tool, test) sets the sink once per process before any
 * other call. A line is written once, by the layer that decides, and begins
 * with a number of ours (YK0203). No user's byte stands in `format`. ERROR:
 * somebody must act. WARNING: degraded but right. A visitor's mistake is never
 * above DEBUG.
 */

typedef enum yk_log_e {
    YK_LOG_ERROR,
    YK_LOG_WARNING,
    YK_LOG_NOTICE,
    YK_LOG_INFO,
    YK_LOG_DEBUG
} yk_log_e;

typedef void yk_log_sink_fn(yk_log_e level, apr_status_t rv, const char *line);

/** Set the sink; NULL goes back to standard error (WARNING and worse). */
void yk_log_sink_set(yk_log_sink_fn *sink);

/** Write one line. rv 0: no status to name. */
void yk_log(yk_log_e level, apr_status_t rv, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
