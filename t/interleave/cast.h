/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INTERLEAVE_CAST_H
#define INTERLEAVE_CAST_H

#include <apr_pools.h>
#include <apr_tables.h>
#include <apr_thread_mutex.h>
#include <yoyaku/desk.h>

/**
 * @file cast.h
 * @brief Who is who in a run: orders by the names scripts give them, and what
 *        anybody was told of them. Shared by all threads, under its mutex.
 */

typedef struct named_t {
    const char *name;
    uint64_t order_id;
    const char *token; /**< NULL: not known */
    int64_t total;
    const char *currency;
    uint32_t attempt;
} named_t;

/** What somebody was told: it must be in the book. */
typedef struct told_t {
    uint64_t order_id;
    yk_order_state_e state;
    const char *by; /**< session and act, for messages */
} told_t;

typedef struct cast_t {
    apr_array_header_t *names; /**< named_t */
    apr_array_header_t *told;  /**< told_t */
    apr_thread_mutex_t *mutex;
    apr_time_t most_shift; /**< the latest clock anybody has */
    apr_pool_t *p;
} cast_t;

/** A pool that another thread may use: it has an allocator of its own. */
apr_pool_t *cast_pool(apr_pool_t *parent);

cast_t *cast_make(apr_pool_t *parent);
/** The beginnings of another: names made before the run. */
cast_t *cast_copy(const cast_t *from, apr_pool_t *p);
/** A copy of what is known of an order; 0: unknown name. */
int cast_find(cast_t *cast, named_t *named, const char *name);
const char *cast_name_of(cast_t *cast, uint64_t order_id);

/** Everything a reply says of an order is a promise: remember it, and the name.
 *  @param answered 0: the fate is not known; only the name is learnt */
void cast_learn(cast_t *cast, const char *name, const char *by, int answered,
                const yk_reply_t *reply);

#endif
