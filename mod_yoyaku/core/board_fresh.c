/* SPDX-License-Identifier: Apache-2.0 */
#include "board_memory.h"
#include "yoyaku/pool.h"

/* Without room: so long one waits for another who makes the document. */
#define OVERFLOW_WAIT (APR_USEC_PER_SEC / 5)
#define OVERFLOW_LOOKS 8
/* Lives that end under a reader before he gives up. */
#define LIVES_TRIED 8

apr_time_t yk_board_compared(const yk_boards_t *boards,
                             const yk_board_ref_t *ref)
{
    const entry_t *e = &boards->entries[ref->entry];
    apr_time_t read_us = atomic_load(&e->compared_us);

    return atomic_load(&e->life) == ref->life ? read_us : 0;
}

int yk_board_is_still(yk_boards_t *boards, uint64_t id, uint64_t generation)
{
    yk_board_ref_t ref;
    const entry_t *e;

    if (yk_board_find(boards, &ref, id) != APR_SUCCESS) {
        return 0;
    }
    e = &boards->entries[ref.entry];
    return atomic_load(&e->is_read) &&
           atomic_load(&e->generation) == generation &&
           atomic_load(&e->missed) == e->missed_seen &&
           atomic_load(&e->expiry_us) > yk_board_clock(e);
}

/* Anything to read now? */
static int is_due(const entry_t *e, apr_time_t now)
{
    if (now - atomic_load(&e->failed_us) < YK_BOARD_READ) {
        return 0;
    }
    if (now < atomic_load(&e->heard_until_us)) {
        return 0;
    }
    return !atomic_load(&e->is_read) ||
           now - atomic_load(&e->read_us) >= YK_BOARD_READ ||
           atomic_load(&e->missed) != e->missed_seen;
}

static int needs_whole(const entry_t *e, apr_time_t now)
{
    return !atomic_load(&e->is_read) || now - e->whole_us >= YK_BOARD_WHOLE ||
           atomic_load(&e->missed) != e->missed_seen;
}

/* Of which slot it is. An entry may be another slot's after any wait, so this
 * is asked once, under the lock, and what is said of the slot names it. */
static apr_status_t slot_of(yk_boards_t *boards, uint64_t *slot_id,
                            const yk_board_ref_t *ref)
{
    entry_t *e;
    apr_status_t rv = yk_board_lock(boards, &e, ref, YK_LOCK_READ);

    if (rv == APR_SUCCESS) {
        *slot_id = e->slot_id;
        yk_board_unlock(e);
    }
    return rv;
}

/* The book is asked by one of all hosts; the others take what he found. */
static apr_status_t read_shared(yk_boards_t *boards, const yk_board_ref_t *ref,
                                const yk_board_source_t *source,
                                apr_pool_t *ptemp)
{
    entry_t *e = &boards->entries[ref->entry];
    apr_time_t now = yk_state_now();
    uint64_t slot_id;
    apr_status_t rv = slot_of(boards, &slot_id, ref);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    if (yk_board_relay_reading(boards, ref, yk_board_back(boards), ptemp) ==
        APR_SUCCESS) {
        return APR_SUCCESS;
    }
    if (!yk_board_relay_fly(boards, slot_id, ptemp) &&
        now - atomic_load(&e->read_us) < YK_BOARD_OLD - YK_BOARD_READ) {
        return APR_SUCCESS; /* soon */
    }
    rv = yk_board_read_journal(boards, ref, source, ptemp);
    yk_board_relay_land(boards, slot_id);
    return rv;
}

/* So that the next reader is not the next to fail. Under the lock: for another
 * slot that has the entry by now nothing failed. */
static void failed(yk_boards_t *boards, const yk_board_ref_t *ref)
{
    entry_t *e;

    if (yk_board_lock(boards, &e, ref, YK_LOCK_WRITE) == APR_SUCCESS) {
        atomic_store(&e->failed_us, yk_state_now());
        yk_board_unlock(e);
    }
}

/* Reading the whole of a large hall goes through a megabyte in libraries; what
 * a reading of the journal takes has a bound that has nothing to do with the
 * hall. */
static int is_large(const entry_t *e)
{
    return e->nplaces * sizeof(cell_t) > YK_POOL_LARGE;
}

static apr_status_t read_now(yk_boards_t *boards, const yk_board_ref_t *ref,
                             const yk_board_source_t *source, apr_pool_t *p)
{
    entry_t *e = &boards->entries[ref->entry];
    int64_t whole_us = e->whole_us;
    apr_pool_t *ptemp;
    apr_status_t rv = yk_pool_apart(&ptemp, p);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    if (!atomic_load(&e->is_read) &&
        yk_board_relay_start(boards, ref, ptemp) == APR_SUCCESS) {
        rv = yk_board_read_journal(boards, ref, source, ptemp);
    }
    else if (needs_whole(e, yk_state_now())) {
        rv = yk_board_read_whole(boards, ref, source, ptemp);
    }
    else {
        rv = read_shared(boards, ref, source, ptemp);
    }
    if (is_large(e) && (rv != APR_SUCCESS || e->whole_us != whole_us)) {
        yk_pool_apart_end(ptemp);
    }
    else {
        apr_pool_destroy(ptemp);
    }
    if (rv != APR_SUCCESS && rv != APR_NOTFOUND) {
        failed(boards, ref);
    }
    else {
        atomic_store(&e->failed_us, 0);
    }
    return rv;
}

static void expire_due(yk_boards_t *boards, const yk_board_ref_t *ref,
                       apr_time_t now)
{
    entry_t *e = &boards->entries[ref->entry];
    apr_time_t now_us = now + atomic_load(&e->offset_us);

    if (atomic_load(&e->expiry_us) > now_us ||
        yk_board_lock(boards, &e, ref, YK_LOCK_WRITE) != APR_SUCCESS) {
        return;
    }
    yk_board_expire(boards, e, now_us);
    yk_board_unlock(e);
}

static apr_status_t find_or_make(yk_boards_t *boards, yk_board_ref_t *ref,
                                 uint64_t id, const yk_board_source_t *source)
{
    const yk_slot_t *slot;
    apr_status_t rv = yk_board_find(boards, ref, id);

    if (rv == APR_SUCCESS) {
        return rv;
    }
    rv = source->slot(source->baton, &slot, 0);
    if (rv == APR_SUCCESS) {
        rv = yk_board_make(boards, ref, id, slot);
    }
    if (rv == APR_ENOSPC) {
        COUNT(boards, no_room);
    }
    return rv;
}

/* One turn. @return APR_EAGAIN: look again */
static apr_status_t turn(yk_boards_t *boards, const yk_board_ref_t *ref,
                         const yk_board_source_t *source, apr_time_t now,
                         apr_interval_time_t wait, apr_pool_t *ptemp)
{
    entry_t *e = &boards->entries[ref->entry];
    uint32_t news = atomic_load(&e->news);
    int usable = atomic_load(&e->is_read) &&
                 now - atomic_load(&e->read_us) < YK_BOARD_OLD;
    apr_status_t rv = APR_SUCCESS;
    int64_t flight;

    if (!is_due(e, now)) {
        yk_board_relay_hear(boards, ref, now, ptemp);
        return atomic_load(&e->is_read) ? APR_SUCCESS : APR_ECONNRESET;
    }
    flight = yk_board_fly(boards, ref);
    if (flight != 0) {
        rv = read_now(boards, ref, source, ptemp);
        yk_board_land(boards, ref, flight);
        return atomic_load(&e->is_read) && rv != APR_NOTFOUND ? APR_SUCCESS
                                                              : rv;
    }
    if (usable) {
        return APR_SUCCESS;
    }
    if (wait <= 0) {
        return atomic_load(&e->is_read) ? APR_SUCCESS : APR_TIMEUP;
    }
    yk_board_await(boards, ref, news, wait);
    return APR_EAGAIN;
}

apr_status_t yk_board_fresh(yk_boards_t *boards, yk_board_ref_t *ref, int *old,
                            uint64_t id, const yk_board_source_t *source,
                            apr_pool_t *ptemp)
{
    apr_time_t now = yk_state_now(), deadline = now + YK_BOARD_FLIGHT;
    apr_status_t rv;
    int lives = 0;

    COUNT(boards, asked);
    for (;; now = yk_state_now()) {
        rv = find_or_make(boards, ref, id, source);
        if (rv != APR_SUCCESS) {
            return rv;
        }
        rv = turn(boards, ref, source, now, deadline - now, ptemp);
        if (rv == APR_SUCCESS) {
            break;
        }
        /* Its life ended meanwhile, or its slot is gone: the book tells. */
        if (rv != APR_EAGAIN &&
            (rv != APR_NOTFOUND || ++lives == LIVES_TRIED)) {
            return rv == APR_NOTFOUND ? APR_TIMEUP : rv;
        }
    }
    /* The clock is looked at once where nothing had to be read. A reading
     * freed what has expired by itself. */
    expire_due(boards, ref, now);
    *old =
        now - atomic_load(&boards->entries[ref->entry].read_us) >= YK_BOARD_OLD;
    return APR_SUCCESS;
}

/* ---- no room ---- */

/* One more reading in this second? */
static int overflow_allowed(yk_boards_t *boards)
{
    uint64_t second = (uint64_t)(yk_state_now() / APR_USEC_PER_SEC);
    uint64_t was = atomic_load(&boards->head->overflow), next;

    do {
        uint64_t n = was >> 16 == second ? was & 0xffff : 0;

        if (n >= YK_BOARD_OVERFLOW) {
            return 0;
        }
        next = second << 16 | (n + 1);
    } while (
        !atomic_compare_exchange_weak(&boards->head->overflow, &was, next));
    return 1;
}

/* A board of its own for one answer, in memory that is given back at once; the
 * others are told what it came to. */
static apr_status_t answer_alone(yk_boards_t *boards, yk_board_answer_t *answer,
                                 yk_board_form_e form, const yk_slot_t *slot,
                                 const yk_board_source_t *source,
                                 apr_pool_t *ptemp, apr_pool_t *p)
{
    yk_state_kind_t kind;
    yk_boards_t *own;
    yk_board_ref_t ref;
    boards_head_t *head;
    void *memory;
    apr_status_t rv;

    yk_boards_kind(&kind, YK_BOARDS_MIN_BYTES +
                              yk_board_block_bytes(boards, slot, ptemp));
    rv = yk_boards_memory(&memory, &kind, ptemp);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    head = memory;
    head->state.epoch = yk_boards_epoch(boards);
    atomic_store(&head->floor, atomic_load(&boards->head->floor));
    rv = yk_boards_attach(&own, memory, kind.size, ptemp);
    if (rv == APR_SUCCESS) {
        own->cache = boards->cache;
        rv = yk_board_make(own, &ref, 1, slot);
    }
    if (rv == APR_SUCCESS) {
        rv = yk_board_read_whole(own, &ref, source, ptemp);
    }
    if (rv == APR_SUCCESS) {
        rv = yk_board_get(own, &ref, answer, form, p);
    }
    return rv;
}

/* Somebody is making it: soon it is told. */
static apr_status_t answer_await(yk_boards_t *boards, yk_board_answer_t *answer,
                                 yk_board_form_e form, uint64_t slot_id,
                                 apr_pool_t *p)
{
    apr_status_t rv = APR_NOTFOUND;

    for (int i = 0; rv != APR_SUCCESS && i < OVERFLOW_LOOKS; i++) {
        apr_sleep(OVERFLOW_WAIT / OVERFLOW_LOOKS);
        rv = yk_board_relay_shown(boards, answer, form, slot_id, p);
    }
    return rv;
}

apr_status_t yk_board_overflow(yk_boards_t *boards, yk_board_answer_t *answer,
                               yk_board_form_e form,
                               const yk_board_source_t *source, apr_pool_t *p)
{
    const yk_slot_t *slot;
    apr_pool_t *ptemp;
    apr_status_t rv = source->slot(source->baton, &slot, 0);
    int flies;

    if (rv != APR_SUCCESS) {
        return rv;
    }
    if (yk_board_relay_shown(boards, answer, form, slot->slot_id, p) ==
        APR_SUCCESS) {
        return APR_SUCCESS;
    }
    flies = yk_board_relay_fly(boards, slot->slot_id, p);
    if (!flies &&
        answer_await(boards, answer, form, slot->slot_id, p) == APR_SUCCESS) {
        return APR_SUCCESS;
    }
    rv = APR_TIMEUP;
    if (overflow_allowed(boards) && yk_pool_apart(&ptemp, p) == APR_SUCCESS) {
        rv = answer_alone(boards, answer, form, slot, source, ptemp, p);
        yk_pool_apart_end(ptemp);
    }
    if (flies) {
        yk_board_relay_land(boards, slot->slot_id);
    }
    return rv;
}
