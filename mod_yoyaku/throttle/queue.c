/* SPDX-License-Identifier: Apache-2.0 */
#include "queue.h"

#include <apr_strings.h>
#include <stddef.h>
#include <string.h>

static const char *const refused_names[] = {
#define REFUSED_NAME(name, counter, text) counter,
    YK_REFUSALS(REFUSED_NAME)
#undef REFUSED_NAME
};

_Static_assert(YK_REFUSED_COUNT <= YK_REFUSED_SPACE, "there is room for all");

const char *yk_refused_name(yk_refused_e why)
{
    return refused_names[why];
}

static uint32_t busy_of(const yk_throttle_table_t *t, const yk_rule_t *r)
{
    if (r->terms.busy != YK_RULE_BUSY_DEFAULT) {
        return r->terms.busy;
    }
    return r->terms.limit != 0 && t->wait != 0 ? r->terms.limit + t->wait : 0;
}

/* The user is below per-user; true of nobody and without per-user. */
static int user_may_run(const yk_throttle_table_t *t, uint32_t rule,
                        const unsigned char user[16])
{
    uint32_t per_user = t->rule[rule].terms.per_user, running, waiting;

    if (per_user == 0 || yk_queue_is_nobody(user)) {
        return 1;
    }
    yk_queue_of_user(t, &running, &waiting, rule, user);
    return running < per_user;
}

static int has_place(const yk_queue_t *q, const yk_rule_t *r)
{
    return r->terms.limit == 0 || r->running + r->elsewhere < r->terms.limit;
}

static void woken(yk_queue_acts_t *acts, uint32_t holder)
{
    if (acts->n < YK_QUEUE_ACTS) {
        acts->holder[acts->n++] = holder;
    }
}

static void ran(yk_rule_t *r, int64_t waited_us)
{
    int bucket = 0;

    while (bucket < YK_QUEUE_WAITS - 1 && (waited_us / 1000) >> bucket != 0) {
        bucket++;
    }
    r->waits[bucket]++;
    r->wait_us += (uint64_t)waited_us;
}

static void take_out(yk_throttle_table_t *t, uint32_t holder)
{
    yk_queue_uncount(t, holder);
    yk_queue_row_give(t, holder);
}

/* Hand a place to one that waits. 0: it is dead or has left; it is out. */
static int admit(yk_queue_t *q, yk_queue_acts_t *acts, uint32_t holder)
{
    yk_throttle_holder_t *h = &q->table->holder[holder];
    yk_rule_t *r = &q->table->rule[h->rule];
    uint32_t wait = YK_HOLDER_WAIT;

    if (!q->is_alive(q->world, h->worker, h->identity, 1)) {
        r->to_dead++;
        r->reclaimed++;
        take_out(q->table, holder);
        return 0;
    }
    if (!atomic_compare_exchange_strong(&h->state, &wait, YK_HOLDER_RUN)) {
        take_out(q->table, holder);
        return 0;
    }
    yk_queue_uncount(q->table, holder);
    yk_queue_count(q->table, holder, YK_HOLDER_RUN);
    r->waited++;
    ran(r, q->now - h->queued_us);
    woken(acts, holder);
    return 1;
}

static uint32_t oldest_admissible(const yk_queue_t *q, const yk_rule_t *r)
{
    uint32_t at = r->head;

    while (at != YK_HOLDER_NONE &&
           !user_may_run(q->table, (uint32_t)(r - q->table->rule),
                         q->table->holder[at].user)) {
        at = q->table->holder[at].next;
    }
    return at;
}

/* While P < limit the oldest admissible runs. */
static void settle(yk_queue_t *q, yk_queue_acts_t *acts, yk_rule_t *r)
{
    while (r->waiting > 0 && q->others_wait == 0 && has_place(q, r)) {
        uint32_t next = oldest_admissible(q, r);

        if (next == YK_HOLDER_NONE) {
            return;
        }
        (void)admit(q, acts, next);
    }
}

/* ---- rules ---- */

uint32_t yk_queue_find(const yk_queue_t *q, const char *name)
{
    for (uint32_t i = 0; i < YK_RULES_MAX; i++) {
        if (strcmp(q->table->rule[i].name, name) == 0) {
            return i;
        }
    }
    return YK_RULE_NONE;
}

/* A row never used, else the one longest without a configuration. */
static uint32_t rule_room(const yk_throttle_table_t *t)
{
    uint32_t best = YK_RULE_NONE;

    for (uint32_t i = 0; i < YK_RULES_MAX; i++) {
        const yk_rule_t *r = &t->rule[i];

        if (r->name[0] == '\0') {
            return i;
        }
        if (r->generation < t->generation && r->running + r->waiting == 0 &&
            (best == YK_RULE_NONE ||
             r->generation < t->rule[best].generation)) {
            best = i;
        }
    }
    return best;
}

uint32_t yk_queue_rule(yk_queue_t *q, const char *name)
{
    uint32_t n = yk_queue_find(q, name);
    yk_rule_t *r;

    if (n != YK_RULE_NONE) {
        return n;
    }
    n = rule_room(q->table);
    if (n == YK_RULE_NONE) {
        return n;
    }
    r = &q->table->rule[n];
    yk_seq_begin(&r->seq);
    r->name[0] = '\0';
    memset((char *)r + sizeof(r->name), 0,
           offsetof(yk_rule_t, seq) - sizeof(r->name));
    memset(&r->generation, 0, sizeof(*r) - offsetof(yk_rule_t, generation));
    r->head = r->tail = YK_HOLDER_NONE;
    r->zeroed_us = (uint64_t)apr_time_now();
    /* The first byte last: a name is there whole or not at all. */
    apr_cpystrn(r->name + 1, name + 1, sizeof(r->name) - 1);
    r->name[0] = name[0];
    yk_seq_end(&r->seq);
    return n;
}

void yk_queue_reconfigure(yk_queue_t *q, yk_queue_acts_t *acts, uint32_t rule,
                          const yk_rule_terms_t *terms, uint64_t generation)
{
    yk_rule_t *r = &q->table->rule[rule];

    if (r->generation >= generation) {
        return;
    }
    yk_seq_begin(&r->seq);
    if (r->generation == 0 && !r->is_set) {
        r->terms = *terms;
    }
#define CHANGED(member, argument, text)                                        \
    if (r->configured.member != terms->member) {                               \
        r->terms.member = terms->member;                                       \
    }
    YK_RULE_NUMBERS(CHANGED)
    YK_RULE_TIMES(CHANGED)
    CHANGED(dry_run, "dry-run", "")
#undef CHANGED
    r->configured = *terms;
    r->is_set = memcmp(&r->terms, terms, sizeof(*terms)) != 0;
    r->generation = generation;
    settle(q, acts, r);
    yk_seq_end(&r->seq);
}

void yk_queue_set(yk_queue_t *q, yk_queue_acts_t *acts, uint32_t rule,
                  const yk_rule_terms_t *terms)
{
    yk_rule_t *r = &q->table->rule[rule];

    yk_seq_begin(&r->seq);
    r->terms = *terms;
    r->is_set = memcmp(&r->configured, terms, sizeof(*terms)) != 0;
    settle(q, acts, r);
    yk_seq_end(&r->seq);
}

void yk_queue_reset(yk_queue_t *q, yk_queue_acts_t *acts, uint32_t rule)
{
    yk_rule_terms_t configured = q->table->rule[rule].configured;

    yk_queue_set(q, acts, rule, &configured);
}

/* ---- events ---- */

static void run_at_once(yk_queue_t *q, yk_turn_t *turn, uint32_t holder)
{
    yk_throttle_holder_t *h = &q->table->holder[holder];
    yk_rule_t *r = &q->table->rule[h->rule];

    atomic_store(&h->state, YK_HOLDER_RUN);
    yk_queue_count(q->table, holder, YK_HOLDER_RUN);
    r->at_once++;
    ran(r, 0);
    turn->answer = YK_QUEUE_RUN;
    turn->holder = holder;
}

static void refuse(yk_rule_t *r, yk_turn_t *turn, yk_refused_e why)
{
    r->refused[why]++;
    turn->answer = YK_QUEUE_REFUSED;
    turn->why = why;
    turn->holder = YK_HOLDER_NONE;
}

/* Everything about a newcomer but its state: it is nobody until that is
 * written, last. */
static uint32_t seat(yk_queue_t *q, const yk_arrival_t *who)
{
    uint32_t holder = yk_queue_row_take(q->table);
    yk_throttle_holder_t *h;

    if (holder == YK_HOLDER_NONE) {
        return holder;
    }
    h = &q->table->holder[holder];
    h->rule = who->rule;
    h->identity = who->identity;
    h->worker = who->worker;
    h->flags = who->second ? YK_HOLDER_SECOND : 0;
    h->ticket = q->table->next_ticket++;
    if (who->user != NULL) {
        memcpy(h->user, who->user, sizeof(h->user));
    }
    else {
        memset(h->user, 0, sizeof(h->user));
    }
    h->arrived_us = who->arrived_us;
    h->queued_us = q->now;
    h->counted = YK_HOLDER_FREE;
    return holder;
}

static int reserve_is_touched(const yk_throttle_table_t *t,
                              const yk_arrival_t *who)
{
    return t->workers > 0 && !who->second &&
           t->busy_workers + 1 + t->reserve > t->workers;
}

/* Queue the newcomer; perhaps the oldest runs past the limit. */
static void line_up(yk_queue_t *q, yk_turn_t *turn, yk_queue_acts_t *acts,
                    yk_rule_t *r, uint32_t holder, uint32_t total)
{
    yk_throttle_table_t *t = q->table;
    uint32_t until = r->terms.resume != 0 ? r->terms.resume : busy_of(t, r);
    int overflows = r->terms.overflow != 0 && total > r->terms.overflow &&
                    (until == 0 || total <= until) && q->others_wait == 0;

    atomic_store(&t->holder[holder].state, YK_HOLDER_WAIT);
    yk_queue_count(t, holder, YK_HOLDER_WAIT);
    while (overflows) {
        uint32_t next = oldest_admissible(q, r);

        if (next == YK_HOLDER_NONE) {
            break;
        }
        if (admit(q, acts, next)) {
            r->overflowed++;
            break;
        }
    }
    if (atomic_load(&t->holder[holder].state) == YK_HOLDER_RUN) {
        turn->answer = YK_QUEUE_RUN;
    }
    else if (t->wait != 0 && t->waiting > t->wait) {
        take_out(t, holder);
        refuse(r, turn, YK_REFUSED_WAIT);
        return;
    }
    else {
        turn->answer = YK_QUEUE_WAIT;
    }
    turn->holder = holder;
}

static void arrive(yk_queue_t *q, yk_turn_t *turn, yk_queue_acts_t *acts,
                   yk_rule_t *r, const yk_arrival_t *who)
{
    static const unsigned char nobody[16];
    const unsigned char *user = who->user != NULL ? who->user : nobody;
    uint32_t total =
        r->running + r->elsewhere + r->waiting + q->others_wait + 1;
    uint32_t busy = busy_of(q->table, r), running, waiting = 0, holder;
    int runs, is_over;

    settle(q, acts, r);
    is_over = reserve_is_touched(q->table, who);
    runs = q->others_wait == 0 && has_place(q, r) &&
           user_may_run(q->table, who->rule, user);
    if (r->terms.dry_run && !runs) {
        turn->dry = busy != 0 && total > busy ? 2 : 1;
        runs = 1;
    }
    if (who->bypass || r->terms.dry_run) {
        runs = 1;
        is_over = 0;
    }
    if (who->at_once && (!runs || is_over)) {
        turn->answer = YK_QUEUE_WAIT;
        return;
    }
    r->arrivals++;
    if (is_over) {
        refuse(r, turn, YK_REFUSED_RESERVE);
        return;
    }
    if (!runs && busy != 0 && total > busy) {
        refuse(r, turn, YK_REFUSED_BUSY);
        return;
    }
    if (r->terms.per_user != 0 && !yk_queue_is_nobody(user)) {
        yk_queue_of_user(q->table, &running, &waiting, who->rule, user);
    }
    if (!runs && r->terms.user_wait != 0 && waiting >= r->terms.user_wait) {
        refuse(r, turn, YK_REFUSED_USER);
        return;
    }
    holder = seat(q, who);
    if (holder == YK_HOLDER_NONE) {
        refuse(r, turn, YK_REFUSED_FULL);
        return;
    }
    if (runs) {
        r->bypassed += who->bypass != 0;
        r->dry_queued += turn->dry == 1;
        r->dry_refused += turn->dry == 2;
        run_at_once(q, turn, holder);
        return;
    }
    line_up(q, turn, acts, r, holder, total);
}

void yk_queue_arrive(yk_queue_t *q, yk_turn_t *turn, yk_queue_acts_t *acts,
                     const yk_arrival_t *who)
{
    yk_rule_t *r = &q->table->rule[who->rule];

    memset(turn, 0, sizeof(*turn));
    turn->holder = YK_HOLDER_NONE;
    yk_seq_begin(&r->seq);
    arrive(q, turn, acts, r, who);
    yk_seq_end(&r->seq);
}

void yk_queue_tick(yk_queue_t *q, yk_turn_t *turn, yk_queue_acts_t *acts,
                   uint32_t holder)
{
    yk_throttle_holder_t *h = &q->table->holder[holder];
    yk_rule_t *r = &q->table->rule[h->rule];
    int64_t waited = q->now - h->arrived_us;
    uint32_t state;

    memset(turn, 0, sizeof(*turn));
    turn->holder = holder;
    yk_seq_begin(&r->seq);
    settle(q, acts, r);
    state = atomic_load(&h->state);
    if (state == YK_HOLDER_WAIT && r->terms.run_after_us != 0 &&
        waited >= r->terms.run_after_us && admit(q, acts, holder)) {
        r->ran_after++;
        state = YK_HOLDER_RUN;
    }
    if (state == YK_HOLDER_REFUSED) {
        take_out(q->table, holder);
        refuse(r, turn, YK_REFUSED_OPERATOR);
    }
    else if (state == YK_HOLDER_WAIT && r->terms.refuse_after_us != 0 &&
             waited >= r->terms.refuse_after_us) {
        take_out(q->table, holder);
        refuse(r, turn, YK_REFUSED_TIME);
    }
    else {
        turn->answer = state == YK_HOLDER_RUN ? YK_QUEUE_RUN : YK_QUEUE_WAIT;
    }
    yk_seq_end(&r->seq);
}

apr_time_t yk_queue_due(const yk_queue_t *q, uint32_t holder)
{
    const yk_throttle_holder_t *h = &q->table->holder[holder];
    const yk_rule_terms_t *terms = &q->table->rule[h->rule].terms;
    int64_t due = YK_RULE_TIME_MAX;

    if (terms->run_after_us != 0) {
        due = terms->run_after_us;
    }
    if (terms->refuse_after_us != 0 && terms->refuse_after_us < due) {
        due = terms->refuse_after_us;
    }
    return h->arrived_us + due;
}

void yk_queue_leave(yk_queue_t *q, yk_queue_acts_t *acts, uint32_t holder)
{
    yk_rule_t *r = &q->table->rule[q->table->holder[holder].rule];

    yk_seq_begin(&r->seq);
    take_out(q->table, holder);
    settle(q, acts, r);
    yk_seq_end(&r->seq);
}

void yk_queue_gone(yk_queue_t *q, yk_queue_acts_t *acts, uint32_t holder)
{
    yk_rule_t *r = &q->table->rule[q->table->holder[holder].rule];

    yk_seq_begin(&r->seq);
    r->refused[YK_REFUSED_GONE]++;
    take_out(q->table, holder);
    settle(q, acts, r);
    yk_seq_end(&r->seq);
}

/* ---- the operator ---- */

uint32_t yk_queue_release(yk_queue_t *q, yk_queue_acts_t *acts, uint32_t rule)
{
    yk_rule_t *r = &q->table->rule[rule];
    uint32_t n = 0;

    yk_seq_begin(&r->seq);
    while (r->head != YK_HOLDER_NONE) {
        uint32_t holder = r->head;

        q->table->holder[holder].flags |= YK_HOLDER_RELEASED;
        if (admit(q, acts, holder)) {
            r->released++;
            n++;
        }
    }
    yk_seq_end(&r->seq);
    return n;
}

/* Its row stays until its request has seen it; it counts no more. */
uint32_t yk_queue_refuse(yk_queue_t *q, yk_queue_acts_t *acts, uint32_t rule)
{
    yk_rule_t *r = &q->table->rule[rule];
    uint32_t n = 0;

    yk_seq_begin(&r->seq);
    while (r->head != YK_HOLDER_NONE) {
        uint32_t holder = r->head, wait = YK_HOLDER_WAIT;
        yk_throttle_holder_t *h = &q->table->holder[holder];

        yk_queue_uncount(q->table, holder);
        if (atomic_compare_exchange_strong(&h->state, &wait,
                                           YK_HOLDER_REFUSED)) {
            woken(acts, holder);
            n++;
        }
        else {
            yk_queue_row_give(q->table, holder);
        }
    }
    yk_seq_end(&r->seq);
    return n;
}

void yk_queue_zero(yk_queue_t *q, uint32_t rule)
{
    yk_rule_t *r = &q->table->rule[rule];

    yk_seq_begin(&r->seq);
#define ZERO(member, counter, text) r->member = 0;
    YK_RULE_COUNTERS(ZERO)
#undef ZERO
    memset(r->refused, 0, sizeof(r->refused));
    memset(r->waits, 0, sizeof(r->waits));
    r->peak_running = r->running;
    r->peak_waiting = r->waiting;
    r->zeroed_us = (uint64_t)apr_time_now();
    yk_seq_end(&r->seq);
}

/* ---- the dead ---- */

uint32_t yk_queue_reclaim(yk_queue_t *q, yk_queue_acts_t *acts)
{
    yk_throttle_table_t *t = q->table;
    unsigned char touched[YK_RULES_MAX] = {0};
    uint32_t n = 0;

    atomic_store(&t->left, 0);
    for (uint32_t i = 0; i < t->high; i++) {
        yk_throttle_holder_t *h = &t->holder[i];
        uint32_t state = atomic_load(&h->state);
        yk_rule_t *r = &t->rule[h->rule];
        int left = state == YK_HOLDER_LEFT;

        if (state == YK_HOLDER_FREE ||
            (!left && q->is_alive(q->world, h->worker, h->identity, 0))) {
            continue;
        }
        yk_seq_begin(&r->seq);
        take_out(t, i);
        r->reclaimed += !left;
        n += !left;
        yk_seq_end(&r->seq);
        touched[h->rule] = 1;
    }
    for (uint32_t i = 0; i < YK_RULES_MAX; i++) {
        if (touched[i]) {
            yk_seq_begin(&t->rule[i].seq);
            settle(q, acts, &t->rule[i]);
            yk_seq_end(&t->rule[i].seq);
        }
    }
    return n;
}
