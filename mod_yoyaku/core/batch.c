/* SPDX-License-Identifier: Apache-2.0 */
#include "batch.h"
#include <string.h>

/* Between two questions after the fate of a COMMIT. */
#define FATE_PAUSE apr_time_from_msec(50)

/* Same order as an earlier deed of the batch? */
static int meets_order(const yk_turn_t *turns, uint32_t index)
{
    const yk_order_t *order = turns[index].deed.seen;

    for (uint32_t i = 0; order != NULL && i < index; i++) {
        if (turns[i].turn == YK_TURN_OPEN && turns[i].deed.seen != NULL &&
            turns[i].deed.seen->order_id == order->order_id) {
            return 1;
        }
    }
    return 0;
}

/* What is claimed, read in one packet. When that fails each reads its own. */
static void read_claims(yk_desk_t *desk, yk_turn_t *turns, uint32_t n,
                        apr_pool_t *p)
{
    yk_claimed_t *claimed = apr_pcalloc(p, n * sizeof(*claimed));
    uint32_t nclaimed = 0;
    apr_time_t now = 0;

    for (uint32_t i = 0; i < n; i++) {
        const yk_deed_t *deed = &turns[i].deed;

        if (turns[i].turn == YK_TURN_OPEN && deed->claim != NULL) {
            claimed[nclaimed].tenant_id = deed->desk->terms.tenant_id;
            claimed[nclaimed].token = deed->claim->token;
            claimed[nclaimed++].order_id = deed->claim->order_id;
        }
    }
    if (nclaimed == 0 || yk_store_claimed(desk->store, claimed, nclaimed, &now,
                                          p) != APR_SUCCESS) {
        return;
    }
    nclaimed = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (turns[i].turn == YK_TURN_OPEN && turns[i].deed.claim != NULL) {
            turns[i].deed.claimed = &claimed[nclaimed++];
            turns[i].deed.claimed_at = now;
        }
    }
}

static void plan_all(yk_turn_t *turns, uint32_t n, yk_ledger_t *l,
                     apr_pool_t *p)
{
    for (uint32_t i = 0; i < n; i++) {
        yk_turn_t *turn = &turns[i];
        yk_deed_t *deed = &turn->deed;
        apr_status_t rv;

        if (turn->turn != YK_TURN_OPEN) {
            continue;
        }
        deed->pt = p;
        rv = yk_deed_plan(deed, l);
        if (rv != APR_SUCCESS || meets_order(turns, i)) {
            turn->turn = YK_TURN_ALONE;
        }
        else if (deed->refused) {
            /* From memory, or perhaps a repetition: look again, alone. */
            turn->turn = (deed->stale && deed->may_be_old) || deed->once != NULL
                             ? YK_TURN_ALONE
                             : YK_TURN_DONE;
        }
    }
}

static uint32_t count_open(const yk_turn_t *turns, uint32_t n)
{
    uint32_t open = 0;

    for (uint32_t i = 0; i < n; i++) {
        open += turns[i].turn == YK_TURN_OPEN;
    }
    return open;
}

static void leave_alone(yk_turn_t *turns, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (turns[i].turn == YK_TURN_OPEN) {
            turns[i].turn = YK_TURN_ALONE;
        }
    }
}

/* One deed against the locked rows and what those before it took. Stays OPEN
 * when its answer depends on the COMMIT. */
static void decide_one(yk_turn_t *turn)
{
    yk_deed_t *deed = &turn->deed;
    yk_once_row_t *once = yk_deed_once(deed);
    yk_verdict_e verdict;

    deed->reply->now_us = deed->ledger->now_us;
    if (!turn->was_next && yk_deed_lacks(deed, 1)) {
        turn->turn = YK_TURN_NEXT;
        return;
    }
    if ((once != NULL && (once->found || once->is_new)) ||
        !yk_deed_plan_holds(deed)) {
        turn->turn = YK_TURN_ALONE;
        return;
    }
    yk_ledger_mark(deed->ledger);
    verdict = deed->decide(deed);
    if (verdict == YK_VERDICT_DONE && deed->nbounds == 0) {
        deed->order_id = deed->row->order_id;
        deed->reply->order = deed->row->order;
        if (deed->row->changed) {
            yk_deed_remember(deed);
        }
        return;
    }
    yk_deed_take_back(deed);
    if (verdict == YK_VERDICT_AGAIN || deed->nbounds > 0) {
        turn->turn = YK_TURN_ALONE;
    }
}

static apr_status_t write_all(yk_desk_t *desk, yk_ledger_t *l)
{
    if (yk_ledger_is_clean(l)) {
        yk_store_rollback(desk->store);
        return APR_SUCCESS;
    }
    return yk_store_write(desk->store, l);
}

/* A lost COMMIT is asked after as long as the leader's own time lasts. */
static apr_status_t find_fate(yk_desk_t *desk, yk_ledger_t *l,
                              apr_time_t deadline, apr_pool_t *p)
{
    apr_status_t rv;
    int done = 0;

    do {
        rv = yk_store_fate(desk->store, &done, l, p);
        if (rv != APR_SUCCESS) {
            apr_sleep(FATE_PAUSE);
        }
    } while (rv != APR_SUCCESS && yk_state_now() < deadline);
    if (rv != APR_SUCCESS) {
        return APR_INCOMPLETE;
    }
    return done ? APR_SUCCESS : APR_EBUSY;
}

/* Only the leader's own deed has one. */
static apr_time_t deadline_of(const yk_desk_t *desk, const yk_turn_t *turns,
                              uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (turns[i].deed.deadline != 0) {
            return turns[i].deed.deadline;
        }
    }
    return yk_state_now() + desk->terms.wait;
}

static void close_turns(yk_turn_t *turns, uint32_t n, yk_turn_e outcome)
{
    for (uint32_t i = 0; i < n; i++) {
        if (turns[i].turn == YK_TURN_OPEN) {
            turns[i].turn = outcome;
        }
    }
}

void yk_batch_run(yk_desk_t *desk, yk_turn_t *turns, uint32_t n,
                  void (*at)(void *baton, yk_batch_at_e at), void *baton,
                  apr_pool_t *p)
{
    yk_ledger_t *l = yk_ledger_make(p);
    apr_status_t rv;

    l->skip_locked = 1;
    read_claims(desk, turns, n, p);
    plan_all(turns, n, l, p);
    if (count_open(turns, n) == 0) {
        return;
    }
    rv = yk_store_lock(desk->store, l);
    if (rv != APR_SUCCESS) {
        leave_alone(turns, n);
        return;
    }
    yk_ledger_reserve_orders(l, n);
    for (uint32_t i = 0; i < n; i++) {
        if (turns[i].turn == YK_TURN_OPEN) {
            decide_one(&turns[i]);
        }
    }
    if (at != NULL) {
        at(baton, YK_BATCH_DECIDED);
    }
    rv = write_all(desk, l);
    if (rv == APR_INCOMPLETE) {
        if (at != NULL) {
            at(baton, YK_BATCH_LOST);
        }
        rv = find_fate(desk, l, deadline_of(desk, turns, n), p);
    }
    switch (rv) {
    case APR_SUCCESS:
        close_turns(turns, n, YK_TURN_DONE);
        break;
    case APR_INCOMPLETE:
        /* What was refused has written nothing, whatever became of it. */
        for (uint32_t i = 0; i < n; i++) {
            if (turns[i].turn == YK_TURN_OPEN && turns[i].deed.order_id == 0) {
                turns[i].turn = YK_TURN_ALONE;
            }
        }
        close_turns(turns, n, YK_TURN_UNRESOLVED);
        break;
    default:
        close_turns(turns, n, YK_TURN_ALONE);
        break;
    }
}
