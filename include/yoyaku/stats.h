/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YOYAKU_STATS_H
#define YOYAKU_STATS_H

#include <apr_pools.h>
#include <apr_time.h>
#include <jansson.h>
#include <stdatomic.h>
#include <stdint.h>
#include "board.h"
#include "cache.h"
#include "lane.h"
#include "lock.h"
#include "state.h"
#include "throttle.h"
#include "worker.h"

/**
 * @file stats.h
 * @brief What the server did: totals, every minute of 28 days, and which paths
 *        cost most. All of it is kept over restarts.
 *
 * Totals and minutes are atomic and never wrong by more than what a worker was
 * killed in the middle of. A minute's record says which minute it is of, so a
 * ring that was not written for days tells no lies.
 *
 * The table of paths keeps the heaviest: a new path may take the place of the
 * one that has cost least wall time among those its hash falls beside; how
 * often that happened is counted.
 *
 * Where it lives. State file "stats". A yk_stats_t is a view of the mapping;
 * any thread may use it.
 */

#define YK_STATS_LAYOUT 2
#define YK_STATS_MINUTES 40320 /**< 28 days */
#define YK_STATS_RULES 64      /**< rows of rules that have a history */
#define YK_STATS_PATHS 512
#define YK_STATS_PATH 104 /**< bytes of a prefix, with its NUL */

/** X(NAME, "name", what it counts) since the file was made */
#define YK_TOTALS(X)                                                           \
    X(REQUESTS, "requests", "requests answered")                               \
    X(CONNECTIONS, "connections", "connections accepted")                      \
    X(BYTES_SENT, "bytes_sent", "bytes of bodies sent")                        \
    X(BYTES_BEFORE, "bytes_before", "the same before compression")             \
    X(UNAVAILABLE, "unavailable", "answers 503")                               \
    X(RESTARTS, "restarts", "starts and restarts")                             \
    X(RECYCLED, "recycled", "workers ended by YoyakuRecycleAbove")             \
    X(RECYCLE_PUT_OFF, "recycle_put_off",                                      \
      "times a worker above it stayed because others were leaving")            \
    X(KEEPALIVE_CLOSED, "keepalive_closed",                                    \
      "connections closed by YoyakuKeepAlive adaptive")                        \
    X(PATHS_LOST, "paths_lost", "requests not entered in the table of paths")  \
    X(PATHS_EVICTED, "paths_evicted", "paths that gave way to others")

typedef enum yk_total_e {
#define YK_TOTAL_ENUM(name, text, what) YK_TOTAL_##name,
    YK_TOTALS(YK_TOTAL_ENUM)
#undef YK_TOTAL_ENUM
        YK_TOTAL_COUNT
} yk_total_e;

/** X(member) of a minute that are summed over a period */
#define YK_MINUTE_SUMS(X)                                                      \
    X(requests)                                                                \
    X(connections)                                                             \
    X(unavailable)                                                             \
    X(restarts)                                                                \
    X(bytes_sent)                                                              \
    X(bytes_before)

typedef struct yk_minute_t {
    _Atomic uint32_t minute; /**< of the epoch; what it is a record of */
    _Atomic uint32_t peak_running, peak_queued;
    uint32_t spare;
    _Atomic uint64_t requests, connections, unavailable, restarts;
    _Atomic uint64_t bytes_sent, bytes_before;
} yk_minute_t;

_Static_assert(sizeof(yk_minute_t) == 64, "a cache line");

/** X(member) of a rule's minute that are summed over a period */
#define YK_RULE_MINUTE_SUMS(X)                                                 \
    X(requests)                                                                \
    X(refused)                                                                 \
    X(connections)                                                             \
    X(unavailable)                                                             \
    X(wait_us)                                                                 \
    X(bytes_sent)                                                              \
    X(bytes_before)

typedef struct yk_rule_minute_t {
    _Atomic uint32_t minute;
    uint32_t name; /**< a hash of the rule's */
    _Atomic uint32_t peak_running, peak_queued;
    _Atomic uint32_t requests, refused;
    _Atomic uint32_t connections, unavailable; /**< answers: 503, by whomever */
    _Atomic uint64_t wait_us, bytes_sent, bytes_before;
    uint64_t spare;
} yk_rule_minute_t;

_Static_assert(sizeof(yk_rule_minute_t) == 64, "a cache line");

typedef struct yk_path_t {
    char prefix[YK_STATS_PATH];
    char handler[32];
    uint64_t count, wall_us, cpu_us, grown_kb, wall_max_us;
    uint64_t spare[2];
} yk_path_t;

_Static_assert(sizeof(yk_path_t) == 192, "three cache lines");

/** One request, when it is logged. */
typedef struct yk_sample_t {
    const char *path; /**< as asked for, without query */
    const char *handler;
    int status;
    uint64_t bytes_sent, bytes_before;
    uint64_t wall_us, cpu_us, grown_kb;
    int is_first; /**< of its connection */
} yk_sample_t;

typedef struct yk_stats_t yk_stats_t;

extern const yk_state_kind_t yk_stats_kind;

/** @param minutes how many are kept, 60 .. YK_STATS_MINUTES; 0: none */
apr_status_t yk_stats_create(yk_stats_t **stats, const char *folder,
                             uint32_t minutes, apr_pool_t *p);

/** The lock of the table of paths. */
yk_lock_t *yk_stats_lock(const yk_stats_t *stats);

void yk_stats_add(yk_stats_t *stats, yk_total_e total, uint64_t n);
uint64_t yk_stats_total(const yk_stats_t *stats, yk_total_e total);

void yk_stats_request(yk_stats_t *stats, const yk_sample_t *sample,
                      apr_time_t now);
void yk_stats_connection(yk_stats_t *stats, apr_time_t now);
void yk_stats_restart(yk_stats_t *stats, apr_time_t now);
void yk_stats_peak(yk_stats_t *stats, uint32_t running, uint32_t queued,
                   apr_time_t now);
/** The peaks of a rule, while somebody waits. */
void yk_stats_rule_peak(yk_stats_t *stats, uint32_t rule, const yk_rule_t *r,
                        apr_time_t now);

/** What a request met under a rule. */
typedef struct yk_rule_visit_t {
    uint32_t running, queued; /**< when it came */
    int refused;
    uint64_t waited_us;
} yk_rule_visit_t;

/** A request that had come under the rule was answered. */
void yk_stats_rule_answer(yk_stats_t *stats, uint32_t rule, const yk_rule_t *r,
                          const yk_rule_visit_t *visit,
                          const yk_sample_t *sample, apr_time_t now);

/** Sums and peaks of the minutes from .. to (both of the epoch). */
void yk_stats_period(const yk_stats_t *stats, yk_minute_t *sum, uint32_t from,
                     uint32_t to);
void yk_stats_rule_period(const yk_stats_t *stats, yk_rule_minute_t *sum,
                          uint32_t rule, const char *name, uint32_t from,
                          uint32_t to);

/* ---- paths.c ---- */

/** Enter a request; under the table's lock, or it is lost and counted. */
void yk_stats_path(yk_stats_t *stats, const yk_sample_t *sample);
/** "/shop/cart/add" -> "/shop/cart": the first two parts, only harmless
 *  bytes. */
void yk_stats_prefix(char prefix[YK_STATS_PATH], const char *path);
/** Copy the table, the heaviest first. @return how many */
uint32_t yk_stats_paths(yk_stats_t *stats, yk_path_t *paths, apr_pool_t *p);

/* ---- document.c: the same as trees ---- */

json_t *yk_stats_document_rules(const yk_throttle_t *throttle);
json_t *yk_stats_document_workers(const yk_workers_t *workers, apr_pool_t *p);
/** @param locks by yk_lock_no_e; NULL where there is none */
json_t *yk_stats_document_locks(const yk_lock_t *const *locks);
/** X(member, "help"): what lanes count. */
#define YK_STATS_LANES(X)                                                      \
    X(wishes, "wishes that stood in a lane")                                   \
    X(batches, "transactions for all who waited")                              \
    X(leaders, "wishes whose worker led a batch")                              \
    X(handed_on, "times the lead was handed on")                               \
    X(alone, "wishes left to be decided alone")                                \
    X(rescued, "wishes whose leader died")                                     \
    X(given_up, "wishes that waited too long and were not taken")              \
    X(unresolved, "wishes of whose fate nothing is known")                     \
    X(direct, "wishes that had no lane")                                       \
    X(lane_us, "microseconds in lanes, over all wishes")                       \
    X(store_us, "microseconds in the book, over all batches")

/** What boards count. */
#define YK_STATS_BOARDS(X)                                                     \
    X(boards, "slots in memory")                                               \
    X(pages, "documents in memory")                                            \
    X(bytes, "memory for boards")                                              \
    X(used, "of it in use")                                                    \
    X(asked, "boards asked for")                                               \
    X(rendered, "documents rendered")                                          \
    X(journal_reads, "readings of a slot's journal")                           \
    X(whole_reads, "readings of a whole slot")                                 \
    X(applied, "changes applied")                                              \
    X(missed, "changes that came too late and were left out")                  \
    X(thrown_away, "boards thrown away")                                       \
    X(gave_way, "boards that gave way to others")                              \
    X(no_room, "boards there was no room for")                                 \
    X(refused_early, "holds refused from a board")

/** What is counted of memcached, by pattern of the key. */
#define YK_STATS_CACHE(X)                                                      \
    X(gets, "values asked for")                                                \
    X(hits, "values found")                                                    \
    X(misses, "values not there")                                              \
    X(sets, "values written")                                                  \
    X(adds, "values written where none was")                                   \
    X(errors, "answers that were none")                                        \
    X(timeouts, "answers that came too late")                                  \
    X(skipped, "questions not asked, a server being away")                     \
    X(bytes_in, "bytes read")                                                  \
    X(bytes_out, "bytes written")                                              \
    X(never_read, "values written over that were not read here")

json_t *yk_stats_document_lanes(const yk_lanes_t *lanes);
/** Beside what is counted: memcached's round trips an answer. */
json_t *yk_stats_document_boards(yk_boards_t *boards);
json_t *yk_stats_document_cache(const yk_cache_shared_t *cache);
/** The locks of all lanes as one. */
void yk_stats_lane_lock(yk_lock_t *sum, const yk_lanes_t *lanes);

json_t *yk_stats_document_totals(const yk_stats_t *stats);
json_t *yk_stats_document_paths(yk_stats_t *stats, uint32_t most,
                                apr_pool_t *p);
/** Sums of so many minutes up to `now`, of all and of each rule, and one row
 *  each `step` minutes; of more than there are it is one row. */
json_t *yk_stats_document_history(const yk_stats_t *stats,
                                  const yk_throttle_t *throttle,
                                  uint32_t minutes, uint32_t step,
                                  apr_time_t now, apr_pool_t *p);

/* ---- metrics.c ---- */

/** The tree of the status as Prometheus text. */
const char *yk_stats_metrics(apr_size_t *len, const json_t *status,
                             apr_pool_t *p);
/** The tree as "Key: value" lines, each key beginning with `prefix`. */
const char *yk_stats_lines(apr_size_t *len, const json_t *status,
                           const char *prefix, apr_pool_t *p);

typedef enum yk_lock_no_e {
#define YK_LOCK_ENUM(name, text, what) YK_LOCK_##name,
    YK_LOCKS(YK_LOCK_ENUM)
#undef YK_LOCK_ENUM
        YK_LOCK_COUNT
} yk_lock_no_e;

#endif
