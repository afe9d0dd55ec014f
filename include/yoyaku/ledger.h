/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YOYAKU_LEDGER_H
#define YOYAKU_LEDGER_H

#include <apr_pools.h>
#include <apr_time.h>
#include <stdint.h>
#include "answer.h"
#include "order.h"
#include "secret.h"
#include "slot.h"

/**
 * @file ledger.h
 * @brief The rows that one transaction locks, what they said, and what the
 *        decision made of them.
 *
 *   the desk names rows        yk_ledger_want_*()
 *   the store locks and reads  yk_store_lock()     packet 1: BEGIN .. clock
 *   the desk decides in C      yk_ledger_*()       no trip
 *   the store writes           yk_store_write()    packet 2: rows .. COMMIT
 *
 * The store locks, whatever was wanted in whatever order: anchors ascending by
 * (kind, owner, no), then places ascending by (slot, place), then orders
 * ascending. Then it reads, without locks, seats (places of assigned areas,
 * which their anchor guards), versions of slots and tenant, bookers' lines and
 * idempotency rows, and last the clock. So every ledger sees one lock order.
 *
 * A decision changes rows through yk_ledger_touch_*(), which keeps what stood
 * there since the last yk_ledger_mark(); yk_ledger_undo() goes back to it. A
 * refused wish therefore leaves no trace, also in a ledger that many share.
 *
 * One process, one thread, one transaction; everything lives in its pool.
 */

/* ---- anchors ---- */

/** Kinds in lock order; fixed in the book. */
typedef enum yk_anchor_e {
    YK_ANCHOR_BOOKER = 1, /**< owner tenant, no = first 16 bits of the hash */
    YK_ANCHOR_AREA = 2,   /**< owner slot, no = area_no */
    YK_ANCHOR_QUOTA = 3   /**< owner slot, no = price_no */
} yk_anchor_e;

typedef struct yk_anchor_key_t {
    yk_anchor_e kind;
    uint64_t owner;
    uint32_t no;
} yk_anchor_key_t;

/** A quota that is being counted for the first time has at least half of this
 *  in `used`, and no bound: lines older than the counting may be given back. */
#define YK_UNCOUNTED (INT64_C(1) << 40)

typedef struct yk_anchor_t {
    yk_anchor_key_t key;
    int found;            /**< 0: no such row (a defect or a race: again) */
    int64_t used, max;    /**< booker anchors: 0, 0. max -1: not in force */
    uint64_t version;     /**< as read; the store writes version + 1 */
    unsigned char *map;   /**< assigned: bit i set: place first+i is free */
    uint32_t map_bytes;
    int changed;
    uint32_t mark;
} yk_anchor_t;

/* ---- places ---- */

typedef enum yk_place_state_e {
    YK_PLACE_FREE = 0,
    YK_PLACE_HELD = 1,
    YK_PLACE_BOOKED = 2,
    YK_PLACE_NOT_FOR_SALE = 3
} yk_place_state_e;

typedef struct yk_place_t {
    uint64_t slot_id;
    uint32_t place_no;
    int found;
    int seat;             /**< 1: of an assigned area, guarded by its anchor */
    yk_place_state_e state;
    uint64_t order_id;    /**< 0 when free */
    apr_time_t until_us;  /**< 0 unless held */
    uint64_t version;     /**< as read. Written: +1; a seat's: its anchor's new */
    int changed;
    uint32_t mark;
    uint32_t area_no;
    uint64_t by_order;    /**< whose doing the change is: its journal row */
} yk_place_t;

/* ---- orders ---- */

/** What an order did to a count: a row's part of the journal. */
typedef struct yk_count_t {
    uint64_t slot_id;
    yk_anchor_e kind;     /**< AREA or QUOTA */
    uint32_t no;
    int64_t delta;        /**< of `used` */
} yk_count_t;

typedef struct yk_order_row_t {
    uint64_t order_id;
    int found;            /**< 0 also when it is no longer what was seen */
    const yk_order_t *seen; /**< as read before the lock, or NULL */
    yk_order_t *order;    /**< as it stands under the lock, lines too */
    const yk_order_t *was;  /**< the same untouched: what differs is written */
    int changed, is_new;
    const char *why;      /**< journal: "hold", "release", ... */
    const char *who;      /**< journal: booker, shop user, "sweep" */
    uint64_t change_id;   /**< random; stands in the journal, tells our fate */
    uint32_t ncounts, count_space;
    yk_count_t *counts;
    uint32_t mark;
} yk_order_row_t;

/* ---- what is read without a lock, after the locks ---- */

typedef struct yk_version_t {
    uint64_t slot_id;
    uint64_t version, tenant_version;
    int found;
} yk_version_t;

/** One live line of a booker, in whatever order of his. */
typedef struct yk_booked_t {
    uint64_t order_id, slot_id;
    const char *resource, *series, *slot;
    uint32_t quantity;
} yk_booked_t;

typedef struct yk_booker_t {
    uint32_t tenant_id;
    unsigned char hash[16];
    uint32_t nbooked;
    yk_booked_t *booked;
} yk_booker_t;

typedef struct yk_once_row_t {
    uint32_t tenant_id;
    yk_hash_t scope;
    int found;
    yk_hash_t request;
    uint64_t order_id;
    unsigned char salt[YK_SALT_BYTES];
    yk_answer_e answer;   /**< what the first got */
    int status;           /**< its HTTP status */
    const char *extra;    /**< what else the first answer said, as JSON; "" */
    int is_new;           /**< to be inserted, last */
} yk_once_row_t;

typedef struct yk_ledger_t {
    apr_pool_t *p;
    apr_time_t now_us;    /**< the database's clock, read after the locks */
    int skip_locked;      /**< lanes: places and booker anchors only */

    uint32_t nanchors, nplaces, norders, nversions, nbookers, nonces;
    yk_anchor_t *anchors;      /**< ascending once locked */
    yk_place_t *places;        /**< ascending once locked; seats among them */
    yk_order_row_t *orders;    /**< ascending once locked; new ones after */
    yk_version_t *versions;
    yk_booker_t *bookers;
    yk_once_row_t *onces;

    uint32_t anchor_space, place_space, order_space, version_space,
        booker_space, once_space;
    uint32_t sorted_places, sorted_orders; /**< the rest was added since */
    uint32_t mark;
    struct yk_undo_t *undo;
} yk_ledger_t;

/** An empty ledger; everything it will hold comes from p. */
yk_ledger_t *yk_ledger_make(apr_pool_t *p);

/* Wanting the same row twice wants it once. */
void yk_ledger_want_anchor(yk_ledger_t *l, yk_anchor_e kind, uint64_t owner,
                           uint32_t no);
void yk_ledger_want_place(yk_ledger_t *l, uint64_t slot_id, uint32_t area_no,
                          uint32_t place_no, int seat);
/** `seen`, which must outlive the ledger: where its version is still the same
 *  under the lock nothing else is read again, since every write of an order or
 *  its lines raises it; where not, the row is not found. Who wants an order with
 *  and who wants it without one do not share a ledger. */
void yk_ledger_want_order(yk_ledger_t *l, uint64_t order_id,
                          const yk_order_t *seen);
void yk_ledger_want_version(yk_ledger_t *l, uint64_t slot_id);
void yk_ledger_want_booker(yk_ledger_t *l, uint32_t tenant_id,
                           const unsigned char hash[16]);
void yk_ledger_want_once(yk_ledger_t *l, uint32_t tenant_id,
                         const yk_hash_t *scope);

/** Bring everything wanted into lock order; the store calls it first. */
void yk_ledger_sort(yk_ledger_t *l);

/* NULL when it was not wanted. Good after yk_ledger_sort(). */
yk_anchor_t *yk_ledger_anchor(yk_ledger_t *l, yk_anchor_e kind,
                              uint64_t owner, uint32_t no);
yk_place_t *yk_ledger_place(yk_ledger_t *l, uint64_t slot_id,
                            uint32_t place_no);
yk_order_row_t *yk_ledger_order(yk_ledger_t *l, uint64_t order_id);
yk_version_t *yk_ledger_version(yk_ledger_t *l, uint64_t slot_id);
yk_booker_t *yk_ledger_booker(yk_ledger_t *l, uint32_t tenant_id,
                              const unsigned char hash[16]);
yk_once_row_t *yk_ledger_once(yk_ledger_t *l, uint32_t tenant_id,
                              const yk_hash_t *scope);

/**
 * A seat the decision chose in an assigned area: a row written under its
 * anchor without having been read. Does not move other rows' addresses
 * before the next call of the same kind; sorted by the store before writing.
 */
yk_place_t *yk_ledger_seat(yk_ledger_t *l, uint64_t slot_id, uint32_t area_no,
                           uint32_t place_no);

/** Before the first change of a row since the mark: keep what stands there
 *  and set `changed`. */
void yk_ledger_touch_anchor(yk_ledger_t *l, yk_anchor_t *anchor);
void yk_ledger_touch_place(yk_ledger_t *l, yk_place_t *place);
void yk_ledger_touch_order(yk_ledger_t *l, yk_order_row_t *row);

/** Write down in an order's journal row what it did to a count. */
void yk_ledger_count(yk_ledger_t *l, yk_order_row_t *row,
                     const yk_anchor_key_t *key, int64_t delta);

/** An order begun by this transaction. */
yk_order_row_t *yk_ledger_order_add(yk_ledger_t *l, yk_order_t *order);

/** Room for `n` orders more, so that rows keep their addresses. */
void yk_ledger_reserve_orders(yk_ledger_t *l, uint32_t n);

/** A line more in a touched order: numbered, zeroed, `is_new`. Moves the
 *  order's lines. */
yk_line_t *yk_ledger_line_add(yk_ledger_t *l, yk_order_t *order);

/** From here on changes can be taken back together. */
void yk_ledger_mark(yk_ledger_t *l);
void yk_ledger_undo(yk_ledger_t *l);

/** @return 1 when nothing is to be written */
int yk_ledger_is_clean(const yk_ledger_t *l);

#endif
