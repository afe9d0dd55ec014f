/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YOYAKU_BOARD_H
#define YOYAKU_BOARD_H

#include <apr_pools.h>
#include <apr_time.h>
#include <stdint.h>
#include "cache.h"
#include "ledger.h"
#include "lock.h"
#include "slot.h"
#include "state.h"
#include "store.h"

/**
 * @file board.h
 * @brief Boards: what is free in a slot, as everybody may see it, at the cost
 *        of a memory read.
 *
 *   a hold's COMMIT --> yk_boards_apply_ledger() --.
 *   the journal     --> yk_board_fresh()          --+--> cells --> renderings
 *   the whole slot  --> yk_board_fresh()          --'      |
 *   the clock       --> held past its end is free ---------'
 *
 * What it keeps. For each slot that is asked for: a cell a place (what the
 * book said last, the row's version, until when), a count a pool, a content
 * hash that moves with every cell, a generation, a ring of what changed in
 * which generation, and the document as JSON and as gzip, made once for a
 * generation that somebody asks for. All of it in one file of shared memory.
 *
 * What it promises. A cell is written only with a newer version, so a late
 * reader never puts something old over something new. The content hash is the
 * same wherever the content is. Within an epoch (one file) the generation of a
 * slot only grows: max(last + 1, the database's microseconds). What happens in
 * one slot touches nothing of another.
 *
 * What it never does: decide. The book may say something else by now.
 *
 * Room. The memory is of a fixed size. A new board takes the place of those
 * least lately asked for; one that was asked for within YK_BOARD_BUSY never
 * gives way: then the new one has no room (APR_ENOSPC) and its slot is
 * answered by yk_board_overflow(), straight from the book.
 *
 * Death. Every board has a robust lock. Whoever is told that its owner died
 * throws the board away; it is read anew. Readers of a rendering take no lock:
 * there are two, the one not shown is written, then shown. A lock that cannot
 * be had for YK_BOARD_PATIENCE (its owner is stopped) makes a change "missed":
 * the whole slot is read again by whoever gets the lock next.
 *
 * Where it lives. State file "boards", whose size is configured. A yk_boards_t
 * is one process's way to it, made after fork; threads may share it.
 */

#define YK_BOARDS_LAYOUT 2
#define YK_BOARDS_MIN_BYTES (1024 * 1024)

/** One who does it: for so long nobody else reads the same slot. */
#define YK_BOARD_FLIGHT (3 * APR_USEC_PER_SEC)
/** The journal is read at most so often. */
#define YK_BOARD_READ (APR_USEC_PER_SEC / 2)
/** The whole slot is read at least so often. */
#define YK_BOARD_WHOLE (30 * APR_USEC_PER_SEC)
/** A board this old is not shown while a newer one is being read. */
#define YK_BOARD_OLD (2 * APR_USEC_PER_SEC)
/** Asked for within so long: does not give way. */
#define YK_BOARD_BUSY APR_USEC_PER_SEC
#define YK_BOARD_PATIENCE (APR_USEC_PER_SEC / 20)
/** Most changed places in a document of changes; more: the whole one. */
#define YK_BOARD_DELTA 4096

typedef struct yk_boards_t yk_boards_t;

/** A board in hand. Good while its life goes on; every call looks. */
typedef struct yk_board_ref_t {
    uint32_t entry;
    uint64_t life;
} yk_board_ref_t;

/* ---- the file ---- */

/** The kind of state file for so much memory (YoyakuMemory). */
void yk_boards_kind(yk_state_kind_t *kind, apr_size_t bytes);

/** @param memory of a state file of that kind and size, mapped for writing */
apr_status_t yk_boards_attach(yk_boards_t **boards, void *memory,
                              apr_size_t size, apr_pool_t *p);

/** Where the digest of this host's memcached traffic is kept. */
yk_cache_shared_t *yk_boards_cache_shared(yk_boards_t *boards);
/** Share with other hosts what is known; NULL: do not. */
void yk_boards_cache(yk_boards_t *boards, yk_cache_t *cache);

/** After an answer was sent: tell the others what this thread changed. */
void yk_boards_tell(yk_boards_t *boards, apr_pool_t *ptemp);

/** Memory of this kind that is no file: for where a file cannot be had, and
 *  for tests. Unmapped when p is destroyed. */
apr_status_t yk_boards_memory(void **memory, const yk_state_kind_t *kind,
                              apr_pool_t *p);

/** For the status. Read without locks. */
typedef struct yk_boards_use_t {
    uint64_t epoch;
    apr_size_t bytes, used; /**< of the arena */
    uint32_t boards, pages, entries;
    uint64_t asked, rendered, journal_reads, whole_reads, applied, missed,
        thrown_away, gave_way, no_room, refused_early;
    apr_interval_time_t commit_max;
} yk_boards_use_t;
void yk_boards_use(const yk_boards_t *boards, yk_boards_use_t *use);
/** What their locks have counted: the one of the table, and those of all
 *  entries together. */
void yk_boards_locks(const yk_boards_t *boards, yk_lock_t *table,
                     yk_lock_t *entries);

/* ---- finding one ---- */

/** Name of a slot's board: where its database is, tenant, key. Never 0. */
uint64_t yk_board_id(const char *database, const char *tenant,
                     const char *slot);

/** @return APR_SUCCESS or APR_NOTFOUND. Counts as being asked for. */
apr_status_t yk_board_find(yk_boards_t *boards, yk_board_ref_t *ref,
                           uint64_t id);

/**
 * Find it or make an empty one, not yet read.
 * @return APR_SUCCESS, APR_ENOSPC: no room, see above; APR_TIMEUP
 */
apr_status_t yk_board_make(yk_boards_t *boards, yk_board_ref_t *ref,
                           uint64_t id, const yk_slot_t *slot);

/** Throw it away. */
void yk_board_drop(yk_boards_t *boards, const yk_board_ref_t *ref);

/* ---- changing it ---- */

/** Something the book says of a place or a pool. */
typedef struct yk_board_change_t {
    uint32_t no; /**< place_no or area_no */
    int pool;    /**< 1: `left` of area `no` */
    yk_place_state_e state;
    apr_time_t until_us;
    int64_t left;
    uint64_t version;
} yk_board_change_t;

/**
 * Write what is newer than what stands there; one generation for all of it.
 * @param now_us the database's clock; 0: not known, as estimated
 * @return APR_SUCCESS, APR_NOTFOUND: its life is over, APR_TIMEUP: missed
 */
apr_status_t yk_board_apply(yk_boards_t *boards, const yk_board_ref_t *ref,
                            const yk_board_change_t *changes, uint32_t n,
                            apr_time_t now_us);

/**
 * After the COMMIT of a ledger, before its answers: all its slots' boards.
 * @param commit how long the writing packet took
 */
void yk_boards_apply_ledger(yk_boards_t *boards, yk_ledger_t *ledger,
                            apr_interval_time_t commit);

/* ---- keeping it fresh ---- */

/** How a reader gets at the book, should he be the one who reads. */
typedef struct yk_board_source_t {
    void *baton;
    /** @return a status of answer.h */
    apr_status_t (*open)(void *baton, yk_store_t **store);
    /** The slot asked for, with its plan; `fresh`: from the book.
     *  @return APR_NOTFOUND: there is none */
    apr_status_t (*slot)(void *baton, const yk_slot_t **slot, int fresh);
} yk_board_source_t;

/**
 * Bring the board of `id` up to date: make it, read it, free what has expired,
 * or wait for the one who is doing so.
 *
 * @return APR_SUCCESS   *ref is good; *old set to 1 when the book could not be
 *                       asked for more than YK_BOARD_OLD
 *         APR_NOTFOUND  there is no such slot
 *         APR_ENOSPC    no room for it
 *         APR_TIMEUP, APR_ECONNRESET, ...: never read, and cannot be now
 */
apr_status_t yk_board_fresh(yk_boards_t *boards, yk_board_ref_t *ref, int *old,
                            uint64_t id, const yk_board_source_t *source,
                            apr_pool_t *ptemp);

/** When it was last compared with the book, by this host itself: steady clock;
 *  0: never. */
apr_time_t yk_board_compared(const yk_boards_t *boards,
                             const yk_board_ref_t *ref);

/** Read the journal now, whoever read it when. For the ticker and tests. */
apr_status_t yk_board_read_journal(yk_boards_t *boards,
                                   const yk_board_ref_t *ref,
                                   const yk_board_source_t *source,
                                   apr_pool_t *ptemp);
apr_status_t yk_board_read_whole(yk_boards_t *boards, const yk_board_ref_t *ref,
                                 const yk_board_source_t *source,
                                 apr_pool_t *ptemp);

/* ---- reading it ---- */

typedef enum yk_board_form_e {
    YK_BOARD_HEAD, /**< only what stands beside the bytes */
    YK_BOARD_JSON,
    YK_BOARD_GZIP
} yk_board_form_e;

typedef struct yk_board_answer_t {
    uint64_t hash; /**< of the content: the ETag */
    uint64_t generation;
    const char *bytes; /**< NULL for HEAD */
    apr_size_t len;    /**< of the form asked for, also for HEAD: JSON's */
    int is_delta;
    apr_time_t opens_us; /**< of the slot; 0: not set */
    apr_time_t now_us;   /**< the database's clock, as estimated */
} yk_board_answer_t;

/**
 * {"slot","plan","epoch","generation","free","sections":[{"section","mode",
 *  "free","places":"0012..."}]}; a pool has no "places".
 * @return APR_SUCCESS, APR_NOTFOUND: its life is over, APR_TIMEUP
 */
apr_status_t yk_board_get(yk_boards_t *boards, const yk_board_ref_t *ref,
                          yk_board_answer_t *answer, yk_board_form_e form,
                          apr_pool_t *p);

/**
 * What changed after `generation` of `epoch`:
 *   {"slot","plan","epoch","generation","since","free","sections":[
 *     {"section","free","changes":[[3,"1"],[17,"0"]]}]}
 * Sections in which something changed, by name; a place by its index in its
 * section, a pool by its free count alone. The whole document when the epoch
 * is another, the generation is not kept any more, or too much changed.
 */
apr_status_t yk_board_since(yk_boards_t *boards, const yk_board_ref_t *ref,
                            yk_board_answer_t *answer, uint64_t epoch,
                            uint64_t generation, apr_pool_t *p);

/** What a place looks like, for whoever refuses early.
 *  @return APR_SUCCESS, APR_NOTFOUND, APR_TIMEUP */
apr_status_t yk_board_place(yk_boards_t *boards, const yk_board_ref_t *ref,
                            yk_place_state_e *state, apr_time_t *until_us,
                            apr_time_t *now_us, uint32_t place_no);

/** Has nothing been seen to change since this generation, and has no hold that
 *  is shown ended? As far as is known here: nobody is asked. */
int yk_board_is_still(yk_boards_t *boards, uint64_t id, uint64_t generation);

/** Is this the slot as the book had it when the board was compared last? */
int yk_board_is_current(yk_boards_t *boards, const yk_board_ref_t *ref,
                        const yk_slot_t *slot);

/** What is free of each area, as the document says. At most n areas; the rest
 *  of `left` is nought. */
apr_status_t yk_board_free(yk_boards_t *boards, const yk_board_ref_t *ref,
                           int64_t *left, apr_time_t *now_us, uint32_t n);

uint64_t yk_boards_epoch(const yk_boards_t *boards);

/** A hold was refused from a board: counted. */
void yk_boards_refused(yk_boards_t *boards);

/* ---- no room ---- */

/**
 * The document straight from the book, for one answer. At most
 * YK_BOARD_OVERFLOW a second on this host. With memcached one reads for all
 * hosts, and what is shown was read within the last second or two; it may be
 * another host's then, whose epoch it names.
 * @return APR_SUCCESS, APR_TIMEUP: too many, a status of answer.h
 */
#define YK_BOARD_OVERFLOW 20
apr_status_t yk_board_overflow(yk_boards_t *boards, yk_board_answer_t *answer,
                               yk_board_form_e form,
                               const yk_board_source_t *source, apr_pool_t *p);

/* ---- pages: other documents kept beside the boards ---- */

/**
 * A page is bytes under a name, good for a while: the list of slots, a slot's
 * document. One makes it while the others show the one before, at most twice
 * its time; then they wait for it.
 */
typedef struct yk_page_t {
    const char *bytes;
    apr_size_t len;
    const char *gzip;
    apr_size_t gzip_len;
    uint64_t hash;
} yk_page_t;

/** @return a status of answer.h; the bytes go to *json, from p */
typedef apr_status_t yk_page_make_fn(void *baton, const char **json,
                                     apr_size_t *len, apr_pool_t *p);

/**
 * @param age how long it is good; it is made at most once in 20 times the time
 *            its making took, however short `age` is
 */
apr_status_t yk_page_get(yk_boards_t *boards, yk_page_t *page, uint64_t id,
                         apr_interval_time_t age, yk_page_make_fn *make,
                         void *baton, apr_pool_t *p);

#endif
