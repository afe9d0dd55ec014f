/* SPDX-License-Identifier: Apache-2.0 */
#include "before.h"

#include <apr_strings.h>
#include <stddef.h>
#include <string.h>

struct yk_throttle_before_t {
    yk_throttle_table_t *table; /* only what all layouts have in common */
    apr_size_t size;
    const yk_workers_t *workers;
    uint32_t layout;
};

/* The parts of a rule and a holder that are the same in every layout. */
typedef struct old_rule_t {
    char name[YK_RULE_NAME];
    uint32_t elsewhere;
} old_rule_t;

typedef struct old_holder_t {
    _Atomic uint32_t state;
    uint32_t rule;
    uint64_t identity;
    uint64_t ticket;
    uint32_t worker;
    uint32_t flags;
} old_holder_t;

yk_throttle_before_t *yk_throttle_before_find(const char *folder,
                                              const yk_workers_t *workers,
                                              apr_pool_t *p)
{
    yk_throttle_before_t *made;
    yk_state_t *state;
    apr_size_t size;

    if (yk_state_before(&state, &size, &yk_throttle_kind, folder, p) !=
        APR_SUCCESS) {
        return NULL;
    }
    made = apr_pcalloc(p, sizeof(*made));
    made->table = yk_state_memory(state);
    made->size = size;
    made->workers = workers;
    made->layout = made->table->head.layout;
    if (size < sizeof(yk_throttle_table_t) - sizeof(made->table->rule) -
                   sizeof(made->table->holder) - sizeof(made->table->chain) ||
        yk_workers_of_layout(workers, made->layout) == 0) {
        (void)yk_state_unlink(state);
        return NULL;
    }
    return made;
}

/* Offsets were written by others: nothing beyond the mapping is touched. */
static int lies_inside(const yk_throttle_before_t *before, uint32_t at,
                       uint32_t bytes, uint32_t n, apr_size_t least)
{
    return bytes >= least && at % 8 == 0 && bytes % 8 == 0 &&
           (uint64_t)at + (uint64_t)bytes * n <= before->size;
}

static int is_sound(const yk_throttle_before_t *before)
{
    const yk_throttle_table_t *t = before->table;

    return lies_inside(before, t->rules_at, t->rule_bytes, t->rules_max,
                       sizeof(old_rule_t)) &&
           lies_inside(before, t->holders_at, t->holder_bytes, t->holders_max,
                       sizeof(old_holder_t)) &&
           lies_inside(before, t->lock_at, sizeof(yk_lock_t), 1,
                       sizeof(yk_lock_t));
}

static old_rule_t *rule_at(const yk_throttle_before_t *before, uint32_t n)
{
    const yk_throttle_table_t *t = before->table;

    return (old_rule_t *)((char *)t + t->rules_at +
                          (apr_size_t)n * t->rule_bytes);
}

static yk_lock_t *lock_of(const yk_throttle_before_t *before)
{
    return (yk_lock_t *)((char *)before->table + before->table->lock_at);
}

/* What was counted of a rule, and what the operator set: not who runs or waits
 * under it, that is looked up in the old file as long as it is in use. */
static void rule_take_over(yk_rule_t *r, const yk_rule_t *old)
{
    r->configured = old->configured;
    r->terms = old->terms;
    r->is_set = old->is_set;
    r->peak_running = old->peak_running;
    r->peak_waiting = old->peak_waiting;
#define TAKE_OVER(member, counter, text) r->member = old->member;
    YK_RULE_COUNTERS(TAKE_OVER)
#undef TAKE_OVER
    memcpy(r->refused, old->refused, sizeof(r->refused));
    memcpy(r->waits, old->waits, sizeof(r->waits));
    r->zeroed_us = old->zeroed_us;
}

void yk_throttle_before_take_over(yk_throttle_table_t *table,
                                  const char *folder, apr_pool_t *p)
{
    yk_throttle_before_t before = {0};
    yk_queue_t q = {table, 0, 0, NULL, NULL};
    yk_state_t *state;

    if (yk_state_before(&state, &before.size, &yk_throttle_kind, folder, p) !=
        APR_SUCCESS) {
        return;
    }
    before.table = yk_state_memory(state);
    if (before.size < offsetof(yk_throttle_table_t, rule) ||
        !is_sound(&before) || before.table->rule_bytes != sizeof(yk_rule_t)) {
        return;
    }
    for (uint32_t n = 0; n < before.table->rules_max; n++) {
        const yk_rule_t *old = (const yk_rule_t *)rule_at(&before, n);
        char name[YK_RULE_NAME];
        uint32_t row;

        apr_cpystrn(name, old->name, sizeof(name));
        row = yk_rule_is_name(name) ? yk_queue_rule(&q, name) : YK_RULE_NONE;
        if (row != YK_RULE_NONE) {
            rule_take_over(&table->rule[row], old);
        }
    }
}

const yk_lock_t *yk_throttle_before_lock_of(const yk_throttle_before_t *before)
{
    return is_sound(before) ? lock_of(before) : NULL;
}

apr_status_t yk_throttle_before_lock(yk_throttle_before_t *before,
                                     apr_interval_time_t wait)
{
    apr_status_t rv;
    int died;

    if (!is_sound(before)) {
        return APR_SUCCESS;
    }
    rv = yk_lock_take(lock_of(before), &died, YK_LOCK_WRITE, wait);
    if (rv == APR_SUCCESS && died) {
        /* We cannot count a foreign layout anew: leave that to its own code,
         * which finds the counts of its holders wrong at worst until its
         * generation ends. What we read are the holders themselves. */
        yk_lock_mend(lock_of(before));
    }
    return rv;
}

void yk_throttle_before_count(yk_throttle_before_t *before, uint32_t *running,
                              uint32_t *waiting, const char *name)
{
    const yk_throttle_table_t *t = before->table;
    uint32_t rule = 0;

    *running = *waiting = 0;
    if (!is_sound(before)) {
        return;
    }
    while (rule < t->rules_max &&
           strncmp(rule_at(before, rule)->name, name, YK_RULE_NAME) != 0) {
        rule++;
    }
    for (uint32_t i = 0; rule < t->rules_max && i < t->holders_max; i++) {
        const old_holder_t *h =
            (const old_holder_t *)((const char *)t + t->holders_at +
                                   (apr_size_t)i * t->holder_bytes);
        uint32_t state = atomic_load(&h->state);

        if (h->rule != rule ||
            (state != YK_HOLDER_RUN && state != YK_HOLDER_WAIT) ||
            !yk_workers_has(before->workers, h->worker, h->identity)) {
            continue;
        }
        if (state == YK_HOLDER_RUN) {
            ++*running;
        }
        else {
            ++*waiting;
        }
    }
}

int yk_throttle_before_unlock(yk_throttle_before_t *before,
                              const yk_throttle_table_t *table)
{
    if (!is_sound(before)) {
        return 0;
    }
    for (uint32_t n = 0; n < before->table->rules_max; n++) {
        old_rule_t *old = rule_at(before, n);

        for (uint32_t i = 0; old->name[0] != '\0' && i < YK_RULES_MAX; i++) {
            if (strncmp(old->name, table->rule[i].name, YK_RULE_NAME) == 0) {
                old->elsewhere = table->rule[i].running;
            }
        }
    }
    yk_lock_give(lock_of(before));
    return yk_workers_of_layout(before->workers, before->layout) != 0;
}
