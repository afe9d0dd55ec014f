/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YK_STATS_H
#define YK_STATS_H

#include "yoyaku/stats.h"

/** The file. */
typedef struct yk_stats_memory_t {
    yk_state_head_t head;
    _Atomic uint64_t total[16];
    yk_lock_t lock; /* of the paths */
    yk_path_t path[YK_STATS_PATHS];
    yk_minute_t minute[YK_STATS_MINUTES];
    yk_rule_minute_t rule[YK_STATS_RULES][YK_STATS_MINUTES];
} yk_stats_memory_t;

struct yk_stats_t {
    yk_stats_memory_t *m;
    uint32_t minutes; /* kept; 0: none */
};

/* A fresh file takes over what the layout before has counted (before.c). */
void yk_stats_take_over(yk_stats_memory_t *m, const char *folder,
                        apr_pool_t *p);

#endif
