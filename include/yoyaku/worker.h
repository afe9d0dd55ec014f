/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YOYAKU_WORKER_H
#define YOYAKU_WORKER_H

#include <apr_errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include "state.h"

/**
 * @file worker.h
 * @brief Which processes are alive: the table by which what a killed worker
 *        held is known to be free.
 *
 * An identity is pid and start time in one word, so it is there whole or not
 * at all, and a pid used again is another identity. Whoever holds something in
 * shared memory writes beside it its row in this table and its identity; it is
 * dead as soon as the row says another.
 *
 * A row becomes empty in two ways: the parent buries a child whose end it was
 * told (yk_workers_bury(), no lock, no trust), or somebody looks after the
 * living (yk_workers_probe()): who waits, and the parent at each start, since a
 * server that was killed as a whole has buried nobody. Either adds one to
 * `graves`, by which others see in one read that there is something to reclaim.
 *
 * Where it lives: state file "workers". Everything is atomic; there is no lock.
 */

#define YK_WORKERS_LAYOUT 1
#define YK_WORKERS_MAX 4096
#define YK_WORKER_NONE UINT32_MAX

/** One process. What it counts stands on cache lines of its own. */
typedef struct yk_worker_t {
    _Atomic uint64_t identity;   /**< 0: free */
    _Atomic uint64_t generation; /**< of its configuration */
    _Atomic uint32_t layout;     /**< of the throttle file it uses */
    _Atomic uint32_t leaving;    /**< 1: it grew too large and ends itself */
    _Atomic uint64_t looked_us;  /**< when its memory was looked at, steady */
    _Atomic uint64_t resident_kb;
    _Atomic uint64_t private_kb;
    _Atomic uint64_t proportional_kb;
    _Atomic uint64_t requests;
    uint64_t spare[7];
    char line[8];
} yk_worker_t;

_Static_assert(sizeof(yk_worker_t) == 128, "two cache lines");

typedef struct yk_workers_t {
    yk_state_head_t head;
    _Atomic uint64_t graves;    /**< rows that became empty by a death */
    _Atomic uint64_t probed_us; /**< steady clock; who looked last */
    _Atomic uint32_t high;      /**< no row at or above was ever used */
    uint32_t spare0;
    _Atomic uint64_t left_us; /**< steady; when the last one grown too large
                                   was let go */
    uint32_t spare[8];
    yk_worker_t worker[YK_WORKERS_MAX];
} yk_workers_t;

extern const yk_state_kind_t yk_workers_kind;

/** pid and start time in one word; 0 when there is no such process. */
uint64_t yk_worker_identity(uint32_t pid);

/** 1 when a process of this identity exists (a zombie does not). */
int yk_worker_is_alive(uint64_t identity);

/**
 * Take a row for this process.
 * @return its number, or YK_WORKER_NONE: all are taken
 */
uint32_t yk_workers_join(yk_workers_t *workers, uint64_t generation,
                         uint32_t layout);

/** 1: the row still says so. One read. */
int yk_workers_has(const yk_workers_t *workers, uint32_t worker,
                   uint64_t identity);

/** The parent's: this pid has ended. */
void yk_workers_bury(yk_workers_t *workers, uint32_t pid);

/** Empty the row if it still says so. */
void yk_workers_drop(yk_workers_t *workers, uint32_t worker, uint64_t identity);

/**
 * Look after all rows, unless somebody did so less than `age` ago.
 * @return how many were found dead
 */
uint32_t yk_workers_probe(yk_workers_t *workers, apr_interval_time_t age,
                          apr_time_t now);

/** How many live rows use this layout of the throttle file. */
uint32_t yk_workers_of_layout(const yk_workers_t *workers, uint32_t layout);

#endif
