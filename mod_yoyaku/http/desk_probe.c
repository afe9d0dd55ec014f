/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_shm.h>
#include <apr_strings.h>
#include <stdatomic.h>
#include <string.h>
#include <yoyaku/state.h>
#include "desk.h"

/*
 * Is each database fit to take bookings? Asked by one worker for all of this
 * host's: at the first need, again when lines to it have broken since, and
 * while the answer is no, once a second at most. The others go by what was
 * known before; at the very first they wait for the answer.
 *
 * What they share lies in memory made before fork and lives as long as the
 * generation. Who asks says so with a time until which it is believed, so that
 * an asker who is killed holds nobody up. That the database is unfit is told
 * once, however many notice.
 */

#define AGAIN_US APR_USEC_PER_SEC
#define ASKING_US (10 * APR_USEC_PER_SEC)
#define DATABASES_MAX 64

/* Of one database; every member atomic, zero at first. */
typedef struct shared_t {
    _Atomic apr_uint32_t is_told; /**< the error line was written */
    _Atomic apr_uint32_t losses;  /**< lines that broke, ever */
    _Atomic apr_uint32_t asked;   /**< losses as of the last answer, plus 1 */
    _Atomic apr_int32_t status;   /**< the last answer */
    _Atomic apr_int64_t next;     /**< while bad: not to be asked before */
    _Atomic apr_int64_t asking;   /**< somebody is, until then */
} shared_t;

static shared_t *shared; /* DATABASES_MAX of them */

apr_status_t yk_http_desk_probe_create(apr_pool_t *pconf)
{
    apr_shm_t *shm = NULL;
    apr_status_t rv = apr_shm_create(&shm, DATABASES_MAX * sizeof(shared_t),
                                     NULL, pconf);

    if (rv == APR_SUCCESS) {
        shared = apr_shm_baseaddr_get(shm);
        memset(shared, 0, DATABASES_MAX * sizeof(shared_t));
    }
    return rv;
}

/* More databases than there is room for share the last one's. */
static shared_t *shared_of(server_rec *s)
{
    const apr_array_header_t *all = yk_http_desk_scan_databases();
    const yk_http_database_t *database = yk_http_desk_scan_database(s);
    apr_size_t at = 0;

    if (database != NULL) {
        at = (apr_size_t)(database - (const yk_http_database_t *)all->elts);
    }
    return &shared[at < DATABASES_MAX ? at : DATABASES_MAX - 1];
}

void yk_http_desk_probe_lost(server_rec *s)
{
    shared_of(s)->losses++;
}

int yk_http_desk_probe_is_unfit(void)
{
    for (int i = 0; shared != NULL && i < DATABASES_MAX; i++) {
        if (shared[i].is_told != 0) {
            return 1;
        }
    }
    return 0;
}

static void tell(apr_status_t rv, const char *why, server_rec *s)
{
    apr_uint32_t was = rv != APR_SUCCESS ? 0 : 1;

    if (!atomic_compare_exchange_strong(&shared_of(s)->is_told, &was,
                                        rv != APR_SUCCESS)) {
        return;
    }
    if (rv == APR_SUCCESS) {
        ap_log_error(APLOG_MARK, APLOG_NOTICE, 0, s,
                     "YK0411: probe: the database is fit, bookings are taken");
    }
    else {
        ap_log_error(APLOG_MARK, APLOG_ERR, 0, s,
                     "YK0410: probe: bookings are answered 503 until this is "
                     "mended: %s",
                     why);
    }
}

static apr_status_t ask(yk_store_t *store, server_rec *s, apr_pool_t *ptemp)
{
    const char *why = yk_http_desk_dbd_lacks();
    apr_status_t rv = APR_ENOTIMPL;

    if (why == NULL) {
        yk_http_desk_dbd_probing(1);
        rv = yk_store_probe(store, &why, ptemp);
        yk_http_desk_dbd_probing(0);
    }
    if (rv != APR_SUCCESS && (rv != APR_ENOTIMPL || why == NULL)) {
        why = "the database cannot be reached (mod_dbd's lines say why)";
    }
    if (rv != APR_TIMEUP && rv != APR_EBUSY) {
        tell(rv, why, s);
    }
    return rv;
}

static int is_known(const shared_t *of)
{
    return of->asked == of->losses + 1 &&
           (of->status == APR_SUCCESS || yk_state_now() < of->next);
}

/* Become the one who asks. */
static int claim(shared_t *of)
{
    apr_time_t now = yk_state_now();
    apr_int64_t asking = of->asking;

    return asking < now && atomic_compare_exchange_strong(&of->asking, &asking,
                                                          now + ASKING_US);
}

static apr_status_t ask_for_all(shared_t *of, yk_store_t *store, server_rec *s,
                                apr_pool_t *ptemp)
{
    apr_uint32_t losses = of->losses;
    apr_status_t rv = ask(store, s, ptemp);

    /* many who ask at once wait for each other: nothing was learnt */
    if (rv != APR_TIMEUP && rv != APR_EBUSY) {
        of->status = rv;
        of->next = yk_state_now() + AGAIN_US;
        of->asked = losses + 1;
    }
    of->asking = 0;
    return rv;
}

apr_status_t yk_http_desk_probe_check(yk_store_t *store, server_rec *s,
                                      apr_pool_t *ptemp)
{
    shared_t *of = shared_of(s);
    apr_time_t until = yk_state_now() + ASKING_US;

    while (!is_known(of)) {
        if (claim(of)) {
            return ask_for_all(of, store, s, ptemp);
        }
        if (of->asked != 0 || yk_state_now() >= until) {
            break;
        }
        apr_sleep(apr_time_from_msec(5));
    }
    return of->asked != 0 ? of->status : APR_ECONNRESET;
}
