/* SPDX-License-Identifier: Apache-2.0 */
#include "lane_run.h"
#include <apr_strings.h>
#include <string.h>

/* The desk's calls: each says what is asked, and has it done. */

void yk_deed_make(yk_deed_t *deed, yk_desk_t *desk, const yk_ask_t *ask,
                  yk_reply_t *reply, apr_pool_t *p)
{
    static const struct {
        yk_plan_fn *plan;
        yk_decide_fn *decide;
    } kinds[] = {
#define ASK_KIND(name, plan, decide) {plan, decide},
        YK_ASKS(ASK_KIND)
#undef ASK_KIND
    };

    memset(deed, 0, sizeof(*deed));
    deed->desk = desk;
    deed->ask = ask;
    deed->plan = kinds[ask->kind].plan;
    deed->decide = kinds[ask->kind].decide;
    deed->reply = reply;
    deed->claim = ask->claim;
    deed->once = ask->once;
    deed->begins = ask->kind == YK_ASK_HOLD;
    deed->p = p;
}

void yk_deed_make_token(yk_deed_t *deed)
{
    if (!deed->begins || deed->token != NULL) {
        return;
    }
    if (deed->once == NULL) {
        deed->token = yk_token_make(deed->p);
        return;
    }
    yk_token_salt(deed->salt);
    deed->token = yk_token_derive(deed->once->key, deed->salt, deed->p);
}

yk_desk_t *yk_desk_make(yk_store_t *store, yk_catalogue_t *catalogue,
                        const yk_terms_t *terms, apr_pool_t *p)
{
    yk_desk_t *desk = apr_pcalloc(p, sizeof(*desk));

    desk->store = store;
    desk->catalogue = catalogue;
    desk->terms = *terms;
    desk->p = p;
    return desk;
}

static apr_status_t have_done(yk_desk_t *desk, yk_reply_t *reply,
                              const yk_ask_t *ask, apr_pool_t *p)
{
    yk_deed_t deed;

    yk_deed_make(&deed, desk, ask, reply, p);
    return desk->lane != NULL ? yk_lane_run(&deed) : yk_deed_run(&deed);
}

/* The journal's words: "cancel", or "cancel: REASON". */
static const char *say_why(const char *why, const char *reason, apr_pool_t *p)
{
    return reason == NULL || reason[0] == '\0'
               ? why
               : apr_pstrcat(p, why, ": ", reason, NULL);
}

/* A change that needs no more than its name. */
static apr_status_t change(yk_desk_t *desk, yk_reply_t *reply, yk_ask_e kind,
                           const char *why, const yk_claim_t *claim,
                           const yk_once_t *once, apr_pool_t *p)
{
    yk_ask_t ask = {.kind = kind, .claim = claim, .once = once, .why = why};

    return have_done(desk, reply, &ask, p);
}

apr_status_t yk_desk_hold(yk_desk_t *desk, yk_reply_t *reply,
                          const yk_wish_t *wish, const yk_claim_t *claim,
                          const yk_once_t *once, apr_pool_t *p)
{
    yk_ask_t ask = {.kind = YK_ASK_HOLD,
                    .claim = claim,
                    .once = once,
                    .wish = wish,
                    .why = "hold"};

    return have_done(desk, reply, &ask, p);
}

apr_status_t yk_desk_exchange(yk_desk_t *desk, yk_reply_t *reply,
                              const yk_give_t *give, uint32_t ngive,
                              const yk_wish_t *take, int64_t amount,
                              const char *currency, const char *reason,
                              const yk_claim_t *claim, const yk_once_t *once,
                              apr_pool_t *p)
{
    yk_ask_t ask = {.kind = YK_ASK_EXCHANGE,
                    .claim = claim,
                    .once = once,
                    .wish = take,
                    .give = give,
                    .ngive = ngive,
                    .amount = amount,
                    .currency = currency,
                    .why = say_why("exchange", reason, p)};

    return have_done(desk, reply, &ask, p);
}

apr_status_t yk_desk_remove(yk_desk_t *desk, yk_reply_t *reply, uint32_t line,
                            const yk_claim_t *claim, const yk_once_t *once,
                            apr_pool_t *p)
{
    yk_give_t give = {line, 0};
    yk_ask_t ask = {.kind = YK_ASK_EXCHANGE,
                    .claim = claim,
                    .once = once,
                    .give = &give,
                    .ngive = 1,
                    .amount = -1,
                    .why = "remove"};

    return have_done(desk, reply, &ask, p);
}

apr_status_t yk_desk_checkout(yk_desk_t *desk, yk_reply_t *reply,
                              const yk_claim_t *claim, const yk_once_t *once,
                              apr_pool_t *p)
{
    return change(desk, reply, YK_ASK_CHECKOUT, "checkout", claim, once, p);
}

apr_status_t yk_desk_reopen(yk_desk_t *desk, yk_reply_t *reply,
                            const yk_claim_t *claim, const yk_once_t *once,
                            apr_pool_t *p)
{
    return change(desk, reply, YK_ASK_REOPEN, "reopen", claim, once, p);
}

apr_status_t yk_desk_confirm(yk_desk_t *desk, yk_reply_t *reply,
                             const yk_payment_t *payment,
                             const yk_claim_t *claim, const yk_once_t *once,
                             apr_pool_t *p)
{
    yk_ask_t ask = {.kind = YK_ASK_CONFIRM,
                    .claim = claim,
                    .once = once,
                    .payment = payment,
                    .why = "confirm"};

    return have_done(desk, reply, &ask, p);
}

apr_status_t yk_desk_release(yk_desk_t *desk, yk_reply_t *reply,
                             const char *reason, const yk_claim_t *claim,
                             const yk_once_t *once, apr_pool_t *p)
{
    return change(desk, reply, YK_ASK_RELEASE, say_why("release", reason, p),
                  claim, once, p);
}

apr_status_t yk_desk_cancel(yk_desk_t *desk, yk_reply_t *reply,
                            const char *reason, const yk_claim_t *claim,
                            const yk_once_t *once, apr_pool_t *p)
{
    return change(desk, reply, YK_ASK_CANCEL, say_why("cancel", reason, p),
                  claim, once, p);
}

apr_status_t yk_desk_patch(yk_desk_t *desk, yk_reply_t *reply,
                           const yk_patch_t *patch, const yk_claim_t *claim,
                           const yk_once_t *once, apr_pool_t *p)
{
    yk_ask_t ask = {.kind = YK_ASK_PATCH,
                    .claim = claim,
                    .once = once,
                    .patch = patch,
                    .why = "patch"};

    return have_done(desk, reply, &ask, p);
}

apr_status_t yk_desk_look(yk_desk_t *desk, yk_reply_t *reply,
                          const yk_claim_t *claim, apr_pool_t *p)
{
    yk_order_t *order;
    apr_status_t rv;

    memset(reply, 0, sizeof(*reply));
    rv = yk_claim_read(claim, desk, &order, &reply->now_us, p);
    if (rv == APR_NOTFOUND) {
        reply->answer = YK_ANSWER_UNKNOWN;
        reply->field = "order";
        return APR_SUCCESS;
    }
    if (rv == APR_SUCCESS) {
        reply->answer = YK_ANSWER_OK;
        reply->order = order;
    }
    return rv == APR_EBUSY ? APR_TIMEUP : rv;
}
