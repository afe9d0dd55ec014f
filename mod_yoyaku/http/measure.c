/* SPDX-License-Identifier: Apache-2.0 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RUSAGE_THREAD */
#endif
#include "measure.h"

#include <ap_mpm.h>
#include <apr_lib.h>
#include <apr_strings.h>
#include <http_connection.h>
#include <pthread.h>
#include <scoreboard.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <util_filter.h>
#include <yoyaku/rule.h>
#include <yoyaku/text.h>
#include "desk.h"
#include "throttle.h"

#define BUSY_AGE apr_time_from_msec(50)
#define PEAK_AGE apr_time_from_msec(200)
#define MINUTES_MIN 60
#define DAYS_MAX (YK_STATS_MINUTES / 1440)
#define RECYCLE_LEAST (1024 * 1024)
#define RECYCLE_MOST (INT64_C(1024) * 1024 * 1024 * 1024)

/** What one request began with. */
typedef struct measure_t {
    pthread_t thread;
    apr_time_t cpu_us;
    long peak_kb;
    int ended;    /* cpu_us and peak_kb are what it cost */
    int is_first; /* of its connection */
    apr_uint64_t bytes_before;
} measure_t;

static yk_stats_t *stats; /* of this generation; mapped from pconf */
static ap_filter_rec_t *count_filter;

yk_stats_t *yk_http_measure_stats(void)
{
    return stats;
}

/* ---- how full the server is ---- */

void yk_http_measure_busy(uint32_t *busy, uint32_t *most)
{
    static _Atomic apr_time_t looked;
    static _Atomic uint32_t last_busy, last_most;
    apr_time_t now = yk_state_now();
    int daemons = 0, threads = 0, limit = 0;

    *busy = atomic_load(&last_busy);
    *most = atomic_load(&last_most);
    if (*most != 0 && now - atomic_load(&looked) < BUSY_AGE) {
        return;
    }
    atomic_store(&looked, now);
    ap_mpm_query(AP_MPMQ_HARD_LIMIT_DAEMONS, &limit);
    ap_mpm_query(AP_MPMQ_MAX_DAEMONS, &daemons);
    ap_mpm_query(AP_MPMQ_MAX_THREADS, &threads);
    threads = threads > 0 ? threads : 1;
    *busy = 0;
    for (int i = 0; i < limit; i++) {
        for (int j = 0; j < threads; j++) {
            const worker_score *w = ap_get_scoreboard_worker_from_indexes(i, j);

            *busy += w != NULL && w->status != SERVER_DEAD &&
                     w->status != SERVER_READY &&
                     w->status != SERVER_STARTING &&
                     w->status != SERVER_IDLE_KILL;
        }
    }
    *most = (uint32_t)(daemons * threads);
    atomic_store(&last_busy, *busy);
    atomic_store(&last_most, *most);
}

/* ---- a request ---- */

/* Of the thread, in one question: the peak is the process's either way. */
static void used_now(apr_time_t *cpu_us, long *peak_kb)
{
    struct rusage usage;

    getrusage(RUSAGE_THREAD, &usage);
    *cpu_us = apr_time_make(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec,
                            usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    *peak_kb = usage.ru_maxrss;
}

static measure_t *measure_find(request_rec *r)
{
    return yk_http_kept(r, YK_HTTP_MEASURE);
}

static int post_read_request(request_rec *r)
{
    measure_t *m;

    if (stats == NULL || r->main != NULL || r->prev != NULL) {
        return DECLINED;
    }
    m = apr_pcalloc(r->pool, sizeof(*m));
    m->thread = pthread_self();
    used_now(&m->cpu_us, &m->peak_kb);
    m->is_first =
        r->connection->master == NULL && r->connection->keepalives == 0;
    yk_http_keep(r, YK_HTTP_MEASURE, m);
    return DECLINED;
}

/* In the thread that worked on it; what is left to be written may be written
 * by another one. */
static void end(measure_t *m)
{
    apr_time_t cpu_us;
    long peak_kb;

    if (!m->ended && pthread_equal(m->thread, pthread_self())) {
        used_now(&cpu_us, &peak_kb);
        m->cpu_us = cpu_us - m->cpu_us;
        m->peak_kb = peak_kb - m->peak_kb;
        m->ended = 1;
    }
}

static apr_status_t count_bytes(ap_filter_t *f, apr_bucket_brigade *bb)
{
    measure_t *m = f->ctx;
    int ends = 0;
    apr_status_t rv;

    for (apr_bucket *b = APR_BRIGADE_FIRST(bb); b != APR_BRIGADE_SENTINEL(bb);
         b = APR_BUCKET_NEXT(b)) {
        if (APR_BUCKET_IS_EOS(b)) {
            ends = 1;
        }
        else if (!APR_BUCKET_IS_METADATA(b) && b->length != (apr_size_t)-1) {
            m->bytes_before += b->length;
        }
    }
    rv = ap_pass_brigade(f->next, bb);
    if (ends) {
        end(m);
    }
    return rv;
}

static void insert_filter(request_rec *r)
{
    measure_t *m;

    if (stats == NULL || r->main != NULL) {
        return;
    }
    yk_http_keepalive_decide(r);
    yk_http_recycle_decide(r);
    m = measure_find(r);
    if (m != NULL) {
        ap_add_output_filter_handle(count_filter, m, r, r->connection);
    }
}

static void peaks(void)
{
    static _Atomic apr_time_t looked;
    apr_time_t now = yk_state_now();
    uint32_t busy, most;

    if (now - atomic_load(&looked) < PEAK_AGE) {
        return;
    }
    atomic_store(&looked, now);
    yk_http_measure_busy(&busy, &most);
    yk_stats_peak(stats, busy,
                  yk_http_throttle_shared() != NULL
                      ? yk_throttle_table(yk_http_throttle_shared())->waiting
                      : 0,
                  apr_time_now());
}

static int log_transaction(request_rec *r)
{
    const yk_http_measure_server_t *conf =
        yk_http_server(r->server, YK_HTTP_MEASURE);
    const request_rec *last = r;
    measure_t *m;
    yk_sample_t sample = {0};
    const yk_http_visit_t *visits;
    uint32_t n;
    apr_time_t now = apr_time_now();

    if (stats == NULL || r->the_request == NULL) {
        return DECLINED;
    }
    while (last->next != NULL) {
        last = last->next;
    }
    m = measure_find(r);
    if (m != NULL) {
        end(m);
        sample.bytes_before = m->bytes_before;
        sample.is_first = m->is_first;
        if (m->ended) {
            sample.cpu_us = (uint64_t)m->cpu_us;
            sample.grown_kb = m->peak_kb > 0 ? (uint64_t)m->peak_kb : 0;
        }
    }
    sample.path = r->parsed_uri.path;
    sample.handler = last->handler;
    sample.status = last->status;
    sample.bytes_sent = (uint64_t)last->bytes_sent;
    if (sample.bytes_before < sample.bytes_sent) {
        sample.bytes_before = sample.bytes_sent; /* never went the long way */
    }
    sample.wall_us =
        now > r->request_time ? (uint64_t)(now - r->request_time) : 0;
    yk_stats_request(stats, &sample, now);
    n = yk_http_throttle_visits(r, &visits);
    for (uint32_t i = 0; i < n; i++) {
        yk_stats_rule_answer(
            stats, visits[i].row,
            &yk_throttle_table(yk_http_throttle_shared())->rule[visits[i].row],
            &visits[i].met, &sample, now);
    }
    peaks();
    yk_http_recycle_look(r, conf->recycle_kb);
    return DECLINED;
}

static int pre_connection(conn_rec *c, void *socket)
{
    if (stats != NULL && c->master == NULL) {
        yk_stats_connection(stats, apr_time_now());
    }
    return OK;
}

/* ---- directives ---- */

apr_status_t yk_http_measure_days(int64_t *us, const char *text)
{
    char *end;
    apr_int64_t days = apr_strtoi64(text, &end, 10);

    if (!apr_isdigit(*text) || strcmp(end, "d") != 0) {
        return APR_EINVAL;
    }
    *us = apr_time_from_sec((days <= DAYS_MAX ? days : DAYS_MAX + 1) * 86400);
    return APR_SUCCESS;
}

const char *yk_http_measure_set_history(cmd_parms *cmd, void *dummy,
                                        const char *arg)
{
    yk_http_measure_server_t *conf =
        yk_http_server(cmd->server, YK_HTTP_MEASURE);
    const char *error = ap_check_cmd_context(cmd, GLOBAL_ONLY);
    apr_interval_time_t time;

    if (error != NULL) {
        return error;
    }
    if (ap_cstr_casecmp(arg, "off") == 0) {
        conf->history_minutes = 0;
        return NULL;
    }
    if (ap_timeout_parameter_parse(arg, &time, "d") != APR_SUCCESS) {
        if (yk_http_measure_days(&time, arg) != APR_SUCCESS) {
            time = -1;
        }
    }
    if (time < apr_time_from_sec(MINUTES_MIN * 60) ||
        time > apr_time_from_sec(YK_STATS_MINUTES * 60LL)) {
        return apr_psprintf(cmd->pool,
                            "YoyakuStatusHistory: '%s' is not a time from 1h "
                            "to 28d, or off; for example: "
                            "YoyakuStatusHistory 7d",
                            arg);
    }
    conf->history_minutes = (int)(time / apr_time_from_sec(60));
    return NULL;
}

const char *yk_http_measure_set_keepalive(cmd_parms *cmd, void *dummy,
                                          const char *arg)
{
    yk_http_measure_server_t *conf =
        yk_http_server(cmd->server, YK_HTTP_MEASURE);

    if (ap_cstr_casecmp(arg, "adaptive") == 0) {
        conf->adaptive = 1;
    }
    else if (ap_cstr_casecmp(arg, "configured") == 0) {
        conf->adaptive = 0;
    }
    else {
        return apr_psprintf(cmd->pool,
                            "YoyakuKeepAlive: '%s' is neither adaptive nor "
                            "configured (as KeepAlive says); for example: "
                            "YoyakuKeepAlive adaptive",
                            arg);
    }
    return NULL;
}

const char *yk_http_measure_set_recycle(cmd_parms *cmd, void *dummy,
                                        const char *arg)
{
    yk_http_measure_server_t *conf =
        yk_http_server(cmd->server, YK_HTTP_MEASURE);
    const char *error = ap_check_cmd_context(cmd, GLOBAL_ONLY);
    int64_t n;

    if (error != NULL) {
        return error;
    }
    if (ap_cstr_casecmp(arg, "off") == 0) {
        conf->recycle_kb = 0;
        return NULL;
    }
    if (yk_text_size(&n, arg) != APR_SUCCESS || n < RECYCLE_LEAST ||
        n > RECYCLE_MOST) {
        return apr_psprintf(cmd->pool,
                            "YoyakuRecycleAbove: '%s' is not a size from 1M "
                            "to 1024G (K, M or G), or off; for example: "
                            "YoyakuRecycleAbove 200M",
                            arg);
    }
    conf->recycle_kb = n / 1024;
    return NULL;
}

static void *server_create(apr_pool_t *p, server_rec *s)
{
    yk_http_measure_server_t *made = apr_pcalloc(p, sizeof(*made));

    made->history_minutes = made->adaptive = -1;
    made->recycle_kb = -1;
    return made;
}

static void *server_merge(apr_pool_t *p, void *base, void *add)
{
    yk_http_measure_server_t *merged = apr_pmemdup(p, base, sizeof(*merged));
    const yk_http_measure_server_t *host = add;

    if (host->adaptive >= 0) {
        merged->adaptive = host->adaptive;
    }
    return merged;
}

/* ---- life ---- */

static int pre_config(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp)
{
    stats = NULL;
    return OK;
}

static int post_config(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp,
                       server_rec *s)
{
    const yk_http_measure_server_t *conf = yk_http_server(s, YK_HTTP_MEASURE);
    apr_status_t rv;

    if (ap_state_query(AP_SQ_MAIN_STATE) == AP_SQ_MS_CREATE_PRE_CONFIG) {
        return OK;
    }
    rv = yk_stats_create(&stats, yk_http_desk_config_state_dir(s, ptemp),
                         conf->history_minutes < 0
                             ? YK_STATS_MINUTES
                             : (uint32_t)conf->history_minutes,
                         pconf);
    if (rv != APR_SUCCESS) {
        stats = NULL;
        ap_log_error(APLOG_MARK, APLOG_ERR, rv, s,
                     "YK0520: stats: no shared state in %s; nothing is counted",
                     yk_http_desk_config_state_dir(s, ptemp));
        return OK;
    }
    yk_stats_restart(stats, apr_time_now());
    return OK;
}

static void hooks(apr_pool_t *p)
{
    count_filter = ap_register_output_filter("YOYAKU_COUNT", count_bytes, NULL,
                                             AP_FTYPE_CONTENT_SET - 1);
    ap_hook_pre_config(pre_config, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_post_config(post_config, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_pre_connection(pre_connection, NULL, NULL, APR_HOOK_LAST);
    ap_hook_pre_close_connection(yk_http_recycle_leave, NULL, NULL,
                                 APR_HOOK_MIDDLE);
    ap_hook_post_read_request(post_read_request, NULL, NULL,
                              APR_HOOK_REALLY_FIRST);
    ap_hook_insert_filter(insert_filter, NULL, NULL, APR_HOOK_FIRST);
    ap_hook_log_transaction(log_transaction, NULL, NULL, APR_HOOK_LAST);
}

const yk_http_part_t yk_http_measure = {NULL, NULL, server_create, server_merge,
                                        hooks};
