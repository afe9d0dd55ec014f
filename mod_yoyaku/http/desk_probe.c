/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_shm.h>
#include <apr_strings.h>
#include <apr_thread_mutex.h>
#include <stdatomic.h>
#include "desk.h"

/*
 * Is the database fit to take bookings? Each process finds out for itself, when
 * it first needs to know, again after it got new lines, and while the answer is
 * no, once a second at most. One thread asks; the others go by what was known
 * before, so two threads never wait for each other's lines.
 *
 * That the database is unfit is news once, however many processes notice: what
 * they share is one word that says whether it was told.
 */

#define AGAIN_US APR_USEC_PER_SEC

typedef struct shared_t {
    _Atomic apr_uint32_t is_told; /**< the error line was written */
} shared_t;

static shared_t *shared; /* made before fork; atomic */

/* one process's */
static struct {
    apr_thread_mutex_t *mutex;
    _Atomic int is_known;          /**< set once, after `status` */
    _Atomic apr_status_t status;   /**< written under the mutex */
    _Atomic apr_uint32_t connects; /**< as of the last asking */
    apr_time_t next; /**< not before, while bad; under the mutex */
} probe;

apr_status_t yk_http_desk_probe_create(apr_pool_t *pconf)
{
    apr_shm_t *shm = NULL;
    apr_status_t rv = apr_shm_create(&shm, sizeof(shared_t), NULL, pconf);

    if (rv == APR_SUCCESS) {
        shared = apr_shm_baseaddr_get(shm);
        shared->is_told = 0;
    }
    return rv;
}

apr_status_t yk_http_desk_probe_child(apr_pool_t *pchild)
{
    return apr_thread_mutex_create(&probe.mutex, APR_THREAD_MUTEX_DEFAULT,
                                   pchild);
}

int yk_http_desk_probe_is_unfit(void)
{
    return shared != NULL && atomic_load(&shared->is_told) != 0;
}

static void tell(apr_status_t rv, const char *why, server_rec *s)
{
    apr_uint32_t was = rv != APR_SUCCESS ? 0 : 1;

    if (!atomic_compare_exchange_strong(&shared->is_told, &was,
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

/** Under the mutex. */
static int is_due(void)
{
    if (!probe.is_known) {
        return 1;
    }
    if (probe.status == APR_SUCCESS) {
        return probe.connects != yk_http_desk_dbd_connects();
    }
    return apr_time_now() >= probe.next;
}

apr_status_t yk_http_desk_probe_check(yk_store_t *store, server_rec *s,
                                      apr_pool_t *ptemp)
{
    apr_status_t rv;

    if (probe.is_known && probe.status == APR_SUCCESS &&
        probe.connects == yk_http_desk_dbd_connects()) {
        return APR_SUCCESS;
    }
    rv = apr_thread_mutex_trylock(probe.mutex);
    if (rv != APR_SUCCESS) {
        if (probe.is_known) {
            return probe.status;
        }
        apr_thread_mutex_lock(probe.mutex);
    }
    if (is_due()) {
        apr_uint32_t seen = yk_http_desk_dbd_connects();

        rv = ask(store, s, ptemp);
        /* many who ask at once wait for each other: nothing was learnt */
        if (rv != APR_TIMEUP && rv != APR_EBUSY) {
            probe.status = rv;
            probe.connects = seen;
            probe.next = apr_time_now() + AGAIN_US;
            probe.is_known = 1;
        }
    }
    else {
        rv = probe.status;
    }
    apr_thread_mutex_unlock(probe.mutex);
    return rv;
}
