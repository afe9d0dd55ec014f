/* SPDX-License-Identifier: Apache-2.0 */
#include "before.h"
#include "yoyaku/log.h"

#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

/* How long who waits for the lock: a newcomer is then refused, one that
 * leaves marks its row instead, one that is queued tries again. */
#define ARRIVE_WAIT apr_time_from_msec(500)
#define LEAVE_WAIT apr_time_from_msec(100)
#define TICK_WAIT apr_time_from_msec(50)
#define TOOL_WAIT apr_time_from_sec(2)

/* How old the last look at all workers may be. */
#define PROBE_ARRIVING apr_time_from_msec(100)
#define PROBE_WAITING apr_time_from_msec(200)

struct yk_throttle_t {
    yk_throttle_table_t *table;
    yk_workers_t *workers;
    yk_throttle_before_t *before; /* NULL: no other layout is in use */
    uint64_t generation;          /* of this process's configuration */
    uint32_t nworkers, reserve, wait;
    uint32_t worker;
    uint64_t identity;
};

static void fresh(void *memory)
{
    yk_throttle_table_t *t = memory;

    yk_lock_create(&t->lock);
    yk_queue_fresh(t);
}

static int nobody_lives(void *world, uint32_t worker, uint64_t identity,
                        int closely)
{
    return 0;
}

static void renew(void *memory)
{
    yk_queue_t q = {memory, 0, 0, nobody_lives, NULL};
    yk_queue_acts_t acts = {0};

    yk_lock_create(&q.table->lock);
    yk_queue_recount(&q);
    yk_queue_reclaim(&q, &acts);
}

const yk_state_kind_t yk_throttle_kind = {
    "throttle", YK_THROTTLE_LAYOUT, sizeof(yk_throttle_table_t), fresh, renew};

static int lives(void *world, uint32_t worker, uint64_t identity, int closely)
{
    const yk_throttle_t *throttle = world;

    if (!yk_workers_has(throttle->workers, worker, identity)) {
        return 0;
    }
    if (closely && !yk_worker_is_alive(identity)) {
        yk_workers_drop(throttle->workers, worker, identity);
        return 0;
    }
    return 1;
}

/* ---- life ---- */

apr_status_t yk_throttle_create(yk_throttle_t **throttle, const char *folder,
                                uint32_t workers, uint32_t reserve,
                                uint32_t wait, apr_pool_t *p)
{
    yk_throttle_t *made = apr_pcalloc(p, sizeof(*made));
    yk_state_t *table, *rows;
    apr_status_t rv;

    rv = yk_state_create(&rows, &yk_workers_kind, folder, p);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    rv = yk_state_create(&table, &yk_throttle_kind, folder, p);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    made->table = yk_state_memory(table);
    made->workers = yk_state_memory(rows);
    /* whoever died together with his parent was buried by nobody */
    yk_workers_probe(made->workers, 0, yk_state_now());
    made->generation = made->table->head.generation;
    if (!yk_state_was_found(table)) {
        yk_throttle_before_take_over(made->table, folder, p);
    }
    made->nworkers = workers;
    made->reserve = reserve;
    made->wait = wait;
    made->worker = YK_WORKER_NONE;
    made->before = yk_throttle_before_find(folder, made->workers, p);
    *throttle = made;
    return APR_SUCCESS;
}

apr_status_t yk_throttle_attach(yk_throttle_t **throttle, const char *folder,
                                int write, apr_pool_t *p)
{
    yk_throttle_t *made = apr_pcalloc(p, sizeof(*made));
    yk_state_t *table, *rows;
    apr_status_t rv;

    rv = yk_state_attach(&table, &yk_throttle_kind, folder, write, p);
    if (rv == APR_SUCCESS) {
        rv = yk_state_attach(&rows, &yk_workers_kind, folder, write, p);
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    made->table = yk_state_memory(table);
    made->workers = yk_state_memory(rows);
    made->worker = YK_WORKER_NONE;
    *throttle = made;
    return APR_SUCCESS;
}

void yk_throttle_join(yk_throttle_t *throttle)
{
    throttle->worker = yk_workers_join(throttle->workers, throttle->generation,
                                       YK_THROTTLE_LAYOUT);
    throttle->identity =
        throttle->worker == YK_WORKER_NONE
            ? 0
            : atomic_load(
                  &throttle->workers->worker[throttle->worker].identity);
    if (throttle->worker == YK_WORKER_NONE) {
        yk_log(YK_LOG_ERROR, 0,
               "YK0501: throttle: no row is left for this worker; what it "
               "runs under rules is refused. Fewer workers than %d must live "
               "at once.",
               YK_WORKERS_MAX);
    }
}

void yk_throttle_bury(yk_throttle_t *throttle, uint32_t pid)
{
    yk_workers_bury(throttle->workers, pid);
}

uint64_t yk_throttle_generation(const yk_throttle_t *throttle)
{
    return throttle->generation;
}

yk_workers_t *yk_throttle_workers(const yk_throttle_t *throttle)
{
    return throttle->workers;
}

yk_throttle_table_t *yk_throttle_table(const yk_throttle_t *throttle)
{
    return throttle->table;
}

const yk_lock_t *yk_throttle_lock_before(const yk_throttle_t *throttle)
{
    return throttle->before != NULL
               ? yk_throttle_before_lock_of(throttle->before)
               : NULL;
}

uint32_t yk_throttle_worker(const yk_throttle_t *throttle)
{
    return throttle->worker;
}

uint64_t yk_throttle_identity(const yk_throttle_t *throttle)
{
    return throttle->identity;
}

/* ---- the lock ---- */

/* The newest configuration's numbers; the tool has none (generation 0). */
static void numbers(yk_throttle_t *throttle)
{
    yk_throttle_table_t *t = throttle->table;

    if (t->generation < throttle->generation) {
        t->generation = throttle->generation;
        t->workers = throttle->nworkers;
        t->reserve = throttle->reserve;
        t->wait = throttle->wait;
    }
}

static void reclaim(yk_throttle_t *throttle, yk_queue_t *q,
                    yk_queue_acts_t *acts)
{
    uint64_t graves = atomic_load(&throttle->workers->graves);

    if (graves != throttle->table->graves_seen ||
        atomic_load(&throttle->table->left) != 0) {
        yk_queue_reclaim(q, acts);
        throttle->table->graves_seen = graves;
    }
}

/* Take the lock and be ready to decide; give it back with unlock(). */
static apr_status_t lock(yk_throttle_t *throttle, yk_queue_t *q,
                         yk_queue_acts_t *acts, apr_interval_time_t wait)
{
    apr_status_t rv;
    int died;

    q->table = throttle->table;
    q->is_alive = lives;
    q->world = throttle;
    q->others_wait = 0;
    q->now = yk_state_now();
    acts->n = 0;
    rv = yk_lock_take(&throttle->table->lock, &died, YK_LOCK_WRITE, wait);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    if (died) {
        yk_queue_recount(q);
        yk_lock_mend(&throttle->table->lock);
        yk_log(YK_LOG_NOTICE, 0,
               "YK0502: throttle: a worker died with the lock in hand; "
               "everything was counted anew.");
    }
    numbers(throttle);
    if (throttle->before != NULL) {
        rv = yk_throttle_before_lock(throttle->before, wait);
        if (rv != APR_SUCCESS) {
            yk_lock_give(&throttle->table->lock);
            return rv;
        }
    }
    reclaim(throttle, q, acts);
    return APR_SUCCESS;
}

static void unlock(yk_throttle_t *throttle, const yk_queue_acts_t *acts)
{
    if (throttle->before != NULL &&
        !yk_throttle_before_unlock(throttle->before, throttle->table)) {
        throttle->before = NULL;
    }
    yk_lock_give(&throttle->table->lock);
    for (uint32_t i = 0; i < acts->n; i++) {
        yk_word_wake(&throttle->table->holder[acts->holder[i]].state);
    }
}

/* What the other layout's file says of this rule. */
static void others(yk_throttle_t *throttle, yk_queue_t *q, uint32_t rule)
{
    yk_rule_t *r = &throttle->table->rule[rule];

    r->elsewhere = 0;
    q->others_wait = 0;
    if (throttle->before != NULL) {
        yk_throttle_before_count(throttle->before, &r->elsewhere,
                                 &q->others_wait, r->name);
    }
}

/* ---- requests ---- */

apr_status_t yk_throttle_rule(yk_throttle_t *throttle, uint32_t *rule,
                              const char *name, const yk_rule_terms_t *terms)
{
    yk_queue_acts_t acts;
    yk_queue_t q;
    apr_status_t rv = lock(throttle, &q, &acts, ARRIVE_WAIT);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    *rule = yk_queue_rule(&q, name);
    if (*rule != YK_RULE_NONE) {
        others(throttle, &q, *rule);
        yk_queue_reconfigure(&q, &acts, *rule, terms, throttle->generation);
    }
    unlock(throttle, &acts);
    return *rule != YK_RULE_NONE ? APR_SUCCESS : APR_ENOSPC;
}

static apr_status_t arrive(yk_throttle_t *throttle, yk_turn_t *turn,
                           yk_arrival_t *who)
{
    yk_queue_acts_t acts;
    yk_queue_t q;
    apr_status_t rv = lock(throttle, &q, &acts, ARRIVE_WAIT);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    /* Of an old configuration whose row was given to another name since. */
    if (strcmp(throttle->table->rule[who->rule].name, who->name) != 0) {
        who->rule = yk_queue_rule(&q, who->name);
        rv = who->rule == YK_RULE_NONE ? APR_ENOSPC : APR_SUCCESS;
    }
    if (rv == APR_SUCCESS) {
        others(throttle, &q, who->rule);
        yk_queue_arrive(&q, turn, &acts, who);
    }
    unlock(throttle, &acts);
    return rv;
}

void yk_throttle_arrive(yk_throttle_t *throttle, yk_turn_t *turn,
                        yk_arrival_t *who)
{
    int at_once = who->at_once;
    apr_status_t rv = APR_ENOSPC;

    who->worker = throttle->worker;
    who->identity = throttle->identity;
    memset(turn, 0, sizeof(*turn));
    if (who->worker != YK_WORKER_NONE) {
        who->at_once = 1;
        rv = arrive(throttle, turn, who);
        who->at_once = at_once;
    }
    if (rv == APR_SUCCESS && turn->answer != YK_QUEUE_RUN && !at_once) {
        /* Before anybody waits or is refused: perhaps somebody died. */
        yk_workers_probe(throttle->workers, PROBE_ARRIVING, yk_state_now());
        rv = arrive(throttle, turn, who);
    }
    if (rv != APR_SUCCESS) {
        turn->answer = YK_QUEUE_REFUSED;
        turn->why =
            APR_STATUS_IS_ENOSPC(rv) ? YK_REFUSED_FULL : YK_REFUSED_LOCK;
        turn->holder = YK_HOLDER_NONE;
        if (who->rule < YK_RULES_MAX) {
            /* without the lock, so not as the other counters are */
            __atomic_fetch_add(
                &throttle->table->rule[who->rule].refused[turn->why], 1,
                __ATOMIC_RELAXED);
        }
    }
}

/* Without the lock: mark the row, somebody with the lock takes it out. */
static int mark_left(yk_throttle_t *throttle, uint32_t holder, uint32_t from)
{
    yk_throttle_holder_t *h = &throttle->table->holder[holder];

    if (!atomic_compare_exchange_strong(&h->state, &from, YK_HOLDER_LEFT)) {
        return 0;
    }
    atomic_fetch_add(&throttle->table->left, 1);
    return 1;
}

static void wait_without_lock(yk_throttle_t *throttle, yk_turn_t *turn,
                              const yk_queue_t *q)
{
    turn->answer = YK_QUEUE_WAIT;
    if (yk_state_now() < yk_queue_due(q, turn->holder)) {
        return;
    }
    if (mark_left(throttle, turn->holder, YK_HOLDER_WAIT)) {
        turn->answer = YK_QUEUE_REFUSED;
        turn->why = YK_REFUSED_LOCK;
    }
}

void yk_throttle_wait(yk_throttle_t *throttle, yk_turn_t *turn,
                      apr_interval_time_t nap)
{
    yk_throttle_holder_t *h = &throttle->table->holder[turn->holder];
    yk_queue_t q = {throttle->table, yk_state_now(), 0, lives, throttle};
    apr_time_t due = yk_queue_due(&q, turn->holder);
    yk_queue_acts_t acts;

    if (due - q.now < nap) {
        nap = due > q.now ? due - q.now : 0;
    }
    yk_word_wait(&h->state, YK_HOLDER_WAIT, nap);
    if (atomic_load(&h->state) == YK_HOLDER_RUN) {
        turn->answer = YK_QUEUE_RUN;
        return;
    }
    yk_workers_probe(throttle->workers, PROBE_WAITING, yk_state_now());
    if (lock(throttle, &q, &acts, TICK_WAIT) != APR_SUCCESS) {
        wait_without_lock(throttle, turn, &q);
        return;
    }
    others(throttle, &q, h->rule);
    yk_queue_tick(&q, turn, &acts, turn->holder);
    unlock(throttle, &acts);
}

static void leave(yk_throttle_t *throttle, uint32_t holder, int gone)
{
    yk_queue_acts_t acts;
    yk_queue_t q;

    if (lock(throttle, &q, &acts, LEAVE_WAIT) != APR_SUCCESS) {
        if (!mark_left(throttle, holder, YK_HOLDER_RUN) &&
            !mark_left(throttle, holder, YK_HOLDER_WAIT) &&
            !mark_left(throttle, holder, YK_HOLDER_RUN)) {
            (void)mark_left(throttle, holder, YK_HOLDER_REFUSED);
        }
        return;
    }
    others(throttle, &q, throttle->table->holder[holder].rule);
    if (gone) {
        yk_queue_gone(&q, &acts, holder);
    }
    else {
        yk_queue_leave(&q, &acts, holder);
    }
    unlock(throttle, &acts);
}

void yk_throttle_leave(yk_throttle_t *throttle, uint32_t holder)
{
    leave(throttle, holder, 0);
}

void yk_throttle_gone(yk_throttle_t *throttle, uint32_t holder)
{
    leave(throttle, holder, 1);
}

/* ---- the operator ---- */

static apr_status_t set(yk_queue_t *q, yk_queue_acts_t *acts,
                        const char **problem, uint32_t rule,
                        char *const *arguments, int narguments, apr_pool_t *p)
{
    yk_rule_terms_t terms = q->table->rule[rule].terms;
    apr_status_t rv = APR_SUCCESS;

    for (int i = 0; i < narguments && rv == APR_SUCCESS; i++) {
        if (strcmp(arguments[i], "dry-run=off") == 0) {
            terms.dry_run = 0;
            continue;
        }
        rv = yk_rule_terms_parse(&terms, problem, arguments[i], p);
        if (rv == APR_NOTFOUND) {
            *problem = apr_psprintf(p,
                                    "%s: not an argument of a rule; for "
                                    "example: limit=8",
                                    arguments[i]);
            rv = APR_EINVAL;
        }
    }
    if (rv == APR_SUCCESS) {
        rv = yk_rule_terms_check(&terms, problem, q->table->wait, p);
    }
    if (rv == APR_SUCCESS) {
        yk_queue_set(q, acts, rule, &terms);
    }
    return rv;
}

apr_status_t yk_throttle_do(yk_throttle_t *throttle, uint32_t *n,
                            const char **problem, yk_throttle_do_e what,
                            const char *name, char *const *arguments,
                            int narguments, apr_pool_t *p)
{
    yk_queue_acts_t acts;
    yk_queue_t q;
    apr_status_t rv = lock(throttle, &q, &acts, TOOL_WAIT);
    uint32_t rule;

    *n = 0;
    if (rv != APR_SUCCESS) {
        return rv;
    }
    rule = *name != '\0' ? yk_queue_find(&q, name) : YK_RULE_NONE;
    if (rule == YK_RULE_NONE) {
        unlock(throttle, &acts);
        return APR_NOTFOUND;
    }
    switch (what) {
    case YK_THROTTLE_SET:
        rv = set(&q, &acts, problem, rule, arguments, narguments, p);
        break;
    case YK_THROTTLE_RESET:
        yk_queue_reset(&q, &acts, rule);
        break;
    case YK_THROTTLE_RELEASE:
        *n = yk_queue_release(&q, &acts, rule);
        break;
    case YK_THROTTLE_REFUSE:
        *n = yk_queue_refuse(&q, &acts, rule);
        break;
    case YK_THROTTLE_ZERO:
        yk_queue_zero(&q, rule);
        break;
    }
    unlock(throttle, &acts);
    return rv;
}

apr_status_t yk_throttle_look(const yk_throttle_t *throttle, yk_rule_t *rule,
                              uint32_t number)
{
    const yk_rule_t *r = &throttle->table->rule[number];

    if (number >= YK_RULES_MAX || r->name[0] == '\0') {
        return APR_NOTFOUND;
    }
    (void)yk_seq_copy(rule, r, sizeof(*rule), &r->seq);
    rule->name[sizeof(rule->name) - 1] = '\0';
    if (rule->generation < throttle->table->generation &&
        rule->running + rule->waiting == 0) {
        return APR_NOTFOUND;
    }
    return APR_SUCCESS;
}
