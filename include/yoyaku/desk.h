/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YOYAKU_DESK_H
#define YOYAKU_DESK_H

#include <apr_pools.h>
#include "answer.h"
#include "catalogue.h"
#include "order.h"
#include "store.h"
#include "wish.h"

/**
 * @file desk.h
 * @brief The desk: everything that can happen to an order.
 *
 * Each call is one thing a booker, a shop or the clock does, done whole or not
 * at all. It plans from the catalogue, locks through the store, decides in C,
 * writes, and begins again when the ground moved (a deadlock, a changed order,
 * a new price) until the terms' wait is over.
 *
 * What it reports. APR_SUCCESS: reply->answer says what came of it. APR_TIMEUP:
 * busy, nothing was written. APR_ECONNRESET: away, nothing was written.
 * APR_INCOMPLETE: unresolved; for a hold reply->order (number) and reply->token
 * are set.
 *
 * Where it lives. A desk is made per request from a store and a catalogue; it
 * is as good for one thread as its store is.
 */

typedef enum yk_confirm_e {
    YK_CONFIRM_FREE,   /**< a booker confirms what costs nought */
    YK_CONFIRM_BOOKER, /**< a booker confirms anything: paid at the door */
    YK_CONFIRM_SHOP    /**< only the shop confirms */
} yk_confirm_e;

/** What the configuration says for this request, and who is asking. */
typedef struct yk_terms_t {
    uint32_t tenant_id;
    const char *booker; /**< "" when none */
    int booker_required;
    int shop;        /**< 1: asked by the shop handler or the tool */
    const char *who; /**< for the journal: booker, shop user, "ctl" */
    yk_confirm_e confirm;
    apr_interval_time_t hold_ttl, hold_max_lifetime, checkout_ttl, wait;
    uint32_t hold_places; /**< most places of one order */
    uint64_t pass;        /**< number of the pass in a waiting room under
                               which an order begins; 0: none */
} yk_terms_t;

typedef struct yk_desk_t yk_desk_t;

yk_desk_t *yk_desk_make(yk_store_t *store, yk_catalogue_t *catalogue,
                        const yk_terms_t *terms, apr_pool_t *p);

typedef struct yk_refused_place_t {
    const char *slot;
    const char *place;
} yk_refused_place_t;

/** What came of it. Only the members an answer has are set. */
typedef struct yk_reply_t {
    yk_answer_e answer;
    int replayed; /**< the first answer again */
    int created;  /**< an order was begun: 201; else 200 */

    const yk_order_t *order; /**< as it stands after the call; NULL if none */
    apr_time_t now_us;       /**< the database's clock of this answer */
    apr_interval_time_t lane_us; /**< time in a lane; 0: by none */
    const char *token;           /**< only of a hold that began the order */
    int seating;        /**< yk_seating_e of the party, 0 without one */
    int late;           /**< confirmed past the deadline */
    int64_t difference; /**< exchange of a confirmed order */

    const char *field;                /**< what was wrong: "lines[2].tariff" */
    const char *allowed;              /**< what would have been right */
    const char *slot, *area, *tariff; /**< where it was refused */
    int64_t free;                     /**< sold_out: how many are left */
    uint32_t nplaces;                 /**< taken: which ones */
    yk_refused_place_t *places;
    int complete;      /**< taken: are these all of them */
    const char *limit; /**< limit: "per order over slot hamlet-24" */
    const char *scope; /**< limit: order | slot | resource | series | all */
    int64_t max, have, asked;
    const char *state; /**< state, not_on_sale: what it is now */
    apr_time_t opens, closes;
    uint32_t attempt; /**< attempt: the current one */
    int64_t total;    /**< amount: the order's total */
    const char *currency;
} yk_reply_t;

/** Which order: by token (booker) or by number (shop). */
typedef struct yk_claim_t {
    const yk_hash_t *token; /**< NULL: by number */
    uint64_t order_id;
    int weak; /**< from a cookie: an ended order counts as none */
} yk_claim_t;

/**
 * Hold what is wished for: begin an order, or add to the one claimed.
 * @param claim NULL: none in hand
 * @param once  NULL: no key
 * answers: HELD, OK (hold and confirm; or nothing new), and every refusal
 */
apr_status_t yk_desk_hold(yk_desk_t *desk, yk_reply_t *reply,
                          const yk_wish_t *wish, const yk_claim_t *claim,
                          const yk_once_t *once, apr_pool_t *p);

/** Give lines, take others, whole or nothing. amount -1: not said. */
apr_status_t yk_desk_exchange(yk_desk_t *desk, yk_reply_t *reply,
                              const yk_give_t *give, uint32_t ngive,
                              const yk_wish_t *take, int64_t amount,
                              const char *currency, const char *reason,
                              const yk_claim_t *claim, const yk_once_t *once,
                              apr_pool_t *p);

/** Take one line out of the order; the last one releases it. */
apr_status_t yk_desk_remove(yk_desk_t *desk, yk_reply_t *reply, uint32_t line,
                            const yk_claim_t *claim, const yk_once_t *once,
                            apr_pool_t *p);

apr_status_t yk_desk_checkout(yk_desk_t *desk, yk_reply_t *reply,
                              const yk_claim_t *claim, const yk_once_t *once,
                              apr_pool_t *p);
apr_status_t yk_desk_reopen(yk_desk_t *desk, yk_reply_t *reply,
                            const yk_claim_t *claim, const yk_once_t *once,
                            apr_pool_t *p);

/** What the shop says of a payment. */
typedef struct yk_payment_t {
    uint32_t attempt;
    int64_t amount;
    const char *currency; /**< "" when nothing is due */
    const char *payment;  /**< the shop's own reference */
} yk_payment_t;

/** @param payment NULL: the booker confirms, as terms allow */
apr_status_t yk_desk_confirm(yk_desk_t *desk, yk_reply_t *reply,
                             const yk_payment_t *payment,
                             const yk_claim_t *claim, const yk_once_t *once,
                             apr_pool_t *p);

apr_status_t yk_desk_release(yk_desk_t *desk, yk_reply_t *reply,
                             const char *reason, const yk_claim_t *claim,
                             const yk_once_t *once, apr_pool_t *p);

/** Confirmed -> cancelled; the shop's alone. */
apr_status_t yk_desk_cancel(yk_desk_t *desk, yk_reply_t *reply,
                            const char *reason, const yk_claim_t *claim,
                            const yk_once_t *once, apr_pool_t *p);

typedef struct yk_holder_t {
    uint32_t line;
    const char *holder;
} yk_holder_t;

/** Texts of an order; NULL: leave as it is. */
typedef struct yk_patch_t {
    const char *reference, *contact, *data;
    uint32_t nholders;
    yk_holder_t *holders;
} yk_patch_t;

apr_status_t yk_desk_patch(yk_desk_t *desk, yk_reply_t *reply,
                           const yk_patch_t *patch, const yk_claim_t *claim,
                           const yk_once_t *once, apr_pool_t *p);

/** Look at an order. answers: OK, UNKNOWN */
apr_status_t yk_desk_look(yk_desk_t *desk, yk_reply_t *reply,
                          const yk_claim_t *claim, apr_pool_t *p);

/**
 * Settle due orders, oldest first, at most 64. Harmless when two do it.
 * @param settled how many
 */
apr_status_t yk_desk_sweep(yk_desk_t *desk, uint32_t *settled, apr_pool_t *p);

#endif
