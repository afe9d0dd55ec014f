/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YK_THROTTLE_BEFORE_H
#define YK_THROTTLE_BEFORE_H

#include "yoyaku/throttle.h"

/**
 * @file before.h
 * @brief The throttle file of another layout, while workers of the old
 *        generation still use it.
 *
 * What all layouts have in common: where rules, holders and lock lie stands
 * behind the head; a rule begins with name[64] and `elsewhere`, a holder with
 * state, rule, identity, ticket and worker. The old code counts P as its own
 * running plus `elsewhere`, which the new code writes under the old file's
 * lock whenever its own numbers change; the new code counts the old file's
 * holders. So both together never run more than the limit. Who waits in the
 * old file came earlier and goes first.
 *
 * Where it lives: made by the parent, which only maps; used by children, under
 * the new file's lock.
 */

typedef struct yk_throttle_before_t yk_throttle_before_t;

/** NULL when there is none that a worker still uses (then it is removed). */
yk_throttle_before_t *yk_throttle_before_find(const char *folder,
                                              const yk_workers_t *workers,
                                              apr_pool_t *p);

/** A fresh table takes over, by name, what another layout's file counted of its
 *  rules and what the operator set, where a rule is laid out as it is here. */
void yk_throttle_before_take_over(yk_throttle_table_t *table,
                                  const char *folder, apr_pool_t *p);

/** Its lock, to be looked at; NULL: the file is not what it says. */
const yk_lock_t *yk_throttle_before_lock_of(const yk_throttle_before_t *before);

apr_status_t yk_throttle_before_lock(yk_throttle_before_t *before,
                                     apr_interval_time_t wait);

/** Tell the old file what runs here, and let go.
 *  @return 0: nobody uses the old file any more */
int yk_throttle_before_unlock(yk_throttle_before_t *before,
                              const yk_throttle_table_t *table);

/** Who runs and waits under the rule in the old file. Under its lock. */
void yk_throttle_before_count(yk_throttle_before_t *before, uint32_t *running,
                              uint32_t *waiting, const char *name);

#endif
