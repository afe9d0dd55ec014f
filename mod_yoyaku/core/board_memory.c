/* SPDX-License-Identifier: Apache-2.0 */
#include "board_memory.h"
#include "yoyaku/text.h"
#include "yoyaku/secret.h"
#include "yoyaku/worker.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MOST_ENTRIES 4096
#define FEWEST_ENTRIES 64
/* One entry for so much memory: a small hall's board and its documents. */
#define BYTES_AN_ENTRY (16 * 1024)

static apr_size_t round_up(apr_size_t n, apr_size_t step)
{
    return (n + step - 1) / step * step;
}

static uint32_t entries_for(apr_size_t bytes)
{
    apr_size_t n = bytes / BYTES_AN_ENTRY / BUCKET * BUCKET;

    if (n > MOST_ENTRIES) {
        return MOST_ENTRIES;
    }
    return n < FEWEST_ENTRIES ? FEWEST_ENTRIES : (uint32_t)n;
}

static apr_size_t lists_bytes(uint32_t n)
{
    return round_up(2 * n * sizeof(uint64_t), 64);
}

/* The same from the size alone, in the parent and in every child: nothing
 * that stands in the memory is believed about where things are. */
static void lay_out(yk_boards_t *boards, void *memory, apr_size_t size)
{
    uint32_t n = entries_for(size);
    char *at = memory;
    apr_size_t before;

    boards->head = memory;
    boards->nentries = n;
    boards->ids = (void *)(at + sizeof(boards_head_t));
    boards->slot_ids = boards->ids + n;
    boards->entries = (void *)(at + sizeof(boards_head_t) + lists_bytes(n));
    before =
        round_up(sizeof(boards_head_t) + lists_bytes(n) + n * sizeof(entry_t),
                 BLOCK_STEP);
    boards->arena = at + before;
    boards->arena_bytes = (size - before) / BLOCK_STEP * BLOCK_STEP;
}

/* The locks anew and everything else forgotten, but no generation given out
 * before is given out again. */
static void renew(void *memory)
{
    boards_head_t *head = memory;
    yk_boards_t boards;

    lay_out(&boards, memory, (apr_size_t)head->state.size);
    yk_lock_create(&head->lock);
    for (uint32_t i = 0; i < boards.nentries; i++) {
        uint64_t life = atomic_load(&boards.entries[i].life);
        uint64_t generation = atomic_load(&boards.entries[i].generation);

        if (generation > atomic_load(&head->floor)) {
            atomic_store(&head->floor, generation);
        }
        atomic_store(&boards.ids[i], 0);
        atomic_store(&boards.slot_ids[i], 0);
        memset(&boards.entries[i], 0, sizeof(entry_t));
        atomic_store(&boards.entries[i].life, life + (life & 1));
        atomic_store(&boards.entries[i].shown, NOT_SHOWN);
        yk_lock_create(&boards.entries[i].lock);
    }
}

void yk_boards_kind(yk_state_kind_t *kind, apr_size_t bytes)
{
    if (bytes < YK_BOARDS_MIN_BYTES) {
        bytes = YK_BOARDS_MIN_BYTES;
    }
    kind->name = "boards";
    kind->layout = YK_BOARDS_LAYOUT;
    kind->size = round_up(bytes, BLOCK_STEP);
    kind->fresh = renew;
    kind->renew = renew;
}

typedef struct mapping_t {
    void *memory;
    apr_size_t size;
} mapping_t;

static apr_status_t unmap(void *data)
{
    const mapping_t *mapping = data;

    munmap(mapping->memory, mapping->size);
    return APR_SUCCESS;
}

apr_status_t yk_boards_memory(void **memory, const yk_state_kind_t *kind,
                              apr_pool_t *p)
{
    mapping_t *mapping = apr_palloc(p, sizeof(*mapping));
    yk_state_head_t *head =
        mmap(NULL, kind->size, PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (head == MAP_FAILED) {
        return errno;
    }
    mapping->memory = head;
    mapping->size = kind->size;
    apr_pool_cleanup_register(p, mapping, unmap, apr_pool_cleanup_null);
    head->size = kind->size;
    yk_secret_random(&head->epoch, sizeof(head->epoch));
    kind->fresh(head);
    *memory = head;
    return APR_SUCCESS;
}

apr_status_t yk_boards_attach(yk_boards_t **boards, void *memory,
                              apr_size_t size, apr_pool_t *p)
{
    yk_boards_t *made = apr_pcalloc(p, sizeof(*made));

    if (size < YK_BOARDS_MIN_BYTES) {
        return APR_EINVAL;
    }
    lay_out(made, memory, size);
    made->me = yk_worker_identity((uint32_t)getpid());
    *boards = made;
    return APR_SUCCESS;
}

uint64_t yk_boards_epoch(const yk_boards_t *boards)
{
    return boards->head->state.epoch;
}

void yk_boards_use(const yk_boards_t *boards, yk_boards_use_t *use)
{
    memset(use, 0, sizeof(*use));
    use->epoch = yk_boards_epoch(boards);
    use->bytes = boards->arena_bytes;
    use->entries = boards->nentries;
    for (uint32_t i = 0; i < boards->nentries; i++) {
        const entry_t *e = &boards->entries[i];

        if (atomic_load(&e->life) & 1) {
            use->used += e->bytes;
            use->boards += e->kind == ENTRY_BOARD;
            use->pages += e->kind == ENTRY_PAGE;
        }
    }
    use->commit_max = atomic_load(&boards->head->commit_max_us);
#define COUNTER(name, what) use->name = atomic_load(&boards->head->name);
    YK_BOARD_COUNTERS(COUNTER)
#undef COUNTER
}

void yk_boards_locks(const yk_boards_t *boards, yk_lock_t *table,
                     yk_lock_t *entries)
{
    memset(table, 0, sizeof(*table));
    memset(entries, 0, sizeof(*entries));
    yk_lock_add(table, &boards->head->lock);
    for (uint32_t i = 0; i < boards->nentries; i++) {
        if (atomic_load(&boards->entries[i].life) != 0) {
            yk_lock_add(entries, &boards->entries[i].lock);
        }
    }
}

void yk_boards_refused(yk_boards_t *boards)
{
    COUNT(boards, refused_early);
}

/* What a child wrote there may be anything; the arena is never left. */
void *yk_board_at(const yk_boards_t *boards, uint64_t at)
{
    return boards->arena + (at < boards->arena_bytes ? at : 0);
}

/* ---- lives ---- */

void yk_board_end_life(yk_boards_t *boards, entry_t *e)
{
    uint32_t i = (uint32_t)(e - boards->entries);
    uint64_t life = atomic_load(&e->life);
    uint64_t generation = atomic_load(&e->generation);
    uint64_t floor = atomic_load(&boards->head->floor);

    if ((life & 1) == 0) {
        return;
    }
    while (generation > floor &&
           !atomic_compare_exchange_weak(&boards->head->floor, &floor,
                                         generation)) {
    }
    atomic_store(&e->life, life + 1);
    atomic_store(&boards->ids[i], 0);
    atomic_store(&boards->slot_ids[i], 0);
    atomic_store(&e->shown, NOT_SHOWN);
    /* whoever is copying out of its block sees that it moved */
    yk_seq_mend(&e->rendering[0].seq);
    yk_seq_mend(&e->rendering[1].seq);
    atomic_fetch_add(&e->news, 1);
    yk_word_wake(&e->news);
}

/* Take one entry's lock; who died in it has left a ruin. */
static apr_status_t take(yk_boards_t *boards, entry_t *e, yk_lock_mode_e mode,
                         apr_interval_time_t wait)
{
    int died = 0;
    apr_status_t rv = yk_lock_take(&e->lock, &died, mode, wait);

    if (rv == APR_SUCCESS && died) {
        yk_board_end_life(boards, e);
        COUNT(boards, thrown_away);
        yk_lock_mend(&e->lock);
    }
    return rv;
}

apr_status_t yk_board_lock(yk_boards_t *boards, entry_t **entry,
                           const yk_board_ref_t *ref, yk_lock_mode_e mode)
{
    entry_t *e = &boards->entries[ref->entry % boards->nentries];
    apr_status_t rv;

    if (atomic_load(&e->life) != ref->life) {
        return APR_NOTFOUND;
    }
    rv = take(boards, e, mode, YK_BOARD_PATIENCE);
    if (rv != APR_SUCCESS) {
        return APR_TIMEUP;
    }
    if (atomic_load(&e->life) != ref->life) {
        yk_lock_give(&e->lock);
        return APR_NOTFOUND;
    }
    *entry = e;
    return APR_SUCCESS;
}

void yk_board_unlock(entry_t *entry)
{
    yk_lock_give(&entry->lock);
}

void yk_board_drop(yk_boards_t *boards, const yk_board_ref_t *ref)
{
    entry_t *e;

    if (yk_board_lock(boards, &e, ref, YK_LOCK_WRITE) == APR_SUCCESS) {
        yk_board_end_life(boards, e);
        COUNT(boards, thrown_away);
        yk_board_unlock(e);
    }
}

/* ---- finding ---- */

uint64_t yk_board_id(const char *database, const char *tenant, const char *slot)
{
    const char *const parts[] = {database, tenant, slot};
    uint64_t id = YK_TEXT_FNV;

    for (int i = 0; i < 3; i++) {
        id = yk_text_fnv(id, parts[i], strlen(parts[i]));
        id = yk_text_fnv(id, "\xff", 1); /* in no UTF-8: parts do not run on */
    }
    id ^= id >> 32;
    return id != 0 ? id : 1;
}

static uint32_t bucket_of(const yk_boards_t *boards, uint64_t id)
{
    return (uint32_t)((id >> 3) % (boards->nentries / BUCKET)) * BUCKET;
}

apr_status_t yk_board_find(yk_boards_t *boards, yk_board_ref_t *ref,
                           uint64_t id)
{
    uint32_t first = bucket_of(boards, id);

    for (uint32_t i = first; i < first + BUCKET; i++) {
        entry_t *e = &boards->entries[i];
        uint64_t life = atomic_load(&e->life);

        if (atomic_load(&boards->ids[i]) == id && (life & 1) == 1) {
            apr_time_t now = yk_state_now();

            ref->entry = i;
            ref->life = life;
            /* not written at every question: the line is shared by all */
            if (now - atomic_load(&e->asked_us) > YK_BOARD_BUSY / 10) {
                atomic_store(&e->asked_us, now);
            }
            return APR_SUCCESS;
        }
    }
    return APR_NOTFOUND;
}

/* ---- room: under BOARDS ---- */

typedef struct block_t {
    uint64_t first, bytes;
} block_t;

static int block_order(const void *a, const void *b)
{
    const block_t *x = a;
    const block_t *y = b;

    return x->first < y->first ? -1 : x->first > y->first;
}

/* The first gap that is large enough. @return 0: there is none */
static int find_gap(const yk_boards_t *boards, uint64_t *first, uint64_t bytes)
{
    block_t *blocks = malloc(boards->nentries * sizeof(*blocks));
    uint64_t end = 0;
    uint32_t n = 0, i;

    if (blocks == NULL) {
        return 0;
    }
    for (i = 0; i < boards->nentries; i++) {
        const entry_t *e = &boards->entries[i];

        if (atomic_load(&e->life) & 1) {
            blocks[n].first = e->first;
            blocks[n++].bytes = e->bytes;
        }
    }
    qsort(blocks, n, sizeof(*blocks), block_order);
    for (i = 0; i < n && blocks[i].first - end < bytes; i++) {
        end = blocks[i].first + blocks[i].bytes;
    }
    free(blocks);
    *first = end;
    return end + bytes <= boards->arena_bytes;
}

/* Let the one least lately asked for among [from, to) give way. */
static int make_way(yk_boards_t *boards, uint32_t from, uint32_t to,
                    apr_time_t now)
{
    for (int tries = 0; tries < 4; tries++) {
        int64_t oldest_us = now - YK_BOARD_BUSY;
        entry_t *oldest = NULL;

        for (uint32_t i = from; i < to; i++) {
            entry_t *e = &boards->entries[i];

            if ((atomic_load(&e->life) & 1) &&
                atomic_load(&e->asked_us) < oldest_us) {
                oldest_us = atomic_load(&e->asked_us);
                oldest = e;
            }
        }
        if (oldest == NULL) {
            return 0;
        }
        if (take(boards, oldest, YK_LOCK_WRITE, 0) == APR_SUCCESS) {
            yk_board_end_life(boards, oldest);
            yk_lock_give(&oldest->lock);
            COUNT(boards, gave_way);
            return 1;
        }
        /* in use, then: it was asked for after all */
        atomic_store(&oldest->asked_us, now);
    }
    return 0;
}

/* An entry of the bucket that nobody has, locked. */
static entry_t *free_entry(yk_boards_t *boards, uint32_t bucket)
{
    for (uint32_t i = bucket; i < bucket + BUCKET; i++) {
        entry_t *e = &boards->entries[i];

        if ((atomic_load(&e->life) & 1) == 0 &&
            take(boards, e, YK_LOCK_WRITE, 0) == APR_SUCCESS) {
            return e;
        }
    }
    return NULL;
}

static apr_status_t find_room(yk_boards_t *boards, entry_t **entry, uint64_t id,
                              uint64_t bytes, apr_time_t now)
{
    uint32_t bucket = bucket_of(boards, id);
    uint64_t first;
    entry_t *e;

    if (bytes > boards->arena_bytes) {
        return APR_ENOSPC;
    }
    while (!find_gap(boards, &first, bytes)) {
        if (!make_way(boards, 0, boards->nentries, now)) {
            return APR_ENOSPC;
        }
    }
    e = free_entry(boards, bucket);
    if (e == NULL && make_way(boards, bucket, bucket + BUCKET, now)) {
        e = free_entry(boards, bucket);
    }
    if (e == NULL) {
        return APR_ENOSPC;
    }
    e->id = id;
    e->first = first;
    e->bytes = bytes;
    *entry = e;
    return APR_SUCCESS;
}

/* What an earlier life left behind. */
static void clean(entry_t *e, apr_time_t now)
{
    atomic_store(&e->asked_us, now);
    atomic_store(&e->read_us, 0);
    atomic_store(&e->expiry_us, INT64_MAX);
    atomic_store(&e->offset_us, 0);
    atomic_store(&e->opens_us, 0);
    atomic_store(&e->missed, 0);
    atomic_store(&e->shown, NOT_SHOWN);
    atomic_store(&e->flight_who, 0);
    atomic_store(&e->flight_until, 0);
    atomic_store(&e->failed_us, 0);
    atomic_store(&e->pushed_us, 0);
    atomic_store(&e->shown_us, 0);
    atomic_store(&e->heard_us, 0);
    atomic_store(&e->heard_until_us, 0);
    atomic_store(&e->compared_us, 0);
    atomic_store(&e->is_read, 0);
    e->slot_id = 0;
    e->nareas = e->nplaces = e->ring_size = e->head_len = 0;
    e->hash = e->hash_base = e->ring_head = e->ring_lost = 0;
    e->missed_seen = e->applied = 0;
    e->slot_version = e->tenant_version = 0;
    e->whole_us = e->read_db_us = e->page_made_us = e->page_took_us = 0;
}

apr_status_t yk_board_begin(yk_boards_t *boards, entry_t **entry,
                            yk_board_ref_t *ref, uint64_t id, uint64_t bytes)
{
    apr_time_t now = yk_state_now();
    int died = 0;
    apr_status_t rv = yk_lock_take(&boards->head->lock, &died, YK_LOCK_WRITE,
                                   10 * YK_BOARD_PATIENCE);

    if (rv != APR_SUCCESS) {
        return APR_TIMEUP;
    }
    if (died) {
        /* entries say everything, and each was written in a safe order */
        yk_lock_mend(&boards->head->lock);
    }
    if (yk_board_find(boards, ref, id) == APR_SUCCESS) {
        rv = APR_EEXIST;
    }
    else {
        rv = find_room(boards, entry, id, round_up(bytes, BLOCK_STEP), now);
    }
    if (rv == APR_SUCCESS) {
        uint64_t floor = atomic_load(&boards->head->floor);

        clean(*entry, now);
        atomic_store(&(*entry)->generation, floor);
        /* Its block is taken and it is found from here on; whoever finds it
         * waits for its lock, since nothing is shown yet. */
        ref->entry = (uint32_t)(*entry - boards->entries);
        ref->life = atomic_fetch_add(&(*entry)->life, 1) + 1;
        atomic_store(&boards->ids[ref->entry], id);
    }
    yk_lock_give(&boards->head->lock);
    return rv;
}

void yk_board_name_slot(yk_boards_t *boards, entry_t *e, uint64_t slot_id)
{
    e->slot_id = slot_id;
    atomic_store(&boards->slot_ids[e - boards->entries], slot_id);
}
