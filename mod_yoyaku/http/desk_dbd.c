/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_dbd.h>
#include <apr_optional.h>
#include <apr_optional_hooks.h>
#include <apr_strings.h>
#include <mod_dbd.h>
#include <stdatomic.h>
#include <string.h>
#include "desk.h"
#include "lane.h"

/*
 * Lines from mod_dbd, through ap_dbd_open and ap_dbd_close and not through
 * ap_dbd_acquire: a line goes back the moment the book has answered, not when
 * the last byte has reached a slow client.
 *
 * A process that may keep a line (YoyakuConnections) keeps it open and in hand
 * between requests, so that it costs no ping; all other lines are closed when
 * they go back, for which the shipped configuration has DBDKeep 0.
 *
 * mod_dbd pings a line before it hands it out and throws away one that does
 * not answer, but gives nothing in its stead: hence the second try. When both
 * fail the database is away; this process then asks again after a second, for
 * each try costs a time-out and a line in the log of mod_dbd's own.
 */

#define AWAY_US APR_USEC_PER_SEC
#define SESSION_KEY "yoyaku-session"

/* A line kept: in hand of at most one thread. */
typedef struct yk_http_kept_t {
    _Atomic(ap_dbd_t *) line;
    _Atomic apr_int64_t since; /**< it was put down */
} yk_http_kept_t;

/* A line idle for longer may have been closed by the server: wait_timeout is
 * 60 s (yk_store_session_set). */
#define KEPT_US (30 * APR_USEC_PER_SEC)

struct yk_http_dbd_t {
    server_rec *s;
    yk_http_kept_t *kept;
    apr_pool_t *p;
    ap_dbd_t *lines[2]; /**< a request has one, the probe two */
    apr_time_t since;   /**< of the first line in hand */
    apr_time_t used;
};

/* fetched anew in each post_config; the same for all threads afterwards */
static APR_OPTIONAL_FN_TYPE(ap_dbd_open) * dbd_open;
static APR_OPTIONAL_FN_TYPE(ap_dbd_close) * dbd_close;

static _Atomic apr_uint32_t connects;
static _Atomic apr_int64_t away_until;
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
}

const char *yk_http_desk_dbd_lacks(void)
{
    if (dbd_open == NULL || dbd_close == NULL) {
        return "mod_dbd is not loaded, so there is no database: LoadModule "
               "dbd_module and set DBDriver mysql and DBDParams";
    }
    return NULL;
}

apr_uint32_t yk_http_desk_dbd_connects(void)
{
    return connects;
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

/** Session settings, once a line: its pool remembers. */
static apr_status_t session_set(ap_dbd_t *rec, apr_pool_t *ptemp)
{
    void *done = NULL;
    apr_status_t rv;

    apr_pool_userdata_get(&done, SESSION_KEY, rec->pool);
    if (done != NULL) {
        return APR_SUCCESS;
    }
    rv = yk_store_session_set(apr_dbd_native_handle(rec->driver, rec->handle),
                              ptemp);
    if (rv == APR_SUCCESS) {
        apr_pool_userdata_setn(rec, SESSION_KEY, NULL, rec->pool);
        if (!is_probing) {
            connects++;
        }
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

static ap_dbd_t *line_open(yk_http_dbd_t *dbd)
{
    for (int attempt = 0; attempt < 2; attempt++) {
        ap_dbd_t *rec = dbd_open(dbd->p, dbd->s);

        if (rec == NULL) {
            continue;
        }
        if (is_mysql(rec) && session_set(rec, dbd->p) == APR_SUCCESS) {
            return rec;
        }
        dbd_close(dbd->s, rec);
    }
    return NULL;
}

apr_status_t yk_http_desk_dbd_keep(yk_http_database_t *database,
                                   apr_pool_t *pchild)
{
    database->kept = apr_pcalloc(pchild, sizeof(*database->kept));
    return APR_SUCCESS;
}

/* Take up the line this process keeps, unless it lay there for too long. */
static ap_dbd_t *kept_take(yk_http_dbd_t *dbd)
{
    ap_dbd_t *rec = NULL;

    if (dbd->kept != NULL && !is_probing) {
        rec = atomic_exchange(&dbd->kept->line, NULL);
    }
    if (rec != NULL && apr_time_now() - dbd->kept->since > KEPT_US) {
        dbd_close(dbd->s, rec);
        rec = NULL;
    }
    return rec;
}

/* Put a line down to be kept. @return 0: it may not be */
static int kept_put(yk_http_dbd_t *dbd, ap_dbd_t *rec)
{
    ap_dbd_t *none = NULL;

    if (dbd->kept == NULL || is_probing || !yk_http_lane_keeps_line()) {
        return 0;
    }
    dbd->kept->since = apr_time_now();
    return atomic_compare_exchange_strong(&dbd->kept->line, &none, rec);
}

static apr_status_t acquire(void *baton, void **line)
{
    yk_http_dbd_t *dbd = baton;
    apr_time_t now = apr_time_now();
    int at = dbd->lines[0] != NULL;
    ap_dbd_t *rec = NULL;

    if (yk_http_desk_dbd_lacks() != NULL || now < away_until) {
        return APR_ECONNRESET;
    }
    if (dbd->lines[at] != NULL) {
        return APR_EGENERAL;
    }
    if (dbd->since == 0) {
        dbd->since = now;
    }
    rec = kept_take(dbd);
    if (rec == NULL) {
        rec = line_open(dbd);
    }
    if (rec == NULL) {
        away_until = apr_time_now() + AWAY_US;
        if (dbd->lines[0] == NULL && dbd->lines[1] == NULL) {
            dbd->used += apr_time_now() - dbd->since;
            dbd->since = 0;
        }
        return APR_ECONNRESET;
    }
    dbd->lines[at] = rec;
    *line = apr_dbd_native_handle(rec->driver, rec->handle);
    return APR_SUCCESS;
}

/* A broken line's socket was shut by the store, so that mod_dbd's ping of it
 * fails and throws it away. */
static void release(void *baton, void *line, int broken)
{
    yk_http_dbd_t *dbd = baton;

    if (abandoned) {
        return;
    }
    for (int i = 0; i < 2; i++) {
        ap_dbd_t *rec = dbd->lines[i];

        if (rec != NULL &&
            apr_dbd_native_handle(rec->driver, rec->handle) == line) {
            dbd->lines[i] = NULL;
            if (broken || !kept_put(dbd, rec)) {
                dbd_close(dbd->s, rec);
            }
        }
    }
    if (dbd->lines[0] == NULL && dbd->lines[1] == NULL && dbd->since != 0) {
        dbd->used += apr_time_now() - dbd->since;
        dbd->since = 0;
    }
}

apr_status_t yk_http_desk_dbd_attach(yk_store_t **store, yk_http_dbd_t **dbd,
                                     server_rec *s, apr_pool_t *p)
{
    const yk_http_database_t *database = yk_http_desk_scan_database(s);
    yk_http_dbd_t *made = apr_pcalloc(p, sizeof(*made));
    yk_store_host_t host = {made, acquire, release};

    made->s = s;
    made->kept = database != NULL ? database->kept : NULL;
    made->p = p;
    *dbd = made;
    return yk_store_attach(store, &host, p);
}
