/* SPDX-License-Identifier: Apache-2.0 */
#include "stats.h"

/* What lanes, boards and memcached have counted, as trees. Each list of
 * members is said once; the status and the metrics are made from it. */

static void set(json_t *object, const char *name, uint64_t n)
{
    json_object_set_new(object, name, json_integer((json_int_t)n));
}

json_t *yk_stats_document_lanes(const yk_lanes_t *lanes)
{
    const yk_lane_counts_t *counts = &lanes->counts;
    json_t *object = json_object(), *sizes = json_array();
    uint64_t waiting = 0;

#define COUNT(name, help) set(object, #name, counts->name);
    YK_STATS_LANES(COUNT)
#undef COUNT
    for (uint32_t i = 0; i < YK_LANES; i++) {
        waiting += lanes->lane[i].length;
    }
    set(object, "waiting", waiting);
    for (uint32_t i = 0; i < YK_LANE_BUCKETS; i++) {
        json_t *bucket = json_object();

        set(bucket, "upto", (2U << i) - 1);
        set(bucket, "n", counts->sizes[i]);
        json_array_append_new(sizes, bucket);
    }
    json_object_set_new(object, "batch_size", sizes);
    return object;
}

void yk_stats_lane_lock(yk_lock_t *sum, const yk_lanes_t *lanes)
{
    memset(sum, 0, sizeof(*sum));
    for (uint32_t i = 0; i < YK_LANES; i++) {
        yk_lock_add(sum, &lanes->lane[i].lock);
    }
}

static uint64_t trips_of(const yk_cache_digest_t *digest)
{
    uint64_t trips = 0;

    for (int i = 0; i < YK_CACHE_BUCKETS; i++) {
        trips += digest->took[i];
    }
    return trips;
}

/* Below so many microseconds came so many percent of the answers. */
static uint64_t took_at(const yk_cache_digest_t *digest, uint64_t percent)
{
    uint64_t seen = 0, all = trips_of(digest);

    for (int i = 0; i < YK_CACHE_BUCKETS; i++) {
        seen += digest->took[i];
        if (all > 0 && seen * 100 >= all * percent) {
            return UINT64_C(1) << i;
        }
    }
    return 0;
}

json_t *yk_stats_document_boards(yk_boards_t *boards)
{
    const yk_cache_shared_t *cache = yk_boards_cache_shared(boards);
    yk_boards_use_t use;
    json_t *object = json_object();
    uint64_t trips = 0;

    yk_boards_use(boards, &use);
#define USE(name, help) set(object, #name, (uint64_t)use.name);
    YK_STATS_BOARDS(USE)
#undef USE
    for (int i = 0; i < YK_CACHE_KIND_COUNT; i++) {
        trips += trips_of(&cache->digests[i]);
    }
    set(object, "cache_trips_per_1000_answers",
        use.asked > 0 ? trips * 1000 / use.asked : 0);
    return object;
}

json_t *yk_stats_document_cache(const yk_cache_shared_t *cache)
{
    json_t *list = json_array();

    for (int i = 0; i < YK_CACHE_KIND_COUNT; i++) {
        const yk_cache_digest_t *digest = &cache->digests[i];
        json_t *row = json_object(), *took = json_array();

        json_object_set_new(row, "name", json_string(yk_cache_pattern(i)));
#define DIGEST(name, help) set(row, #name, digest->name);
        YK_STATS_CACHE(DIGEST)
#undef DIGEST
        set(row, "trips", trips_of(digest));
        set(row, "took_us", digest->took_us);
        set(row, "p50_us", took_at(digest, 50));
        set(row, "p95_us", took_at(digest, 95));
        for (int j = 0; j < YK_CACHE_BUCKETS; j++) {
            json_array_append_new(took,
                                  json_integer((json_int_t)digest->took[j]));
        }
        json_object_set_new(row, "took_below_us", took);
        json_array_append_new(list, row);
    }
    return list;
}
