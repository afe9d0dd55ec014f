/* SPDX-License-Identifier: Apache-2.0 */
#include "stats.h"

#include <apr_strings.h>
#include <apr_tables.h>
#include <stdarg.h>
#include <string.h>

typedef struct out_t {
    apr_array_header_t *lines; /* of const char * */
    apr_pool_t *p;
} out_t;

static void say(out_t *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void say(out_t *out, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    APR_ARRAY_PUSH(out->lines, const char *) =
        apr_pvsprintf(out->p, format, args);
    va_end(args);
}

static const char *done(apr_size_t *len, const out_t *out)
{
    const char *text = apr_array_pstrcat(out->p, out->lines, 0);

    *len = strlen(text);
    return text;
}

static void head(out_t *out, const char *name, const char *type,
                 const char *help)
{
    say(out, "# HELP yoyaku_%s %s\n# TYPE yoyaku_%s %s\n", name, help, name,
        type);
}

static apr_int64_t number(const json_t *object, const char *name)
{
    return (apr_int64_t)json_integer_value(json_object_get(object, name));
}

static const char *text(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

/* One metric over all of a list: name{label="its name"} member. */
static void each(out_t *out, const json_t *list, const char *name,
                 const char *label, const char *member, const char *type,
                 const char *help)
{
    size_t i;
    json_t *row;

    head(out, name, type, help);
    json_array_foreach(list, i, row)
    {
        say(out, "yoyaku_%s{%s=\"%s\"} %" APR_INT64_T_FMT "\n", name, label,
            text(row, "name"), number(row, member));
    }
}

static void refusals(out_t *out, const json_t *rules)
{
    const char *reason;
    json_t *rule, *n;
    size_t i;

    head(out, "rule_refused_total", "counter", "requests refused, by reason");
    json_array_foreach(rules, i, rule)
    {
        json_object_foreach(json_object_get(rule, "refused"), reason, n)
        {
            say(out,
                "yoyaku_rule_refused_total{rule=\"%s\",reason=\"%s\"} "
                "%" APR_INT64_T_FMT "\n",
                text(rule, "name"), reason, (apr_int64_t)json_integer_value(n));
        }
    }
}

static void waits(out_t *out, const json_t *rules)
{
    json_t *rule, *bucket;
    size_t i, j;

    head(out, "rule_wait_seconds", "histogram",
         "time waited by requests that ran");
    json_array_foreach(rules, i, rule)
    {
        const char *name = text(rule, "name");
        apr_int64_t sum = 0;

        json_array_foreach(json_object_get(rule, "waits_ms"), j, bucket)
        {
            sum += number(bucket, "n");
            say(out,
                "yoyaku_rule_wait_seconds_bucket{rule=\"%s\",le=\"%g\"} "
                "%" APR_INT64_T_FMT "\n",
                name, (double)number(bucket, "below") / 1000, sum);
        }
        say(out,
            "yoyaku_rule_wait_seconds_bucket{rule=\"%s\",le=\"+Inf\"} "
            "%" APR_INT64_T_FMT "\nyoyaku_rule_wait_seconds_sum{rule=\"%s\""
            "} %g\nyoyaku_rule_wait_seconds_count{rule=\"%s\"} "
            "%" APR_INT64_T_FMT "\n",
            name, sum, name, (double)number(rule, "wait_us") / 1e6, name, sum);
    }
}

static void rules_say(out_t *out, const json_t *throttle)
{
    const json_t *rules = json_object_get(throttle, "rules");

    head(out, "throttled_busy", "gauge", "workers under any rule");
    say(out, "yoyaku_throttled_busy %" APR_INT64_T_FMT "\n",
        number(throttle, "busy"));
    each(out, rules, "rule_running", "rule", "running", "gauge",
         "requests running under a rule");
    each(out, rules, "rule_queued", "rule", "queued", "gauge",
         "requests waiting under a rule");
#define COUNTER(member, counter, help)                                         \
    each(out, rules, "rule_" counter "_total", "rule", counter, "counter",     \
         help);
    YK_RULE_COUNTERS(COUNTER)
#undef COUNTER
    refusals(out, rules);
    waits(out, rules);
}

static void totals_say(out_t *out, const json_t *totals)
{
#define TOTAL(name, total, help)                                               \
    head(out, total "_total", "counter", help);                                \
    say(out, "yoyaku_" total "_total %" APR_INT64_T_FMT "\n",                  \
        number(totals, total));
    YK_TOTALS(TOTAL)
#undef TOTAL
}

static void locks_say(out_t *out, const json_t *locks)
{
    each(out, locks, "lock_read_locks_total", "lock", "read_locks", "counter",
         "times taken to look");
    each(out, locks, "lock_read_unlocks_total", "lock", "read_unlocks",
         "counter", "times given back");
    each(out, locks, "lock_write_locks_total", "lock", "write_locks", "counter",
         "times taken to change");
    each(out, locks, "lock_write_unlocks_total", "lock", "write_unlocks",
         "counter", "times given back");
    each(out, locks, "lock_wait_nanoseconds_total", "lock", "wait_ns",
         "counter", "time waited for it");
    each(out, locks, "lock_timeouts_total", "lock", "timeouts", "counter",
         "times nobody could get it in time");
    each(out, locks, "lock_owners_died_total", "lock", "owners_died", "counter",
         "times its owner died");
}

static void rooms_say(out_t *out, const json_t *rooms)
{
    static const char *const gauges[] = {"waiting", "called", "passes"};
    const json_t *counters =
        json_object_get(json_array_get(rooms, 0), "counters");
    const char *name;
    json_t *n, *room;
    size_t i;

    for (i = 0; i < 3; i++) {
        each(out, rooms, apr_pstrcat(out->p, "room_", gauges[i], NULL), "room",
             gauges[i], "gauge", "visitors of a waiting room now");
    }
    json_object_foreach((json_t *)counters, name, n)
    {
        char *metric = apr_pstrcat(out->p, "room_", name, "_total", NULL);
        json_t *row;

        head(out, metric, "counter", "of a waiting room");
        json_array_foreach(rooms, i, room)
        {
            row = json_object_get(room, "counters");
            say(out, "yoyaku_%s{room=\"%s\"} %" APR_INT64_T_FMT "\n", metric,
                text(room, "name"), number(row, name));
        }
    }
}

static void workers_say(out_t *out, const json_t *workers)
{
    static const char *const sizes[] = {"private", "proportional"};

    head(out, "workers_alive", "gauge", "processes that are alive");
    say(out, "yoyaku_workers_alive %" APR_INT64_T_FMT "\n",
        number(workers, "alive"));
    head(out, "workers_leaving", "gauge", "that end because they grew");
    say(out, "yoyaku_workers_leaving %" APR_INT64_T_FMT "\n",
        number(workers, "leaving"));
    head(out, "worker_memory_bytes", "gauge", "what workers have settled at");
    for (int i = 0; i < 2; i++) {
        const json_t *size = json_object_get(workers, sizes[i]);

        say(out,
            "yoyaku_worker_memory_bytes{kind=\"%s\",of=\"median\"} "
            "%" APR_INT64_T_FMT
            "\nyoyaku_worker_memory_bytes{kind=\"%s\",of=\"largest\"} "
            "%" APR_INT64_T_FMT "\n",
            sizes[i], number(size, "median_kb") * 1024, sizes[i],
            number(size, "largest_kb") * 1024);
    }
}

static void one(out_t *out, const json_t *object, const char *group,
                const char *name, const char *type, const char *help)
{
    char *metric = apr_pstrcat(out->p, group, "_", name,
                               type[0] == 'c' ? "_total" : "", NULL);

    head(out, metric, type, help);
    say(out, "yoyaku_%s %" APR_INT64_T_FMT "\n", metric, number(object, name));
}

static void lanes_say(out_t *out, const json_t *lanes)
{
    const json_t *bucket;
    apr_int64_t sum = 0;
    size_t i;

    if (lanes == NULL) {
        return;
    }
    one(out, lanes, "lane", "waiting", "gauge", "wishes that wait now");
#define LANE(name, help) one(out, lanes, "lane", #name, "counter", help);
    YK_STATS_LANES(LANE)
#undef LANE
    head(out, "lane_batch_size", "histogram", "wishes of one transaction");
    json_array_foreach(json_object_get(lanes, "batch_size"), i, bucket)
    {
        sum += number(bucket, "n");
        say(out,
            "yoyaku_lane_batch_size_bucket{le=\"%" APR_INT64_T_FMT "\"} "
            "%" APR_INT64_T_FMT "\n",
            number(bucket, "upto"), sum);
    }
    say(out,
        "yoyaku_lane_batch_size_bucket{le=\"+Inf\"} %" APR_INT64_T_FMT
        "\nyoyaku_lane_batch_size_sum %" APR_INT64_T_FMT
        "\nyoyaku_lane_batch_size_count %" APR_INT64_T_FMT "\n",
        sum, number(lanes, "wishes"), sum);
}

/* How long memcached took: took[i] is what came in less than 2^i us. */
static void cache_took(out_t *out, const json_t *cache)
{
    json_t *row, *n;
    size_t i, j;

    head(out, "cache_took_us", "histogram", "round trips to memcached");
    json_array_foreach(cache, i, row)
    {
        apr_int64_t sum = 0;

        json_array_foreach(json_object_get(row, "took_below_us"), j, n)
        {
            sum += (apr_int64_t)json_integer_value(n);
            if (j + 1 == YK_CACHE_BUCKETS) {
                break;
            }
            say(out,
                "yoyaku_cache_took_us_bucket{pattern=\"%s\",le=\"%u\"} "
                "%" APR_INT64_T_FMT "\n",
                text(row, "name"), 1U << j, sum);
        }
        say(out,
            "yoyaku_cache_took_us_bucket{pattern=\"%s\",le=\"+Inf\"} "
            "%" APR_INT64_T_FMT "\n",
            text(row, "name"), sum);
        say(out,
            "yoyaku_cache_took_us_sum{pattern=\"%s\"} %" APR_INT64_T_FMT "\n",
            text(row, "name"), number(row, "took_us"));
        say(out,
            "yoyaku_cache_took_us_count{pattern=\"%s\"} %" APR_INT64_T_FMT "\n",
            text(row, "name"), sum);
    }
}

static void boards_say(out_t *out, const json_t *boards, const json_t *cache)
{
    if (boards != NULL) {
#define BOARD(name, help) one(out, boards, "board", #name, "gauge", help);
        YK_STATS_BOARDS(BOARD)
#undef BOARD
        one(out, boards, "board", "cache_trips_per_1000_answers", "gauge",
            "round trips to memcached for a thousand answers");
    }
    if (cache != NULL) {
#define CACHE(name, help)                                                      \
    each(out, cache, "cache_" #name "_total", "pattern", #name, "counter",     \
         help);
        YK_STATS_CACHE(CACHE)
#undef CACHE
        cache_took(out, cache);
    }
}

const char *yk_stats_metrics(apr_size_t *len, const json_t *status,
                             apr_pool_t *p)
{
    out_t out = {apr_array_make(p, 256, sizeof(char *)), p};

    totals_say(&out, json_object_get(status, "totals"));
    rules_say(&out, json_object_get(status, "throttle"));
    rooms_say(&out, json_object_get(status, "rooms"));
    workers_say(&out, json_object_get(status, "memory"));
    lanes_say(&out, json_object_get(status, "lanes"));
    boards_say(&out, json_object_get(status, "boards"),
               json_object_get(status, "cache"));
    locks_say(&out, json_object_get(status, "locks"));
    return done(len, &out);
}

/* ---- "Key: value" ---- */

static void walk(out_t *out, const char *key, const json_t *value)
{
    const char *name;
    json_t *child;
    size_t i;

    if (json_is_object(value)) {
        json_object_foreach((json_t *)value, name, child)
        {
            if (strcmp(name, "name") != 0) {
                walk(out, apr_pstrcat(out->p, key, ".", name, NULL), child);
            }
        }
    }
    else if (json_is_array(value)) {
        json_array_foreach(value, i, child)
        {
            name = text(child, "name");
            walk(out,
                 name != NULL ? apr_pstrcat(out->p, key, ".", name, NULL)
                              : apr_psprintf(out->p, "%s.%u", key, (unsigned)i),
                 child);
        }
    }
    else if (json_is_string(value)) {
        say(out, "%s: %s\n", key, json_string_value(value));
    }
    else if (json_is_integer(value)) {
        say(out, "%s: %" APR_INT64_T_FMT "\n", key,
            (apr_int64_t)json_integer_value(value));
    }
    else if (json_is_boolean(value)) {
        say(out, "%s: %d\n", key, json_is_true(value));
    }
}

const char *yk_stats_lines(apr_size_t *len, const json_t *status,
                           const char *prefix, apr_pool_t *p)
{
    out_t out = {apr_array_make(p, 256, sizeof(char *)), p};

    walk(&out, prefix, status);
    return done(len, &out);
}
