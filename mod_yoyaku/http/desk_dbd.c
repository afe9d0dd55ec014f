/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_dbd.h>
#include <apr_optional.h>
#include <apr_optional_hooks.h>
#include <apr_strings.h>
#include <apr_thread_mutex.h>
#include <mod_dbd.h>
#include <stdatomic.h>
#include <string.h>
#include "board.h"
#include "desk.h"
#include "errand.h"
#include "lane.h"

/*
 * Lines from mod_dbd, through ap_dbd_open and ap_dbd_close and not through
 * ap_dbd_acquire: a line goes back the moment the book has answered, not when
 * the last byte has reached a slow client.
 *
 * A line that goes back is kept open where YoyakuConnections permits it, and
 * costs the next request neither a connect nor a ping; every other line is
 * closed. For this the shipped configuration has DBDPersist Off: mod_dbd's own
 * pool would keep lines that nobody may keep. With DBDPersist On it works as
 * well, with as many lines as that pool has.
 *
 * When no line can be had the database is away; this process then asks again
 * after a second, for each try costs a time-out and a line in the log of
 * mod_dbd's own. The probe asks nevertheless: it answers for all processes, of
 * which only this one has seen the database away. While a thread of this
 * process still waits for a database that hangs (errand.h), nobody else is sent
 * after it.
 */

#define AWAY_US APR_USEC_PER_SEC
/* A database that does not answer for so long hangs. */
#define CONNECT_US (5 * APR_USEC_PER_SEC)
#define READ_US (10 * APR_USEC_PER_SEC)
#define ATTEMPTS 64 /**< no pool keeps more lines that died */
#define SESSION_KEY "yoyaku-session"

/* How many lines one process keeps at most, for all its threads. */
#define KEPT_MAX 16
/* A line idle for longer may have been closed by the server: wait_timeout is
 * 60 s (yk_store_session_set). */
#define KEPT_US (30 * APR_USEC_PER_SEC)

typedef struct line_t {
    ap_dbd_t *rec;    /* NULL: none */
    int permit;       /* to keep it, or YK_LANE_NO_PERMIT */
    apr_time_t since; /* it was put down */
} line_t;

/* Of one process and database; under the mutex, but for the pool. */
struct yk_http_kept_t {
    apr_pool_t *p; /* lines outlive the request that opened them */
    apr_thread_mutex_t *mutex;
    line_t lines[KEPT_MAX]; /* the one put down last is taken up first */
    unsigned n;
    _Atomic int open;      /* kept or in hand */
    _Atomic unsigned late; /* connecting still, waited for by nobody */
    _Atomic apr_int64_t away_until;
};

/* What the thread that connects is told. */
typedef struct opening_t {
    server_rec *s;
    apr_pool_t *p;
    int probing;
} opening_t;

struct yk_http_dbd_t {
    server_rec *s;
    struct yk_http_kept_t *kept;
    apr_pool_t *p;
    line_t lines[2];  /**< a request has one, the probe two */
    apr_time_t since; /**< of the first line in hand */
    apr_time_t used;
};

/* fetched anew in each post_config; the same for all threads afterwards */
static APR_OPTIONAL_FN_TYPE(ap_dbd_open) * dbd_open;
static APR_OPTIONAL_FN_TYPE(ap_dbd_close) * dbd_close;

static _Atomic apr_uint32_t burials; /**< lines thrown away, whoever did it */
static volatile int abandoned;
static __thread int is_probing;

void yk_http_desk_dbd_bind(void)
{
    dbd_open = APR_RETRIEVE_OPTIONAL_FN(ap_dbd_open);
    dbd_close = APR_RETRIEVE_OPTIONAL_FN(ap_dbd_close);
}

void yk_http_desk_dbd_abandon(void)
{
    abandoned = 1;
    yk_store_abandon();
}

const char *yk_http_desk_dbd_lacks(void)
{
    if (dbd_open == NULL || dbd_close == NULL) {
        return "mod_dbd is not loaded, so there is no database: LoadModule "
               "dbd_module and set DBDriver mysql and DBDParams";
    }
    return NULL;
}

void yk_http_desk_dbd_probing(int on)
{
    is_probing = on;
}

apr_time_t yk_http_desk_dbd_used(const yk_http_dbd_t *dbd)
{
    return dbd->used;
}

static int is_mysql(const ap_dbd_t *rec)
{
    return strcmp(apr_dbd_name(rec->driver), "mysql") == 0;
}

static apr_status_t bury(void *data)
{
    burials++;
    return APR_SUCCESS;
}

/** Session settings, once a line: its pool remembers. */
static apr_status_t session_set(ap_dbd_t *rec, apr_pool_t *ptemp)
{
    void *done = NULL;
    apr_status_t rv;

    apr_pool_userdata_get(&done, SESSION_KEY, rec->pool);
    if (done != NULL) {
        return APR_SUCCESS;
    }
    yk_store_patience_set(apr_dbd_native_handle(rec->driver, rec->handle),
                          READ_US);
    rv = yk_store_session_set(apr_dbd_native_handle(rec->driver, rec->handle),
                              ptemp);
    if (rv == APR_SUCCESS) {
        apr_pool_userdata_setn(rec, SESSION_KEY, NULL, rec->pool);
        apr_pool_cleanup_register(rec->pool, rec, bury, apr_pool_cleanup_null);
    }
    return rv;
}

/* mod_dbd pays no attention to what this returns; a line whose session could
 * not be set is tried again, and refused, when it is taken. */
static apr_status_t post_connect(apr_pool_t *p, dbd_cfg_t *cfg, ap_dbd_t *rec)
{
    return is_mysql(rec) ? session_set(rec, p) : APR_SUCCESS;
}

void yk_http_desk_dbd_hooks(apr_pool_t *p)
{
    APR_OPTIONAL_HOOK(dbd, post_connect, post_connect, NULL, NULL,
                      APR_HOOK_MIDDLE);
}

/* mod_dbd pings a pooled line before it hands it out and throws away one that
 * does not answer, but gives nothing in its stead: then we ask again, for the
 * next may be better or new. When nothing was thrown away it could not connect.
 */
static void *line_open_errand(void *baton)
{
    const opening_t *opening = baton;
    int unfit = 0;

    is_probing = opening->probing;
    for (int attempt = 0; attempt < ATTEMPTS && unfit < 2; attempt++) {
        apr_uint32_t buried = burials;
        ap_dbd_t *rec = dbd_open(opening->p, opening->s);

        if (rec == NULL) {
            if (burials == buried) {
                return NULL;
            }
            continue;
        }
        if (is_mysql(rec) && session_set(rec, rec->pool) == APR_SUCCESS) {
            return rec;
        }
        dbd_close(opening->s, rec);
        unfit++;
    }
    return NULL;
}

static void line_came_late(void *baton, void *result)
{
    const opening_t *opening = baton;

    if (!abandoned) {
        dbd_close(opening->s, result);
    }
}

static ap_dbd_t *line_open(yk_http_dbd_t *dbd)
{
    opening_t opening = {dbd->s, dbd->kept->p, is_probing};
    ap_dbd_t *rec =
        yk_http_errand_run(line_open_errand, line_came_late, &opening,
                           sizeof(opening), CONNECT_US, &dbd->kept->late);

    if (rec != NULL) {
        dbd->kept->open++;
    }
    return rec;
}

static void line_close(yk_http_dbd_t *dbd, const line_t *line)
{
    if (line->permit != YK_LANE_NO_PERMIT) {
        yk_http_lane_permit_give(line->permit);
    }
    dbd->kept->open--;
    dbd_close(dbd->s, line->rec);
}

/* The pool of the lines has no parent: a child that is told to end cleans its
 * pools up inside the signal handler, and to close a line there would be to
 * send and to free in the middle of either. The process's end closes them. */
static apr_status_t pool_make(apr_pool_t **p)
{
    apr_allocator_t *allocator;
    apr_thread_mutex_t *mutex;
    apr_status_t rv = apr_allocator_create(&allocator);

    if (rv == APR_SUCCESS) {
        rv = apr_pool_create_unmanaged_ex(p, NULL, allocator);
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    apr_allocator_owner_set(allocator, *p);
    rv = apr_thread_mutex_create(&mutex, APR_THREAD_MUTEX_DEFAULT, *p);
    if (rv == APR_SUCCESS) {
        apr_allocator_mutex_set(allocator, mutex);
    }
    return rv;
}

apr_status_t yk_http_desk_dbd_keep(yk_http_database_t *database,
                                   apr_pool_t *pchild)
{
    struct yk_http_kept_t *kept = NULL;
    apr_pool_t *p = NULL;
    apr_status_t rv = pool_make(&p);

    if (rv == APR_SUCCESS) {
        /* An errand that comes late looks in here after the child's pool. */
        kept = apr_pcalloc(p, sizeof(*kept));
        kept->p = p;
        rv = apr_thread_mutex_create(&kept->mutex, APR_THREAD_MUTEX_DEFAULT, p);
    }
    database->kept = rv == APR_SUCCESS ? kept : NULL;
    return rv;
}

int yk_http_desk_dbd_has_line(server_rec *s)
{
    const yk_http_database_t *database = yk_http_desk_scan_database(s);

    return database != NULL && database->kept != NULL &&
           database->kept->open > 0;
}

/* Take up a line that is kept, or none. */
static line_t kept_take(yk_http_dbd_t *dbd)
{
    struct yk_http_kept_t *kept = dbd->kept;
    line_t line = {NULL, YK_LANE_NO_PERMIT, 0};

    if (is_probing) {
        return line;
    }
    apr_thread_mutex_lock(kept->mutex);
    if (kept->n > 0) {
        line = kept->lines[--kept->n];
    }
    apr_thread_mutex_unlock(kept->mutex);
    if (line.rec != NULL && yk_state_now() - line.since > KEPT_US) {
        line_close(dbd, &line);
        line.rec = NULL;
        line.permit = YK_LANE_NO_PERMIT;
    }
    return line;
}

/* Put a line down to be kept. @return 0: it may not be */
static int kept_put(yk_http_dbd_t *dbd, line_t *line)
{
    struct yk_http_kept_t *kept = dbd->kept;
    int put = 0;

    if (line->permit == YK_LANE_NO_PERMIT) {
        line->permit = yk_http_lane_permit_take();
    }
    if (line->permit == YK_LANE_NO_PERMIT ||
        !yk_http_lane_permit_holds(line->permit)) {
        return 0;
    }
    line->since = yk_state_now();
    apr_thread_mutex_lock(kept->mutex);
    if (kept->n < KEPT_MAX) {
        kept->lines[kept->n++] = *line;
        put = 1;
    }
    apr_thread_mutex_unlock(kept->mutex);
    return put;
}

/* Time in the book's hands ends when no line is in ours. */
static void count_time(yk_http_dbd_t *dbd)
{
    if (dbd->lines[0].rec == NULL && dbd->lines[1].rec == NULL &&
        dbd->since != 0) {
        dbd->used += yk_state_now() - dbd->since;
        dbd->since = 0;
    }
}

static apr_status_t acquire(void *baton, void **native)
{
    yk_http_dbd_t *dbd = baton;
    apr_time_t now = yk_state_now();
    line_t *line = &dbd->lines[dbd->lines[0].rec != NULL];

    if (yk_http_desk_dbd_lacks() != NULL || dbd->kept == NULL ||
        (now < dbd->kept->away_until && !is_probing) || dbd->kept->late > 0) {
        return APR_ECONNRESET;
    }
    if (line->rec != NULL) {
        return APR_EGENERAL;
    }
    if (dbd->since == 0) {
        dbd->since = now;
    }
    *line = kept_take(dbd);
    if (line->rec == NULL) {
        line->rec = line_open(dbd);
    }
    if (line->rec == NULL) {
        dbd->kept->away_until = yk_state_now() + AWAY_US;
        count_time(dbd);
        return APR_ECONNRESET;
    }
    *native = apr_dbd_native_handle(line->rec->driver, line->rec->handle);
    return APR_SUCCESS;
}

/* A broken line's socket was shut by the store, so that a pool of mod_dbd's
 * finds it dead and throws it away. */
static void release(void *baton, void *native, int broken)
{
    yk_http_dbd_t *dbd = baton;

    if (abandoned) {
        return;
    }
    for (int i = 0; i < 2; i++) {
        line_t *line = &dbd->lines[i];

        if (line->rec == NULL ||
            apr_dbd_native_handle(line->rec->driver, line->rec->handle) !=
                native) {
            continue;
        }
        if (broken && !is_probing) {
            yk_http_desk_probe_lost(dbd->s);
        }
        if (broken || is_probing || !kept_put(dbd, line)) {
            line_close(dbd, line);
        }
        line->rec = NULL;
        line->permit = YK_LANE_NO_PERMIT;
    }
    count_time(dbd);
}

apr_status_t yk_http_desk_dbd_attach(yk_store_t **store, yk_http_dbd_t **dbd,
                                     server_rec *s, apr_pool_t *p)
{
    const yk_http_database_t *database = yk_http_desk_scan_database(s);
    yk_http_dbd_t *made = apr_pcalloc(p, sizeof(*made));
    yk_store_host_t host = {made, acquire, release};
    apr_status_t rv;

    made->s = s;
    made->kept = database != NULL ? database->kept : NULL;
    made->p = p;
    made->lines[0].permit = made->lines[1].permit = YK_LANE_NO_PERMIT;
    *dbd = made;
    rv = yk_store_attach(store, &host, p);
    if (rv == APR_SUCCESS) {
        yk_http_board_watch(*store);
    }
    return rv;
}
