/* SPDX-License-Identifier: Apache-2.0 */
#include "before.h"

#include <apr_strings.h>
#include <stddef.h>
#include <string.h>

/* Where its parts lie. An old child may change what stands in the file at any
 * moment, so it is copied once, by the parent, and the copy is what is checked
 * and what is gone by. */
typedef struct frame_t {
    uint32_t rules_at, rule_bytes, rules_max;
    uint32_t holders_at, holder_bytes, holders_max;
    uint32_t lock_at;
    int is_sound;
} frame_t;

struct yk_throttle_before_t {
    yk_throttle_table_t *table; /* only what all layouts have in common */
    apr_size_t size;
    const yk_workers_t *workers;
    uint32_t layout;
    frame_t frame;
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

/* Offsets were written by others: nothing beyond the mapping is touched. */
static int lies_inside(apr_size_t size, uint32_t at, uint32_t bytes, uint32_t n,
                       apr_size_t least)
{
    return bytes >= least && at % 8 == 0 && bytes % 8 == 0 &&
           (uint64_t)at + (uint64_t)bytes * n <= size;
}

/* `volatile`: each is read once, whatever the compiler would rather do. */
static void frame_read(yk_throttle_before_t *before)
{
    const volatile yk_throttle_table_t *t = before->table;
    frame_t *f = &before->frame;

    if (before->size < offsetof(yk_throttle_table_t, lock)) {
        return;
    }
    f->rules_at = t->rules_at;
    f->rule_bytes = t->rule_bytes;
    f->rules_max = t->rules_max;
    f->holders_at = t->holders_at;
    f->holder_bytes = t->holder_bytes;
    f->holders_max = t->holders_max;
    f->lock_at = t->lock_at;
    f->is_sound = lies_inside(before->size, f->rules_at, f->rule_bytes,
                              f->rules_max, sizeof(old_rule_t)) &&
                  lies_inside(before->size, f->holders_at, f->holder_bytes,
                              f->holders_max, sizeof(old_holder_t)) &&
                  lies_inside(before->size, f->lock_at, sizeof(yk_lock_t), 1,
                              sizeof(yk_lock_t));
}

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
    frame_read(made);
    return made;
}

static old_rule_t *rule_at(const yk_throttle_before_t *before, uint32_t n)
{
    return (old_rule_t *)((char *)before->table + before->frame.rules_at +
                          (apr_size_t)n * before->frame.rule_bytes);
}

static const old_holder_t *holder_at(const yk_throttle_before_t *before,
                                     uint32_t n)
{
    return (const old_holder_t *)((const char *)before->table +
                                  before->frame.holders_at +
                                  (apr_size_t)n * before->frame.holder_bytes);
}

static yk_lock_t *lock_of(const yk_throttle_before_t *before)
{
    return (yk_lock_t *)((char *)before->table + before->frame.lock_at);
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
    frame_read(&before);
    if (!before.frame.is_sound ||
        before.frame.rule_bytes != sizeof(yk_rule_t)) {
        return;
    }
    for (uint32_t n = 0; n < before.frame.rules_max; n++) {
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
    return before->frame.is_sound ? lock_of(before) : NULL;
}

apr_status_t yk_throttle_before_lock(yk_throttle_before_t *before,
                                     apr_interval_time_t wait)
{
    apr_status_t rv;
    int died;

    if (!before->frame.is_sound) {
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
    const frame_t *f = &before->frame;
    uint32_t rule = 0;

    *running = *waiting = 0;
    if (!f->is_sound) {
        return;
    }
    while (rule < f->rules_max &&
           strncmp(rule_at(before, rule)->name, name, YK_RULE_NAME) != 0) {
        rule++;
    }
    for (uint32_t i = 0; rule < f->rules_max && i < f->holders_max; i++) {
        const old_holder_t *h = holder_at(before, i);
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
    if (!before->frame.is_sound) {
        return 0;
    }
    for (uint32_t n = 0; n < before->frame.rules_max; n++) {
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
