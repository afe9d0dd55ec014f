/* SPDX-License-Identifier: Apache-2.0 */
#include "stats.h"

#include <string.h>

/*
 * The layout before: a rule's minute had neither connections nor bytes. The
 * numbers are copied as they stand; whatever a child may have written there,
 * they are only ever added up. Children of the old generation go on counting in
 * the old file for as long as they live, and that is lost.
 */

#define BEFORE 1

typedef struct old_rule_minute_t {
    uint32_t minute, name, requests, refused, peak_running, peak_queued;
    uint64_t wait_us;
} old_rule_minute_t;

typedef struct old_memory_t {
    yk_state_head_t head;
    uint64_t total[16];
    yk_lock_t lock;
    yk_path_t path[YK_STATS_PATHS];
    yk_minute_t minute[YK_STATS_MINUTES];
    old_rule_minute_t rule[YK_STATS_RULES][YK_STATS_MINUTES];
} old_memory_t;

static void rule_take_over(yk_rule_minute_t *m, const old_rule_minute_t *old)
{
    for (uint32_t i = 0; i < YK_STATS_MINUTES; i++) {
        if (old[i].minute != 0) {
            m[i].name = old[i].name;
            m[i].requests = old[i].requests;
            m[i].refused = old[i].refused;
            m[i].peak_running = old[i].peak_running;
            m[i].peak_queued = old[i].peak_queued;
            m[i].wait_us = old[i].wait_us;
            m[i].minute = old[i].minute;
        }
    }
}

void yk_stats_take_over(yk_stats_memory_t *m, const char *folder, apr_pool_t *p)
{
    yk_state_t *state;
    const old_memory_t *old;
    apr_size_t size;

    if (yk_state_before(&state, &size, &yk_stats_kind, folder, p) !=
        APR_SUCCESS) {
        return;
    }
    old = yk_state_memory(state);
    if (old->head.layout != BEFORE || size != sizeof(*old)) {
        return;
    }
    for (int i = 0; i < YK_TOTAL_COUNT; i++) {
        atomic_store(&m->total[i], old->total[i]);
    }
    memcpy(m->path, old->path, sizeof(m->path));
    memcpy(m->minute, old->minute, sizeof(m->minute));
    for (uint32_t i = 0; i < YK_STATS_RULES; i++) {
        rule_take_over(m->rule[i], old->rule[i]);
    }
    (void)yk_state_unlink(state);
}
