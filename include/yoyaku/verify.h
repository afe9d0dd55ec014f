/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YOYAKU_VERIFY_H
#define YOYAKU_VERIFY_H

#include <apr_pools.h>
#include <apr_time.h>
#include <stdint.h>
#include "slot.h"
#include "store.h"

/**
 * @file verify.h
 * @brief Does the book agree with itself? A statement about a slot that can be
 *        put on paper: no place sold twice, counts agree, limits are kept, the
 *        journal replayed gives the state.
 *
 *   yk_store_evidence   one slot as of one moment       store/verify.c
 *   yk_verify_slot      what does not agree in it       core/verify.c
 *   yk_store_over       orders and bookers past a limit store/verify.c
 *   yk_verify           all of it, slot by slot         core/verify.c
 *
 * It reads in one snapshot a slot and locks nothing, so it may run beside a
 * sale. An order past its deadline that nobody has settled yet is no fault: its
 * lines still count, its places may be somebody else's.
 */

/** X(CONSTANT, "name"): what can be wrong. */
#define YK_FINDINGS(X)                                                         \
    X(TWICE, "sold_twice") /* two orders in time have one place */             \
    X(PLACE, "place")      /* a place's row and its order do not agree */      \
    X(LINE, "line")        /* a line that counts without what it says */       \
    X(COUNT, "count")      /* an anchor's used is not what the lines say */    \
    X(BOUND, "bound")      /* used is past max */                              \
    X(MAP, "map")          /* an assigned area's map and rows differ */        \
    X(LIMIT, "limit")      /* an order or booker has more than allowed */      \
    X(JOURNAL, "journal")  /* replayed it gives something else */

typedef enum yk_finding_e {
#define YK_FINDING_ENUM(name, text) YK_FINDING_##name,
    YK_FINDINGS(YK_FINDING_ENUM)
#undef YK_FINDING_ENUM
} yk_finding_e;

const char *yk_finding_name(yk_finding_e kind);

/* ---- evidence: rows as the book has them ---- */

/** What a place's row begins with; each write adds 1 and journals it. */
#define YK_PLACE_FIRST_VERSION 1

typedef struct yk_seen_place_t {
    uint32_t place_no;
    uint64_t order_id;
    yk_place_state_e state;
    apr_time_t until_us;
    uint64_t version;
    /* replayed from the journal */
    int journalled; /**< how often it was written */
    yk_place_state_e last_state;
    uint64_t last_version;
} yk_seen_place_t;

typedef struct yk_seen_area_t {
    uint32_t area_no;
    yk_mode_e mode;
    int64_t max;
    uint32_t first_place, places;
    int64_t moved; /**< sum of the journal's counts */
} yk_seen_area_t;

typedef struct yk_seen_price_t {
    uint32_t price_no;
    int64_t quota;
    int counted;
} yk_seen_price_t;

/** A line that counts, with its order (state 0: there is none). */
typedef struct yk_seen_line_t {
    uint64_t order_id;
    uint32_t line, area_no, place_no, quantity, price_no;
    yk_order_state_e state;
    apr_time_t until_us;
} yk_seen_line_t;

typedef struct yk_seen_order_t {
    uint64_t order_id;
    yk_order_state_e state;
    apr_time_t until_us;
} yk_seen_order_t;

typedef struct yk_evidence_t {
    apr_pool_t *p;
    apr_time_t now_us;
    uint64_t slot_id;
    const char *key;
    uint32_t nplaces, nareas, nprices, nanchors, nlines, norders;
    uint32_t place_space, area_space, price_space, anchor_space, line_space,
        order_space;
    yk_seen_place_t *places; /**< ascending place_no */
    yk_seen_area_t *areas;   /**< ascending area_no */
    yk_seen_price_t *prices;
    yk_anchor_t *anchors; /**< the slot's own: areas and quotas */
    yk_seen_line_t *lines;
    yk_seen_order_t *orders; /**< that places name; ascending */
    uint64_t njournal, unreadable;
} yk_evidence_t;

/** Somebody past a limit. */
typedef struct yk_over_t {
    const char *limit; /**< "places per booker over all" */
    const char *who;   /**< number of the order, or the booker */
    int64_t have, max;
} yk_over_t;

/** All keys of a tenant's slots. */
apr_status_t yk_store_slot_keys(yk_store_t *store, const char ***keys,
                                uint32_t *n, uint32_t tenant_id, apr_pool_t *p);

/** One slot as of one moment. APR_NOTFOUND. */
apr_status_t yk_store_evidence(yk_store_t *store, yk_evidence_t **evidence,
                               uint32_t tenant_id, const char *key,
                               apr_pool_t *p);

apr_status_t yk_store_over(yk_store_t *store, yk_over_t **over, uint32_t *n,
                           uint32_t tenant_id, apr_pool_t *p);

/** A row of the journal, in any order; `change` is its JSON. */
void yk_evidence_replay(yk_evidence_t *evidence, const char *change,
                        apr_size_t len);

/* ---- judging ---- */

/** So many are told apart; the rest is counted. */
#define YK_VERIFY_KEPT 100

typedef struct yk_finding_t {
    yk_finding_e kind;
    const char *slot; /**< "" for a limit */
    const char *text; /**< one sentence */
} yk_finding_t;

typedef struct yk_verified_t {
    apr_pool_t *p;
    uint64_t slots, places, free, held, booked, not_for_sale, lines, journal;
    uint64_t pooled; /**< sold or held in pools */
    uint64_t faults; /**< all of them */
    uint32_t nfindings;
    yk_finding_t findings[YK_VERIFY_KEPT];
} yk_verified_t;

yk_verified_t *yk_verified_make(apr_pool_t *p);

/** Add what is to be said about one slot. */
void yk_verify_slot(yk_verified_t *verified, const yk_evidence_t *evidence);

/**
 * A slot, or all of a tenant, and the tenant's limits.
 * @param slot NULL: all
 * @return APR_NOTFOUND: no such slot
 */
apr_status_t yk_verify(yk_store_t *store, yk_verified_t **verified,
                       uint32_t tenant_id, const char *slot, apr_pool_t *p);

#endif
