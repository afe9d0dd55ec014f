/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YOYAKU_RULE_H
#define YOYAKU_RULE_H

#include <apr_pools.h>
#include <apr_time.h>
#include <stdint.h>

/**
 * @file rule.h
 * @brief What a throttle rule says: its parameters, how they are written and
 *        which of them fit together.
 *
 *   limit=4 per-user=1 user-wait=6 overflow=20 resume=30 busy=60 run-after=0
 *   refuse-after=30s dry-run
 *   4/1,20,30,60,0,0:30
 *
 * 0 or empty: off. Nothing here keeps state.
 */

#define YK_RULE_NAME 64           /**< bytes of a name, with its NUL */
#define YK_RULE_COUNT_MAX 1000000 /**< of every number */
#define YK_RULE_TIME_MAX (apr_time_from_sec(86400))
#define YK_RULE_BUSY_DEFAULT UINT32_MAX /**< limit + YoyakuThrottleWait */

/** X(member, "argument", what it says) of the numbers */
#define YK_RULE_NUMBERS(X)                                                     \
    X(limit, "limit", "so many run at once")                                   \
    X(per_user, "per-user", "of one user so many run at once")                 \
    X(user_wait, "user-wait", "of one user so many wait at once")              \
    X(overflow, "overflow", "more than so many: the oldest runs past limit")   \
    X(resume, "resume", "more than so many: limit holds again")                \
    X(busy, "busy", "more than so many: refused")

/** X(member, "argument", what it says) of the times */
#define YK_RULE_TIMES(X)                                                       \
    X(run_after_us, "run-after", "waited so long: runs, past limit")           \
    X(refuse_after_us, "refuse-after", "waited so long: refused")

/** Stands in shared memory: fixed width. */
typedef struct yk_rule_terms_t {
    uint32_t limit, per_user, user_wait, overflow, resume, busy;
    uint32_t dry_run;
    uint32_t spare;
    int64_t run_after_us, refuse_after_us;
} yk_rule_terms_t;

_Static_assert(sizeof(yk_rule_terms_t) == 48, "part of the throttle's layout");

/** user-wait 6, refuse-after 30 s, busy its default, the rest off. */
void yk_rule_terms_default(yk_rule_terms_t *terms);

/**
 * Read one argument ("limit=8", "dry-run", or the short form "4/1,20").
 * @param problem names the value, the range and an example
 * @return APR_SUCCESS, APR_EINVAL (see problem), APR_NOTFOUND: not an argument
 *         of a rule at all
 */
apr_status_t yk_rule_terms_parse(yk_rule_terms_t *terms, const char **problem,
                                 const char *argument, apr_pool_t *p);

/**
 * Do they fit together: limit < overflow < resume <= busy, run-after <
 * refuse-after.
 * @param wait what busy's default adds to limit
 */
apr_status_t yk_rule_terms_check(const yk_rule_terms_t *terms,
                                 const char **problem, uint32_t wait,
                                 apr_pool_t *p);

/** As arguments, as they would be written in a configuration. */
char *yk_rule_terms_write(const yk_rule_terms_t *terms, apr_pool_t *p);

/** 1: letters, digits, . _ -; fits its room */
int yk_rule_is_name(const char *name);

/** Read "30s", "2min", "500ms", "1h", "30" (seconds) or "[[h:]m:]s". */
apr_status_t yk_rule_time_parse(int64_t *us, const char *text);
char *yk_rule_time_write(int64_t us, apr_pool_t *p);

#endif
