/* SPDX-License-Identifier: Apache-2.0 */
#include "errand.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Of two threads, freed by whoever lets go last; under the mutex. */
typedef struct errand_t {
    pthread_mutex_t mutex;
    pthread_cond_t done;
    yk_http_errand_fn *run;
    yk_http_errand_undo_fn *undo;
    void *result;
    int is_done, is_left; /* is_left: nobody waits any more */
    _Atomic unsigned *late;
    _Alignas(max_align_t) unsigned char baton[YK_HTTP_ERRAND_BYTES];
} errand_t;

static void errand_free(errand_t *errand)
{
    pthread_cond_destroy(&errand->done);
    pthread_mutex_destroy(&errand->mutex);
    free(errand);
}

static void *errand_main(void *data)
{
    errand_t *errand = data;
    void *result = errand->run(errand->baton);
    int is_left;

    pthread_mutex_lock(&errand->mutex);
    errand->result = result;
    errand->is_done = 1;
    is_left = errand->is_left;
    pthread_cond_signal(&errand->done);
    pthread_mutex_unlock(&errand->mutex);
    if (is_left) {
        if (result != NULL) {
            errand->undo(errand->baton, result);
        }
        --*errand->late;
        errand_free(errand);
    }
    return NULL;
}

/** Signals are for httpd's own threads. @return 0 when it is on its way */
static int errand_send(errand_t *errand)
{
    sigset_t all, before;
    pthread_attr_t attr;
    pthread_t thread;
    int failed;

    sigfillset(&all);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    failed = pthread_create(&thread, &attr, errand_main, errand);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return failed;
}

static errand_t *errand_make(yk_http_errand_fn *run,
                             yk_http_errand_undo_fn *undo, const void *baton,
                             apr_size_t bytes)
{
    errand_t *errand = calloc(1, sizeof(*errand));
    pthread_condattr_t attr;

    if (errand == NULL) {
        return NULL;
    }
    pthread_mutex_init(&errand->mutex, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&errand->done, &attr);
    pthread_condattr_destroy(&attr);
    errand->run = run;
    errand->undo = undo;
    memcpy(errand->baton, baton, bytes);
    return errand;
}

static struct timespec deadline_of(apr_interval_time_t patience)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += (time_t)apr_time_sec(patience);
    at.tv_nsec += (long)apr_time_usec(patience) * 1000;
    if (at.tv_nsec >= 1000000000L) {
        at.tv_nsec -= 1000000000L;
        at.tv_sec++;
    }
    return at;
}

void *yk_http_errand_run(yk_http_errand_fn *run, yk_http_errand_undo_fn *undo,
                         const void *baton, apr_size_t bytes,
                         apr_interval_time_t patience, _Atomic unsigned *late)
{
    struct timespec deadline = deadline_of(patience);
    errand_t *errand = errand_make(run, undo, baton, bytes);
    void *result;
    int rc = 0;

    if (errand == NULL) {
        return NULL;
    }
    errand->late = late;
    if (errand_send(errand) != 0) {
        errand_free(errand);
        return NULL;
    }
    pthread_mutex_lock(&errand->mutex);
    while (!errand->is_done && rc != ETIMEDOUT) {
        rc = pthread_cond_timedwait(&errand->done, &errand->mutex, &deadline);
    }
    result = errand->result;
    if (!errand->is_done) {
        errand->is_left = 1;
        ++*late;
        pthread_mutex_unlock(&errand->mutex);
        return NULL;
    }
    pthread_mutex_unlock(&errand->mutex);
    errand_free(errand);
    return result;
}
