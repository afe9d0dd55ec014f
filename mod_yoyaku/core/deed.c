/* SPDX-License-Identifier: Apache-2.0 */
#include "ask.h"
#include "yoyaku/log.h"
#include <apr_strings.h>
#include <stdio.h>
#include <string.h>

/* New lines tried before the database counts as away. */
#define LINES_TRIED 3
/* Plans tried at once, before the first pause. */
#define TRIED_AT_ONCE 3

yk_verdict_e yk_deed_refuse(yk_deed_t *deed, yk_answer_e answer)
{
    deed->reply->answer = answer;
    deed->refused = 1;
    return YK_VERDICT_REFUSED;
}

yk_verdict_e yk_deed_refuse_field(yk_deed_t *deed, yk_answer_e answer,
                                  const char *field, const char *allowed)
{
    deed->reply->field = field;
    deed->reply->allowed = allowed;
    return yk_deed_refuse(deed, answer);
}

/* A pause of up to 4, 8, ... 64 ms, so that deadlocked twins part. */
static void pause_briefly(int attempt)
{
    unsigned short dice;
    int most_ms = attempt > 4 ? 64 : 4 << attempt;

    yk_secret_random(&dice, sizeof(dice));
    apr_sleep(apr_time_from_msec(1 + dice % most_ms));
}

/* The first answer again: what stands under the key, rendered anew. */
static apr_status_t replay(yk_deed_t *deed, const yk_once_row_t *once)
{
    yk_reply_t *reply = deed->reply;
    yk_order_t *order;
    yk_hash_t hash;
    long long difference = 0;
    apr_status_t rv;

    memset(reply, 0, sizeof(*reply));
    if (!yk_secret_equal(&once->request, &deed->once->request,
                         sizeof(yk_hash_t))) {
        yk_deed_refuse_field(deed, YK_ANSWER_KEY_REUSED, "Idempotency-Key",
                             "a key for each request");
        return APR_SUCCESS;
    }
    rv = yk_store_order(deed->desk->store, &order, &reply->now_us,
                        once->tenant_id, once->order_id, deed->p);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    deed->refused = 0;
    reply->replayed = 1;
    reply->answer = once->answer;
    reply->created = once->status == 201;
    reply->order = order;
    if (sscanf(once->extra, "%d %d %lld", &reply->seating, &reply->late,
               &difference) == 3) {
        reply->difference = difference;
    }
    if (deed->begins) {
        const char *token =
            yk_token_derive(deed->once->key, once->salt, deed->p);

        if (yk_token_hash(&hash, token) == APR_SUCCESS &&
            yk_secret_equal(&hash, &order->token_hash, sizeof(hash))) {
            reply->token = token;
        }
    }
    return APR_SUCCESS;
}

/* A deed refused before any lock may be the repetition of one that worked. */
static apr_status_t replay_if_done(yk_deed_t *deed)
{
    yk_ledger_t *l = yk_ledger_make(deed->pt);
    apr_status_t rv;

    if (deed->once == NULL) {
        return APR_SUCCESS;
    }
    yk_ledger_want_once(l, deed->desk->terms.tenant_id, &deed->once->scope);
    rv = yk_store_lock(deed->desk->store, l);
    yk_store_rollback(deed->desk->store);
    if (rv == APR_SUCCESS && l->onces[0].found) {
        rv = replay(deed, &l->onces[0]);
    }
    return rv;
}

yk_once_row_t *yk_deed_once(const yk_deed_t *deed)
{
    return deed->once == NULL
               ? NULL
               : yk_ledger_once(deed->ledger, deed->desk->terms.tenant_id,
                                &deed->once->scope);
}

/* What the plan wanted stands last in the ledger's lists until it is sorted:
 * kept apart, since several deeds may share a ledger. */
static void keep_wants(yk_deed_t *deed, uint32_t nanchors, uint32_t nplaces)
{
    const yk_ledger_t *l = deed->ledger;

    deed->nanchors = l->nanchors - nanchors;
    deed->anchors =
        apr_pcalloc(deed->pt, (deed->nanchors + 1) * sizeof(*deed->anchors));
    for (uint32_t i = 0; i < deed->nanchors; i++) {
        deed->anchors[i] = l->anchors[nanchors + i].key;
    }
    deed->nplaces = l->nplaces - nplaces;
    deed->places =
        apr_pcalloc(deed->pt, (deed->nplaces + 1) * sizeof(*deed->places));
    for (uint32_t i = 0; i < deed->nplaces; i++) {
        deed->places[i] = l->places[nplaces + i];
    }
}

apr_status_t yk_deed_plan(yk_deed_t *deed, yk_ledger_t *ledger)
{
    uint32_t nanchors = ledger->nanchors, nplaces = ledger->nplaces;
    apr_status_t rv;

    memset(deed->reply, 0, sizeof(*deed->reply));
    deed->ledger = ledger;
    deed->seen = NULL;
    deed->row = NULL;
    deed->nslots = deed->slot_space = 0;
    deed->stale = deed->may_be_old = deed->refused = 0;
    deed->nbounds = deed->bound_space = 0;
    rv = deed->plan(deed);
    keep_wants(deed, nanchors, nplaces);
    if (rv == APR_SUCCESS && !deed->refused && deed->once != NULL) {
        yk_ledger_want_once(ledger, deed->desk->terms.tenant_id,
                            &deed->once->scope);
    }
    return rv;
}

int yk_deed_lacks(const yk_deed_t *deed, int skipped)
{
    yk_ledger_t *l = deed->ledger;

    for (uint32_t i = 0; i < deed->nanchors; i++) {
        const yk_anchor_key_t *key = &deed->anchors[i];

        if ((!skipped || key->kind == YK_ANCHOR_BOOKER) &&
            !yk_ledger_anchor(l, key->kind, key->owner, key->no)->found) {
            return 1;
        }
    }
    for (uint32_t i = 0; i < deed->nplaces; i++) {
        const yk_place_t *place = &deed->places[i];

        if (!yk_ledger_place(l, place->slot_id, place->place_no)->found) {
            return 1;
        }
    }
    return 0;
}

int yk_deed_plan_holds(yk_deed_t *deed)
{
    yk_ledger_t *l = deed->ledger;
    int holds = !yk_deed_lacks(deed, 0);

    for (uint32_t i = 0; i < deed->nslots; i++) {
        const yk_slot_t *slot = deed->slots[i];
        const yk_version_t *v = yk_ledger_version(l, slot->slot_id);

        if (v == NULL || !v->found || v->version != slot->version ||
            v->tenant_version != slot->tenant_version) {
            yk_catalogue_drop(deed->desk->catalogue, slot->slot_id);
            holds = 0;
        }
    }
    if (deed->seen != NULL) {
        deed->row = yk_ledger_order(l, deed->seen->order_id);
        holds = holds && deed->row != NULL && deed->row->found &&
                deed->row->order->version == deed->seen->version;
    }
    return holds;
}

/* Orders due under the bound are settled first; then the deed begins again. */
static apr_status_t settle_under_bound(yk_deed_t *deed, int *again)
{
    yk_store_t *store = deed->desk->store;
    uint64_t *ids;
    uint32_t n = 0;
    apr_status_t rv = APR_SUCCESS;

    for (uint32_t i = 0; rv == APR_SUCCESS && n == 0 && i < deed->nbounds;
         i++) {
        rv = yk_store_due_under(store, &ids, &n, deed->ledger,
                                &deed->bounds[i].anchor,
                                deed->bounds[i].booker_hash, deed->pt);
    }
    if (rv != APR_SUCCESS || n == 0) {
        return rv;
    }
    yk_store_rollback(store);
    *again = 1;
    return yk_settle(deed->desk, NULL, ids, n);
}

/* The COMMIT's answer was lost: the same locks tell whether it happened. */
static apr_status_t find_fate(yk_deed_t *deed, int *again, apr_time_t deadline)
{
    apr_status_t rv;
    int done = 0;

    do {
        rv = yk_store_fate(deed->desk->store, &done, deed->ledger, deed->pt);
        if (rv == APR_SUCCESS) {
            yk_log(YK_LOG_WARNING, 0,
                   "YK0302: core: the line to the database broke during "
                   "COMMIT; the same locks told that it %s",
                   done ? "was done" : "was not done");
            *again = !done;
            return APR_SUCCESS;
        }
        pause_briefly(4);
    } while (yk_state_now() < deadline);
    yk_log(YK_LOG_WARNING, rv,
           "YK0303: core: the fate of a COMMIT is not known; the visitor was "
           "told so");
    return APR_INCOMPLETE;
}

void yk_deed_remember(yk_deed_t *deed)
{
    yk_once_row_t *once = yk_deed_once(deed);
    yk_reply_t *reply = deed->reply;

    if (once == NULL) {
        return;
    }
    once->request = deed->once->request;
    once->order_id = deed->row->order_id;
    memcpy(once->salt, deed->salt, sizeof(once->salt));
    once->answer = reply->answer;
    once->status = reply->created ? 201 : 200;
    once->extra =
        apr_psprintf(deed->pt, "%d %d %" APR_INT64_T_FMT, reply->seating,
                     reply->late, (apr_int64_t)reply->difference);
    once->is_new = 1;
}

static apr_status_t write_down(yk_deed_t *deed, int *again, apr_time_t deadline)
{
    yk_store_t *store = deed->desk->store;
    apr_status_t rv = APR_SUCCESS;

    if (yk_ledger_is_clean(deed->ledger)) {
        yk_store_rollback(store);
    }
    else {
        yk_deed_remember(deed);
        rv = yk_store_write(store, deed->ledger);
        if (rv == APR_INCOMPLETE) {
            rv = find_fate(deed, again, deadline);
        }
        if (rv == APR_TIMEUP && deed->once != NULL) {
            /* Only a twin's key can be waited for once all is locked. */
            deed->reply->answer = YK_ANSWER_IN_PROGRESS;
        }
    }
    if (deed->row != NULL) {
        deed->reply->order = deed->row->order;
    }
    return rv;
}

void yk_deed_take_back(yk_deed_t *deed)
{
    yk_ledger_undo(deed->ledger);
    deed->reply->token = NULL;
    deed->reply->order = deed->seen != NULL ? deed->row->order : NULL;
}

static apr_status_t decide_and_write(yk_deed_t *deed, int *again,
                                     apr_time_t deadline)
{
    yk_store_t *store = deed->desk->store;
    yk_verdict_e verdict;
    apr_status_t rv = APR_SUCCESS;

    yk_ledger_mark(deed->ledger);
    verdict = deed->decide(deed);
    if (verdict != YK_VERDICT_AGAIN && deed->nbounds > 0) {
        rv = settle_under_bound(deed, again);
        if (rv != APR_SUCCESS || *again) {
            yk_store_rollback(store);
            return rv;
        }
    }
    switch (verdict) {
    case YK_VERDICT_DONE:
        return write_down(deed, again, deadline);
    case YK_VERDICT_REFUSED:
        break;
    case YK_VERDICT_AGAIN:
        *again = 1;
        break;
    }
    yk_deed_take_back(deed);
    yk_store_rollback(store);
    return APR_SUCCESS;
}

/* What was done was not always what was asked: another payment of an order
 * that is paid is written down as such, and changes nothing. */
static yk_answer_e answer_done(const yk_deed_t *deed, const yk_order_t *order)
{
    const yk_payment_t *payment = deed->ask->payment;

    if (payment != NULL && strcmp(order->payment, payment->payment) != 0) {
        return YK_ANSWER_STATE;
    }
    if (order->state == YK_ORDER_REFUND_DUE) {
        return YK_ANSWER_REFUND_DUE;
    }
    return deed->begins && order->state != YK_ORDER_CONFIRMED ? YK_ANSWER_HELD
                                                              : YK_ANSWER_OK;
}

/*
 * A deed whose doer died in the middle: under its locks, which waited for that
 * transaction's end, the book tells. An order begun is known by its token, a
 * change by its change_id in the journal.
 */
static apr_status_t find_done(yk_deed_t *deed, int *done)
{
    yk_store_t *store = deed->desk->store;
    yk_reply_t *reply = deed->reply;
    yk_order_t *order = NULL;
    yk_hash_t token;
    apr_status_t rv;

    *done = 0;
    if (deed->seen != NULL) {
        rv = yk_store_order(store, &order, NULL, deed->seen->tenant_id,
                            deed->seen->order_id, deed->p);
        if (rv == APR_SUCCESS && order->nlines > 0) {
            rv = yk_store_change_seen(store, done, order->lines[0].slot_id,
                                      order->order_id, deed->change_id,
                                      deed->ledger->now_us);
        }
    }
    else {
        yk_token_hash(&token, deed->token);
        rv = yk_store_order_by_token(
            store, &order, NULL, deed->desk->terms.tenant_id, &token, deed->p);
        *done = rv == APR_SUCCESS;
        reply->token = *done ? deed->token : NULL;
    }
    if (rv == APR_NOTFOUND) {
        return APR_SUCCESS;
    }
    if (*done) {
        reply->order = order;
        reply->created = deed->begins && deed->seen == NULL;
        reply->late = order->late;
        reply->state = yk_order_state_name(order->state);
        reply->answer = answer_done(deed, order);
    }
    return rv;
}

static apr_status_t attempt(yk_deed_t *deed, int *again, apr_time_t deadline)
{
    int done;
    const yk_once_row_t *once;
    apr_status_t rv = yk_deed_plan(deed, yk_ledger_make(deed->pt));

    if (rv != APR_SUCCESS) {
        return rv;
    }
    if (deed->refused) {
        /* Halls and areas never change; prices do. */
        if (deed->stale && deed->may_be_old && !deed->fresh) {
            deed->fresh = *again = 1;
            return APR_SUCCESS;
        }
        return replay_if_done(deed);
    }
    deed->fresh = 0;
    rv = yk_store_lock(deed->desk->store, deed->ledger);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    deed->reply->now_us = deed->ledger->now_us;
    once = yk_deed_once(deed);
    if (once != NULL && once->found) {
        yk_store_rollback(deed->desk->store);
        return replay(deed, once);
    }
    if (deed->maybe_done) {
        rv = find_done(deed, &done);
        if (rv != APR_SUCCESS || done) {
            yk_store_rollback(deed->desk->store);
            return rv;
        }
        deed->maybe_done = 0;
    }
    if (!yk_deed_plan_holds(deed)) {
        yk_store_rollback(deed->desk->store);
        *again = 1;
        return APR_SUCCESS;
    }
    return decide_and_write(deed, again, deadline);
}

static int is_worth_trying_again(apr_status_t rv, int *lines)
{
    switch (rv) {
    case APR_SUCCESS: /* the ground moved */
    case APR_TIMEUP:
    case APR_EBUSY:
    case APR_EEXIST:
        return 1;
    case APR_ECONNRESET:
        return ++*lines < LINES_TRIED;
    default:
        return 0;
    }
}

apr_status_t yk_deed_run(yk_deed_t *deed)
{
    apr_time_t deadline = deed->deadline != 0
                              ? deed->deadline
                              : yk_state_now() + deed->desk->terms.wait;
    int again, lines = 0, in_progress;
    apr_status_t rv;

    for (int tried = 1;; tried++) {
        /* The last attempt's pool is the reply's: it is destroyed with p. */
        apr_pool_create(&deed->pt, deed->p);
        again = 0;
        rv = attempt(deed, &again, deadline);
        in_progress =
            rv == APR_TIMEUP && deed->reply->answer == YK_ANSWER_IN_PROGRESS;
        if (rv == APR_SUCCESS && !again) {
            return rv;
        }
        if (!is_worth_trying_again(rv, &lines)) {
            return rv == APR_EBUSY || rv == APR_EEXIST ? APR_TIMEUP : rv;
        }
        if (yk_state_now() >= deadline) {
            break;
        }
        apr_pool_destroy(deed->pt);
        if (rv != APR_SUCCESS || tried > TRIED_AT_ONCE) {
            pause_briefly(tried);
        }
    }
    if (in_progress) {
        return APR_SUCCESS;
    }
    return rv == APR_ECONNRESET ? rv : APR_TIMEUP;
}
