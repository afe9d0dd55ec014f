/* SPDX-License-Identifier: Apache-2.0 */
#include "board_memory.h"
#include <stdlib.h>
#include <string.h>

/*
 * How a board learns what the book says: the whole slot, or what was
 * journalled since. A journal row's time is that of its writing packet, and
 * it is seen once that has committed; so each reading goes back behind the
 * last by more than a COMMIT takes.
 */

/* Places of one packet: what a worker holds of a large hall at once. */
#define PART 2048
/* Rows of the journal; when there are more the whole slot is cheaper. */
#define JOURNAL_ROWS 1024
#define BACK_LEAST (2 * APR_USEC_PER_SEC)
#define BACK_MOST (20 * APR_USEC_PER_SEC)

/* ---- the whole slot ---- */

typedef struct whole_t {
    yk_boards_t *boards;
    const yk_board_ref_t *ref;
    uint64_t slot_id;
    uint32_t nplaces;
    uint64_t applied;  /* as of our last look */
    uint64_t missed;   /* as of the beginning */
    int alone;         /* nobody else has written since the beginning */
    uint32_t backward; /* rows older than what stands in their cells */
    apr_time_t began, db_us;
} whole_t;

static uint32_t part_changes(yk_board_change_t *changes,
                             const yk_board_part_t *part)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < part->nrows; i++) {
        const yk_board_row_t *row = &part->rows[i];
        yk_board_change_t change = {row->place_no, 0, row->state,
                                    row->until_us, 0, row->version};

        changes[n++] = change;
    }
    for (uint32_t i = 0; i < part->npools; i++) {
        const yk_pool_row_t *row = &part->pools[i];
        yk_board_change_t change = {row->area_no, 1,           YK_PLACE_FREE, 0,
                                    row->left,    row->version};

        changes[n++] = change;
    }
    return n;
}

static uint32_t count_backward(const whole_t *w, const entry_t *e,
                               const yk_board_part_t *part)
{
    const cell_t *cells = CELLS(w->boards, e);
    uint32_t n = 0;

    for (uint32_t i = 0; i < part->nrows; i++) {
        n += part->rows[i].place_no < e->nplaces &&
             part->rows[i].version < cells[part->rows[i].place_no].version;
    }
    return n;
}

static apr_status_t part_write(whole_t *w, const yk_board_part_t *part,
                               apr_time_t ended, apr_pool_t *p)
{
    yk_board_change_t *changes =
        apr_palloc(p, (part->nrows + part->npools + 1) * sizeof(*changes));
    uint32_t n = part_changes(changes, part);
    entry_t *e;
    apr_status_t rv = yk_board_lock(w->boards, &e, w->ref, YK_LOCK_WRITE);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    w->alone = w->alone && e->applied == w->applied;
    w->backward += count_backward(w, e, part);
    atomic_store(&e->offset_us, part->now_us - ended);
    yk_board_write(w->boards, e, changes, n, part->now_us);
    w->applied = e->applied;
    yk_board_unlock(e);
    return APR_SUCCESS;
}

static apr_status_t whole_begin(whole_t *w)
{
    entry_t *e;
    apr_status_t rv = yk_board_lock(w->boards, &e, w->ref, YK_LOCK_READ);

    if (rv == APR_SUCCESS) {
        w->slot_id = e->slot_id;
        w->nplaces = e->nplaces;
        w->applied = e->applied;
        w->missed = atomic_load(&e->missed);
        w->alone = 1;
        w->began = yk_state_now();
        yk_board_unlock(e);
    }
    return rv;
}

/* What was empty becomes a board: its generations begin here. */
static void first_generation(yk_boards_t *boards, entry_t *e, apr_time_t now_us)
{
    uint64_t floor = atomic_load(&boards->head->floor);
    uint64_t generation = atomic_load(&e->generation);

    if (generation < floor) {
        generation = floor;
    }
    generation++;
    if ((uint64_t)now_us > generation) {
        generation = (uint64_t)now_us;
    }
    atomic_store(&e->generation, generation);
    e->ring_head = 0;
    e->ring_lost = generation;
    atomic_store(&e->is_read, 1);
}

static apr_status_t whole_end(whole_t *w)
{
    yk_boards_t *boards = w->boards;
    entry_t *e;
    apr_status_t rv = yk_board_lock(boards, &e, w->ref, YK_LOCK_WRITE);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    if (w->backward > 0 && w->alone && e->applied == w->applied) {
        /* The book has less than we saw: it was put back. */
        yk_board_end_life(boards, e);
        COUNT(boards, thrown_away);
        yk_board_unlock(e);
        return APR_NOTFOUND;
    }
    if (!atomic_load(&e->is_read)) {
        first_generation(boards, e, w->db_us);
    }
    if (w->began > e->whole_us) {
        e->whole_us = w->began;
        e->missed_seen = w->missed;
    }
    if (w->began > atomic_load(&e->read_us)) {
        e->read_db_us = w->db_us;
        atomic_store(&e->read_us, w->began);
    }
    atomic_store(&e->compared_us, w->began);
    yk_board_expire(boards, e, yk_board_clock(e));
    yk_board_unlock(e);
    COUNT(boards, whole_reads);
    return APR_SUCCESS;
}

/* What only operators change of a slot. */
static apr_status_t slot_look(yk_boards_t *boards, const yk_board_ref_t *ref,
                              yk_store_t *store, uint64_t slot_id,
                              const yk_board_source_t *source)
{
    entry_t *e = &boards->entries[ref->entry];
    const yk_slot_t *slot;
    yk_version_t version;
    apr_status_t rv = yk_store_slot_version(store, &version, slot_id);

    if (rv == APR_SUCCESS && version.version == e->slot_version &&
        version.tenant_version == e->tenant_version) {
        return APR_SUCCESS;
    }
    if (rv == APR_SUCCESS) {
        rv = source->slot(source->baton, &slot, 1);
    }
    if (rv == APR_NOTFOUND || (rv == APR_SUCCESS && slot->slot_id != slot_id)) {
        yk_board_drop(boards, ref);
        return APR_NOTFOUND;
    }
    if (rv == APR_SUCCESS) {
        rv = yk_board_lock(boards, &e, ref, YK_LOCK_WRITE);
    }
    if (rv == APR_SUCCESS) {
        e->slot_version = slot->version;
        e->tenant_version = slot->tenant_version;
        atomic_store(&e->opens_us, slot->opens);
        yk_board_unlock(e);
    }
    return rv;
}

apr_status_t yk_board_read_whole(yk_boards_t *boards, const yk_board_ref_t *ref,
                                 const yk_board_source_t *source,
                                 apr_pool_t *ptemp)
{
    whole_t w = {boards, ref, 0, 0, 0, 0, 0, 0, 0, 0};
    yk_store_t *store;
    apr_pool_t *p;
    apr_status_t rv = source->open(source->baton, &store);

    if (rv == APR_SUCCESS) {
        rv = whole_begin(&w);
    }
    if (rv == APR_SUCCESS) {
        rv = slot_look(boards, ref, store, w.slot_id, source);
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    apr_pool_create(&p, ptemp);
    for (uint32_t first = 0; rv == APR_SUCCESS; first += PART) {
        yk_board_part_t part;

        rv = yk_store_board_part(store, &part, w.slot_id, first, PART, p);
        if (rv == APR_SUCCESS) {
            w.db_us = first == 0 ? part.now_us : w.db_us;
            rv = part_write(&w, &part, yk_state_now(), p);
        }
        apr_pool_clear(p);
        if (first + PART >= w.nplaces) {
            break;
        }
    }
    if (rv == APR_SUCCESS) {
        rv = whole_end(&w);
    }
    if (rv == APR_SUCCESS) {
        yk_board_relay_whole(boards, ref, p);
        yk_board_relay_show(boards, ref, p);
    }
    apr_pool_destroy(p);
    return rv;
}

/* ---- the journal ---- */

typedef struct count_t {
    uint32_t no;
    int64_t delta;
    uint64_t version;
} count_t;

static int count_order(const void *a, const void *b)
{
    const count_t *x = a;
    const count_t *y = b;

    if (x->no != y->no) {
        return x->no < y->no ? -1 : 1;
    }
    return x->version < y->version ? -1 : x->version > y->version;
}

static count_t *counts_of(const yk_entry_t *entries, uint32_t n,
                          uint32_t *ncounts, apr_pool_t *p)
{
    uint32_t space = 0, all = 0;
    count_t *counts;

    for (uint32_t i = 0; i < n; i++) {
        space += entries[i].ncounts;
    }
    counts = apr_palloc(p, (space + 1) * sizeof(*counts));
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = 0; j < entries[i].ncounts; j++) {
            const yk_entry_count_t *from = &entries[i].counts[j];

            if (from->kind == YK_ANCHOR_AREA) {
                count_t count = {from->no, from->delta, from->version};

                counts[all++] = count;
            }
        }
    }
    qsort(counts, all, sizeof(*counts), count_order);
    *ncounts = all;
    return counts;
}

/*
 * Pools are journalled as what was taken, with the version it made; several
 * orders of one transaction make one version together. A step that is missing
 * cannot be guessed.
 * @return 0: a version is missing
 */
static int pools_write(yk_boards_t *boards, entry_t *e, const count_t *counts,
                       uint32_t n, apr_time_t now_us)
{
    uint32_t i = 0;

    while (i < n) {
        const area_t *area;
        yk_board_change_t change = {counts[i].no,     1, YK_PLACE_FREE, 0, 0,
                                    counts[i].version};
        int64_t delta = 0;
        uint32_t first = i;

        while (i < n && counts[i].no == counts[first].no &&
               counts[i].version == counts[first].version) {
            delta += counts[i++].delta;
        }
        if (change.no >= e->nareas) {
            continue;
        }
        area = &AREAS(boards, e)[change.no];
        if (area->mode != YK_MODE_POOLED || change.version <= area->version) {
            continue;
        }
        if (change.version != area->version + 1) {
            return 0;
        }
        change.left = area->left - delta;
        yk_board_write(boards, e, &change, 1, now_us);
    }
    return 1;
}

static uint32_t places_of(const yk_entry_t *entries, uint32_t n,
                          yk_board_change_t **changes, apr_pool_t *p)
{
    uint32_t space = 0, all = 0;

    for (uint32_t i = 0; i < n; i++) {
        space += entries[i].nplaces;
    }
    *changes = apr_palloc(p, (space + 1) * sizeof(**changes));
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = 0; j < entries[i].nplaces; j++) {
            const yk_entry_place_t *from = &entries[i].places[j];
            yk_board_change_t change = {from->place_no,      0, from->state,
                                        entries[i].until_us, 0, from->version};

            (*changes)[all++] = change;
        }
    }
    return all;
}

apr_interval_time_t yk_board_back(const yk_boards_t *boards)
{
    int64_t back = 2 * atomic_load(&boards->head->commit_max_us);

    if (back < BACK_LEAST) {
        return BACK_LEAST;
    }
    return back < BACK_MOST ? back : BACK_MOST;
}

/* @return APR_INCOMPLETE: the whole slot has to be read */
static apr_status_t journal_write(yk_boards_t *boards,
                                  const yk_board_ref_t *ref,
                                  const yk_entry_t *entries, uint32_t n,
                                  apr_time_t last_us, apr_time_t now_us,
                                  apr_time_t began, apr_time_t ended,
                                  apr_pool_t *p)
{
    yk_board_change_t *changes;
    uint32_t nchanges = places_of(entries, n, &changes, p), ncounts;
    count_t *counts = counts_of(entries, n, &ncounts, p);
    entry_t *e;
    apr_status_t rv = yk_board_lock(boards, &e, ref, YK_LOCK_WRITE);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    atomic_store(&e->offset_us, now_us - ended);
    yk_board_write(boards, e, changes, nchanges, now_us);
    if (!pools_write(boards, e, counts, ncounts, now_us)) {
        rv = APR_INCOMPLETE;
    }
    else {
        if (began > atomic_load(&e->read_us)) {
            e->read_db_us = now_us;
            atomic_store(&e->read_us, began);
        }
        atomic_store(&e->compared_us, began);
        if (!atomic_load(&e->is_read)) {
            first_generation(boards, e, now_us);
            e->whole_us = began - (now_us - last_us);
        }
    }
    yk_board_expire(boards, e, yk_board_clock(e));
    yk_board_unlock(e);
    if (rv == APR_SUCCESS) {
        yk_board_relay_read(boards, ref, changes, nchanges,
                            last_us - yk_board_back(boards), now_us, p);
        yk_board_relay_show(boards, ref, p);
    }
    COUNT(boards, journal_reads);
    return rv;
}

apr_status_t yk_board_read_journal(yk_boards_t *boards,
                                   const yk_board_ref_t *ref,
                                   const yk_board_source_t *source,
                                   apr_pool_t *ptemp)
{
    apr_time_t began = yk_state_now(), now_us = 0, last_us;
    yk_entry_t *journal;
    yk_store_t *store;
    uint64_t slot_id;
    uint32_t n;
    entry_t *e;
    apr_status_t rv = yk_board_lock(boards, &e, ref, YK_LOCK_READ);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    slot_id = e->slot_id;
    last_us = e->read_db_us;
    yk_board_unlock(e);
    rv = source->open(source->baton, &store);
    if (rv == APR_SUCCESS) {
        rv = slot_look(boards, ref, store, slot_id, source);
    }
    if (rv == APR_SUCCESS) {
        rv = yk_store_journal(store, &journal, &n, &now_us, slot_id,
                              last_us - yk_board_back(boards), JOURNAL_ROWS,
                              ptemp);
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    /* too much, too long ago, or the database's clock went back */
    if (n == JOURNAL_ROWS || now_us < last_us ||
        now_us - last_us > YK_BOARD_WHOLE) {
        rv = APR_INCOMPLETE;
    }
    else {
        rv = journal_write(boards, ref, journal, n, last_us, now_us, began,
                           yk_state_now(), ptemp);
    }
    return rv == APR_INCOMPLETE
               ? yk_board_read_whole(boards, ref, source, ptemp)
               : rv;
}
