/* SPDX-License-Identifier: Apache-2.0 */
#include "board_memory.h"
#include "yoyaku/pool.h"
#include "yoyaku/worker.h"
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

/*
 * What hosts tell each other through memcached, four values a slot:
 *
 *   NEWS    what a host's board changed last, after its holds: a hint
 *   READ    what a reading of the journal found, from when to when: whoever has
 *           read up to somewhere in between has read this, too
 *   BOARD   every cell, so that a host that starts reads the journal only
 *   DOCUMENT  as it is sent, gone after two seconds: for hosts without room
 *             for the slot, which would read all of it for each answer
 *
 * and FLIGHT, which names who is reading. Nothing is believed that
 * does not say of which slot it is and add up; every cell in it has a version,
 * so what is late or twice does nothing. What is missing is read in the book.
 *
 *   | head | item, item, ...            NEWS, READ
 *   | head | pools | compressed cells   BOARD
 *   | head | tag   | gzip               DOCUMENT
 *
 * What does not fit into a value (BOARD_MOST) is not told; then each host reads
 * for itself.
 */

#define NEWS_MOST 64
#define READ_MOST 512
#define NEWS_EVERY (APR_USEC_PER_SEC / 10)
/* Others hear so often; what is told oftener nobody would read. */
#define PUSH_EVERY NEWS_EVERY
#define NEWS_TTL 10
#define READ_TTL 10
#define BOARD_TTL 60
#define FLIGHT_TTL 1
#define DOCUMENT_EVERY APR_USEC_PER_SEC
#define DOCUMENT_TTL 2
#define BOARD_MOST (1000 * 1000)
#define PENDING 16

typedef struct relay_head_t {
    char magic[4];
    uint32_t check; /* of all that follows it */
    uint64_t slot_id;
    uint64_t generation;
    int64_t from_us, to_us; /* database: what is covered; 0: nothing */
    uint32_t n, nplaces;
} relay_head_t;

typedef struct relay_item_t {
    uint32_t no; /* place, or AREA_BIT | area */
    uint32_t state;
    int64_t until_us; /* a pool's: left */
    uint64_t version;
} relay_item_t;

/** Beside the bytes of a DOCUMENT. */
typedef struct relay_tag_t {
    uint64_t hash;
    int64_t opens_us, now_us;
    uint64_t json_len;
} relay_tag_t;

typedef struct paper_t {
    char *bytes;
    apr_size_t len;
    relay_head_t *head;
} paper_t;

static void head_begin(paper_t *paper, const char *magic, uint64_t slot_id,
                       apr_size_t space, apr_pool_t *p)
{
    paper->bytes = apr_pcalloc(p, sizeof(relay_head_t) + space);
    paper->len = sizeof(relay_head_t);
    paper->head = (relay_head_t *)paper->bytes;
    memcpy(paper->head->magic, magic, 4);
    paper->head->slot_id = slot_id;
}

static uint32_t check_of(const char *bytes, apr_size_t len)
{
    return (uint32_t)crc32(0, (const Bytef *)bytes + 8, (uInt)(len - 8));
}

static void item_add(paper_t *paper, const relay_item_t *item)
{
    memcpy(paper->bytes + paper->len, item, sizeof(*item));
    paper->len += sizeof(*item);
    paper->head->n++;
}

static void value_send(yk_boards_t *boards, paper_t *paper,
                       yk_cache_kind_e kind, uint32_t ttl)
{
    paper->head->check = check_of(paper->bytes, paper->len);
    yk_cache_set(boards->cache, kind, paper->head->slot_id, paper->bytes,
                 paper->len, ttl);
}

/* @return NULL: there is none that can be used */
static const relay_head_t *value_get(yk_boards_t *boards, apr_size_t *len,
                                     const char *magic, yk_cache_kind_e kind,
                                     uint64_t slot_id, apr_pool_t *p)
{
    const relay_head_t *head;
    const char *bytes;

    if (yk_cache_get(boards->cache, &bytes, len, kind, slot_id, p) !=
            APR_SUCCESS ||
        *len < sizeof(*head)) {
        return NULL;
    }
    head = (const relay_head_t *)bytes;
    if (memcmp(head->magic, magic, 4) != 0 || head->slot_id != slot_id ||
        head->check != check_of(bytes, *len)) {
        return NULL;
    }
    return head;
}

/* Its items as changes; NULL: it is cut. */
static yk_board_change_t *items_of(const relay_head_t *head, apr_size_t len,
                                   apr_pool_t *p)
{
    const relay_item_t *items = (const relay_item_t *)(head + 1);
    yk_board_change_t *changes;

    if (len != sizeof(*head) + head->n * sizeof(*items)) {
        return NULL;
    }
    changes = apr_pcalloc(p, (head->n + 1) * sizeof(*changes));
    for (uint32_t i = 0; i < head->n; i++) {
        changes[i].no = items[i].no & ~AREA_BIT;
        changes[i].pool = (items[i].no & AREA_BIT) != 0;
        changes[i].state = (yk_place_state_e)(items[i].state & 3);
        changes[i].until_us = changes[i].pool ? 0 : items[i].until_us;
        changes[i].left = changes[i].pool ? items[i].until_us : 0;
        changes[i].version = items[i].version;
    }
    return changes;
}

yk_cache_shared_t *yk_boards_cache_shared(yk_boards_t *boards)
{
    return &boards->head->cache;
}

void yk_boards_cache(yk_boards_t *boards, yk_cache_t *cache)
{
    boards->cache = cache;
}

/* ---- NEWS ---- */

/* Boards that this thread changed for the request it is at. */
static _Thread_local yk_board_ref_t pending[PENDING];
static _Thread_local uint32_t npending;

void yk_board_relay_note(yk_boards_t *boards, const yk_board_ref_t *ref)
{
    if (boards->cache == NULL || npending == PENDING) {
        return;
    }
    for (uint32_t i = 0; i < npending; i++) {
        if (pending[i].entry == ref->entry) {
            return;
        }
    }
    pending[npending++] = *ref;
}

static relay_item_t item_of(yk_boards_t *boards, const entry_t *e, uint32_t no)
{
    relay_item_t item = {no, 0, 0, 0};

    if (no & AREA_BIT) {
        const area_t *area = &AREAS(boards, e)[no & ~AREA_BIT];

        item.until_us = area->left;
        item.version = area->version;
    }
    else {
        const cell_t *cell = &CELLS(boards, e)[no];

        item.state = cell->state;
        item.until_us = (int64_t)cell->until_us;
        item.version = cell->version;
    }
    return item;
}

/* What changed last on a board, as it is now. Under the lock. */
static void news_gather(yk_boards_t *boards, const entry_t *e, paper_t *paper)
{
    const ring_t *ring = RING(boards, e);
    uint64_t at = e->ring_head;

    paper->head->generation = atomic_load(&e->generation);
    paper->head->nplaces = e->nplaces;
    while (at > 0 && at + e->ring_size > e->ring_head &&
           paper->head->n < NEWS_MOST) {
        uint32_t no = ring[--at % e->ring_size].no;

        if ((no & AREA_BIT) ? (no & ~AREA_BIT) < e->nareas : no < e->nplaces) {
            relay_item_t item = item_of(boards, e, no);

            item_add(paper, &item);
        }
    }
}

static void news_push(yk_boards_t *boards, const yk_board_ref_t *ref,
                      apr_pool_t *p)
{
    apr_time_t now = yk_state_now();
    paper_t paper;
    entry_t *e;

    if (now - atomic_load(&boards->entries[ref->entry].pushed_us) <
            PUSH_EVERY ||
        yk_board_lock(boards, &e, ref, YK_LOCK_READ) != APR_SUCCESS) {
        return;
    }
    atomic_store(&e->pushed_us, now);
    head_begin(&paper, "YKN1", e->slot_id, NEWS_MOST * sizeof(relay_item_t), p);
    news_gather(boards, e, &paper);
    yk_board_unlock(e);
    value_send(boards, &paper, YK_CACHE_NEWS, NEWS_TTL);
}

void yk_boards_tell(yk_boards_t *boards, apr_pool_t *ptemp)
{
    uint32_t n = npending;

    npending = 0;
    for (uint32_t i = 0; boards->cache != NULL && i < n; i++) {
        news_push(boards, &pending[i], ptemp);
    }
}

void yk_board_relay_hear(yk_boards_t *boards, const yk_board_ref_t *ref,
                         apr_time_t now, apr_pool_t *p)
{
    entry_t *e = &boards->entries[ref->entry];
    int64_t heard = atomic_load(&e->heard_us);
    const relay_head_t *head;
    yk_board_change_t *changes;
    apr_size_t len;

    if (boards->cache == NULL || now - heard < NEWS_EVERY ||
        !atomic_compare_exchange_strong(&e->heard_us, &heard, now)) {
        return;
    }
    head = value_get(boards, &len, "YKN1", YK_CACHE_NEWS, e->slot_id, p);
    if (head == NULL || head->nplaces != e->nplaces) {
        return;
    }
    changes = items_of(head, len, p);
    if (changes != NULL && head->n > 0) {
        yk_board_apply(boards, ref, changes, head->n, yk_board_clock(e));
    }
}

/* ---- READ and FLIGHT ---- */

void yk_board_relay_read(yk_boards_t *boards, const yk_board_ref_t *ref,
                         const yk_board_change_t *changes, uint32_t n,
                         apr_time_t from_us, apr_time_t to_us, apr_pool_t *p)
{
    paper_t paper;
    entry_t *e;

    if (boards->cache == NULL || n > READ_MOST ||
        yk_board_lock(boards, &e, ref, YK_LOCK_READ) != APR_SUCCESS) {
        return;
    }
    head_begin(&paper, "YKR1", e->slot_id,
               (n + e->nareas) * sizeof(relay_item_t), p);
    paper.head->generation = atomic_load(&e->generation);
    paper.head->nplaces = e->nplaces;
    paper.head->from_us = from_us;
    paper.head->to_us = to_us;
    for (uint32_t i = 0; i < n; i++) {
        relay_item_t item = {changes[i].no, changes[i].state,
                             changes[i].until_us, changes[i].version};

        item_add(&paper, &item);
    }
    /* pools are journalled as steps; here they are what they came to */
    for (uint32_t i = 0; i < e->nareas; i++) {
        if (AREAS(boards, e)[i].mode == YK_MODE_POOLED) {
            relay_item_t item = item_of(boards, e, AREA_BIT | i);

            item_add(&paper, &item);
        }
    }
    yk_board_unlock(e);
    value_send(boards, &paper, YK_CACHE_READ, READ_TTL);
}

/* Has another host read just now what we would read? */
static int read_is_ours(const relay_head_t *head, const entry_t *e,
                        apr_interval_time_t back)
{
    return head->nplaces == e->nplaces && head->from_us > 0 &&
           head->from_us <= e->read_db_us - back && head->to_us > e->read_db_us;
}

apr_status_t yk_board_relay_reading(yk_boards_t *boards,
                                    const yk_board_ref_t *ref,
                                    apr_interval_time_t back, apr_pool_t *p)
{
    entry_t *e = &boards->entries[ref->entry];
    const relay_head_t *head;
    yk_board_change_t *changes = NULL;
    apr_time_t began;
    apr_size_t len;
    apr_status_t rv;

    if (boards->cache == NULL) {
        return APR_NOTFOUND;
    }
    head = value_get(boards, &len, "YKR1", YK_CACHE_READ, e->slot_id, p);
    if (head != NULL && read_is_ours(head, e, back)) {
        changes = items_of(head, len, p);
    }
    if (changes == NULL) {
        return APR_NOTFOUND;
    }
    /* when that was on our steady clock; never later than it was */
    began = head->to_us - atomic_load(&e->offset_us) - APR_USEC_PER_SEC / 4;
    if (yk_state_now() - began >= 2 * YK_BOARD_READ) {
        return APR_NOTFOUND;
    }
    rv = yk_board_lock(boards, &e, ref, YK_LOCK_WRITE);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    yk_board_write(boards, e, changes, head->n, yk_board_clock(e));
    e->read_db_us = head->to_us;
    if (began > atomic_load(&e->read_us)) {
        atomic_store(&e->read_us, began);
    }
    atomic_store(&e->heard_until_us, yk_state_now() + YK_BOARD_READ);
    yk_board_unlock(e);
    return APR_SUCCESS;
}

int yk_board_relay_fly(yk_boards_t *boards, uint64_t slot_id, apr_pool_t *p)
{
    const char *who;

    if (boards->cache == NULL) {
        return 1;
    }
    who = apr_psprintf(
        p, "pid=%ld start=%" APR_TIME_T_FMT " deadline=%" APR_TIME_T_FMT,
        (long)getpid(), apr_time_now(),
        apr_time_now() + apr_time_from_sec(FLIGHT_TTL));
    return yk_cache_add(boards->cache, YK_CACHE_FLIGHT, slot_id, who,
                        strlen(who), FLIGHT_TTL) != APR_EEXIST;
}

void yk_board_relay_land(yk_boards_t *boards, uint64_t slot_id)
{
    if (boards->cache != NULL) {
        yk_cache_drop(boards->cache, YK_CACHE_FLIGHT, slot_id);
    }
}

/* ---- BOARD ---- */

void yk_board_relay_whole(yk_boards_t *boards, const yk_board_ref_t *ref,
                          apr_pool_t *p)
{
    apr_size_t pools_bytes;
    paper_t paper;
    entry_t *e;
    uLongf packed;
    uLong cells;

    if (boards->cache == NULL ||
        yk_board_lock(boards, &e, ref, YK_LOCK_READ) != APR_SUCCESS) {
        return;
    }
    cells = e->nplaces * sizeof(cell_t);
    packed = compressBound(cells);
    pools_bytes = e->nareas * sizeof(relay_item_t);
    head_begin(&paper, "YKB1", e->slot_id, packed + pools_bytes, p);
    paper.head->generation = atomic_load(&e->generation);
    paper.head->nplaces = e->nplaces;
    paper.head->to_us = e->read_db_us;
    for (uint32_t i = 0; i < e->nareas; i++) {
        relay_item_t item = item_of(boards, e, AREA_BIT | i);

        item_add(&paper, &item);
    }
    if (compress2((Bytef *)paper.bytes + paper.len, &packed,
                  (const Bytef *)CELLS(boards, e), cells, 1) != Z_OK) {
        packed = BOARD_MOST;
    }
    yk_board_unlock(e);
    paper.len += packed;
    if (paper.len < BOARD_MOST) {
        value_send(boards, &paper, YK_CACHE_BOARD, BOARD_TTL);
    }
}

/* Cells as changes; they may be anything, and are looked at one by one. */
static void cells_write(yk_boards_t *boards, entry_t *e, const cell_t *cells,
                        uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        yk_board_change_t change = {i,
                                    0,
                                    (yk_place_state_e)(cells[i].state & 3),
                                    (apr_time_t)cells[i].until_us,
                                    0,
                                    cells[i].version};

        yk_board_write(boards, e, &change, 1, 0);
    }
}

apr_status_t yk_board_relay_start(yk_boards_t *boards,
                                  const yk_board_ref_t *ref, apr_pool_t *p)
{
    entry_t *e = &boards->entries[ref->entry];
    const relay_head_t *head;
    const relay_item_t *items;
    apr_size_t len, at;
    uLongf cells_len = e->nplaces * sizeof(cell_t);
    cell_t *cells;
    apr_status_t rv;

    if (boards->cache == NULL) {
        return APR_NOTFOUND;
    }
    head = value_get(boards, &len, "YKB1", YK_CACHE_BOARD, e->slot_id, p);
    if (head == NULL || head->nplaces != e->nplaces || head->n != e->nareas) {
        return APR_NOTFOUND;
    }
    at = sizeof(*head) + head->n * sizeof(*items);
    cells = apr_palloc(p, cells_len + 1);
    if (len < at ||
        uncompress((Bytef *)cells, &cells_len, (const Bytef *)head + at,
                   (uLong)(len - at)) != Z_OK ||
        cells_len != e->nplaces * sizeof(cell_t)) {
        return APR_NOTFOUND;
    }
    rv = yk_board_lock(boards, &e, ref, YK_LOCK_WRITE);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    cells_write(boards, e, cells, e->nplaces);
    yk_board_write(boards, e, items_of(head, at, p), head->n, 0);
    e->read_db_us = head->to_us;
    yk_board_unlock(e);
    return APR_SUCCESS;
}

/* ---- DOCUMENT ---- */

void yk_board_relay_show(yk_boards_t *boards, const yk_board_ref_t *ref,
                         apr_pool_t *p)
{
    apr_time_t now = yk_state_now();
    const rendering_t *r;
    relay_tag_t tag;
    paper_t paper;
    entry_t *e;

    if (boards->cache == NULL ||
        now - atomic_load(&boards->entries[ref->entry].shown_us) <
            DOCUMENT_EVERY - DOCUMENT_EVERY / 10 ||
        yk_board_lock(boards, &e, ref, YK_LOCK_WRITE) != APR_SUCCESS) {
        return;
    }
    atomic_store(&e->shown_us, now);
    yk_board_render(boards, e);
    r = &e->rendering[atomic_load(&e->shown) & 1];
    if (r->gzip_len == 0 || r->gzip_len > BOARD_MOST) {
        yk_board_unlock(e);
        return;
    }
    head_begin(&paper, "YKD1", e->slot_id, sizeof(tag) + r->gzip_len, p);
    paper.head->generation = r->generation;
    paper.head->nplaces = e->nplaces;
    tag.hash = r->hash;
    tag.opens_us = atomic_load(&e->opens_us);
    tag.now_us = yk_board_clock(e);
    tag.json_len = r->json_len;
    memcpy(paper.bytes + paper.len, &tag, sizeof(tag));
    memcpy(paper.bytes + paper.len + sizeof(tag),
           yk_board_at(boards, r->gzip_at), r->gzip_len);
    paper.len += sizeof(tag) + r->gzip_len;
    yk_board_unlock(e);
    value_send(boards, &paper, YK_CACHE_DOCUMENT, DOCUMENT_TTL);
}

/* @return NULL: it is no gzip of so many bytes */
static const char *unpack(const char *gzip, apr_size_t gzip_len, apr_size_t len,
                          apr_pool_t *p)
{
    z_stream z;
    char *bytes;
    int whole;

    memset(&z, 0, sizeof(z));
    if (len > 64 * BOARD_MOST || inflateInit2(&z, 15 + 16) != Z_OK) {
        return NULL;
    }
    bytes = yk_pool_room(p, len + 1);
    z.next_in = (z_const Bytef *)gzip;
    z.avail_in = (uInt)gzip_len;
    z.next_out = (Bytef *)bytes;
    z.avail_out = (uInt)len;
    whole = inflate(&z, Z_FINISH) == Z_STREAM_END && z.avail_out == 0;
    inflateEnd(&z);
    bytes[len] = '\0';
    return whole ? bytes : NULL;
}

apr_status_t yk_board_relay_shown(yk_boards_t *boards,
                                  yk_board_answer_t *answer,
                                  yk_board_form_e form, uint64_t slot_id,
                                  apr_pool_t *p)
{
    const relay_head_t *head;
    const char *gzip;
    relay_tag_t tag;
    apr_size_t len;

    if (boards->cache == NULL) {
        return APR_NOTFOUND;
    }
    head = value_get(boards, &len, "YKD1", YK_CACHE_DOCUMENT, slot_id, p);
    if (head == NULL || len < sizeof(*head) + sizeof(tag)) {
        return APR_NOTFOUND;
    }
    memcpy(&tag, head + 1, sizeof(tag));
    gzip = (const char *)(head + 1) + sizeof(tag);
    len -= sizeof(*head) + sizeof(tag);
    memset(answer, 0, sizeof(*answer));
    answer->hash = tag.hash;
    answer->generation = head->generation;
    answer->opens_us = tag.opens_us;
    answer->now_us = tag.now_us;
    answer->len = form == YK_BOARD_GZIP ? len : tag.json_len;
    answer->bytes = form == YK_BOARD_GZIP
                        ? gzip
                        : unpack(gzip, len, (apr_size_t)tag.json_len, p);
    return answer->bytes != NULL ? APR_SUCCESS : APR_NOTFOUND;
}
