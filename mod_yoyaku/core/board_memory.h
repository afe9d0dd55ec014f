/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YK_CORE_BOARD_MEMORY_H
#define YK_CORE_BOARD_MEMORY_H

#include <stdatomic.h>
#include "yoyaku/board.h"
#include "yoyaku/cache.h"
#include "yoyaku/lock.h"

/**
 * @file board_memory.h
 * @brief What stands where in the file of boards.
 *
 *   | head, lock, counters | ids | slot ids | entries | arena               |
 *
 * An entry is found by its name alone: a name may stand in any of the 8
 * entries of its bucket. A life is odd while the entry is in use; it and the
 * name are written last when a life begins and first when it ends. Where an
 * entry's block lies in the arena stands in the entry, so what is free is
 * known from the entries, and nothing else has to be kept or mended.
 *
 *   a board's block   | areas | text | cells | ring | JSON, gzip | JSON, gzip |
 *   a page's block                                 | JSON, gzip | JSON, gzip |
 *
 * Locks. BOARDS guards which entries are in use; a BOARD guards one entry and
 * its block. BOARDS before BOARD, and that one only tried.
 */

#define BUCKET 8
#define BLOCK_STEP 4096
#define NOT_SHOWN 2 /* of `shown`: neither rendering */

typedef enum entry_kind_e { ENTRY_BOARD = 1, ENTRY_PAGE = 2 } entry_kind_e;

/** One place, as the book said it last. */
typedef struct cell_t {
    uint64_t version;
    uint64_t until_us : 56;
    uint64_t state : 4; /**< yk_place_state_e */
    uint64_t shown : 4; /**< the same, but held past its end is free */
} cell_t;

_Static_assert(sizeof(cell_t) == 16, "four on a cache line");

typedef struct area_t {
    uint32_t first, places; /**< 0 places: a pool, or an empty section */
    uint32_t mode;          /**< yk_mode_e */
    uint32_t name_at, name_len, text_len; /**< in the text: name, then rest */
    int64_t left;
    uint64_t version; /**< pools: of the anchor */
} area_t;

/** What changed when: a place, or an area with AREA_BIT. */
typedef struct ring_t {
    uint64_t generation;
    uint32_t no;
    uint32_t spare;
} ring_t;

#define AREA_BIT UINT32_C(0x80000000)

typedef struct rendering_t {
    yk_seq_t seq;
    uint32_t json_len, gzip_len;
    uint32_t spare;
    uint64_t generation, hash;
    uint64_t json_at, gzip_at; /**< in the arena; fixed for a life */
} rendering_t;

typedef struct entry_t {
    _Alignas(64) yk_lock_t lock;
    _Atomic uint64_t life;
    _Atomic int64_t asked_us; /**< steady */
    _Atomic uint64_t generation;
    _Atomic int64_t read_us; /**< steady; began the last comparison. 0: never */
    _Atomic int64_t expiry_us; /**< database; earliest end of a hold shown */
    _Atomic int64_t offset_us; /**< database minus steady clock, at least */
    _Atomic int64_t opens_us;
    _Atomic uint64_t missed;     /**< changes that did not get the lock */
    _Atomic uint32_t shown;      /**< rendering, or NOT_SHOWN */
    _Atomic uint32_t news;       /**< to sleep on: a reading has ended */
    _Atomic uint64_t flight_who; /**< identity of who reads; 0: nobody */
    _Atomic int64_t flight_since, flight_until; /**< steady */
    _Atomic int64_t failed_us;      /**< steady; the last reading that failed */
    _Atomic int64_t pushed_us;      /**< steady; NEWS sent last */
    _Atomic int64_t shown_us;       /**< steady; DOCUMENT told last */
    _Atomic int64_t heard_us;       /**< steady; NEWS asked for last */
    _Atomic int64_t heard_until_us; /**< steady: another host's reading does */
    _Atomic int64_t compared_us;    /**< steady; our own last reading began */
    _Atomic uint32_t is_read;       /**< the whole of it has been read once */
    /* fixed for a life */
    uint32_t kind;
    uint64_t id, slot_id;
    uint64_t first, bytes; /**< its block in the arena */
    uint64_t areas_at, text_at, cells_at, ring_at;
    uint32_t nareas, nplaces, ring_size, head_len;
    uint64_t json_space, gzip_space;
    uint64_t hash_base;
    /* under the lock */
    uint64_t hash, ring_head;
    uint64_t ring_lost; /**< of changes up to this generation some are gone */
    uint64_t missed_seen, applied;
    uint64_t slot_version, tenant_version;
    int64_t whole_us;   /**< steady; began the last whole reading */
    int64_t read_db_us; /**< the database's clock of the last reading */
    int64_t page_made_us, page_took_us; /**< steady; a page's */
    rendering_t rendering[2];
} entry_t;

_Static_assert(sizeof(entry_t) % 64 == 0, "entries begin on cache lines");

/** X(name, what it counts) */
#define YK_BOARD_COUNTERS(X)                                                   \
    X(asked, "answers looked up in memory")                                    \
    X(rendered, "documents rendered")                                          \
    X(journal_reads, "readings of the journal")                                \
    X(whole_reads, "readings of a whole slot")                                 \
    X(applied, "changes written into cells")                                   \
    X(missed, "changes that did not get the lock in time")                     \
    X(thrown_away, "boards thrown away")                                       \
    X(gave_way, "boards that gave way to others")                              \
    X(no_room, "answers without room, straight from the book")                 \
    X(refused_early, "holds refused without the database")

typedef struct boards_head_t {
    _Alignas(64) yk_state_head_t state;
    yk_lock_t lock;
    _Atomic uint64_t floor;        /**< no generation given out is above it */
    _Atomic int64_t commit_max_us; /**< longest writing packet seen */
    _Atomic uint64_t overflow;     /**< second << 16 | readings in it */
#define COUNTER(name, what) _Atomic uint64_t name;
    YK_BOARD_COUNTERS(COUNTER)
#undef COUNTER
    yk_cache_shared_t cache;
} boards_head_t;

_Static_assert(sizeof(boards_head_t) % 64 == 0, "what follows is aligned");

struct yk_boards_t {
    boards_head_t *head;
    _Atomic uint64_t *ids;
    _Atomic uint64_t *slot_ids;
    entry_t *entries;
    uint32_t nentries;
    char *arena;
    apr_size_t arena_bytes;
    uint64_t me;       /**< identity of this process */
    yk_cache_t *cache; /**< NULL: none */
};

#define COUNT(boards, name)                                                    \
    atomic_fetch_add_explicit(&(boards)->head->name, 1, memory_order_relaxed)

/* ---- board_memory.c ---- */

void *yk_board_at(const yk_boards_t *boards, uint64_t at);
#define CELLS(b, e) ((cell_t *)yk_board_at(b, (e)->cells_at))
#define AREAS(b, e) ((area_t *)yk_board_at(b, (e)->areas_at))
#define RING(b, e) ((ring_t *)yk_board_at(b, (e)->ring_at))
#define TEXT(b, e) ((char *)yk_board_at(b, (e)->text_at))

/**
 * Lock a life. An owner that died has left it half written: thrown away.
 * @return APR_SUCCESS, APR_NOTFOUND: the life is over, APR_TIMEUP
 */
apr_status_t yk_board_lock(yk_boards_t *boards, entry_t **entry,
                           const yk_board_ref_t *ref, yk_lock_mode_e mode);
void yk_board_unlock(entry_t *entry);
/** Under the lock. */
void yk_board_end_life(yk_boards_t *boards, entry_t *entry);

/**
 * Begin a life in a bucket's entry with so much room. It is found from now on
 * and locked when APR_SUCCESS: fill it, then yk_board_unlock().
 * @return APR_EEXIST: somebody else did (*ref is set), APR_ENOSPC, APR_TIMEUP
 */
apr_status_t yk_board_begin(yk_boards_t *boards, entry_t **entry,
                            yk_board_ref_t *ref, uint64_t id, uint64_t bytes);
/** Changes of this slot are its from now on. */
void yk_board_name_slot(yk_boards_t *boards, entry_t *entry, uint64_t slot_id);

/* ---- board_flight.c ---- */

/** Be the one who reads. @return 0: somebody else is; else for landing */
int64_t yk_board_fly(yk_boards_t *boards, const yk_board_ref_t *ref);
void yk_board_land(yk_boards_t *boards, const yk_board_ref_t *ref,
                   int64_t flight);
/** Wait until somebody landed, or `wait` is over. */
void yk_board_await(yk_boards_t *boards, const yk_board_ref_t *ref,
                    uint32_t news, apr_interval_time_t wait);

/* ---- board_relay.c: other hosts, through memcached ---- */

/** This thread changed it; told after the answer (yk_boards_tell()). */
void yk_board_relay_note(yk_boards_t *boards, const yk_board_ref_t *ref);
/** Hear what others changed, a few times a second. */
void yk_board_relay_hear(yk_boards_t *boards, const yk_board_ref_t *ref,
                         apr_time_t now, apr_pool_t *p);
/** Tell what was journalled in a time. */
void yk_board_relay_read(yk_boards_t *boards, const yk_board_ref_t *ref,
                         const yk_board_change_t *changes, uint32_t n,
                         apr_time_t from_us, apr_time_t to_us, apr_pool_t *p);
/** Take another host's reading for ours. @return APR_NOTFOUND: there is none */
apr_status_t yk_board_relay_reading(yk_boards_t *boards,
                                    const yk_board_ref_t *ref,
                                    apr_interval_time_t back, apr_pool_t *p);
/** Be the one of all hosts who reads. @return 0: another is */
int yk_board_relay_fly(yk_boards_t *boards, uint64_t slot_id, apr_pool_t *p);
void yk_board_relay_land(yk_boards_t *boards, uint64_t slot_id);
/** Tell the whole board, and begin with one that was told. */
void yk_board_relay_whole(yk_boards_t *boards, const yk_board_ref_t *ref,
                          apr_pool_t *p);
apr_status_t yk_board_relay_start(yk_boards_t *boards,
                                  const yk_board_ref_t *ref, apr_pool_t *p);

/** Tell the document itself, once a second. */
void yk_board_relay_show(yk_boards_t *boards, const yk_board_ref_t *ref,
                         apr_pool_t *p);
/** Take one that was told. @return APR_NOTFOUND: there is none */
apr_status_t yk_board_relay_shown(yk_boards_t *boards,
                                  yk_board_answer_t *answer,
                                  yk_board_form_e form, uint64_t slot_id,
                                  apr_pool_t *p);

/* ---- board_read.c ---- */

/** So far behind the last reading the next one begins. */
apr_interval_time_t yk_board_back(const yk_boards_t *boards);

/* ---- board_cells.c: under the lock ---- */

/** The database's clock, as estimated: never later than it is. */
apr_time_t yk_board_clock(const entry_t *entry);
uint64_t yk_board_hash_place(uint32_t place_no, unsigned shown);
uint64_t yk_board_hash_pool(uint32_t area_no, int64_t left);
/** @return how many of the changes were written */
uint32_t yk_board_write(yk_boards_t *boards, entry_t *entry,
                        const yk_board_change_t *changes, uint32_t n,
                        apr_time_t now_us);
void yk_board_expire(yk_boards_t *boards, entry_t *entry, apr_time_t now_us);

/* ---- board_make.c ---- */

/** A page with room for so many bytes, and some more. */
apr_status_t yk_board_page_make(yk_boards_t *boards, yk_board_ref_t *ref,
                                uint64_t id, apr_size_t len);
/** What a slot's block takes. */
apr_size_t yk_board_block_bytes(yk_boards_t *boards, const yk_slot_t *slot,
                                apr_pool_t *p);

/* ---- board_render.c ---- */

/** Under the lock: make the document of this generation if it is not there. */
apr_status_t yk_board_render(yk_boards_t *boards, entry_t *entry);
/** Put bytes into the rendering not shown, with gzip, and show it. */
void yk_board_show(yk_boards_t *boards, entry_t *entry, apr_size_t json_len,
                   uint64_t generation, uint64_t hash);
/** @return its length; 0: does not fit */
apr_size_t yk_board_gzip(void *to, apr_size_t space, const void *from,
                         apr_size_t len);
/** The most that yk_board_gzip() makes of so many bytes. */
apr_size_t yk_board_gzip_space(apr_size_t len);

#endif
