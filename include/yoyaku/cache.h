/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YOYAKU_CACHE_H
#define YOYAKU_CACHE_H

#include <apr_pools.h>
#include <apr_time.h>
#include <stdatomic.h>
#include <stdint.h>

/**
 * @file cache.h
 * @brief memcached: quick, shared by all web hosts, and never believed.
 *
 * What it promises: nothing but time. Every call is over within
 * YK_CACHE_WAIT and a bit. A value may be missing, old, cut or somebody
 * else's; whoever reads one checks it. After a server did not answer it is
 * left alone for a while (YK_CACHE_REST), in which calls return at once, so
 * that a memcached which is away costs less than none.
 *
 * Keys are ours: a short word and hex digits. No user's byte is in one.
 *
 * Where it lives. One per process, after fork; threads may share it (each call
 * has a line of its own for as long as it lasts). The counters lie wherever
 * the host puts them: in memory that all workers share.
 */

#define YK_CACHE_WAIT (APR_USEC_PER_SEC / 20)
#define YK_CACHE_REST APR_USEC_PER_SEC
#define YK_CACHE_BUCKETS 20
/** Keys of which it is known whether they were read since they were written. */
#define YK_CACHE_MARKS 1024

/** X(NAME, "pattern", what stands there): every key begins with its pattern. */
#define YK_CACHE_KINDS(X)                                                      \
    X(NEWS, "ykn:", "a slot's recent changes")                                 \
    X(READ, "ykr:", "a reading of a slot's journal")                           \
    X(BOARD, "ykb:", "a slot's whole board")                                   \
    X(DOCUMENT, "ykd:", "a slot's board as it is sent")                        \
    X(FLIGHT, "ykf:", "who is reading a slot for all")

typedef enum yk_cache_kind_e {
#define YK_CACHE_ENUM(name, pattern, what) YK_CACHE_##name,
    YK_CACHE_KINDS(YK_CACHE_ENUM)
#undef YK_CACHE_ENUM
        YK_CACHE_KIND_COUNT
} yk_cache_kind_e;

const char *yk_cache_pattern(yk_cache_kind_e kind);

/** What a digest of memcached's traffic tells, by pattern. All atomic. */
typedef struct yk_cache_digest_t {
    _Atomic uint64_t gets, hits, misses, sets, adds, errors, timeouts, skipped;
    _Atomic uint64_t bytes_in, bytes_out;
    _Atomic uint64_t never_read; /**< written over, and not read here between */
    _Atomic uint64_t took_us; /**< all of them together */
    /** took[i]: less than 2^i microseconds; the last: any longer */
    _Atomic uint64_t took[YK_CACHE_BUCKETS];
} yk_cache_digest_t;

/** What all workers of a host share. */
typedef struct yk_cache_shared_t {
    _Atomic int64_t rests_until; /**< steady: nobody asks before */
    yk_cache_digest_t digests[YK_CACHE_KIND_COUNT];
    /** by hash of the key: the key's, written and not read yet; 0: none. Two
     *  keys in one place forget each other. */
    _Atomic uint64_t marks[YK_CACHE_MARKS];
} yk_cache_shared_t;

typedef struct yk_cache_t yk_cache_t;

/** A list as YoyakuMemcached has it: "host[:port],unix:/path,...".
 *  @return NULL when it is good, else a sentence */
const char *yk_cache_check(const char *servers, apr_pool_t *p);

apr_status_t yk_cache_open(yk_cache_t **cache, const char *servers,
                           yk_cache_shared_t *shared, apr_pool_t *p);

/**
 * @return APR_SUCCESS, APR_NOTFOUND, APR_TIMEUP, APR_ECONNRESET: away,
 *         APR_EBUSY: every line is in use
 */
apr_status_t yk_cache_get(yk_cache_t *cache, const char **bytes,
                          apr_size_t *len, yk_cache_kind_e kind, uint64_t id,
                          apr_pool_t *p);

/** @param ttl whole seconds, at least one */
apr_status_t yk_cache_set(yk_cache_t *cache, yk_cache_kind_e kind, uint64_t id,
                          const char *bytes, apr_size_t len, uint32_t ttl);

/** The same if there is none. @return also APR_EEXIST: there is one */
apr_status_t yk_cache_add(yk_cache_t *cache, yk_cache_kind_e kind, uint64_t id,
                          const char *bytes, apr_size_t len, uint32_t ttl);

apr_status_t yk_cache_drop(yk_cache_t *cache, yk_cache_kind_e kind,
                           uint64_t id);

#endif
