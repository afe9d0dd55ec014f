/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YK_ASK_H
#define YK_ASK_H

#include "deed.h"

/**
 * @file ask.h
 * @brief What is asked of the desk, as one flat thing: for whoever does it now
 *        (ask.c), with others in one transaction (batch.c), or in another
 *        process (the lanes).
 */

/** X(NAME, plan, decide): a plan and a decision make a deed. */
#define YK_ASKS(X)                                                             \
    X(HOLD, yk_hold_plan, yk_hold_decide)                                      \
    X(EXCHANGE, yk_exchange_plan, yk_exchange_decide)                          \
    X(CHECKOUT, yk_deed_plan_order, yk_checkout_decide)                        \
    X(REOPEN, yk_deed_plan_order, yk_reopen_decide)                            \
    X(CONFIRM, yk_confirm_plan, yk_confirm_decide)                             \
    X(RELEASE, yk_deed_plan_order, yk_release_decide)                          \
    X(CANCEL, yk_deed_plan_order, yk_cancel_decide)                            \
    X(PATCH, yk_patch_plan, yk_patch_decide)

typedef enum yk_ask_e {
#define YK_ASK_ENUM(name, plan, decide) YK_ASK_##name,
    YK_ASKS(YK_ASK_ENUM)
#undef YK_ASK_ENUM
        YK_ASK_COUNT
} yk_ask_e;

#define YK_ASK_DECLARE(name, plan, decide)                                     \
    yk_plan_fn plan;                                                           \
    yk_decide_fn decide;
YK_ASKS(YK_ASK_DECLARE)
#undef YK_ASK_DECLARE

struct yk_ask_t {
    yk_ask_e kind;
    const yk_claim_t *claim;
    const yk_once_t *once;
    const yk_wish_t *wish; /**< hold; exchange: NULL takes nothing */
    const yk_give_t *give; /**< exchange */
    uint32_t ngive;
    int64_t amount; /**< exchange; -1 not said */
    const char *currency;
    const yk_payment_t *payment; /**< confirm; NULL: by the booker */
    const yk_patch_t *patch;
    const char *why; /**< for the journal */
};

/** Make a deed of it; the reply is filled when the deed is run. */
void yk_deed_make(yk_deed_t *deed, yk_desk_t *desk, const yk_ask_t *ask,
                  yk_reply_t *reply, apr_pool_t *p);

/** The token of the order it may begin, once: in a lane it goes along with the
 *  wish, so that its owner knows it whatever becomes of the leader. */
void yk_deed_make_token(yk_deed_t *deed);

#endif
