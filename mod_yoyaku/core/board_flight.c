/* SPDX-License-Identifier: Apache-2.0 */
#include "board_memory.h"
#include "yoyaku/worker.h"

/*
 * One reads for all. The flag names who, since when and until when, so a
 * reader that was killed or stopped keeps nobody from reading: it is passed
 * over as soon as it is dead or its time is up. Two who read at once do no
 * harm, since cells take only what is newer.
 */

/* So long nobody asks whether the one who reads is still alive. */
#define TRUSTED (APR_USEC_PER_SEC / 10)

static int is_flying(const entry_t *e, apr_time_t now)
{
    uint64_t who = atomic_load(&e->flight_who);

    if (who == 0 || now >= atomic_load(&e->flight_until)) {
        return 0;
    }
    return now - atomic_load(&e->flight_since) < TRUSTED ||
           yk_worker_is_alive(who);
}

int64_t yk_board_fly(yk_boards_t *boards, const yk_board_ref_t *ref)
{
    entry_t *e = &boards->entries[ref->entry];
    apr_time_t now = yk_state_now();
    int64_t flight = 0;

    if (is_flying(e, now) ||
        yk_board_lock(boards, &e, ref, YK_LOCK_WRITE) != APR_SUCCESS) {
        return 0;
    }
    if (!is_flying(e, now)) {
        /* never the same as an earlier flight's */
        flight = now > atomic_load(&e->flight_since)
                     ? now
                     : atomic_load(&e->flight_since) + 1;
        atomic_store(&e->flight_since, flight);
        atomic_store(&e->flight_until, now + YK_BOARD_FLIGHT);
        atomic_store(&e->flight_who, boards->me);
    }
    yk_board_unlock(e);
    return flight;
}

void yk_board_land(yk_boards_t *boards, const yk_board_ref_t *ref,
                   int64_t flight)
{
    entry_t *e = &boards->entries[ref->entry];

    if (atomic_load(&e->life) == ref->life &&
        atomic_load(&e->flight_since) == flight) {
        atomic_store(&e->flight_who, 0);
    }
    atomic_fetch_add(&e->news, 1);
    yk_word_wake(&e->news);
}

void yk_board_await(yk_boards_t *boards, const yk_board_ref_t *ref,
                    uint32_t news, apr_interval_time_t wait)
{
    /* short naps: who reads may be killed and then wakes nobody */
    yk_word_wait(&boards->entries[ref->entry].news, news,
                 wait < TRUSTED ? wait : TRUSTED);
}
