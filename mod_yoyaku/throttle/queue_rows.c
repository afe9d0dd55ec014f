/* SPDX-License-Identifier: Apache-2.0 */
#include "queue.h"

#include <apr_strings.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/*
 * What is derived from the holders. A worker may die between any two lines
 * here: then the next owner of the lock calls yk_queue_recount(), which looks
 * at nothing but what is marked `truth`.
 */

void yk_queue_fresh(yk_throttle_table_t *t)
{
    t->rules_at = offsetof(yk_throttle_table_t, rule);
    t->rule_bytes = sizeof(yk_rule_t);
    t->rules_max = YK_RULES_MAX;
    t->holders_at = offsetof(yk_throttle_table_t, holder);
    t->holder_bytes = sizeof(yk_throttle_holder_t);
    t->holders_max = YK_HOLDERS_MAX;
    t->lock_at = offsetof(yk_throttle_table_t, lock);
    t->free = YK_HOLDER_NONE;
    for (uint32_t i = 0; i < YK_RULES_MAX; i++) {
        t->rule[i].head = t->rule[i].tail = YK_HOLDER_NONE;
    }
    for (uint32_t i = 0; i < YK_USER_CHAINS; i++) {
        t->chain[i] = YK_HOLDER_NONE;
    }
}

uint32_t yk_queue_row_take(yk_throttle_table_t *t)
{
    uint32_t h = t->free;

    if (h != YK_HOLDER_NONE) {
        t->free = t->holder[h].next;
        return h;
    }
    return t->high < YK_HOLDERS_MAX ? t->high++ : YK_HOLDER_NONE;
}

void yk_queue_row_give(yk_throttle_table_t *t, uint32_t holder)
{
    yk_throttle_holder_t *h = &t->holder[holder];

    atomic_store(&h->state, YK_HOLDER_FREE);
    h->next = t->free;
    t->free = holder;
}

int yk_queue_is_nobody(const unsigned char user[16])
{
    static const unsigned char nobody[16];

    return memcmp(user, nobody, sizeof(nobody)) == 0;
}

static uint32_t chain_of(uint32_t rule, const unsigned char user[16])
{
    uint32_t n;

    memcpy(&n, user, sizeof(n));
    return (n ^ (rule * 2654435761U)) % YK_USER_CHAINS;
}

static void chain_in(yk_throttle_table_t *t, uint32_t holder)
{
    yk_throttle_holder_t *h = &t->holder[holder];
    uint32_t *first = &t->chain[chain_of(h->rule, h->user)];

    h->chain_prev = YK_HOLDER_NONE;
    h->chain_next = *first;
    if (*first != YK_HOLDER_NONE) {
        t->holder[*first].chain_prev = holder;
    }
    *first = holder;
}

static void chain_out(yk_throttle_table_t *t, uint32_t holder)
{
    yk_throttle_holder_t *h = &t->holder[holder];

    if (h->chain_prev != YK_HOLDER_NONE) {
        t->holder[h->chain_prev].chain_next = h->chain_next;
    }
    else {
        t->chain[chain_of(h->rule, h->user)] = h->chain_next;
    }
    if (h->chain_next != YK_HOLDER_NONE) {
        t->holder[h->chain_next].chain_prev = h->chain_prev;
    }
}

static void queue_in(yk_throttle_table_t *t, yk_rule_t *r, uint32_t holder)
{
    yk_throttle_holder_t *h = &t->holder[holder];

    h->next = YK_HOLDER_NONE;
    h->prev = r->tail;
    if (r->tail != YK_HOLDER_NONE) {
        t->holder[r->tail].next = holder;
    }
    else {
        r->head = holder;
    }
    r->tail = holder;
}

static void queue_out(yk_throttle_table_t *t, yk_rule_t *r, uint32_t holder)
{
    yk_throttle_holder_t *h = &t->holder[holder];

    if (h->prev != YK_HOLDER_NONE) {
        t->holder[h->prev].next = h->next;
    }
    else {
        r->head = h->next;
    }
    if (h->next != YK_HOLDER_NONE) {
        t->holder[h->next].prev = h->prev;
    }
    else {
        r->tail = h->prev;
    }
}

void yk_queue_count(yk_throttle_table_t *t, uint32_t holder, uint32_t as)
{
    yk_throttle_holder_t *h = &t->holder[holder];
    yk_rule_t *r = &t->rule[h->rule];

    h->counted = as;
    if (as == YK_HOLDER_WAIT) {
        queue_in(t, r, holder);
        r->waiting++;
        t->waiting++;
    }
    else {
        r->running++;
    }
    if (!yk_queue_is_nobody(h->user)) {
        chain_in(t, holder);
    }
    if ((h->flags & YK_HOLDER_SECOND) == 0) {
        t->busy_workers++;
    }
    if (r->running > r->peak_running) {
        r->peak_running = r->running;
    }
    if (r->waiting > r->peak_waiting) {
        r->peak_waiting = r->waiting;
    }
}

void yk_queue_uncount(yk_throttle_table_t *t, uint32_t holder)
{
    yk_throttle_holder_t *h = &t->holder[holder];
    yk_rule_t *r = &t->rule[h->rule];

    if (h->counted == YK_HOLDER_FREE) {
        return;
    }
    if (h->counted == YK_HOLDER_WAIT) {
        queue_out(t, r, holder);
        r->waiting--;
        t->waiting--;
    }
    else {
        r->running--;
    }
    if (!yk_queue_is_nobody(h->user)) {
        chain_out(t, holder);
    }
    if ((h->flags & YK_HOLDER_SECOND) == 0) {
        t->busy_workers--;
    }
    h->counted = YK_HOLDER_FREE;
}

void yk_queue_of_user(const yk_throttle_table_t *t, uint32_t *running,
                      uint32_t *waiting, uint32_t rule,
                      const unsigned char user[16])
{
    uint32_t at = t->chain[chain_of(rule, user)];

    *running = *waiting = 0;
    while (at != YK_HOLDER_NONE) {
        const yk_throttle_holder_t *h = &t->holder[at];

        if (h->rule == rule && memcmp(h->user, user, sizeof(h->user)) == 0) {
            if (h->counted == YK_HOLDER_RUN) {
                ++*running;
            }
            else {
                ++*waiting;
            }
        }
        at = h->chain_next;
    }
}

/* ---- anew ---- */

typedef struct waiting_t {
    uint64_t ticket;
    uint32_t holder;
} waiting_t;

/* Tickets may wrap: what counts is which is ahead of which. */
static int by_ticket(const void *a, const void *b)
{
    int64_t d = (int64_t)(((const waiting_t *)a)->ticket -
                          ((const waiting_t *)b)->ticket);

    return d < 0 ? -1 : d > 0;
}

static void forget(yk_throttle_table_t *t)
{
    for (uint32_t i = 0; i < YK_RULES_MAX; i++) {
        yk_rule_t *r = &t->rule[i];

        r->running = r->waiting = 0;
        r->head = r->tail = YK_HOLDER_NONE;
        yk_seq_begin(&r->seq);
    }
    for (uint32_t i = 0; i < YK_USER_CHAINS; i++) {
        t->chain[i] = YK_HOLDER_NONE;
    }
    t->busy_workers = t->waiting = 0;
    t->free = YK_HOLDER_NONE;
    t->high = YK_HOLDERS_MAX;
    while (t->high > 0 &&
           atomic_load(&t->holder[t->high - 1].state) == YK_HOLDER_FREE) {
        t->high--;
    }
}

void yk_queue_recount(yk_queue_t *q)
{
    yk_throttle_table_t *t = q->table;
    waiting_t waiting[YK_HOLDERS_MAX];
    uint32_t n = 0;

    forget(t);
    for (uint32_t i = t->high; i-- > 0;) {
        yk_throttle_holder_t *h = &t->holder[i];
        uint32_t state = atomic_load(&h->state);

        h->counted = YK_HOLDER_FREE;
        if (h->rule >= YK_RULES_MAX || state == YK_HOLDER_LEFT ||
            state == YK_HOLDER_FREE) {
            yk_queue_row_give(t, i);
        }
        else if (state == YK_HOLDER_WAIT) {
            waiting[n].ticket = h->ticket;
            waiting[n++].holder = i;
        }
        else if (state == YK_HOLDER_RUN) {
            yk_queue_count(t, i, YK_HOLDER_RUN);
        }
    }
    qsort(waiting, n, sizeof(waiting[0]), by_ticket);
    for (uint32_t i = 0; i < n; i++) {
        yk_queue_count(t, waiting[i].holder, YK_HOLDER_WAIT);
        /* The ticket counter may have been read and not yet written. */
        if ((int64_t)(waiting[i].ticket - t->next_ticket) >= 0) {
            t->next_ticket = waiting[i].ticket + 1;
        }
    }
    for (uint32_t i = 0; i < YK_RULES_MAX; i++) {
        yk_seq_end(&t->rule[i].seq);
    }
    t->recounts++;
}
