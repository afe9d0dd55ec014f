/* SPDX-License-Identifier: Apache-2.0 */
#include "stats.h"

#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>
#include "yoyaku/text.h"

static void put(json_t *object, const char *name, uint64_t n)
{
    json_object_set_new(object, name, json_integer((json_int_t)n));
}

/* A histogram in powers of two, up to its last bucket that is not empty. */
static json_t *buckets(const uint64_t *n, int most)
{
    json_t *list = json_array();
    int last = most - 1;
    uint64_t largest = 1;

    while (last >= 0 && n[last] == 0) {
        last--;
    }
    for (int i = 0; i <= last; i++) {
        largest = n[i] > largest ? n[i] : largest;
    }
    for (int i = 0; i <= last; i++) {
        json_t *row = json_object();

        put(row, "below", UINT64_C(1) << i);
        put(row, "n", n[i]);
        put(row, "percent", n[i] * 100 / largest);
        json_array_append_new(list, row);
    }
    return list;
}

static json_t *terms(const yk_rule_terms_t *t)
{
    json_t *object = json_object();

#define NUMBER(member, argument, text)                                         \
    if (t->member != YK_RULE_BUSY_DEFAULT) {                                   \
        put(object, argument, t->member);                                      \
    }
    YK_RULE_NUMBERS(NUMBER)
#undef NUMBER
#define TIME(member, argument, text)                                           \
    json_object_set_new(object, argument "-ms", json_integer(t->member / 1000));
    YK_RULE_TIMES(TIME)
#undef TIME
    json_object_set_new(object, "dry-run", json_boolean(t->dry_run));
    return object;
}

static json_t *rule(const yk_rule_t *r, uint64_t generation)
{
    json_t *object = json_object(), *refused = json_object();
    uint64_t sum = 0;

    json_object_set_new(object, "name", json_string(r->name));
    json_object_set_new(object, "in_force", terms(&r->terms));
    json_object_set_new(object, "set_by_operator", json_boolean(r->is_set));
    json_object_set_new(object, "configured",
                        json_boolean(r->generation >= generation));
    put(object, "running", r->running + (uint64_t)r->elsewhere);
    put(object, "queued", r->waiting);
    put(object, "peak_running", r->peak_running);
    put(object, "peak_queued", r->peak_waiting);
#define COUNTER(member, counter, text) put(object, counter, r->member);
    YK_RULE_COUNTERS(COUNTER)
#undef COUNTER
    for (int i = 0; i < YK_REFUSED_COUNT; i++) {
        put(refused, yk_refused_name(i), r->refused[i]);
        sum += r->refused[i];
    }
    put(object, "refused_all", sum);
    json_object_set_new(object, "refused", refused);
    json_object_set_new(object, "waits_ms", buckets(r->waits, YK_QUEUE_WAITS));
    return object;
}

json_t *yk_stats_document_rules(const yk_throttle_t *throttle)
{
    yk_throttle_table_t *t = yk_throttle_table(throttle);
    json_t *object = json_object(), *list = json_array();

    put(object, "workers", t->workers);
    put(object, "reserve", t->reserve);
    put(object, "wait", t->wait);
    put(object, "busy", t->busy_workers);
    put(object, "queued", t->waiting);
    put(object, "recounts", t->recounts);
    for (uint32_t i = 0; i < YK_RULES_MAX; i++) {
        yk_rule_t r;

        if (yk_throttle_look(throttle, &r, i) == APR_SUCCESS) {
            json_array_append_new(list, rule(&r, t->generation));
        }
    }
    json_object_set_new(object, "rules", list);
    return object;
}

/* ---- workers ---- */

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static json_t *spread(uint64_t *kb, uint32_t n)
{
    json_t *object = json_object();

    qsort(kb, n, sizeof(kb[0]), by_size);
    put(object, "median_kb", n > 0 ? kb[n / 2] : 0);
    put(object, "largest_kb", n > 0 ? kb[n - 1] : 0);
    return object;
}

json_t *yk_stats_document_workers(const yk_workers_t *workers, apr_pool_t *p)
{
    uint64_t *own = apr_palloc(p, YK_WORKERS_MAX * sizeof(*own)),
             *share = apr_palloc(p, YK_WORKERS_MAX * sizeof(*share));
    json_t *object = json_object();
    uint32_t all = 0, looked = 0, leaving = 0;
    uint32_t high = atomic_load(&workers->high);

    for (uint32_t i = 0; i < high && i < YK_WORKERS_MAX; i++) {
        const yk_worker_t *w = &workers->worker[i];

        if (atomic_load(&w->identity) == 0) {
            continue;
        }
        all++;
        leaving += atomic_load(&w->leaving) != 0;
        if (atomic_load(&w->private_kb) != 0) {
            own[looked] = atomic_load(&w->private_kb);
            share[looked++] = atomic_load(&w->proportional_kb);
        }
    }
    put(object, "alive", all);
    put(object, "measured", looked);
    put(object, "leaving", leaving);
    put(object, "deaths", atomic_load(&workers->graves));
    json_object_set_new(object, "private", spread(own, looked));
    json_object_set_new(object, "proportional", spread(share, looked));
    return object;
}

/* ---- locks ---- */

static json_t *lock(const yk_lock_t *l, const char *name, const char *what)
{
    json_t *object = json_object();
    uint64_t taken = l->read_locks + l->write_locks;

    json_object_set_new(object, "name", json_string(name));
    json_object_set_new(object, "guards", json_string(what));
    put(object, "read_locks", l->read_locks);
    put(object, "read_unlocks", l->read_unlocks);
    json_object_set_new(
        object, "read_difference",
        json_integer((json_int_t)(l->read_locks - l->read_unlocks)));
    put(object, "write_locks", l->write_locks);
    put(object, "write_unlocks", l->write_unlocks);
    json_object_set_new(
        object, "write_difference",
        json_integer((json_int_t)(l->write_locks - l->write_unlocks)));
    put(object, "wait_ns", l->wait_ns);
    put(object, "wait_max_ns", l->wait_max_ns);
    put(object, "ns_per_lock", taken > 0 ? l->wait_ns / taken : 0);
    put(object, "timeouts", atomic_load(&l->timeouts));
    put(object, "owners_died", l->owners_died);
    json_object_set_new(object, "waits_ns", buckets(l->waits, YK_LOCK_BUCKETS));
    return object;
}

json_t *yk_stats_document_locks(const yk_lock_t *const *locks)
{
    static const struct {
        const char *name, *what;
    } texts[] = {
#define LOCK_TEXT(name, text, what) {text, what},
        YK_LOCKS(LOCK_TEXT)
#undef LOCK_TEXT
    };
    json_t *list = json_array();

    for (int i = 0; i < YK_LOCK_COUNT; i++) {
        if (locks[i] != NULL) {
            json_array_append_new(list,
                                  lock(locks[i], texts[i].name, texts[i].what));
        }
    }
    return list;
}

/* ---- totals, paths, history ---- */

json_t *yk_stats_document_totals(const yk_stats_t *stats)
{
    json_t *object = json_object();

#define TOTAL(name, text, what)                                                \
    put(object, text, yk_stats_total(stats, YK_TOTAL_##name));
    YK_TOTALS(TOTAL)
#undef TOTAL
    return object;
}

json_t *yk_stats_document_paths(yk_stats_t *stats, uint32_t most, apr_pool_t *p)
{
    yk_path_t *paths = apr_palloc(p, YK_STATS_PATHS * sizeof(*paths));
    uint32_t n = yk_stats_paths(stats, paths, p);
    json_t *list = json_array();

    for (uint32_t i = 0; i < n && i < most; i++) {
        json_t *row = json_object();

        json_object_set_new(row, "path", json_string(paths[i].prefix));
        json_object_set_new(row, "handler", json_string(paths[i].handler));
        put(row, "count", paths[i].count);
        put(row, "wall_ms", paths[i].wall_us / 1000);
        put(row, "wall_max_ms", paths[i].wall_max_us / 1000);
        put(row, "cpu_ms", paths[i].cpu_us / 1000);
        put(row, "grown_kb", paths[i].grown_kb);
        json_array_append_new(list, row);
    }
    return list;
}

static json_t *period(const yk_stats_t *stats, uint32_t from, uint32_t to)
{
    json_t *object = json_object();
    yk_minute_t sum;

    yk_stats_period(stats, &sum, from, to);
    put(object, "from", (uint64_t)from * 60);
    put(object, "minutes", to - from + 1);
#define MEMBER(member) put(object, #member, sum.member);
    YK_MINUTE_SUMS(MEMBER)
#undef MEMBER
    put(object, "peak_running", sum.peak_running);
    put(object, "peak_queued", sum.peak_queued);
    return object;
}

static json_t *rule_period(const yk_stats_t *stats, const yk_rule_t *r,
                           uint32_t number, uint32_t from, uint32_t to)
{
    json_t *object = json_object();
    yk_rule_minute_t sum;

    yk_stats_rule_period(stats, &sum, number, r->name, from, to);
    put(object, "from", (uint64_t)from * 60);
    put(object, "minutes", to - from + 1);
#define MEMBER(member) put(object, #member, sum.member);
    YK_RULE_MINUTE_SUMS(MEMBER)
#undef MEMBER
    put(object, "peak_running", sum.peak_running);
    put(object, "peak_queued", sum.peak_queued);
    put(object, "wait_ms", sum.wait_us / 1000);
    return object;
}

static json_t *rule_total(const yk_stats_t *stats, const yk_rule_t *r,
                          uint32_t number, uint32_t from, uint32_t to)
{
    json_t *object = rule_period(stats, r, number, from, to);

    json_object_set_new(object, "name", json_string(r->name));
    return object;
}

json_t *yk_stats_document_history(const yk_stats_t *stats,
                                  const yk_throttle_t *throttle,
                                  uint32_t minutes, uint32_t step,
                                  apr_time_t now, apr_pool_t *p)
{
    uint32_t to = (uint32_t)(now / (60 * APR_USEC_PER_SEC));
    uint32_t first = to - minutes + 1;
    json_t *object = json_object(), *rows = json_array(),
           *rules = json_object(), *totals = json_array();

    /* Each step is looked through minute by minute, and none is so long that
     * it passes the last minute that can be counted. */
    step = step < minutes ? step : minutes;
    json_object_set_new(object, "all", period(stats, first, to));
    for (uint32_t at = first; at <= to; at += step) {
        json_t *row = period(stats, at, at + step - 1);

        json_object_set_new(
            row, "at",
            json_string(yk_time_write(apr_time_from_sec(at * 60LL), p)));
        json_array_append_new(rows, row);
    }
    json_object_set_new(object, "rows", rows);
    for (uint32_t i = 0; i < YK_STATS_RULES; i++) {
        json_t *list;
        yk_rule_t r;

        if (yk_throttle_look(throttle, &r, i) != APR_SUCCESS) {
            continue;
        }
        list = json_array();
        for (uint32_t at = first; at <= to; at += step) {
            json_array_append_new(list,
                                  rule_period(stats, &r, i, at, at + step - 1));
        }
        json_object_set_new(rules, r.name, list);
        json_array_append_new(totals, rule_total(stats, &r, i, first, to));
    }
    json_object_set_new(object, "rules_all", totals);
    json_object_set_new(object, "rules", rules);
    return object;
}
