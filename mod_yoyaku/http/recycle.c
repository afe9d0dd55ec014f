/* SPDX-License-Identifier: Apache-2.0 */
#include "measure.h"

#include <ap_mpm.h>
#include <fcntl.h>
#include <mpm_common.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "throttle.h"

/* statm costs some 36 us, smaps_rollup a millisecond. */
#define STATM_AGE APR_USEC_PER_SEC
#define ROLLUP_AGE (10 * APR_USEC_PER_SEC)
#define ONE_IN 20 /* workers may be leaving at a time */

/* So long one that leaves is missed: the parent sees its end within a second,
 * and starts the next one when it looks for idle ones, a second later. */
#define MISSED (2 * APR_USEC_PER_SEC)

/* This worker ends with its connection. Under prefork alone. */
static int going;

static int read_file(char *text, size_t size, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n;

    if (fd < 0) {
        return 0;
    }
    n = read(fd, text, size - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* Resident pages that are not of a file: an upper bound of a worker's own. */
static apr_int64_t own_kb(yk_worker_t *w)
{
    long page = sysconf(_SC_PAGESIZE) / 1024;
    unsigned long all, resident, shared;
    char text[200];

    if (!read_file(text, sizeof(text), "/proc/self/statm") ||
        sscanf(text, "%lu %lu %lu", &all, &resident, &shared) != 3) {
        return 0;
    }
    atomic_store(&w->resident_kb, (uint64_t)resident * (uint64_t)page);
    return (apr_int64_t)(resident - shared) * page;
}

static uint64_t member_of(const char *text, const char *name)
{
    const char *at = strstr(text, name);

    return at != NULL ? strtoull(at + strlen(name), NULL, 10) : 0;
}

/* What would be free if this worker ended: no pages of files, which stay in
 * the cache, and none that it still shares with its parent. */
static apr_int64_t private_kb(yk_worker_t *w)
{
    uint64_t kb, anonymous_kb;
    char text[4096];

    if (!read_file(text, sizeof(text), "/proc/self/smaps_rollup")) {
        return 0;
    }
    kb = member_of(text, "Private_Dirty:");
    anonymous_kb = member_of(text, "Anonymous:");
    kb = kb < anonymous_kb ? kb : anonymous_kb;
    atomic_store(&w->private_kb, kb);
    atomic_store(&w->proportional_kb, member_of(text, "\nPss:"));
    return (apr_int64_t)kb;
}

static void count(const yk_workers_t *workers, uint32_t *alive,
                  uint32_t *leaving)
{
    uint32_t high = atomic_load(&workers->high);

    *alive = *leaving = 0;
    for (uint32_t i = 0; i < high && i < YK_WORKERS_MAX; i++) {
        if (atomic_load(&workers->worker[i].identity) != 0) {
            ++*alive;
            *leaving += atomic_load(&workers->worker[i].leaving) != 0;
        }
    }
}

/* Has the last one that went been replaced? One in twenty is missed at most:
 * of twenty workers one goes every two seconds, of five one every eight. */
static int is_time(const yk_workers_t *workers, uint32_t alive, apr_time_t now)
{
    apr_time_t last = (apr_time_t)atomic_load(&workers->left_us);

    return last == 0 || now < last ||
           now - last >= MISSED * ONE_IN / (alive > 0 ? alive : 1);
}

/* May a worker go now, as things stood when `last` was read? */
static int may_leave(const yk_workers_t *workers, apr_time_t now)
{
    uint32_t alive, leaving;

    count(workers, &alive, &leaving);
    return is_time(workers, alive, now) &&
           (leaving == 0 || (leaving + 1) * ONE_IN <= alive);
}

/* A kept connection was promised: its client is told with the next response,
 * so that nobody sends into one that is closed. */
void yk_http_recycle_decide(request_rec *r)
{
    if (going) {
        r->connection->keepalive = AP_CONN_CLOSE;
    }
}

/* A prefork child that gets the signal of a graceful restart ends when its
 * connection is done with, and this is the end of its connection. */
int yk_http_recycle_leave(conn_rec *c)
{
    if (going) {
        kill(getpid(), AP_SIG_GRACEFUL);
    }
    return OK;
}

static void leave(request_rec *r, apr_int64_t kb)
{
    ap_log_rerror(APLOG_MARK, APLOG_INFO, 0, r,
                  "YK0521: recycle: this worker has grown to %" APR_INT64_T_FMT
                  " KB and ends",
                  kb);
    yk_stats_add(yk_http_measure_stats(), YK_TOTAL_RECYCLED, 1);
    going = 1;
}

void yk_http_recycle_look(request_rec *r, apr_int64_t above_kb)
{
    static _Atomic apr_time_t statm_at, rollup_at;
    yk_throttle_t *throttle = yk_http_throttle_shared();
    apr_time_t now = yk_state_now();
    yk_workers_t *workers;
    yk_worker_t *w;
    apr_int64_t kb;
    uint64_t last;
    int is_threaded = 0, may;

    if (throttle == NULL || yk_throttle_worker(throttle) == YK_WORKER_NONE) {
        return;
    }
    workers = yk_throttle_workers(throttle);
    w = &workers->worker[yk_throttle_worker(throttle)];
    atomic_fetch_add_explicit(&w->requests, 1, memory_order_relaxed);
    if (now - atomic_load(&rollup_at) >= ROLLUP_AGE) {
        atomic_store(&rollup_at, now);
        private_kb(w);
    }
    if (above_kb <= 0 || atomic_load(&w->leaving) ||
        now - atomic_load(&statm_at) < STATM_AGE) {
        return;
    }
    atomic_store(&statm_at, now);
    ap_mpm_query(AP_MPMQ_IS_THREADED, &is_threaded);
    if (is_threaded || own_kb(w) <= above_kb) {
        return;
    }
    last = atomic_load(&workers->left_us);
    may = may_leave(workers, now);
    /* only who might go now is worth a close look */
    kb = may ? private_kb(w) : (apr_int64_t)atomic_load(&w->private_kb);
    if (kb <= above_kb) {
        return;
    }
    /* Whoever goes puts his time there: if it still says `last`, nobody went
     * since all were counted, and of two that ask at once one goes. */
    if (!may || !atomic_compare_exchange_strong(&workers->left_us, &last,
                                                (uint64_t)now)) {
        yk_stats_add(yk_http_measure_stats(), YK_TOTAL_RECYCLE_PUT_OFF, 1);
        return;
    }
    atomic_store(&w->leaving, 1);
    leave(r, kb);
}
