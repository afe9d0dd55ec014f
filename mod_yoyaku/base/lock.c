/* SPDX-License-Identifier: Apache-2.0 */
#include "yoyaku/lock.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

void yk_lock_create(yk_lock_t *lock)
{
    pthread_mutexattr_t attr;

    memset(&lock->own, 0, sizeof(lock->own));
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&lock->own.mutex, &attr);
    pthread_mutexattr_destroy(&attr);
}

static uint64_t steady_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000U + (uint64_t)ts.tv_nsec;
}

/* glibc waits on the wall clock unless told otherwise; somebody who sets the
 * clock back must not make a waiter wait longer. */
static int wait_for(pthread_mutex_t *mutex, apr_interval_time_t wait)
{
    struct timespec until;
    uint64_t end;

#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 30)
    end = steady_ns() + (uint64_t)wait * 1000;
    until.tv_sec = (time_t)(end / 1000000000U);
    until.tv_nsec = (long)(end % 1000000000U);
    return pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &until);
#else
    end = (uint64_t)(apr_time_now() + wait);
    until.tv_sec = (time_t)(end / 1000000U);
    until.tv_nsec = (long)(end % 1000000U) * 1000;
    return pthread_mutex_timedlock(mutex, &until);
#endif
}

static void count(yk_lock_t *lock, yk_lock_mode_e mode, uint64_t waited_ns)
{
    int bucket = 0;

    while (bucket < YK_LOCK_BUCKETS - 1 && (waited_ns >> bucket) != 0) {
        bucket++;
    }
    lock->mode = (uint32_t)mode;
    if (mode == YK_LOCK_READ) {
        lock->read_locks++;
    }
    else {
        lock->write_locks++;
    }
    lock->wait_ns += waited_ns;
    if (waited_ns > lock->wait_max_ns) {
        lock->wait_max_ns = waited_ns;
    }
    lock->waits[bucket]++;
}

apr_status_t yk_lock_take(yk_lock_t *lock, int *died, yk_lock_mode_e mode,
                          apr_interval_time_t wait)
{
    uint64_t waited_ns = 0;
    int e = pthread_mutex_trylock(&lock->own.mutex);

    *died = 0;
    if (e == EBUSY && wait > 0) {
        uint64_t began = steady_ns();

        e = wait_for(&lock->own.mutex, wait);
        waited_ns = steady_ns() - began;
    }
    if (e == EOWNERDEAD) {
        *died = 1;
        lock->owners_died++;
        e = 0;
    }
    if (e == 0) {
        count(lock, mode, waited_ns);
        return APR_SUCCESS;
    }
    if (e == EBUSY || e == ETIMEDOUT) {
        atomic_fetch_add(&lock->timeouts, 1);
        return APR_TIMEUP;
    }
    return APR_EGENERAL;
}

void yk_lock_mend(yk_lock_t *lock)
{
    pthread_mutex_consistent(&lock->own.mutex);
}

void yk_lock_give(yk_lock_t *lock)
{
    if (lock->mode == YK_LOCK_READ) {
        lock->read_unlocks++;
    }
    else {
        lock->write_unlocks++;
    }
    pthread_mutex_unlock(&lock->own.mutex);
}

void yk_lock_add(yk_lock_t *sum, const yk_lock_t *lock)
{
    sum->read_locks += lock->read_locks;
    sum->read_unlocks += lock->read_unlocks;
    sum->write_locks += lock->write_locks;
    sum->write_unlocks += lock->write_unlocks;
    sum->wait_ns += lock->wait_ns;
    if (lock->wait_max_ns > sum->wait_max_ns) {
        sum->wait_max_ns = lock->wait_max_ns;
    }
    sum->owners_died += lock->owners_died;
    sum->timeouts += lock->timeouts;
    for (int i = 0; i < YK_LOCK_BUCKETS; i++) {
        sum->waits[i] += lock->waits[i];
    }
}

void yk_seq_begin(yk_seq_t *seq)
{
    atomic_store_explicit(&seq->n, atomic_load(&seq->n) | 1U,
                          memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
}

void yk_seq_end(yk_seq_t *seq)
{
    atomic_store_explicit(&seq->n, (atomic_load(&seq->n) | 1U) + 1U,
                          memory_order_release);
}

void yk_seq_mend(yk_seq_t *seq)
{
    yk_seq_begin(seq);
    yk_seq_end(seq);
}

int yk_seq_copy(void *to, const void *from, apr_size_t bytes,
                const yk_seq_t *seq)
{
    for (int tries = 0; tries < 64; tries++) {
        uint32_t before = atomic_load(&seq->n);

        memcpy(to, from, bytes);
        atomic_thread_fence(memory_order_seq_cst);
        if ((before & 1U) == 0 && atomic_load(&seq->n) == before) {
            return 1;
        }
    }
    return 0;
}

void yk_word_wait(_Atomic uint32_t *word, uint32_t value,
                  apr_interval_time_t wait)
{
    struct timespec ts = {(time_t)(wait / 1000000),
                          (long)(wait % 1000000) * 1000};

    if (wait > 0) {
        syscall(SYS_futex, word, FUTEX_WAIT, value, &ts, NULL, 0);
    }
}

void yk_word_wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}
