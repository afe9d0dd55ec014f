/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YK_HTTP_MEASURE_H
#define YK_HTTP_MEASURE_H

#include <yoyaku/stats.h>
#include "http.h"

/**
 * @file measure.h
 * @brief The part that watches every request: what it cost, how full the
 *        server is, how large its workers have grown.
 *
 *   measure.c    counts requests, connections, bytes; CPU and growth a path
 *   keepalive.c  YoyakuKeepAlive adaptive
 *   recycle.c    YoyakuRecycleAbove; what workers have settled at
 *
 * What lives where. The counters are in state file "stats" (yoyaku/stats.h),
 * a worker's sizes in its row of state file "workers".
 */

typedef struct yk_http_measure_server_t {
    int history_minutes;    /**< -1: not said */
    int adaptive;           /**< -1: not said */
    apr_int64_t recycle_kb; /**< -1: not said; 0: off */
} yk_http_measure_server_t;

/** NULL when there is none. */
yk_stats_t *yk_http_measure_stats(void);

/** How many workers are at work, and how many could be. At most 50 ms old. */
void yk_http_measure_busy(uint32_t *busy, uint32_t *most);

/** Read "7d". More days than minutes are kept are one more than that.
 *  @return APR_EINVAL when it is no number of days */
apr_status_t yk_http_measure_days(int64_t *us, const char *text);

/* ---- keepalive.c ---- */

/** Close this connection after its response when few workers are idle. */
void yk_http_keepalive_decide(request_rec *r);

/* ---- recycle.c ---- */

/** After a response: look at this worker's size; may it go, it ends with its
 *  connection. */
void yk_http_recycle_look(request_rec *r, apr_int64_t above_kb);
/** Of a worker that ends: its client is told that the connection does. */
void yk_http_recycle_decide(request_rec *r);
/** The pre_close_connection hook: a worker that is to end ends now. */
int yk_http_recycle_leave(conn_rec *c);

const char *yk_http_measure_set_history(cmd_parms *cmd, void *dummy,
                                        const char *arg);
const char *yk_http_measure_set_keepalive(cmd_parms *cmd, void *dummy,
                                          const char *arg);
const char *yk_http_measure_set_recycle(cmd_parms *cmd, void *dummy,
                                        const char *arg);

#define YK_HTTP_MEASURE_DIRECTIVES                                             \
    AP_INIT_TAKE1("YoyakuStatusHistory", yk_http_measure_set_history, NULL,    \
                  RSRC_CONF, "how long minutes are kept, or off"),             \
        AP_INIT_TAKE1("YoyakuKeepAlive", yk_http_measure_set_keepalive, NULL,  \
                      RSRC_CONF,                                               \
                      "adaptive: close connections while workers are short"),  \
        AP_INIT_TAKE1("YoyakuRecycleAbove", yk_http_measure_set_recycle, NULL, \
                      RSRC_CONF, "the size at which a worker is replaced"),

#endif
