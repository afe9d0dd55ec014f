/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YOYAKU_THROTTLE_H
#define YOYAKU_THROTTLE_H

#include <apr_pools.h>
#include <apr_time.h>
#include <stdatomic.h>
#include <stdint.h>
#include "lock.h"
#include "rule.h"
#include "state.h"
#include "worker.h"

/**
 * @file throttle.h
 * @brief Rules, who runs under them, and who waits in which order.
 *
 * What it keeps. A table of holders: one row for each request that runs or
 * waits under a rule, with the worker it lives in. That is the truth. Counts,
 * queues and the chains of users are derived from it and made anew
 * (yk_queue_recount()) whenever a lock's owner died.
 *
 *   holder   FREE -> WAIT -> RUN -> FREE        by its request or by whoever
 *                 \-> RUN      \-> REFUSED      hands a place over
 *            WAIT, RUN -> LEFT                  by its request, when it could
 *                                               not get the lock
 *
 * Let P be the requests processing under a rule and Q those queued; P+Q counts
 * the newcomer.
 *
 *   arrive   P < limit, user below per-user, nobody admissible waits -> runs.
 *            P+Q > busy -> refused. user-wait of this user wait -> refused.
 *            Else queued; and if overflow < P+Q <= resume (or busy), the
 *            oldest admissible runs.
 *   leave    while P < limit the oldest admissible runs: the place is handed
 *            over, never freed and raced for.
 *   tick     waited run-after -> runs; waited refuse-after -> refused.
 *
 * What it promises. A holder of a live worker is never reclaimed; one of a
 * dead worker is, by whoever arrives or waits. Nobody waits for a lock longer
 * than it says; who cannot get it is refused (YK_REFUSED_LOCK).
 *
 * Two parts. yk_queue_*: pure decisions on a table that nobody else touches:
 * an event in, its answer and who must be woken out. yk_throttle_*: the same
 * on shared memory, with the lock, the dead and the sleep.
 *
 * Where it lives. State file "throttle", mapped before fork(). A yk_throttle_t
 * is one process's view of it, made after fork(); threads may share it.
 */

#ifndef YK_THROTTLE_LAYOUT
#define YK_THROTTLE_LAYOUT 1
#endif
#define YK_RULES_MAX 256
#ifndef YK_HOLDERS_MAX
#define YK_HOLDERS_MAX 8192
#endif
#define YK_HOLDER_NONE UINT32_MAX
#define YK_RULE_NONE UINT32_MAX
#define YK_QUEUE_WAITS 24 /**< buckets of waiting time */

/** Why a request was refused. X(NAME, "counter", what it says) */
#define YK_REFUSALS(X)                                                         \
    X(BUSY, "busy", "more than busy at once")                                  \
    X(USER, "user_wait", "user-wait of this user wait already")                \
    X(WAIT, "wait_limit", "as many wait as may (YoyakuThrottleWait)")          \
    X(RESERVE, "reserve", "the reserve is left (YoyakuThrottleReserve)")       \
    X(TIME, "timed_out", "waited refuse-after")                                \
    X(OPERATOR, "operator", "refused by the operator")                         \
    X(GONE, "gone", "the client went away")                                    \
    X(FULL, "full", "the table of holders is full")                            \
    X(LOCK, "lock", "the lock was held too long")

typedef enum yk_refused_e {
#define YK_REFUSED_ENUM(name, counter, text) YK_REFUSED_##name,
    YK_REFUSALS(YK_REFUSED_ENUM)
#undef YK_REFUSED_ENUM
        YK_REFUSED_COUNT
} yk_refused_e;

#define YK_REFUSED_SPACE 16

const char *yk_refused_name(yk_refused_e why);

/** What is counted for a rule. X(member, "counter", what it says) */
#define YK_RULE_COUNTERS(X)                                                    \
    X(arrivals, "arrivals", "requests that came to the rule")                  \
    X(at_once, "admitted_at_once", "ran without waiting")                      \
    X(waited, "admitted_after_waiting", "ran after waiting")                   \
    X(overflowed, "overflowed", "of those: past limit by overflow")            \
    X(ran_after, "ran_after", "of those: past limit by run-after")             \
    X(released, "released", "of those: by the operator")                       \
    X(bypassed, "bypassed", "ran at once by YoyakuThrottleBypass")             \
    X(to_dead, "handed_to_dead", "hand-overs that met a dead worker")          \
    X(reclaimed, "reclaimed", "places and waits of dead workers")              \
    X(dry_queued, "dry_run_queued", "would have waited")                       \
    X(dry_refused, "dry_run_refused", "would have been refused")               \
    X(wait_us, "wait_us", "microseconds waited by those that ran")

typedef enum yk_holder_state_e {
    YK_HOLDER_FREE = 0,
    YK_HOLDER_WAIT = 1,
    YK_HOLDER_RUN = 2,
    YK_HOLDER_REFUSED = 3, /**< by the operator; its request has yet to see */
    YK_HOLDER_LEFT = 4     /**< its request is gone; nobody took it out yet */
} yk_holder_state_e;

/* Flags of a holder */
#define YK_HOLDER_SECOND 1U   /**< its request holds another rule as well */
#define YK_HOLDER_RELEASED 2U /**< run by the operator */

/** One request under one rule. The first 32 bytes are the same in every
 *  layout. */
typedef struct yk_throttle_holder_t {
    _Atomic uint32_t state; /**< a word to sleep on; truth */
    uint32_t rule;          /**< truth */
    uint64_t identity;      /**< its worker; truth */
    uint64_t ticket;        /**< order of arrival; truth */
    uint32_t worker;        /**< truth */
    uint32_t flags;         /**< truth */

    unsigned char user[16]; /**< of its user; zero: nobody; truth */
    int64_t arrived_us;     /**< steady clock; truth */
    int64_t queued_us;      /**< at this rule; truth */

    uint32_t next, prev;             /**< queue or free list; derived */
    uint32_t chain_next, chain_prev; /**< same bucket of users; derived */
    uint32_t counted; /**< as what: FREE (not), WAIT or RUN; derived */
    uint32_t spare;
    uint64_t spare2[5];
} yk_throttle_holder_t;

_Static_assert(sizeof(yk_throttle_holder_t) == 128, "two cache lines");

/** One rule. The first 80 bytes are the same in every layout. */
typedef struct yk_rule_t {
    char name[YK_RULE_NAME]; /**< "": no rule */
    uint32_t elsewhere;      /**< running under the rule in another file */
    uint32_t running;        /**< derived */
    uint32_t waiting;        /**< derived */
    uint32_t head, tail;     /**< of its queue; derived */
    yk_seq_t seq;            /**< around every change of this rule */

    uint64_t generation; /**< of the newest configuration that names it */
    yk_rule_terms_t configured; /**< what that configuration says */
    yk_rule_terms_t terms;      /**< what is in force */
    uint32_t is_set;            /**< 1: the operator set what is in force */

    uint32_t peak_running, peak_waiting;
    uint32_t spare;
#define YK_RULE_COUNTER(member, counter, text) uint64_t member;
    YK_RULE_COUNTERS(YK_RULE_COUNTER)
#undef YK_RULE_COUNTER
    uint64_t refused[YK_REFUSED_SPACE];
    /** waits[i]: waited [2^(i-1), 2^i) ms before running; waits[0]: not */
    uint64_t waits[YK_QUEUE_WAITS];
    uint64_t zeroed_us; /**< wall clock, when the counters began */
    uint64_t spare2[16];
} yk_rule_t;

#define YK_USER_CHAINS 4096

/** All of it. Where its parts lie stands in front for later layouts. */
typedef struct yk_throttle_table_t {
    yk_state_head_t head;
    uint32_t rules_at, rule_bytes, rules_max;
    uint32_t holders_at, holder_bytes, holders_max;
    uint32_t lock_at;
    _Atomic uint32_t left; /**< holders marked LEFT and not yet taken out */
    uint64_t spare[12];

    yk_lock_t lock;

    /* under the lock */
    uint64_t generation;  /**< newest configuration that came into force */
    uint64_t graves_seen; /**< yk_workers_t.graves when last reclaimed */
    uint64_t next_ticket;
    uint32_t workers;      /**< MaxRequestWorkers */
    uint32_t reserve;      /**< to be left free */
    uint32_t wait;         /**< most that wait, all rules together */
    uint32_t busy_workers; /**< requests under any rule; derived */
    uint32_t waiting;      /**< of those: waiting; derived */
    uint32_t free;         /**< first of the free list; derived */
    uint32_t high;         /**< no holder at or above was ever used */
    uint32_t spare2;
    uint64_t recounts;
    uint64_t spare3[7];

    yk_rule_t rule[YK_RULES_MAX];
    uint32_t chain[YK_USER_CHAINS]; /**< users with holders; derived */
    yk_throttle_holder_t holder[YK_HOLDERS_MAX];
} yk_throttle_table_t;

extern const yk_state_kind_t yk_throttle_kind;

/* ---- the decisions ---- */

typedef enum yk_queue_e {
    YK_QUEUE_RUN,
    YK_QUEUE_WAIT,
    YK_QUEUE_REFUSED
} yk_queue_e;

/** What a decision needs to know of the world. */
typedef struct yk_queue_t {
    yk_throttle_table_t *table;
    apr_time_t now;       /**< steady clock, the moment of the event */
    uint32_t others_wait; /**< wait under this rule in another file */
    /** @param closely 1: before a hand-over, ask the system; 0: the table of
     *                 workers will do */
    int (*is_alive)(void *world, uint32_t worker, uint64_t identity,
                    int closely);
    void *world;
} yk_queue_t;

/** Holders whose state a decision changed: their requests must be woken. Past
 *  its room they notice by themselves at their next tick. */
#define YK_QUEUE_ACTS 256
typedef struct yk_queue_acts_t {
    uint32_t n;
    uint32_t holder[YK_QUEUE_ACTS];
} yk_queue_acts_t;

/** Who comes. */
typedef struct yk_arrival_t {
    const char *name;
    uint32_t rule;
    uint32_t worker;
    uint64_t identity;
    const unsigned char *user; /**< 16 bytes; NULL: nobody */
    int bypass;
    int second;  /**< its request holds another rule already */
    int at_once; /**< do not queue, do not refuse: YK_QUEUE_WAIT without a
                      holder, nothing counted, when there is no place */
    apr_time_t arrived_us; /**< at the first rule it came to */
} yk_arrival_t;

/** What came of it. */
typedef struct yk_turn_t {
    yk_queue_e answer;
    yk_refused_e why; /**< when REFUSED */
    uint32_t holder;  /**< when RUN or WAIT */
    int dry;          /**< 1: would have been queued; 2: refused (dry-run) */
} yk_turn_t;

/** Lay out a zeroed table. */
void yk_queue_fresh(yk_throttle_table_t *table);

/** A rule's row by its name. @return YK_RULE_NONE: there is none */
uint32_t yk_queue_find(const yk_queue_t *q, const char *name);
/** The same, made when there is none. @return YK_RULE_NONE: all rows are in
 *  use */
uint32_t yk_queue_rule(yk_queue_t *q, const char *name);

/** A configuration says what a rule is; an older one than is in force says
 *  nothing. A member changed by the operator stays until the configuration
 *  changes that member. */
void yk_queue_reconfigure(yk_queue_t *q, yk_queue_acts_t *acts, uint32_t rule,
                          const yk_rule_terms_t *terms, uint64_t generation);
void yk_queue_set(yk_queue_t *q, yk_queue_acts_t *acts, uint32_t rule,
                  const yk_rule_terms_t *terms);
void yk_queue_reset(yk_queue_t *q, yk_queue_acts_t *acts, uint32_t rule);

void yk_queue_arrive(yk_queue_t *q, yk_turn_t *turn, yk_queue_acts_t *acts,
                     const yk_arrival_t *who);
/** One that waits looks where it stands. When REFUSED its row is free. */
void yk_queue_tick(yk_queue_t *q, yk_turn_t *turn, yk_queue_acts_t *acts,
                   uint32_t holder);
/** It has finished or gives up. */
void yk_queue_leave(yk_queue_t *q, yk_queue_acts_t *acts, uint32_t holder);
/** A waiting one's client went away. */
void yk_queue_gone(yk_queue_t *q, yk_queue_acts_t *acts, uint32_t holder);

/** Run, or refuse, all that wait. @return how many */
uint32_t yk_queue_release(yk_queue_t *q, yk_queue_acts_t *acts, uint32_t rule);
uint32_t yk_queue_refuse(yk_queue_t *q, yk_queue_acts_t *acts, uint32_t rule);
/** The counters begin again. */
void yk_queue_zero(yk_queue_t *q, uint32_t rule);

/** Take out what dead workers held and what was left without the lock. */
uint32_t yk_queue_reclaim(yk_queue_t *q, yk_queue_acts_t *acts);
/** Derive everything anew from the holders. */
void yk_queue_recount(yk_queue_t *q);

/** When the waiting one has to look again at the latest (steady clock). */
apr_time_t yk_queue_due(const yk_queue_t *q, uint32_t holder);

/* ---- the same, shared ---- */

typedef struct yk_throttle_t yk_throttle_t;

/** The parent's: map the files. Before fork(). */
apr_status_t yk_throttle_create(yk_throttle_t **throttle, const char *folder,
                                uint32_t workers, uint32_t reserve,
                                uint32_t wait, apr_pool_t *p);
/** The tool's. @param write 0: only to look */
apr_status_t yk_throttle_attach(yk_throttle_t **throttle, const char *folder,
                                int write, apr_pool_t *p);
/** In a child: take a row in the table of workers. */
void yk_throttle_join(yk_throttle_t *throttle);
/** The parent's: a child has ended. Takes no lock. */
void yk_throttle_bury(yk_throttle_t *throttle, uint32_t pid);

uint64_t yk_throttle_generation(const yk_throttle_t *throttle);
yk_workers_t *yk_throttle_workers(const yk_throttle_t *throttle);
yk_throttle_table_t *yk_throttle_table(const yk_throttle_t *throttle);
/** The lock of the layout before; NULL: no process uses one. */
const yk_lock_t *yk_throttle_lock_before(const yk_throttle_t *throttle);
uint32_t yk_throttle_worker(const yk_throttle_t *throttle);
uint64_t yk_throttle_identity(const yk_throttle_t *throttle);

/**
 * A rule's number, once this generation's terms are in force.
 * @return APR_SUCCESS, APR_TIMEUP (lock), APR_ENOSPC
 */
apr_status_t yk_throttle_rule(yk_throttle_t *throttle, uint32_t *rule,
                              const char *name, const yk_rule_terms_t *terms);

void yk_throttle_arrive(yk_throttle_t *throttle, yk_turn_t *turn,
                        yk_arrival_t *who);
/**
 * Sleep in the queue, at most `nap`, and look where it stands.
 * turn->holder is the one that waits.
 */
void yk_throttle_wait(yk_throttle_t *throttle, yk_turn_t *turn,
                      apr_interval_time_t nap);
void yk_throttle_leave(yk_throttle_t *throttle, uint32_t holder);
void yk_throttle_gone(yk_throttle_t *throttle, uint32_t holder);

/** What the operator may do to a rule. */
typedef enum yk_throttle_do_e {
    YK_THROTTLE_SET,
    YK_THROTTLE_RESET,
    YK_THROTTLE_RELEASE,
    YK_THROTTLE_REFUSE,
    YK_THROTTLE_ZERO
} yk_throttle_do_e;

/**
 * @param terms of SET
 * @param n how many it concerned (RELEASE, REFUSE)
 * @return APR_SUCCESS, APR_NOTFOUND: no such rule, APR_TIMEUP, APR_EINVAL:
 *         `problem` says what does not fit
 */
apr_status_t yk_throttle_do(yk_throttle_t *throttle, uint32_t *n,
                            const char **problem, yk_throttle_do_e what,
                            const char *name, char *const *arguments,
                            int narguments, apr_pool_t *p);

/** Copy a rule without a lock. APR_NOTFOUND: that row is none, or one that no
 *  configuration names and nobody uses. */
apr_status_t yk_throttle_look(const yk_throttle_t *throttle, yk_rule_t *rule,
                              uint32_t number);

#endif
