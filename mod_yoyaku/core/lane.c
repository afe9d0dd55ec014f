/* SPDX-License-Identifier: Apache-2.0 */
#include "yoyaku/lane.h"
#include "batch.h"
#include "lane_queue.h"
#include "lane_run.h"
#include "lane_wire.h"
#include "yoyaku/log.h"
#include <apr_strings.h>
#include <string.h>

/* A sleeper looks up this often, whether or not anybody woke it. */
#define NAP apr_time_from_msec(250)
/* So long a leader who has rows waits for the lane's lock; then he hands on
 * when he has given them back. */
#define WITH_ROWS apr_time_from_msec(5)
/* The next batch begins before this one's COMMIT when one wish waits for each
 * so many of this; fewer go together with those who come meanwhile. A batch of
 * one costs half of what a batch of ten does, and often a connection: next to
 * batches of sixty there were as many of one or two. */
#define FOLLOWERS 2
/* A lane led so lately deserves a connection of its own. */
#define LANE_IS_BUSY apr_time_from_sec(1)

void yk_desk_lane(yk_desk_t *desk, const yk_lane_host_t *host)
{
    desk->lane = host;
}

/* Was this permit's owner seen to be dead? One read a permit. */
static int permit_is_left(const yk_lane_host_t *host, uint32_t i)
{
    uint64_t owner = atomic_load(&host->lanes->line_owner[i]);

    return owner == 0 ||
           (!yk_workers_has(host->workers,
                            atomic_load(&host->lanes->line_worker[i]), owner) &&
            !yk_worker_is_alive(owner));
}

static uint32_t permits(const yk_lane_host_t *host)
{
    uint64_t since = (uint64_t)(yk_state_now() - LANE_IS_BUSY);
    uint32_t n = host->connections;

    for (uint32_t i = 0; i < YK_LANES; i++) {
        n += host->lanes->lane[i].led_since_us > since;
    }
    return n < YK_LANE_PERMITS ? n : YK_LANE_PERMITS;
}

static int permit_try(const yk_lane_host_t *host, uint32_t i)
{
    uint64_t owner = atomic_load(&host->lanes->line_owner[i]);

    if (!permit_is_left(host, i) ||
        !atomic_compare_exchange_strong(&host->lanes->line_owner[i], &owner,
                                        host->identity)) {
        return 0;
    }
    atomic_store(&host->lanes->line_worker[i], host->worker);
    return 1;
}

int yk_lane_permit_take(const yk_lane_host_t *host)
{
    uint32_t most = host->connections < YK_LANE_PERMITS ? host->connections
                                                        : YK_LANE_PERMITS;

    for (uint32_t i = 0; i < most; i++) {
        if (permit_try(host, i)) {
            return (int)i;
        }
    }
    /* The busy lanes are counted only when they matter. */
    for (uint32_t i = most, all = permits(host); i < all; i++) {
        if (permit_try(host, i)) {
            return (int)i;
        }
    }
    return YK_LANE_NO_PERMIT;
}

int yk_lane_permit_holds(const yk_lane_host_t *host, int permit)
{
    return (uint32_t)permit < host->connections ||
           (uint32_t)permit < permits(host);
}

void yk_lane_permit_give(const yk_lane_host_t *host, int permit)
{
    atomic_store(&host->lanes->line_owner[permit], 0);
}

/* ---- the leader ---- */

typedef struct batch_t {
    const yk_lane_host_t *host;
    yk_turn_t *turns;
    uint32_t lane, number; /* the leader's record */
    uint32_t n, own;
    int handed_on;
    uint32_t numbers[YK_LANE_BATCH];
    uint32_t words[YK_LANE_BATCH];
} batch_t;

/* Make a turn of what stands in a record. */
static void read_turn(yk_deed_t *own, yk_turn_t *turn,
                      const yk_lane_record_t *record, uint32_t word,
                      apr_pool_t *p)
{
    const yk_desk_t *desk = own->desk;
    yk_lane_wish_t *wish = apr_pcalloc(p, sizeof(*wish));
    uint32_t bytes = record->ask_bytes;

    if (bytes > YK_LANE_ASK_BYTES ||
        yk_lane_wish_read(wish, record->ask, bytes, p) != APR_SUCCESS) {
        turn->turn = YK_TURN_ALONE;
        return;
    }
    /* Its owner may have given up while we were stopped, and another wish,
     * perhaps for another database, stand there by now: that is not ours. */
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load(&record->word) != word) {
        turn->turn = YK_TURN_ALONE;
        return;
    }
    yk_deed_make(&turn->deed,
                 yk_desk_make(desk->store, desk->catalogue, &wish->terms, p),
                 &wish->ask, &turn->reply, p);
    turn->deed.token = wish->token;
    memcpy(turn->deed.salt, wish->salt, sizeof(wish->salt));
    turn->deed.change_id = wish->change_id;
    turn->was_next = record->was_next != 0;
    turn->turn = YK_TURN_OPEN;
}

/* Orders about to be begun stand in their records before the COMMIT, so that
 * an owner whose leader is never heard of again can name its order. */
static void note_orders(batch_t *batch)
{
    yk_lane_may_die();
    for (uint32_t i = 0; i < batch->n; i++) {
        yk_lane_record_t *record =
            &batch->host->lanes->record[batch->numbers[i]];

        /* What adds to an order has its token already: the deed's own would be
         * nobody's. */
        if (batch->turns[i].reply.token != NULL &&
            atomic_load(&record->word) == batch->words[i]) {
            atomic_store(&record->order_id, batch->turns[i].deed.order_id);
        }
    }
    yk_lane_may_die();
}

/* Wishes for the next batch go to the front of the queue, in their order. The
 * leader's own is done alone instead: its turn to lead is over. */
static void put_off(batch_t *batch, int is_locked)
{
    for (uint32_t i = batch->n; i > 0; i--) {
        if (batch->turns[i - 1].turn != YK_TURN_NEXT) {
            continue;
        }
        if (i - 1 == batch->own || !is_locked) {
            batch->turns[i - 1].turn = YK_TURN_ALONE;
        }
        else {
            yk_lane_put_off(batch->host, batch->lane, batch->numbers[i - 1],
                            batch->words[i - 1]);
        }
    }
}

/* How many will wait again that are in this batch still. */
static uint32_t put_off_later(const batch_t *batch)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < batch->n; i++) {
        n += i != batch->own && batch->turns[i].turn == YK_TURN_NEXT;
    }
    return n;
}

/* The next batch begins while this one is being committed: what it wants of
 * our rows it waits for or skips, the database keeps the two apart. */
static void hand_on(batch_t *batch, apr_interval_time_t wait)
{
    const yk_lane_host_t *host = batch->host;
    yk_lane_queue_t *queue = &host->lanes->lane[batch->lane];
    apr_status_t rv = yk_lane_lock(host, batch->lane, wait);

    if (rv != APR_SUCCESS && wait == WITH_ROWS) {
        return;
    }
    if (wait == WITH_ROWS &&
        queue->length + put_off_later(batch) < batch->n / FOLLOWERS) {
        yk_lane_unlock(host, batch->lane);
        return;
    }
    put_off(batch, rv == APR_SUCCESS);
    if (rv == APR_SUCCESS) {
        if (queue->leads == batch->number && queue->leader == host->identity) {
            yk_lane_hand_on(host, batch->lane);
            atomic_fetch_add(&host->lanes->counts.handed_on, 1);
        }
        yk_lane_unlock(host, batch->lane);
    }
    batch->handed_on = 1;
    yk_lane_may_die();
}

/* Nobody waits for what may last: the fate of a COMMIT. */
static void is_at(void *baton, yk_batch_at_e at)
{
    batch_t *batch = baton;

    if (at == YK_BATCH_DECIDED) {
        note_orders(batch);
        hand_on(batch, WITH_ROWS);
    }
    else if (!batch->handed_on) {
        hand_on(batch, YK_LANE_LOCK_WAIT);
    }
}

static yk_lane_word_e outcome_of(yk_turn_e turn)
{
    switch (turn) {
    case YK_TURN_DONE:
        return YK_LANE_ANSWERED;
    case YK_TURN_UNRESOLVED:
        return YK_LANE_UNRESOLVED;
    default:
        return YK_LANE_ALONE;
    }
}

/* How long something may still be waited for, and `most` at most. */
static apr_interval_time_t patience(const yk_deed_t *deed,
                                    apr_interval_time_t most)
{
    apr_interval_time_t left = deed->deadline - yk_state_now();

    return left < 0 ? 0 : left < most ? left : most;
}

/* Put an answer into its record, unless its owner has given up. */
static void post(batch_t *batch, uint32_t i)
{
    yk_lane_record_t *record = &batch->host->lanes->record[batch->numbers[i]];
    uint32_t word = batch->words[i];
    yk_lane_word_e outcome = outcome_of(batch->turns[i].turn);
    apr_size_t bytes;

    if (!yk_lane_word_turn(record, word, YK_LANE_ANSWERING)) {
        return;
    }
    yk_lane_may_die();
    if (outcome == YK_LANE_ANSWERED) {
        bytes = yk_lane_reply_write(record->reply, YK_LANE_REPLY_BYTES,
                                    &batch->turns[i].reply);
        record->reply_bytes = (uint32_t)bytes; /* 0: too long, look it up */
    }
    word = yk_lane_word(yk_lane_word_ticket(word), YK_LANE_ANSWERING);
    if (!yk_lane_word_turn(record, word, outcome)) {
        /* LEFT: nobody else writes here until we say so. */
        yk_lane_record_give(batch->host, batch->numbers[i]);
        return;
    }
    yk_lane_may_die();
    yk_word_wake(&record->word);
}

static void count_batch(const batch_t *batch, apr_time_t store_us)
{
    yk_lane_counts_t *counts = &batch->host->lanes->counts;
    uint32_t bucket = 0;

    while (bucket + 1 < YK_LANE_BUCKETS && batch->n >> (bucket + 1) > 0) {
        bucket++;
    }
    atomic_fetch_add(&counts->batches, 1);
    atomic_fetch_add(&counts->sizes[bucket], 1);
    atomic_fetch_add(&counts->store_us, (uint64_t)store_us);
}

static void run_batch(yk_deed_t *deed, batch_t *batch)
{
    yk_desk_t *desk = deed->desk;
    apr_time_t begun = yk_state_now();

    batch->turns = apr_pcalloc(deed->pt, batch->n * sizeof(*batch->turns));
    for (uint32_t i = 0; i < batch->n; i++) {
        if (batch->numbers[i] != batch->number) {
            read_turn(deed, &batch->turns[i],
                      &batch->host->lanes->record[batch->numbers[i]],
                      batch->words[i], deed->pt);
            continue;
        }
        batch->own = i;
        batch->turns[i].deed = *deed;
        batch->turns[i].deed.reply = &batch->turns[i].reply;
    }
    yk_batch_run(desk, batch->turns, batch->n, is_at, batch, deed->pt);
    count_batch(batch, yk_state_now() - begun);
}

/* Lead one batch.
 * @return APR_EAGAIN: somebody else has taken the wish, APR_TIMEUP: the lane's
 *         lock was not to be had */
static apr_status_t lead(yk_deed_t *deed, yk_lane_word_e *outcome,
                         uint32_t lane, uint32_t number)
{
    const yk_lane_host_t *host = deed->desk->lane;
    batch_t batch = {.host = host, .lane = lane, .number = number};
    apr_status_t rv;

    yk_lane_may_die();
    rv = yk_lane_lock(host, lane, patience(deed, YK_LANE_LOCK_WAIT));
    if (rv != APR_SUCCESS) {
        return rv;
    }
    batch.n = yk_lane_gather(host, lane, number, batch.numbers, batch.words);
    if (batch.n > 0) {
        host->lanes->lane[lane].led_since_us = (uint64_t)yk_state_now();
    }
    yk_lane_unlock(host, lane);
    if (batch.n == 0) {
        return APR_EAGAIN;
    }
    atomic_fetch_add(&host->lanes->counts.leaders, 1);
    yk_lane_may_die();
    run_batch(deed, &batch);
    yk_lane_may_die();
    if (!batch.handed_on) {
        hand_on(&batch, YK_LANE_LOCK_WAIT);
    }
    for (uint32_t i = 0; i < batch.n; i++) {
        if (i != batch.own && batch.turns[i].turn != YK_TURN_NEXT) {
            post(&batch, i);
        }
    }
    *outcome = outcome_of(batch.turns[batch.own].turn);
    *deed->reply = batch.turns[batch.own].reply;
    deed->led = 1;
    return APR_SUCCESS;
}

/* ---- the owner ---- */

/* Who has the lock is about to look after the lane himself. */
static int try_to_lead(const yk_lane_host_t *host, uint32_t lane,
                       uint32_t number)
{
    int leads = 0;

    if (yk_lane_lock(host, lane, 0) == APR_SUCCESS) {
        yk_lane_word_e state =
            yk_lane_word_state(atomic_load(&host->lanes->record[number].word));

        leads = (state == YK_LANE_WAITING || state == YK_LANE_LEAD) &&
                yk_lane_lead(host, lane, number);
        yk_lane_unlock(host, lane);
    }
    return leads;
}

/* Taken by somebody: does he live, and is there time?
 * @return the outcome, or YK_LANE_TAKEN to go on waiting */
static yk_lane_word_e look_after(yk_deed_t *deed, uint32_t number,
                                 uint32_t word)
{
    const yk_lane_host_t *host = deed->desk->lane;
    yk_lane_record_t *record = &host->lanes->record[number];
    int alive = yk_worker_is_alive(atomic_load(&record->leader));

    if (alive && yk_state_now() < deed->deadline) {
        return YK_LANE_TAKEN;
    }
    /* Read while it is certainly ours. */
    deed->order_id = atomic_load(&record->order_id);
    if (alive && yk_lane_word_state(word) == YK_LANE_ANSWERING) {
        /* The leader is in the middle of writing, perhaps stopped there. */
        return yk_lane_word_turn(record, word, YK_LANE_LEFT) ? YK_LANE_LEFT
                                                             : YK_LANE_TAKEN;
    }
    if (!yk_lane_word_turn(record, word, YK_LANE_WRITING)) {
        return YK_LANE_TAKEN; /* answered in this moment */
    }
    if (alive) {
        return YK_LANE_UNRESOLVED;
    }
    deed->maybe_done = 1;
    atomic_fetch_add(&host->lanes->counts.rescued, 1);
    return YK_LANE_ALONE;
}

/* Wait for what becomes of the wish; GONE: given up before it was taken. */
static yk_lane_word_e wait_for(yk_deed_t *deed, uint32_t lane, uint32_t number,
                               int leads)
{
    const yk_lane_host_t *host = deed->desk->lane;
    yk_lane_record_t *record = &host->lanes->record[number];
    yk_lane_word_e outcome;

    for (;;) {
        uint32_t word = atomic_load(&record->word);
        apr_time_t slept = yk_state_now();
        apr_interval_time_t nap;

        switch (yk_lane_word_state(word)) {
        case YK_LANE_WAITING:
        case YK_LANE_LEAD:
            if (leads || yk_lane_word_state(word) == YK_LANE_LEAD) {
                if (lead(deed, &outcome, lane, number) == APR_SUCCESS) {
                    return outcome;
                }
                leads = 0;
            }
            if (yk_state_now() >= deed->deadline &&
                yk_lane_give_up(host, lane, number)) {
                return YK_LANE_GONE;
            }
            break;
        case YK_LANE_TAKEN:
        case YK_LANE_ANSWERING:
            break;
        default:
            return yk_lane_word_state(word);
        }
        nap = patience(deed, NAP) + 1000;
        yk_word_wait(&record->word, word, nap);
        if (yk_state_now() - slept < nap / 2 ||
            atomic_load(&record->word) != word) {
            continue;
        }
        if (yk_lane_word_state(word) == YK_LANE_WAITING) {
            leads = try_to_lead(host, lane, number);
        }
        else if (yk_lane_word_state(word) != YK_LANE_LEAD) {
            outcome = look_after(deed, number, word);
            if (outcome != YK_LANE_TAKEN) {
                return outcome;
            }
        }
    }
}

/* An answer of another process. */
static apr_status_t read_answer(yk_deed_t *deed, uint32_t number)
{
    const yk_lane_record_t *record = &deed->desk->lane->lanes->record[number];
    int has_token = 0;
    apr_status_t rv = APR_EINVAL;

    if (record->reply_bytes > 0 && record->reply_bytes <= YK_LANE_REPLY_BYTES) {
        rv = yk_lane_reply_read(deed->reply, &has_token, record->reply,
                                record->reply_bytes, deed->p);
    }
    if (rv != APR_SUCCESS) {
        /* Too long for a record: it was done, the book has the answer. */
        deed->maybe_done = 1;
        return yk_deed_run(deed);
    }
    deed->reply->token = has_token ? deed->token : NULL;
    return APR_SUCCESS;
}

/* Whoever led may never be heard of again: name the order, if one was begun.
 * The token is its key even where no number is known yet. */
static apr_status_t unresolved(yk_deed_t *deed, uint64_t order_id)
{
    yk_order_t *order;

    if (deed->begins && deed->claim == NULL) {
        deed->reply->token = deed->token;
    }
    if (deed->begins && order_id != 0) {
        order = apr_pcalloc(deed->p, sizeof(*order));
        order->order_id = order_id;
        order->tenant_id = deed->desk->terms.tenant_id;
        order->state = YK_ORDER_HELD;
        deed->reply->order = order;
        deed->reply->token = deed->token;
    }
    return APR_INCOMPLETE;
}

static apr_status_t finish(yk_deed_t *deed, yk_lane_word_e outcome,
                           uint32_t number)
{
    yk_lane_counts_t *counts = &deed->desk->lane->lanes->counts;
    uint64_t order_id =
        outcome == YK_LANE_LEFT
            ? deed->order_id
            : atomic_load(&deed->desk->lane->lanes->record[number].order_id);

    switch (outcome) {
    case YK_LANE_ANSWERED:
        return deed->led ? APR_SUCCESS : read_answer(deed, number);
    case YK_LANE_ALONE:
        atomic_fetch_add(&counts->alone, 1);
        return yk_deed_run(deed);
    case YK_LANE_UNRESOLVED:
    case YK_LANE_LEFT:
        atomic_fetch_add(&counts->unresolved, 1);
        return unresolved(deed, order_id);
    default:
        atomic_fetch_add(&counts->given_up, 1);
        return APR_TIMEUP;
    }
}

/* Write the wish into a record and stand in the queue.
 * @return APR_SUCCESS, or anything else: not by the lane */
static apr_status_t stand(yk_deed_t *deed, int *leads, uint32_t lane,
                          uint32_t number)
{
    const yk_lane_host_t *host = deed->desk->lane;
    yk_lane_record_t *record = &host->lanes->record[number];
    yk_lane_wish_t wish;
    apr_status_t rv;

    yk_deed_make_token(deed);
    wish = (yk_lane_wish_t){
        .ask = *deed->ask, .terms = deed->desk->terms, .token = deed->token};

    while (deed->change_id == 0) {
        yk_secret_random(&deed->change_id, sizeof(deed->change_id));
        deed->change_id &= INT64_MAX;
    }
    memcpy(wish.salt, deed->salt, sizeof(wish.salt));
    wish.change_id = deed->change_id;
    record->ask_bytes =
        (uint32_t)yk_lane_wish_write(record->ask, YK_LANE_ASK_BYTES, &wish);
    record->urgent = deed->ask->kind == YK_ASK_CONFIRM;
    record->has_line = host->has_line != 0;
    record->realm = host->realm;
    record->was_next = 0;
    if (record->ask_bytes == 0) {
        return APR_ENOSPC;
    }
    rv = yk_lane_lock(host, lane, patience(deed, YK_LANE_LOCK_WAIT));
    if (rv == APR_SUCCESS) {
        yk_lane_append(host, lane, number);
        *leads = yk_lane_lead(host, lane, number);
        yk_lane_unlock(host, lane);
    }
    return rv;
}

apr_status_t yk_lane_run(yk_deed_t *deed)
{
    const yk_lane_host_t *host = deed->desk->lane;
    yk_lane_counts_t *counts = &host->lanes->counts;
    uint32_t lane = yk_lane_of(host, deed), number = YK_LANE_NONE;
    apr_time_t begun = yk_state_now(), waited;
    yk_lane_word_e outcome;
    apr_status_t rv;
    int leads = 0;

    deed->deadline = yk_state_now() + deed->desk->terms.wait;
    if (lane != YK_LANE_NONE) {
        number = yk_lane_record_take(host);
    }
    if (number != YK_LANE_NONE &&
        stand(deed, &leads, lane, number) != APR_SUCCESS) {
        yk_lane_record_give(host, number);
        number = YK_LANE_NONE;
    }
    if (number == YK_LANE_NONE) {
        atomic_fetch_add(&counts->direct, 1);
        rv = yk_deed_run(deed);
    }
    else {
        atomic_fetch_add(&counts->wishes, 1);
        apr_pool_create(&deed->pt, deed->p);
        outcome = wait_for(deed, lane, number, leads);
        waited = yk_state_now() - begun;
        atomic_fetch_add(&counts->lane_us, (uint64_t)waited);
        rv = finish(deed, outcome, number);
        deed->reply->lane_us = waited;
        if (outcome != YK_LANE_LEFT && outcome != YK_LANE_GONE) {
            yk_lane_record_give(host, number);
        }
    }
    if (rv == APR_SUCCESS && deed->reply->order != NULL) {
        yk_lane_hint(host, lane, deed->reply->order);
    }
    return rv;
}
