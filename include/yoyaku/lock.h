/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YOYAKU_LOCK_H
#define YOYAKU_LOCK_H

#include <apr_errno.h>
#include <apr_time.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

/**
 * @file lock.h
 * @brief Locks in shared memory that tell when their owner died, and count
 *        what they cost.
 *
 * A yk_lock_t is a robust, process-shared pthread mutex used directly, because
 * only that tells the next owner (EOWNERDEAD) that what it guards may be half
 * written. Whoever is told recounts what the lock guards from what cannot be
 * half written, and then calls yk_lock_mend().
 *
 * Nobody waits for ever: an owner may be stopped. The parent never takes a
 * lock at all. Lock order: in the order of YK_LOCKS, never two of one kind.
 *
 * Reading without a lock: yk_seq_*. The writer (under the lock) makes the
 * counter odd, writes, makes it even; the reader copies and looks whether it
 * moved.
 *
 * Where it lives: in a state file. All members under the lock, but `timeouts`.
 */

/** X(NAME, "name", what it guards): every lock of the module. */
#define YK_LOCKS(X)                                                            \
    X(THROTTLE, "throttle", "rules, holders and their queues")                 \
    X(THROTTLE_BEFORE, "throttle_before", "those of the layout before")        \
    X(ROOM, "room", "numbers and passes of all rooms")                         \
    X(PATHS, "paths", "the table of the heaviest paths")                       \
    X(BOARDS, "boards", "which boards there are and where they lie")           \
    X(BOARD, "board", "the board of one slot")                                 \
    X(LANE, "lane", "the queue of a lane; all lanes together")

#define YK_LOCK_BUCKETS 32

typedef enum yk_lock_mode_e {
    YK_LOCK_READ, /**< taken to look: nothing guarded is changed */
    YK_LOCK_WRITE
} yk_lock_mode_e;

typedef struct yk_lock_t {
    union {
        pthread_mutex_t mutex;
        char room[64];
    } own;
    uint64_t read_locks, read_unlocks, write_locks, write_unlocks;
    uint64_t wait_ns, wait_max_ns;
    uint64_t owners_died;
    _Atomic uint64_t timeouts;
    uint32_t mode; /**< yk_lock_mode_e of its owner */
    uint32_t spare;
    /** waits[i]: took [2^(i-1), 2^i) ns to get it; waits[0]: none at all */
    uint64_t waits[YK_LOCK_BUCKETS];
    uint64_t spare2[7];
} yk_lock_t;

_Static_assert(sizeof(pthread_mutex_t) <= 64, "fits its room");
_Static_assert(sizeof(yk_lock_t) == 448, "part of the layout of every file");

/** In memory of a state file, before anybody else can see it. */
void yk_lock_create(yk_lock_t *lock);

/**
 * Take it.
 * @param died set to 1 when its owner died: recount, then yk_lock_mend()
 * @param wait how long to try; 0: only once
 * @return APR_SUCCESS, APR_TIMEUP: somebody has it all the time,
 *         APR_EGENERAL: it cannot be used (somebody died and never mended)
 */
apr_status_t yk_lock_take(yk_lock_t *lock, int *died, yk_lock_mode_e mode,
                          apr_interval_time_t wait);
void yk_lock_mend(yk_lock_t *lock);
void yk_lock_give(yk_lock_t *lock);
/** Add what a lock has counted to `sum`, for locks that are told as one. */
void yk_lock_add(yk_lock_t *sum, const yk_lock_t *lock);

/* ---- reading without a lock ---- */

typedef struct yk_seq_t {
    _Atomic uint32_t n; /**< odd: being written */
} yk_seq_t;

void yk_seq_begin(yk_seq_t *seq);
void yk_seq_end(yk_seq_t *seq);
/** Its writer died: even again. Under the lock. */
void yk_seq_mend(yk_seq_t *seq);

/**
 * Copy what the counter guards.
 * @return 1 when the copy is of one moment; 0: writers never paused, the copy
 *         is of several
 */
int yk_seq_copy(void *to, const void *from, apr_size_t bytes,
                const yk_seq_t *seq);

/* ---- a word to sleep on ---- */

/** Sleep while *word is `value`, at most `wait`; may wake without cause. */
void yk_word_wait(_Atomic uint32_t *word, uint32_t value,
                  apr_interval_time_t wait);
void yk_word_wake(_Atomic uint32_t *word);

#endif
