/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YK_DEED_H
#define YK_DEED_H

#include "yoyaku/desk.h"
#include "yoyaku/lane.h"

/**
 * @file deed.h
 * @brief One thing being done at the desk, from its first plan to its answer.
 *
 *   plan     what rows are concerned; refuses what needs no lock to refuse
 *   lock     the store's packet 1
 *   decide   in the ledger; may refuse, or find that it planned too little
 *   write    packet 2, or ROLLBACK
 *
 * deed.c runs the four, again and again while the ground moves; every kind of
 * deed (hold.c, confirm.c, ...) is a plan and a decision.
 */

typedef enum yk_verdict_e {
    YK_VERDICT_DONE,    /**< write what changed; reply->answer is the answer */
    YK_VERDICT_REFUSED, /**< roll back; reply->answer says why */
    YK_VERDICT_AGAIN    /**< the plan was too old: plan anew */
} yk_verdict_e;

/** Where a refusal (or a spread party) rests on a count: orders due under it
 *  are settled before it is final. */
typedef struct yk_bound_t {
    yk_anchor_key_t anchor;
    unsigned char booker_hash[16];
} yk_bound_t;

typedef struct yk_deed_t yk_deed_t;
typedef struct yk_ask_t yk_ask_t;

/** @return APR_SUCCESS, or a status of the store's. Sets deed->refused when
 *          the answer needs no locks. */
typedef apr_status_t yk_plan_fn(yk_deed_t *deed);
typedef yk_verdict_e yk_decide_fn(yk_deed_t *deed);

struct yk_deed_t {
    /* set by the caller */
    yk_desk_t *desk;
    yk_plan_fn *plan;
    yk_decide_fn *decide;
    yk_reply_t *reply;
    const yk_claim_t *claim;
    const yk_once_t *once;
    const yk_ask_t *ask;
    int begins;    /**< it may begin an order: a hold */
    apr_pool_t *p; /**< the reply's */

    uint64_t change_id;  /**< for the journal; 0: any */
    apr_time_t deadline; /**< steady clock; 0: the terms' wait from now */
    int led;             /**< its own process led its batch */
    int maybe_done;      /**< it may have been done by one that died */

    const yk_claimed_t *claimed; /**< its claim was read with others */
    apr_time_t claimed_at;

    /* of this attempt */
    apr_pool_t *pt;
    yk_ledger_t *ledger;
    yk_order_t *seen;    /**< the claimed order as planned with, or NULL */
    yk_order_row_t *row; /**< it (or the one begun) in the ledger */
    uint64_t order_id;   /**< the row's, once decided */
    uint32_t nanchors, nplaces;
    yk_anchor_key_t *anchors; /**< rows this deed wanted */
    yk_place_t *places;
    const yk_slot_t **slots; /**< all slots concerned */
    uint32_t nslots, slot_space;
    int stale;      /**< a slot came from memory */
    int may_be_old; /**< the refusal rests on what operators change */
    int refused;    /**< the plan's refusal */
    uint32_t nbounds, bound_space;
    yk_bound_t *bounds;
    void *own; /**< what plan hands to decide */

    /* over attempts */
    int fresh;              /**< read slots from the book */
    int claim_void;         /**< a cookie's order turned out to be over */
    unsigned char salt[16]; /**< of the token of an order begun */
    const char *token;
};

struct yk_desk_t {
    yk_store_t *store;
    yk_catalogue_t *catalogue;
    yk_terms_t terms;
    const yk_lane_host_t *lane; /**< NULL: without */
    apr_pool_t *p;
};

/** Do it. Statuses as desk.h says. */
apr_status_t yk_deed_run(yk_deed_t *deed);

/* The steps, for those who do several deeds in one ledger. */

/** Plan into a ledger that is not locked yet; deed->pt is set. */
apr_status_t yk_deed_plan(yk_deed_t *deed, yk_ledger_t *ledger);
/** After the locks: did a row not come back?
 *  @param skipped 1: of those that SKIP LOCKED passes by, because somebody else
 *         has them; 0: of all */
int yk_deed_lacks(const yk_deed_t *deed, int skipped);
/** After the locks: is what the plan rested on still so? */
int yk_deed_plan_holds(yk_deed_t *deed);
/** The row of its idempotency key, or NULL without one. */
yk_once_row_t *yk_deed_once(const yk_deed_t *deed);
/** Undo since the mark, and take the order out of the reply. */
void yk_deed_take_back(yk_deed_t *deed);
/** Fill the row of its key, to be written. */
void yk_deed_remember(yk_deed_t *deed);

/** Set a refusal; for `return yk_deed_refuse(...)` in plan and decide. */
yk_verdict_e yk_deed_refuse(yk_deed_t *deed, yk_answer_e answer);
/** The same for a wrong field. */
yk_verdict_e yk_deed_refuse_field(yk_deed_t *deed, yk_answer_e answer,
                                  const char *field, const char *allowed);

/* ---- planning ---- */

/** A slot by key or number, remembered in deed->slots, its version wanted.
 *  APR_NOTFOUND. */
apr_status_t yk_deed_slot(yk_deed_t *deed, const yk_slot_t **slot,
                          const char *key);
apr_status_t yk_deed_slot_by_id(yk_deed_t *deed, const yk_slot_t **slot,
                                uint64_t slot_id);
/** One that was planned with; never NULL for a line of a planned order. */
const yk_slot_t *yk_deed_slot_known(const yk_deed_t *deed, uint64_t slot_id);

/** The order a claim names, as the book has it. APR_NOTFOUND. */
apr_status_t yk_claim_read(const yk_claim_t *claim, yk_desk_t *desk,
                           yk_order_t **order, apr_time_t *now, apr_pool_t *p);
/** Read the claimed order into deed->seen, or refuse UNKNOWN. */
apr_status_t yk_deed_claim(yk_deed_t *deed);

/** Want every row of an order: its anchors, places, itself.
 *  @param all 1: of lines that no longer count, too (late confirm) */
apr_status_t yk_deed_want_order(yk_deed_t *deed, const yk_order_t *order,
                                int all);
/** Want the booker's anchor where a limit reaches this slot, and his lines. */
void yk_deed_want_booker(yk_deed_t *deed, const yk_slot_t *slot,
                         const char *booker);
/** The price a line was made with, or NULL. */
const yk_price_t *yk_deed_price(const yk_slot_t *slot, uint32_t price_no);

/** Plan of every deed on an existing order: claim it, want its rows. */
apr_status_t yk_deed_plan_order(yk_deed_t *deed);

/* ---- deciding ---- */

/** In time: before its deadline, and all its live places still its own. */
int yk_deed_in_time(yk_deed_t *deed, const yk_order_t *order);

/** Touch the order's row, with the journal's words. */
void yk_deed_touch(yk_deed_t *deed, yk_order_row_t *row, const char *why);

/** Write state and deadline into the place rows that are still this order's. */
void yk_deed_stamp_places(yk_deed_t *deed, yk_order_row_t *row);

/** Give `quantity` of a line back (0: all of it). What is given back to
 *  pool, quota and map is exactly that. */
void yk_deed_give(yk_deed_t *deed, yk_order_row_t *row, yk_line_t *line,
                  uint32_t quantity, int remove);

/** Take (or with a negative quantity give) from the counts a line is under.
 *  @return 1, or 0 with reply and bounds set and nothing changed */
int yk_deed_count(yk_deed_t *deed, yk_order_row_t *row, const yk_line_t *line,
                  int64_t quantity);

/** What the order has taken on balance of a count, in this deed. */
int64_t yk_deed_net(const yk_order_row_t *row, const yk_anchor_key_t *key);

/** Say that the answer rests on this count (booker_hash NULL: not a
 *  booker's). */
void yk_deed_bound(yk_deed_t *deed, const yk_anchor_key_t *anchor,
                   const unsigned char *booker_hash);

/** Give everything back and end the order in `state`. */
void yk_deed_end(yk_deed_t *deed, yk_order_row_t *row, yk_order_state_e state,
                 const char *why);

/** Confirm: state, time, places booked. */
void yk_deed_book(yk_deed_t *deed, yk_order_row_t *row, const char *why);

/** Adding or exchanging renews a held order's deadline. */
void yk_deed_renew(yk_deed_t *deed, yk_order_row_t *row);

/** Refuse because the order is over: EXPIRED or STATE. */
yk_verdict_e yk_deed_refuse_ended(yk_deed_t *deed, const yk_order_t *order);

/** YoyakuConfirm: may who asks confirm this order without a payment? */
int yk_deed_booker_may_confirm(const yk_deed_t *deed, const yk_order_t *order);

/** What limits look at: so many of a slot. */
typedef struct yk_load_t {
    const yk_slot_t *slot; /**< NULL for another order's line, then: */
    uint64_t slot_id;
    const char *key, *resource, *series;
    uint32_t quantity;
} yk_load_t;

/**
 * May an order that had `had` (before anything was given), keeps `kept`, take
 * `asked`? Only the net is refused.
 * @return 1, or 0 with reply and bounds set
 */
int yk_limit_check(yk_deed_t *deed, const yk_order_t *order,
                   const yk_load_t *had, uint32_t nhad, const yk_load_t *kept,
                   uint32_t nkept, const yk_load_t *asked, uint32_t nasked);

/**
 * YoyakuHoldPlaces, and how many lines an order may have had. Not asked by who
 * takes again what an order was allowed before: its places may have been held
 * under other terms than the shop's.
 */
int yk_limit_size(yk_deed_t *deed, const yk_order_t *order,
                  const yk_load_t *had, uint32_t nhad, const yk_load_t *kept,
                  uint32_t nkept, const yk_load_t *asked, uint32_t nasked);

/** An order's live lines as loads. */
yk_load_t *yk_limit_loads(yk_deed_t *deed, uint32_t *n, const yk_order_t *order,
                          uint32_t more);

/* ---- taking: take.c ---- */

/** A wish with its names found, made by yk_take_plan(). */
typedef struct yk_take_t yk_take_t;

/** Find the names of a wish, want its rows; sets deed->refused. */
apr_status_t yk_take_plan(yk_deed_t *deed, yk_take_t **take,
                          const yk_wish_t *wish);
/** Is everything wished for on sale now? Also checks closed areas. */
int yk_take_on_sale(yk_deed_t *deed, const yk_take_t *take);
/** What is asked beyond what the order has. */
yk_load_t *yk_take_loads(yk_deed_t *deed, uint32_t *n, const yk_take_t *take,
                         const yk_order_t *order);
/** Take it all for the order, or say why not (then undo).
 *  @param taken how many places or counts were taken */
yk_verdict_e yk_take_all(yk_deed_t *deed, yk_order_row_t *row,
                         const yk_take_t *take, uint32_t *taken);

/** A seat of an assigned area: give its bit back to the map, or take it. */
void yk_deed_map(yk_deed_t *deed, const yk_slot_t *slot, uint32_t area_no,
                 uint32_t place_no, int is_free);

/** Settle these orders if they are due, at most 64.
 *  @param settled may be NULL */
apr_status_t yk_settle(yk_desk_t *desk, uint32_t *settled,
                       const uint64_t *order_ids, uint32_t n);

#endif
