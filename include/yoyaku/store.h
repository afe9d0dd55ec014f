/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YOYAKU_STORE_H
#define YOYAKU_STORE_H

#include <apr_pools.h>
#include "answer.h"
#include "ledger.h"
#include "order.h"
#include "plan.h"
#include "slot.h"

/**
 * @file store.h
 * @brief The book in MySQL or MariaDB: the one that decides who has a place.
 *
 * What it promises. A transaction is two packets: yk_store_lock() begins,
 * locks and reads the clock; yk_store_write() writes and commits, or
 * yk_store_rollback() ends it. All of a ledger's changes happen or none do.
 * After any error the only next packet is ROLLBACK, and it has been sent when
 * the call returns. No line is ever given back inside a transaction.
 *
 * What it reports. See answer.h. In yk_store_lock() and everything that reads:
 * APR_TIMEUP for 1205, APR_EBUSY for 1213 and 1020 (again at once, with
 * jitter), APR_ECONNRESET for a line that broke or could not be had. In
 * yk_store_write() also APR_EEXIST for 1062 (new numbers, or a twin's key:
 * again) and APR_INCOMPLETE for a line that broke after COMMIT was sent.
 *
 * Where it lives. One per request (or per tool), never handed across fork(),
 * not for two threads at once. The line to the database comes from its host:
 * mod_dbd in the module, a plain connect in the tool and the tests.
 */

typedef struct yk_store_t yk_store_t;

/** Where lines come from. A line is a MYSQL *, whose session was set up by
 *  yk_store_session_set(). */
typedef struct yk_store_host_t {
    void *baton;
    /** Get a line, asked for at the first packet.
     *  @return APR_SUCCESS or APR_ECONNRESET */
    apr_status_t (*acquire)(void *baton, void **line);
    /** Give it back; `broken` when it must not be used again. */
    void (*release)(void *baton, void *line, int broken);
} yk_store_host_t;

/** A store over a host's lines. Asks for none yet. When p is destroyed an
 *  open transaction is rolled back and the line given back. */
apr_status_t yk_store_attach(yk_store_t **store, const yk_store_host_t *host,
                             apr_pool_t *p);

/**
 * A store with a line of its own.
 * @param params as mod_dbd's DBDParams: "host=,port=,sock=,user=,pass=,dbname="
 *               with commas, semicolons, bars or white space between
 */
apr_status_t yk_store_open(yk_store_t **store, const char *params,
                           apr_pool_t *p);

/** Why the last try to open an own line failed, in the database's words with
 *  its number; "" when it did not, or when lines are a host's. */
const char *yk_store_unreachable(const yk_store_t *store);

/** Give the line back now (rolls back first when in a transaction). */
void yk_store_rest(yk_store_t *store);

/** This process ends, maybe inside a signal handler: from now on the end of a
 *  pool sends nothing. The end of the process closes its lines, and the server
 *  rolls back what was open on them. */
void yk_store_abandon(void);

/**
 * Session settings, for mod_dbd's post_connect and for yk_store_open: zone
 * +00:00, READ COMMITTED, utf8mb4, lock wait 2 s, wait_timeout 60, idle
 * transaction time-out 10 where there is one, several statements a packet.
 * @param line MYSQL *
 * @return APR_SUCCESS, APR_ECONNRESET, APR_ENOTIMPL: a setting did not hold
 */
apr_status_t yk_store_session_set(void *line, apr_pool_t *ptemp);

/**
 * Let no answer on this line take longer: then the line counts as broken. For
 * lines that somebody else opened without a time-out. Does nothing under a
 * client library that offers no way (libmysqlclient).
 */
void yk_store_patience_set(void *line, apr_interval_time_t patience);

/** Is the database fit: schema version, every table InnoDB, row locks lock
 *  (a second line sees 1205 or nothing with SKIP LOCKED), writable, zone and
 *  isolation right.
 *  @param why one clear sentence when not fit
 *  @return APR_SUCCESS, APR_ENOTIMPL (see why), APR_ECONNRESET */
apr_status_t yk_store_probe(yk_store_t *store, const char **why,
                            apr_pool_t *p);

/* ---- the two packets ---- */

/** Packet 1. Fills every row of the ledger that was wanted. */
apr_status_t yk_store_lock(yk_store_t *store, yk_ledger_t *ledger);

/** Packet 2: changed rows, journal, idempotency rows, COMMIT. Order rows get
 *  version + 1, places and anchors theirs (ledger.h). */
apr_status_t yk_store_write(yk_store_t *store, yk_ledger_t *ledger);

/** The other packet 2. Cheap when there is no transaction. */
void yk_store_rollback(yk_store_t *store);

/**
 * Inside the transaction: orders due at ledger->now_us that have live lines
 * under a bound, oldest first, at most 64.
 * @param anchor AREA or QUOTA: lines under it; BOOKER: needs `booker`
 */
apr_status_t yk_store_due_under(yk_store_t *store, uint64_t **order_ids,
                                uint32_t *n, const yk_ledger_t *ledger,
                                const yk_anchor_key_t *anchor,
                                const unsigned char *booker_hash,
                                apr_pool_t *p);

/**
 * After APR_INCOMPLETE: lock the same anchors and places on a new line (which
 * waits for the lost transaction's end) and look in the journal.
 * @param done 1: it was committed, 0: it was not
 */
apr_status_t yk_store_fate(yk_store_t *store, int *done,
                           const yk_ledger_t *ledger, apr_pool_t *ptemp);

/**
 * Inside a transaction that holds the change's rows: was it made?
 * @param now_us the database's clock; the journal is read from a minute and
 *               the longest wait before it on
 */
apr_status_t yk_store_change_seen(yk_store_t *store, int *seen,
                                  uint64_t slot_id, uint64_t order_id,
                                  uint64_t change_id, apr_time_t now_us);

/* ---- reading without locks ---- */

/** A slot by key, all of it but the plan. APR_NOTFOUND. */
apr_status_t yk_store_slot(yk_store_t *store, yk_slot_t **slot,
                           uint32_t tenant_id, const char *key, apr_pool_t *p);
/** The same by number (an order's line names it so). */
apr_status_t yk_store_slot_by_id(yk_store_t *store, yk_slot_t **slot,
                                 uint64_t slot_id, apr_pool_t *p);
/** Its versions now, to know whether a copy is good. APR_NOTFOUND. */
apr_status_t yk_store_slot_version(yk_store_t *store, yk_version_t *version,
                                   uint64_t slot_id);

/** One slot as the list shows it. */
typedef struct yk_listed_t {
    const yk_slot_t *slot; /**< without areas, prices, limits, plan */
    int64_t free, places;
} yk_listed_t;

#define YK_LIST_MAX 100

/** Slots by (starts, key). Filters NULL: any. One statement.
 *  @param after  key of the last slot of the page before; NULL: from the start
 *  @param more   set to 1 when there are more */
apr_status_t yk_store_slots(yk_store_t *store, yk_listed_t **list, uint32_t *n,
                            int *more, apr_time_t *now, uint32_t tenant_id,
                            const char *resource, const char *series,
                            const char *state, const char *after,
                            apr_pool_t *p);

/** A slot's availability as the book says it now; one statement a table. */
typedef struct yk_board_t {
    apr_time_t now_us;
    uint32_t nplaces, nareas;
    unsigned char *states;  /**< nplaces, '0'..'3' in plan order; held past its
                                 deadline is '0' */
    uint64_t *versions;     /**< of the place rows, nplaces */
    apr_time_t *untils;     /**< held: the deadline; else 0 */
    int64_t *area_free;     /**< by area_no; -1 where places say it */
    uint64_t *area_versions; /**< of the anchors; 0 where there is none */
} yk_board_t;
apr_status_t yk_store_board(yk_store_t *store, yk_board_t **board,
                            const yk_slot_t *slot, apr_pool_t *p);

/** Some of it, as the rows stand: what is held past its deadline is held. */
typedef struct yk_board_row_t {
    uint32_t place_no;
    yk_place_state_e state;
    apr_time_t until_us;
    uint64_t version;
} yk_board_row_t;

typedef struct yk_pool_row_t {
    uint32_t area_no;
    int64_t left;            /**< max - used */
    uint64_t version;
} yk_pool_row_t;

typedef struct yk_board_part_t {
    apr_time_t now_us;       /**< read before the rows */
    uint32_t nrows, npools;
    yk_board_row_t *rows;    /**< ascending place_no */
    yk_pool_row_t *pools;    /**< of every area with an anchor */
} yk_board_part_t;

/**
 * Places from `first` on, at most `most`, and (first 0) the anchors. So a hall
 * of any size is read in parts that a worker has room for.
 */
apr_status_t yk_store_board_part(yk_store_t *store, yk_board_part_t *part,
                                 uint64_t slot_id, uint32_t first,
                                 uint32_t most, apr_pool_t *p);

/** Called after every COMMIT of yk_store_write(), before it returns.
 *  @param took how long the packet was under way */
typedef void yk_store_written_fn(void *baton, yk_ledger_t *ledger,
                                 apr_interval_time_t took);
void yk_store_written(yk_store_t *store, yk_store_written_fn *written,
                      void *baton);

/** One journal row: what an order's transaction did to one slot. */
typedef struct yk_entry_place_t {
    uint32_t place_no;
    yk_place_state_e state;
    uint64_t version;
} yk_entry_place_t;

typedef struct yk_entry_count_t {
    yk_anchor_e kind;
    uint32_t no;
    int64_t delta;
    uint64_t version;        /**< of the anchor, as written */
} yk_entry_count_t;

typedef struct yk_entry_t {
    uint64_t slot_id, order_id; /**< order 0: an operator */
    apr_time_t at_us;
    uint64_t change_id;
    const char *why, *who;
    apr_time_t until_us;     /**< the order's deadline; 0 when it has none */
    uint32_t nplaces, ncounts;
    yk_entry_place_t *places;
    yk_entry_count_t *counts;
} yk_entry_t;

/** What was journalled in a slot from `from_us` on, oldest first.
 *  @param most  0 .. 10000 rows; *n == most: there may be more
 *  @param now   the clock of this reading; may be NULL */
apr_status_t yk_store_journal(yk_store_t *store, yk_entry_t **entries,
                              uint32_t *n, apr_time_t *now, uint64_t slot_id,
                              apr_time_t from_us, uint32_t most,
                              apr_pool_t *p);

/** An order with its lines. APR_NOTFOUND. `now` may be NULL. */
apr_status_t yk_store_order(yk_store_t *store, yk_order_t **order,
                            apr_time_t *now, uint32_t tenant_id,
                            uint64_t order_id, apr_pool_t *p);
apr_status_t yk_store_order_by_token(yk_store_t *store, yk_order_t **order,
                                     apr_time_t *now, uint32_t tenant_id,
                                     const yk_hash_t *token, apr_pool_t *p);
/** One of several orders claimed at once. */
typedef struct yk_claimed_t {
    uint32_t tenant_id;
    const yk_hash_t *token; /**< NULL: by number */
    uint64_t order_id;
    yk_order_t *order;      /**< set; NULL: there is none */
    int is_whole;           /**< set; 0: read it alone */
} yk_claimed_t;
apr_status_t yk_store_claimed(yk_store_t *store, yk_claimed_t *claimed,
                              uint32_t n, apr_time_t *now, apr_pool_t *p);
/** The shop's search; filters NULL: any; newest first, at most YK_LIST_MAX. */
apr_status_t yk_store_orders(yk_store_t *store, yk_order_t ***orders,
                             uint32_t *n, apr_time_t *now, uint32_t tenant_id,
                             const char *reference, const char *booker,
                             const char *contact, apr_pool_t *p);
/** Several orders with lines, for settling. Missing ones are left out. */
apr_status_t yk_store_orders_by_id(yk_store_t *store, yk_order_t ***orders,
                                   uint32_t *n, const uint64_t *order_ids,
                                   uint32_t nids, apr_pool_t *p);
/** Due orders of every tenant, oldest first, at most `most`. */
apr_status_t yk_store_due(yk_store_t *store, uint64_t **order_ids, uint32_t *n,
                          uint32_t most, apr_pool_t *p);
/** Was this key used? By primary key, without a lock. */
apr_status_t yk_store_once_used(yk_store_t *store, int *used,
                                uint32_t tenant_id, const yk_hash_t *scope);
/** Drop idempotency rows older than 24 hours, at most 1000 a call. */
apr_status_t yk_store_once_sweep(yk_store_t *store);

/** A hall as the book has it, for compiling its plan. APR_NOTFOUND. */
apr_status_t yk_store_hall(yk_store_t *store, yk_hall_t **hall,
                           uint64_t hall_id, apr_pool_t *p);
/** A tenant's halls by name and version, without sections and places. */
apr_status_t yk_store_halls(yk_store_t *store, yk_hall_t ***halls, uint32_t *n,
                            uint32_t tenant_id, apr_pool_t *p);
/** APR_NOTFOUND: no tenant of this name. */
apr_status_t yk_store_tenant(yk_store_t *store, uint32_t *tenant_id,
                             const char *name);

/* ---- for tests: the seams ---- */

/** Called with every packet before it is sent; what it returns is sent
 *  instead. May block. */
typedef const char *yk_store_watch_fn(void *baton, const char *sql,
                                      apr_pool_t *p);
void yk_store_watch(yk_store_t *store, yk_store_watch_fn *watch, void *baton);

/** Every reading of the database's clock through this store is so much later
 *  (microseconds). The product never sets it. */
void yk_store_clock_shift(yk_store_t *store, apr_time_t shift_us);

#endif
