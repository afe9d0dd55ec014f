/* SPDX-License-Identifier: Apache-2.0 */
#include "board_memory.h"

/*
 * What the book said, cell by cell. Everything here runs under the board's
 * lock. The content hash is a sum, so it moves by what one cell was and is.
 */

static uint64_t mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

uint64_t yk_board_hash_place(uint32_t place_no, unsigned shown)
{
    return mix((uint64_t)place_no << 8 | shown);
}

uint64_t yk_board_hash_pool(uint32_t area_no, int64_t left)
{
    return mix(mix(UINT64_C(1) << 48 | area_no) ^ (uint64_t)left);
}

apr_time_t yk_board_clock(const entry_t *e)
{
    return yk_state_now() + atomic_load(&e->offset_us);
}

/* One generation for all that is written in one go. */
typedef struct writing_t {
    yk_boards_t *boards;
    entry_t *e;
    apr_time_t now_us;
    uint64_t generation; /* 0: nothing to be seen has changed yet */
} writing_t;

static void note_change(writing_t *w, uint32_t no)
{
    entry_t *e = w->e;
    ring_t *at = &RING(w->boards, e)[e->ring_head % e->ring_size];

    if (w->generation == 0) {
        w->generation = atomic_load(&e->generation) + 1;
        if (w->now_us > 0 && (uint64_t)w->now_us > w->generation) {
            w->generation = (uint64_t)w->now_us;
        }
    }
    if (e->ring_head >= e->ring_size && at->generation > e->ring_lost) {
        e->ring_lost = at->generation;
    }
    at->generation = w->generation;
    at->no = no;
    e->ring_head++;
}

static area_t *area_of(const writing_t *w, uint32_t place_no)
{
    area_t *areas = AREAS(w->boards, w->e);
    uint32_t low = 0, high = w->e->nareas;

    /* The last that begins at or before it; pools begin behind every place
     * and empty sections lie before the one that is not. */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (areas[middle].first <= place_no) {
            low = middle + 1;
        }
        else {
            high = middle;
        }
    }
    return low > 0 ? &areas[low - 1] : NULL;
}

static void show(writing_t *w, uint32_t place_no, unsigned shown)
{
    entry_t *e = w->e;
    cell_t *cell = &CELLS(w->boards, e)[place_no];
    area_t *area;

    if (cell->shown == shown) {
        return;
    }
    area = area_of(w, place_no);
    e->hash -= yk_board_hash_place(place_no, cell->shown);
    e->hash += yk_board_hash_place(place_no, shown);
    if (area != NULL && shown == YK_PLACE_FREE) {
        area->left++;
    }
    if (area != NULL && cell->shown == YK_PLACE_FREE) {
        area->left--;
    }
    cell->shown = shown;
    note_change(w, place_no);
}

static int write_place(writing_t *w, const yk_board_change_t *change)
{
    entry_t *e = w->e;
    cell_t *cell;
    int held;

    if (change->no >= e->nplaces) {
        return 0;
    }
    cell = &CELLS(w->boards, e)[change->no];
    if (change->version <= cell->version) {
        return 0;
    }
    held = change->state == YK_PLACE_HELD;
    cell->version = change->version;
    cell->state = change->state & 3;
    cell->until_us =
        held && change->until_us > 0
            ? (uint64_t)change->until_us & ((UINT64_C(1) << 56) - 1)
            : 0;
    if (held && change->until_us <= w->now_us) {
        show(w, change->no, YK_PLACE_FREE);
        return 1;
    }
    if (held && change->until_us < atomic_load(&e->expiry_us)) {
        atomic_store(&e->expiry_us, change->until_us);
    }
    show(w, change->no, cell->state);
    return 1;
}

static int write_pool(writing_t *w, const yk_board_change_t *change)
{
    entry_t *e = w->e;
    area_t *area;
    int64_t left = change->left > 0 ? change->left : 0;

    if (change->no >= e->nareas) {
        return 0;
    }
    area = &AREAS(w->boards, e)[change->no];
    if (area->mode != YK_MODE_POOLED || change->version <= area->version) {
        return 0;
    }
    area->version = change->version;
    if (left != area->left) {
        e->hash -= yk_board_hash_pool(change->no, area->left);
        e->hash += yk_board_hash_pool(change->no, left);
        area->left = left;
        note_change(w, AREA_BIT | change->no);
    }
    return 1;
}

static void finish(writing_t *w)
{
    if (w->generation != 0) {
        atomic_store(&w->e->generation, w->generation);
    }
}

uint32_t yk_board_write(yk_boards_t *boards, entry_t *e,
                        const yk_board_change_t *changes, uint32_t n,
                        apr_time_t now_us)
{
    writing_t w = {boards, e, now_us, 0};
    uint32_t written = 0;

    if (w.now_us == 0 && atomic_load(&e->offset_us) != 0) {
        w.now_us = yk_board_clock(e);
    }
    for (uint32_t i = 0; i < n; i++) {
        written += changes[i].pool ? write_pool(&w, &changes[i])
                                   : write_place(&w, &changes[i]);
    }
    finish(&w);
    e->applied += written > 0;
    atomic_fetch_add_explicit(&boards->head->applied, written,
                              memory_order_relaxed);
    return written;
}

void yk_board_expire(yk_boards_t *boards, entry_t *e, apr_time_t now_us)
{
    writing_t w = {boards, e, now_us, 0};
    const cell_t *cells = CELLS(boards, e);
    int64_t next = INT64_MAX;

    if (atomic_load(&e->expiry_us) > now_us) {
        return;
    }
    for (uint32_t i = 0; i < e->nplaces; i++) {
        if (cells[i].state != YK_PLACE_HELD ||
            cells[i].shown != YK_PLACE_HELD) {
            continue;
        }
        if ((int64_t)cells[i].until_us <= now_us) {
            show(&w, i, YK_PLACE_FREE);
        }
        else if ((int64_t)cells[i].until_us < next) {
            next = (int64_t)cells[i].until_us;
        }
    }
    finish(&w);
    atomic_store(&e->expiry_us, next);
}

/* ---- from outside ---- */

apr_status_t yk_board_apply(yk_boards_t *boards, const yk_board_ref_t *ref,
                            const yk_board_change_t *changes, uint32_t n,
                            apr_time_t now_us)
{
    entry_t *e;
    apr_status_t rv = yk_board_lock(boards, &e, ref, YK_LOCK_WRITE);

    if (rv == APR_TIMEUP) {
        atomic_fetch_add(&boards->entries[ref->entry].missed, 1);
        COUNT(boards, missed);
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    yk_board_write(boards, e, changes, n, now_us);
    yk_board_unlock(e);
    return APR_SUCCESS;
}

static int is_of_slot(const yk_place_t *place, uint64_t slot_id)
{
    return place->changed && place->slot_id == slot_id;
}

/* What a ledger wrote of one slot; versions are those that stand there now. */
static uint32_t changes_of(const yk_ledger_t *l, yk_board_change_t *changes,
                           uint64_t slot_id)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < l->nplaces; i++) {
        const yk_place_t *place = &l->places[i];

        if (is_of_slot(place, slot_id)) {
            yk_board_change_t change = {place->place_no, 0, place->state,
                                        place->until_us, 0, place->version};

            changes[n++] = change;
        }
    }
    for (uint32_t i = 0; i < l->nanchors; i++) {
        const yk_anchor_t *anchor = &l->anchors[i];

        if (anchor->changed && anchor->key.kind == YK_ANCHOR_AREA &&
            anchor->key.owner == slot_id) {
            yk_board_change_t change = {
                anchor->key.no, 1, YK_PLACE_FREE, 0, anchor->max - anchor->used,
                anchor->version};

            changes[n++] = change;
        }
    }
    return n;
}

static void apply_slot(yk_boards_t *boards, yk_ledger_t *l, uint64_t slot_id)
{
    yk_board_change_t *changes = NULL;
    uint32_t n = 0;

    for (uint32_t i = 0; i < boards->nentries; i++) {
        yk_board_ref_t ref = {i, 0};

        if (atomic_load_explicit(&boards->slot_ids[i], memory_order_relaxed) !=
            slot_id) {
            continue;
        }
        /* Its life first: the entry may have become another slot's between two
         * looks, and a life that is over is found out under its lock. */
        ref.life = atomic_load(&boards->entries[i].life);
        if (atomic_load(&boards->slot_ids[i]) != slot_id) {
            continue;
        }
        if (changes == NULL) {
            changes = apr_palloc(l->p, (l->nplaces + l->nanchors + 1) *
                                           sizeof(*changes));
            n = changes_of(l, changes, slot_id);
        }
        yk_board_apply(boards, &ref, changes, n, l->now_us);
        yk_board_relay_note(boards, &ref);
    }
}

static int slot_was_done(const yk_ledger_t *l, uint32_t places,
                         uint64_t slot_id)
{
    for (uint32_t i = 0; i < places; i++) {
        if (is_of_slot(&l->places[i], slot_id)) {
            return 1;
        }
    }
    return 0;
}

void yk_boards_apply_ledger(yk_boards_t *boards, yk_ledger_t *l,
                            apr_interval_time_t commit)
{
    int64_t most = atomic_load(&boards->head->commit_max_us);
    uint32_t i, j;

    while (commit > most && !atomic_compare_exchange_weak(
                                &boards->head->commit_max_us, &most, commit)) {
    }
    for (i = 0; i < l->nplaces; i++) {
        if (l->places[i].changed &&
            !slot_was_done(l, i, l->places[i].slot_id)) {
            apply_slot(boards, l, l->places[i].slot_id);
        }
    }
    for (i = 0; i < l->nanchors; i++) {
        const yk_anchor_key_t *key = &l->anchors[i].key;

        if (!l->anchors[i].changed || key->kind != YK_ANCHOR_AREA ||
            slot_was_done(l, l->nplaces, key->owner)) {
            continue;
        }
        for (j = 0; j < i; j++) {
            if (l->anchors[j].changed &&
                l->anchors[j].key.kind == YK_ANCHOR_AREA &&
                l->anchors[j].key.owner == key->owner) {
                break;
            }
        }
        if (j == i) {
            apply_slot(boards, l, key->owner);
        }
    }
}
