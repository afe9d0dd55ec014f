/* SPDX-License-Identifier: Apache-2.0 */
#include "lane_queue.h"
#include <string.h>
#include <unistd.h>

/* So much of a batch is kept from urgent wishes while others wait. */
#define PATIENT_SHARE (YK_LANE_BATCH / 4)
/* A leader is asked whether it lives when it has led for so long. */
#define LEADER_IS_OLD apr_time_from_msec(200)
/* After so long another one leads as well, even if the first is alive: a
 * process that is stopped must not close a slot. Two leaders do no harm, the
 * database keeps them apart. */
#define LEADER_IS_LOST apr_time_from_sec(4)

static void lanes_fresh(void *memory)
{
    yk_lanes_t *lanes = memory;

    for (uint32_t i = 0; i < YK_LANES; i++) {
        yk_lock_create(&lanes->lane[i].lock);
        lanes->lane[i].head = lanes->lane[i].tail = YK_LANE_NONE;
        lanes->lane[i].leads = YK_LANE_NONE;
    }
}

/* The machine was started anew: nobody waits, nobody leads. */
static void lanes_renew(void *memory)
{
    yk_lanes_t *lanes = memory;

    for (uint32_t i = 0; i < YK_LANE_RECORDS; i++) {
        lanes->record[i].owner = 0;
        lanes->record[i].word = 0;
    }
    for (uint32_t i = 0; i < YK_LANE_PERMITS; i++) {
        lanes->line_owner[i] = 0;
    }
    for (uint32_t i = 0; i < YK_LANES; i++) {
        memset(&lanes->lane[i], 0, sizeof(lanes->lane[i]));
    }
    lanes_fresh(memory);
}

const yk_state_kind_t yk_lanes_kind = {
    "lanes", YK_LANES_LAYOUT, sizeof(yk_lanes_t), lanes_fresh, lanes_renew};

void (*yk_lane_step)(void);

void yk_lane_may_die(void)
{
    if (yk_lane_step != NULL) {
        yk_lane_step();
    }
}

uint32_t yk_lane_word(uint32_t ticket, yk_lane_word_e state)
{
    return ticket << 8 | (uint32_t)state;
}

yk_lane_word_e yk_lane_word_state(uint32_t word)
{
    return (yk_lane_word_e)(word & 0xff);
}

uint32_t yk_lane_word_ticket(uint32_t word)
{
    return word >> 8;
}

int yk_lane_word_turn(yk_lane_record_t *record, uint32_t from,
                      yk_lane_word_e state)
{
    uint32_t to = yk_lane_word(yk_lane_word_ticket(from), state);

    return atomic_compare_exchange_strong(&record->word, &from, to);
}

/* ---- records ---- */

/* The owner's row in the table of workers says that it lives, in one read.
 * Before an owner is taken for dead the system is asked, too: its row may not
 * stand in the record yet. */
static int is_owned(const yk_lane_host_t *host, const yk_lane_record_t *record)
{
    uint64_t owner = atomic_load(&record->owner);

    return owner != 0 && (yk_workers_has(host->workers,
                                         atomic_load(&record->worker), owner) ||
                          yk_worker_is_alive(owner));
}

/* May a record with an owner be taken over? Not while it lives; nor while the
 * record is linked into a queue (whoever gathers drops those of the dead), nor
 * while somebody alive writes an answer into it. */
static int is_left(const yk_lane_host_t *host, yk_lane_record_t *record)
{
    switch (yk_lane_word_state(atomic_load(&record->word))) {
    case YK_LANE_WAITING:
    case YK_LANE_LEAD:
    case YK_LANE_GONE:
        return 0;
    case YK_LANE_ANSWERING:
        if (yk_worker_is_alive(atomic_load(&record->leader))) {
            return 0;
        }
        break;
    case YK_LANE_LEFT:
        /* its owner may live and has no more to do with it */
        return !yk_worker_is_alive(atomic_load(&record->leader));
    default:
        break;
    }
    return !is_owned(host, record);
}

/* Whoever changes `owner` from what it was has the record. */
static int claim(const yk_lane_host_t *host, uint32_t number, int of_dead)
{
    yk_lane_record_t *record = &host->lanes->record[number];
    uint64_t owner = atomic_load(&record->owner);
    uint32_t ticket;

    if ((owner != 0 && !(of_dead && is_left(host, record))) ||
        !atomic_compare_exchange_strong(&record->owner, &owner,
                                        host->identity)) {
        return 0;
    }
    yk_lane_may_die();
    atomic_store(&record->worker, host->worker);
    ticket = yk_lane_word_ticket(atomic_load(&record->word));
    atomic_store(&record->word, yk_lane_word(ticket + 1, YK_LANE_WRITING));
    /* Before anything of the next wish: a leader that reads on sees by the word
     * that its wish has gone. */
    atomic_thread_fence(memory_order_seq_cst);
    atomic_store(&record->leader, 0);
    atomic_store(&record->order_id, 0);
    return 1;
}

static uint32_t record_find(const yk_lane_host_t *host)
{
    uint32_t first = host->worker % YK_LANE_RECORDS;

    for (int of_dead = 0; of_dead < 2; of_dead++) {
        for (uint32_t i = 0; i < YK_LANE_RECORDS; i++) {
            uint32_t number = (first + i) % YK_LANE_RECORDS;

            if (claim(host, number, of_dead)) {
                return number;
            }
        }
    }
    return YK_LANE_NONE;
}

/* Its owner is read first: one that is dead may have been followed by another
 * as soon as the word says FREE. */
static void make_free(yk_lane_record_t *record)
{
    uint64_t owner = atomic_load(&record->owner);
    uint32_t word = atomic_load(&record->word);

    yk_lane_word_turn(record, word, YK_LANE_FREE);
    yk_lane_may_die();
    atomic_compare_exchange_strong(&record->owner, &owner, 0);
}

void yk_lane_record_give(const yk_lane_host_t *host, uint32_t number)
{
    make_free(&host->lanes->record[number]);
}

/* ---- the queue ---- */

static int waits(yk_lane_word_e state)
{
    return state == YK_LANE_WAITING || state == YK_LANE_LEAD;
}

static int is_in_queue(yk_lane_record_t *record, uint32_t lane)
{
    yk_lane_word_e state = yk_lane_word_state(atomic_load(&record->word));

    return record->lane == lane && (waits(state) || state == YK_LANE_GONE);
}

/* Does a record stand in the queue whose wish nobody wants to hear of? */
static int is_forsaken(const yk_lane_host_t *host, yk_lane_record_t *record)
{
    return yk_lane_word_state(atomic_load(&record->word)) == YK_LANE_GONE ||
           !is_owned(host, record);
}

static void link_last(yk_lanes_t *lanes, yk_lane_queue_t *queue,
                      uint32_t number)
{
    lanes->record[number].next = YK_LANE_NONE;
    if (queue->tail == YK_LANE_NONE) {
        queue->head = number;
    }
    else {
        lanes->record[queue->tail].next = number;
    }
    queue->tail = number;
    queue->length++;
}

/* The lock's owner died: its links may be half made. The records' words and
 * arrivals are whole; the queue is made of them anew. */
static void link_anew(yk_lanes_t *lanes, uint32_t lane)
{
    yk_lane_queue_t *queue = &lanes->lane[lane];
    uint64_t last = 0;

    queue->head = queue->tail = YK_LANE_NONE;
    queue->length = 0;
    for (;;) {
        uint32_t first = YK_LANE_NONE;

        for (uint32_t i = 0; i < YK_LANE_RECORDS; i++) {
            yk_lane_record_t *record = &lanes->record[i];

            if (is_in_queue(record, lane) && record->arrival > last &&
                (first == YK_LANE_NONE ||
                 record->arrival < lanes->record[first].arrival)) {
                first = i;
            }
        }
        if (first == YK_LANE_NONE) {
            break;
        }
        last = lanes->record[first].arrival;
        link_last(lanes, queue, first);
    }
}

apr_status_t yk_lane_lock(const yk_lane_host_t *host, uint32_t lane,
                          apr_interval_time_t wait)
{
    yk_lane_queue_t *queue = &host->lanes->lane[lane];
    int died = 0;
    apr_status_t rv = yk_lock_take(&queue->lock, &died, YK_LOCK_WRITE, wait);

    if (rv == APR_SUCCESS && died) {
        link_anew(host->lanes, lane);
        yk_lock_mend(&queue->lock);
    }
    return rv;
}

void yk_lane_unlock(const yk_lane_host_t *host, uint32_t lane)
{
    yk_lock_give(&host->lanes->lane[lane].lock);
}

void yk_lane_append(const yk_lane_host_t *host, uint32_t lane, uint32_t number)
{
    yk_lane_queue_t *queue = &host->lanes->lane[lane];
    yk_lane_record_t *record = &host->lanes->record[number];

    /* The arrival before the word: whoever links anew reads both. */
    record->arrival = ++queue->arrivals;
    record->lane = lane;
    yk_lane_may_die();
    yk_lane_word_turn(record, atomic_load(&record->word), YK_LANE_WAITING);
    yk_lane_may_die();
    link_last(host->lanes, queue, number);
    yk_lane_may_die();
}

void yk_lane_remove(const yk_lane_host_t *host, uint32_t lane, uint32_t number)
{
    yk_lanes_t *lanes = host->lanes;
    yk_lane_queue_t *queue = &lanes->lane[lane];
    uint32_t before = YK_LANE_NONE;

    for (uint32_t at = queue->head; at != YK_LANE_NONE;
         before = at, at = lanes->record[at].next) {
        if (at != number) {
            continue;
        }
        if (before == YK_LANE_NONE) {
            queue->head = lanes->record[at].next;
        }
        else {
            lanes->record[before].next = lanes->record[at].next;
        }
        yk_lane_may_die();
        if (queue->tail == at) {
            queue->tail = before;
        }
        yk_lane_may_die();
        queue->length--;
        return;
    }
}

int yk_lane_give_up(const yk_lane_host_t *host, uint32_t lane, uint32_t number)
{
    yk_lane_queue_t *queue = &host->lanes->lane[lane];
    yk_lane_record_t *record = &host->lanes->record[number];
    uint32_t word = atomic_load(&record->word), gone;

    gone = yk_lane_word(yk_lane_word_ticket(word), YK_LANE_GONE);
    if (!waits(yk_lane_word_state(word)) ||
        !yk_lane_word_turn(record, word, YK_LANE_GONE)) {
        return 0;
    }
    yk_lane_may_die();
    if (yk_lane_lock(host, lane, 0) != APR_SUCCESS) {
        return 1;
    }
    if (atomic_load(&record->word) == gone) {
        yk_lane_remove(host, lane, number);
        make_free(record);
    }
    if (queue->leads == number && queue->leader == host->identity) {
        yk_lane_hand_on(host, lane);
    }
    yk_lane_unlock(host, lane);
    return 1;
}

/* Does anybody lead? Who led and could not hand on has left his record. */
static int is_led(const yk_lane_host_t *host, uint32_t lane)
{
    yk_lane_queue_t *queue = &host->lanes->lane[lane];
    yk_lane_record_t *record;
    yk_lane_word_e state;
    apr_time_t led;

    if (queue->leader == 0 || queue->leads >= YK_LANE_RECORDS) {
        return 0;
    }
    record = &host->lanes->record[queue->leads];
    state = yk_lane_word_state(atomic_load(&record->word));
    if (atomic_load(&record->owner) != queue->leader || record->lane != lane ||
        (!waits(state) && state != YK_LANE_TAKEN)) {
        return 0;
    }
    led = yk_state_now() - (apr_time_t)queue->led_since_us;
    return led < LEADER_IS_OLD ||
           (led < LEADER_IS_LOST && yk_worker_is_alive(queue->leader));
}

int yk_lane_lead(const yk_lane_host_t *host, uint32_t lane, uint32_t number)
{
    yk_lane_queue_t *queue = &host->lanes->lane[lane];
    int leads_already =
        queue->leader == host->identity && queue->leads == number;

    if (!leads_already && is_led(host, lane)) {
        return 0;
    }
    queue->leader = host->identity;
    yk_lane_may_die();
    queue->leads = number;
    queue->led_since_us = (uint64_t)yk_state_now();
    return 1;
}

static uint32_t gather_pass(const yk_lane_host_t *host, uint32_t lane,
                            uint32_t own, int urgent, uint32_t most, uint32_t n,
                            uint32_t numbers[YK_LANE_BATCH])
{
    yk_lanes_t *lanes = host->lanes;
    uint32_t next;

    for (uint32_t at = lanes->lane[lane].head; at != YK_LANE_NONE; at = next) {
        yk_lane_record_t *record = &lanes->record[at];

        next = record->next;
        if (at != own && is_forsaken(host, record)) {
            yk_lane_remove(host, lane, at);
            make_free(record);
        }
        else if ((record->urgent != 0) == urgent && at != own &&
                 record->realm == host->realm && n < most) {
            yk_lane_remove(host, lane, at);
            numbers[n++] = at;
        }
    }
    return n;
}

static int by_arrival(const yk_lanes_t *lanes, uint32_t a, uint32_t b)
{
    const yk_lane_record_t *x = &lanes->record[a], *y = &lanes->record[b];

    if (x->urgent != y->urgent) {
        return x->urgent > y->urgent;
    }
    return x->arrival < y->arrival;
}

uint32_t yk_lane_gather(const yk_lane_host_t *host, uint32_t lane, uint32_t own,
                        uint32_t numbers[YK_LANE_BATCH],
                        uint32_t words[YK_LANE_BATCH])
{
    yk_lanes_t *lanes = host->lanes;
    /* One place is kept for the leader's own wish. */
    uint32_t most = YK_LANE_BATCH - 1, n, at, taken = 0;

    if (!waits(yk_lane_word_state(atomic_load(&lanes->record[own].word)))) {
        return 0;
    }
    n = gather_pass(host, lane, own, 1, most - PATIENT_SHARE, 0, numbers);
    n = gather_pass(host, lane, own, 0, most, n, numbers);
    n = gather_pass(host, lane, own, 1, most, n, numbers);
    yk_lane_remove(host, lane, own);
    for (at = n; at > 0 && by_arrival(lanes, own, numbers[at - 1]); at--) {
        numbers[at] = numbers[at - 1];
    }
    numbers[at] = own;
    n++;
    for (uint32_t i = 0; i < n; i++) {
        yk_lane_record_t *record = &lanes->record[numbers[i]];
        uint32_t word = atomic_load(&record->word);

        /* Who leads stands there before the word says that somebody does. */
        atomic_store(&record->leader, host->identity);
        if (!waits(yk_lane_word_state(word)) ||
            !yk_lane_word_turn(record, word, YK_LANE_TAKEN)) {
            make_free(record); /* given up in this moment */
            continue;
        }
        words[taken] = yk_lane_word(yk_lane_word_ticket(word), YK_LANE_TAKEN);
        numbers[taken++] = numbers[i];
        yk_lane_may_die();
    }
    return taken;
}

void yk_lane_put_off(const yk_lane_host_t *host, uint32_t lane, uint32_t number,
                     uint32_t word)
{
    yk_lanes_t *lanes = host->lanes;
    yk_lane_queue_t *queue = &lanes->lane[lane];
    yk_lane_record_t *record = &lanes->record[number];

    if (!yk_lane_word_turn(record, word, YK_LANE_WAITING)) {
        return; /* its owner has given up */
    }
    yk_lane_may_die();
    record->was_next = 1;
    record->next = queue->head;
    queue->head = number;
    if (queue->tail == YK_LANE_NONE) {
        queue->tail = number;
    }
    queue->length++;
}

/* Who is to lead; drops on the way whom nobody hears. */
static uint32_t choose(const yk_lane_host_t *host, uint32_t lane)
{
    yk_lanes_t *lanes = host->lanes;
    uint32_t chosen = YK_LANE_NONE, next;

    for (uint32_t at = lanes->lane[lane].head; at != YK_LANE_NONE; at = next) {
        yk_lane_record_t *record = &lanes->record[at];

        next = record->next;
        if (is_forsaken(host, record)) {
            yk_lane_remove(host, lane, at);
            make_free(record);
        }
        else if (chosen == YK_LANE_NONE ||
                 (record->has_line && !lanes->record[chosen].has_line)) {
            chosen = at;
        }
    }
    return chosen;
}

void yk_lane_hand_on(const yk_lane_host_t *host, uint32_t lane)
{
    yk_lanes_t *lanes = host->lanes;
    yk_lane_queue_t *queue = &lanes->lane[lane];

    for (;;) {
        uint32_t chosen = choose(host, lane), word;

        queue->leads = chosen;
        if (chosen == YK_LANE_NONE) {
            queue->leader = 0;
            return;
        }
        queue->leader = atomic_load(&lanes->record[chosen].owner);
        queue->led_since_us = (uint64_t)yk_state_now();
        yk_lane_may_die();
        word = atomic_load(&lanes->record[chosen].word);
        if (waits(yk_lane_word_state(word)) &&
            yk_lane_word_turn(&lanes->record[chosen], word, YK_LANE_LEAD)) {
            yk_word_wake(&lanes->record[chosen].word);
            return;
        }
    }
}

/* The dead are dropped by whoever goes through their queue. Here by somebody
 * who has no record to stand in one with: perhaps nobody goes there any more.
 * @return 1: some were */
static int drop_dead(const yk_lane_host_t *host)
{
    int dropped = 0;

    for (uint32_t i = 0; i < YK_LANE_RECORDS; i++) {
        yk_lane_record_t *record = &host->lanes->record[i];
        uint32_t lane = record->lane;

        if (lane < YK_LANES && is_in_queue(record, lane) &&
            is_forsaken(host, record) &&
            yk_lane_lock(host, lane, 0) == APR_SUCCESS) {
            (void)choose(host, lane);
            yk_lane_unlock(host, lane);
            dropped = 1;
        }
    }
    return dropped;
}

uint32_t yk_lane_record_take(const yk_lane_host_t *host)
{
    uint32_t number = record_find(host);

    return number == YK_LANE_NONE && drop_dead(host) ? record_find(host)
                                                     : number;
}
