/* SPDX-License-Identifier: Apache-2.0 */
#include "stats.h"

#include <string.h>
#include "yoyaku/secret.h"

_Static_assert(YK_TOTAL_COUNT <= 16, "there is room for all");

#define CLEARING 0x80000000U /* in `minute`: somebody sets it to nought */

static void fresh(void *memory)
{
    yk_lock_create(&((yk_stats_memory_t *)memory)->lock);
}

const yk_state_kind_t yk_stats_kind = {"stats", YK_STATS_LAYOUT,
                                       sizeof(yk_stats_memory_t), fresh, fresh};

apr_status_t yk_stats_create(yk_stats_t **stats, const char *folder,
                             uint32_t minutes, apr_pool_t *p)
{
    yk_stats_t *made = apr_pcalloc(p, sizeof(*made));
    yk_state_t *state;
    apr_status_t rv = yk_state_create(&state, &yk_stats_kind, folder, p);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    made->m = yk_state_memory(state);
    made->minutes = minutes;
    if (!yk_state_was_found(state)) {
        yk_stats_take_over(made->m, folder, p);
    }
    *stats = made;
    return APR_SUCCESS;
}

yk_lock_t *yk_stats_lock(const yk_stats_t *stats)
{
    return &stats->m->lock;
}

void yk_stats_add(yk_stats_t *stats, yk_total_e total, uint64_t n)
{
    atomic_fetch_add_explicit(&stats->m->total[total], n, memory_order_relaxed);
}

uint64_t yk_stats_total(const yk_stats_t *stats, yk_total_e total)
{
    return atomic_load(&stats->m->total[total]);
}

/* ---- minutes ---- */

static uint32_t minute_of(apr_time_t now)
{
    return (uint32_t)(now / (60 * APR_USEC_PER_SEC));
}

/* Whoever comes first in a minute sets its record to nought. One killed while
 * doing so leaves the mark; after a while another does it again. */
static int own(_Atomic uint32_t *minute, uint32_t wanted)
{
    for (int spins = 0; spins < 1000; spins++) {
        uint32_t is = atomic_load(minute);

        if (is == wanted) {
            return 0;
        }
        if (is == (wanted | CLEARING) && spins < 999) {
            continue;
        }
        if (atomic_compare_exchange_strong(minute, &is, wanted | CLEARING)) {
            return 1;
        }
    }
    return 0;
}

static yk_minute_t *minute_at(yk_stats_t *stats, apr_time_t now)
{
    uint32_t wanted = minute_of(now);
    yk_minute_t *m;

    if (stats->minutes == 0) {
        return NULL;
    }
    m = &stats->m->minute[wanted % stats->minutes];
    if (own(&m->minute, wanted)) {
#define CLEAR(member) atomic_store(&m->member, 0);
        YK_MINUTE_SUMS(CLEAR)
#undef CLEAR
        atomic_store(&m->peak_running, 0);
        atomic_store(&m->peak_queued, 0);
        atomic_store(&m->minute, wanted);
    }
    return m;
}

static void highest(_Atomic uint32_t *peak, uint32_t n)
{
    uint32_t was = atomic_load_explicit(peak, memory_order_relaxed);

    while (was < n && !atomic_compare_exchange_weak(peak, &was, n)) {
    }
}

void yk_stats_request(yk_stats_t *stats, const yk_sample_t *sample,
                      apr_time_t now)
{
    yk_minute_t *m = minute_at(stats, now);
    int unavailable = sample->status == 503;

    yk_stats_add(stats, YK_TOTAL_REQUESTS, 1);
    yk_stats_add(stats, YK_TOTAL_BYTES_SENT, sample->bytes_sent);
    yk_stats_add(stats, YK_TOTAL_BYTES_BEFORE, sample->bytes_before);
    yk_stats_add(stats, YK_TOTAL_UNAVAILABLE, (uint64_t)unavailable);
    if (m != NULL) {
        atomic_fetch_add(&m->requests, 1);
        atomic_fetch_add(&m->bytes_sent, sample->bytes_sent);
        atomic_fetch_add(&m->bytes_before, sample->bytes_before);
        if (unavailable) {
            atomic_fetch_add(&m->unavailable, 1);
        }
    }
    yk_stats_path(stats, sample);
}

void yk_stats_connection(yk_stats_t *stats, apr_time_t now)
{
    yk_minute_t *m = minute_at(stats, now);

    yk_stats_add(stats, YK_TOTAL_CONNECTIONS, 1);
    if (m != NULL) {
        atomic_fetch_add(&m->connections, 1);
    }
}

void yk_stats_restart(yk_stats_t *stats, apr_time_t now)
{
    yk_minute_t *m = minute_at(stats, now);

    yk_stats_add(stats, YK_TOTAL_RESTARTS, 1);
    if (m != NULL) {
        atomic_fetch_add(&m->restarts, 1);
    }
}

void yk_stats_peak(yk_stats_t *stats, uint32_t running, uint32_t queued,
                   apr_time_t now)
{
    yk_minute_t *m = minute_at(stats, now);

    if (m != NULL) {
        highest(&m->peak_running, running);
        highest(&m->peak_queued, queued);
    }
}

/* FNV-1a of 32 bits and not yk_text_fnv(), which has 64: this one stands in the
 * files, since layout 1, and with another one each rule's history of before
 * would be nobody's. */
static uint32_t name_hash(const char *name)
{
    uint32_t hash = 2166136261U;

    for (; *name != '\0'; name++) {
        hash = (hash ^ (unsigned char)*name) * 16777619U;
    }
    return hash;
}

static yk_rule_minute_t *rule_minute_at(yk_stats_t *stats, uint32_t rule,
                                        const yk_rule_t *r, apr_time_t now)
{
    uint32_t wanted = minute_of(now);
    yk_rule_minute_t *m;

    if (stats->minutes == 0 || rule >= YK_STATS_RULES) {
        return NULL;
    }
    m = &stats->m->rule[rule][wanted % stats->minutes];
    if (own(&m->minute, wanted)) {
        m->name = name_hash(r->name);
#define CLEAR(member) atomic_store(&m->member, 0);
        YK_RULE_MINUTE_SUMS(CLEAR)
#undef CLEAR
        atomic_store(&m->peak_running, 0);
        atomic_store(&m->peak_queued, 0);
        atomic_store(&m->minute, wanted);
    }
    return m;
}

void yk_stats_rule_peak(yk_stats_t *stats, uint32_t rule, const yk_rule_t *r,
                        apr_time_t now)
{
    yk_rule_minute_t *m = rule_minute_at(stats, rule, r, now);

    if (m != NULL) {
        highest(&m->peak_running, r->running);
        highest(&m->peak_queued, r->waiting);
    }
}

static void add32(_Atomic uint32_t *to, uint32_t n)
{
    if (n != 0) {
        atomic_fetch_add_explicit(to, n, memory_order_relaxed);
    }
}

static void add64(_Atomic uint64_t *to, uint64_t n)
{
    if (n != 0) {
        atomic_fetch_add_explicit(to, n, memory_order_relaxed);
    }
}

void yk_stats_rule_answer(yk_stats_t *stats, uint32_t rule, const yk_rule_t *r,
                          const yk_rule_visit_t *visit,
                          const yk_sample_t *sample, apr_time_t now)
{
    yk_rule_minute_t *m = rule_minute_at(stats, rule, r, now);

    if (m == NULL) {
        return;
    }
    highest(&m->peak_running, visit->running);
    highest(&m->peak_queued, visit->queued);
    add32(&m->requests, 1);
    add32(&m->refused, visit->refused != 0);
    add32(&m->connections, sample->is_first != 0);
    add32(&m->unavailable, sample->status == 503);
    add64(&m->wait_us, visit->waited_us);
    add64(&m->bytes_sent, sample->bytes_sent);
    add64(&m->bytes_before, sample->bytes_before);
}

void yk_stats_period(const yk_stats_t *stats, yk_minute_t *sum, uint32_t from,
                     uint32_t to)
{
    memset(sum, 0, sizeof(*sum));
    for (uint32_t i = from; stats->minutes != 0 && i <= to; i++) {
        yk_minute_t *m = &stats->m->minute[i % stats->minutes];

        if (atomic_load(&m->minute) != i) {
            continue;
        }
#define SUM(member) sum->member += atomic_load(&m->member);
        YK_MINUTE_SUMS(SUM)
#undef SUM
        highest(&sum->peak_running, atomic_load(&m->peak_running));
        highest(&sum->peak_queued, atomic_load(&m->peak_queued));
    }
}

void yk_stats_rule_period(const yk_stats_t *stats, yk_rule_minute_t *sum,
                          uint32_t rule, const char *name, uint32_t from,
                          uint32_t to)
{
    uint32_t hash = name_hash(name);

    memset(sum, 0, sizeof(*sum));
    for (uint32_t i = from;
         stats->minutes != 0 && rule < YK_STATS_RULES && i <= to; i++) {
        yk_rule_minute_t *m = &stats->m->rule[rule][i % stats->minutes];

        if (atomic_load(&m->minute) != i || m->name != hash) {
            continue;
        }
#define SUM(member) sum->member += atomic_load(&m->member);
        YK_RULE_MINUTE_SUMS(SUM)
#undef SUM
        highest(&sum->peak_running, atomic_load(&m->peak_running));
        highest(&sum->peak_queued, atomic_load(&m->peak_queued));
    }
}
