/* SPDX-License-Identifier: Apache-2.0 */
#include "yoyaku/cache.h"
#include <apr_lib.h>
#include <apr_strings.h>
#include <libmemcached/memcached.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Lines of a process: under threads so many calls may be under way at once. */
#define LINES 8
#define KEY_SPACE 32
#define PORT 11211
#define WAIT_MS ((int)(YK_CACHE_WAIT / 1000))

typedef struct line_t {
    memcached_st *memc; /* made when first used */
    _Atomic int busy;
} line_t;

struct yk_cache_t {
    /* What lines are made like. It never calls, so that threads may copy it at
     * once. */
    memcached_st *model;
    yk_cache_shared_t *shared;
    line_t lines[LINES];
};

const char *yk_cache_pattern(yk_cache_kind_e kind)
{
    static const char *const patterns[] = {
#define PATTERN(name, pattern, what) pattern,
        YK_CACHE_KINDS(PATTERN)
#undef PATTERN
    };

    return patterns[kind];
}

static int64_t steady(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * APR_USEC_PER_SEC + ts.tv_nsec / 1000;
}

/* ---- servers ---- */

static int is_host(const char *name, apr_size_t len)
{
    for (apr_size_t i = 0; i < len; i++) {
        if (!apr_isalnum(name[i]) && strchr(".-_", name[i]) == NULL) {
            return 0;
        }
    }
    return len > 0 && len < 256;
}

/* One of the list. @return 0: it is none */
static int server_add(memcached_st *memc, const char *server)
{
    const char *colon;
    char host[256];
    apr_int64_t port = PORT;
    apr_size_t len;

    if (strncmp(server, "unix:", 5) == 0) {
        return server[5] == '/' &&
               (memc == NULL || memcached_server_add_unix_socket(
                                    memc, server + 5) == MEMCACHED_SUCCESS);
    }
    colon = strchr(server, ':');
    len = colon != NULL ? (apr_size_t)(colon - server) : strlen(server);
    if (!is_host(server, len)) {
        return 0;
    }
    if (colon != NULL) {
        char *end = NULL;

        port = apr_strtoi64(colon + 1, &end, 10);
        if (!apr_isdigit(colon[1]) || *end != '\0' || port < 1 ||
            port > 65535) {
            return 0;
        }
    }
    memcpy(host, server, len);
    host[len] = '\0';
    return memc == NULL || memcached_server_add(memc, host, (in_port_t)port) ==
                               MEMCACHED_SUCCESS;
}

static const char *servers_add(memcached_st *memc, const char *servers,
                               apr_pool_t *p)
{
    char *last = NULL;
    int n = 0;

    for (char *one = apr_strtok(apr_pstrdup(p, servers), ", \t", &last);
         one != NULL; one = apr_strtok(NULL, ", \t", &last)) {
        if (!server_add(memc, one)) {
            return apr_psprintf(p,
                                "'%s' is neither host[:port] nor "
                                "unix:/path",
                                one);
        }
        n++;
    }
    return n > 0 ? NULL : "no server is named";
}

const char *yk_cache_check(const char *servers, apr_pool_t *p)
{
    return servers_add(NULL, servers, p);
}

/* No name may be waited for longer than a value: all its waits are short, and
 * a server that failed is asked again after a second, on a line anew. */
static memcached_st *memc_make(const char *servers, apr_pool_t *ptemp)
{
    static const struct {
        memcached_behavior_t behavior;
        uint64_t value;
    } behaviors[] = {{MEMCACHED_BEHAVIOR_DISTRIBUTION,
                      MEMCACHED_DISTRIBUTION_CONSISTENT_KETAMA},
                     {MEMCACHED_BEHAVIOR_TCP_NODELAY, 1},
                     {MEMCACHED_BEHAVIOR_NO_BLOCK, 1},
                     {MEMCACHED_BEHAVIOR_POLL_TIMEOUT, WAIT_MS},
                     {MEMCACHED_BEHAVIOR_CONNECT_TIMEOUT, WAIT_MS},
                     {MEMCACHED_BEHAVIOR_SND_TIMEOUT, WAIT_MS * 1000},
                     {MEMCACHED_BEHAVIOR_RCV_TIMEOUT, WAIT_MS * 1000},
                     {MEMCACHED_BEHAVIOR_RETRY_TIMEOUT, 1},
                     {MEMCACHED_BEHAVIOR_DEAD_TIMEOUT, 1},
                     {MEMCACHED_BEHAVIOR_SERVER_FAILURE_LIMIT, 1}};
    memcached_st *memc = memcached_create(NULL);

    if (memc == NULL) {
        return NULL;
    }
    for (apr_size_t i = 0; i < sizeof(behaviors) / sizeof(*behaviors); i++) {
        memcached_behavior_set(memc, behaviors[i].behavior, behaviors[i].value);
    }
    if (servers_add(memc, servers, ptemp) != NULL) {
        memcached_free(memc);
        return NULL;
    }
    return memc;
}

apr_status_t yk_cache_open(yk_cache_t **cache, const char *servers,
                           yk_cache_shared_t *shared, apr_pool_t *p)
{
    yk_cache_t *made = apr_pcalloc(p, sizeof(*made));

    if (yk_cache_check(servers, p) != NULL) {
        return APR_EINVAL;
    }
    made->model = memc_make(servers, p);
    if (made->model == NULL) {
        return APR_ENOMEM;
    }
    made->shared = shared;
    /* No cleanup: it could run inside a signal handler, in the middle of a
     * call. The end of the process closes the lines. */
    *cache = made;
    return APR_SUCCESS;
}

/* ---- one call ---- */

typedef struct call_t {
    yk_cache_t *cache;
    yk_cache_digest_t *digest;
    line_t *line;
    int64_t began;
    char key[KEY_SPACE];
    apr_size_t key_len;
} call_t;

static line_t *line_take(yk_cache_t *cache)
{
    for (int i = 0; i < LINES; i++) {
        line_t *line = &cache->lines[i];
        int idle = 0;

        if (!atomic_compare_exchange_strong(&line->busy, &idle, 1)) {
            continue;
        }
        if (line->memc == NULL) {
            line->memc = memcached_clone(NULL, cache->model);
        }
        if (line->memc != NULL) {
            return line;
        }
        atomic_store(&line->busy, 0);
    }
    return NULL;
}

static apr_status_t call_begin(call_t *call, yk_cache_t *cache,
                               yk_cache_kind_e kind, uint64_t id)
{
    call->cache = cache;
    call->digest = &cache->shared->digests[kind];
    call->began = steady();
    call->line = NULL;
    if (call->began < atomic_load(&cache->shared->rests_until)) {
        atomic_fetch_add(&call->digest->skipped, 1);
        return APR_ECONNRESET;
    }
    call->line = line_take(cache);
    if (call->line == NULL) {
        atomic_fetch_add(&call->digest->skipped, 1);
        return APR_EBUSY;
    }
    call->key_len = (apr_size_t)apr_snprintf(
        call->key, sizeof(call->key), "%s%016" APR_UINT64_T_HEX_FMT,
        yk_cache_pattern(kind), (apr_uint64_t)id);
    return APR_SUCCESS;
}

static apr_status_t status_of(memcached_return_t said)
{
    switch (said) {
    case MEMCACHED_SUCCESS:
    case MEMCACHED_BUFFERED:
        return APR_SUCCESS;
    case MEMCACHED_NOTFOUND:
        return APR_NOTFOUND;
    case MEMCACHED_NOTSTORED:
    case MEMCACHED_DATA_EXISTS:
        return APR_EEXIST;
    case MEMCACHED_TIMEOUT:
        return APR_TIMEUP;
    case MEMCACHED_E2BIG:
    case MEMCACHED_SERVER_MEMORY_ALLOCATION_FAILURE:
    case MEMCACHED_SERVER_ERROR:
        return APR_ENOSPC;
    default:
        return APR_ECONNRESET;
    }
}

/* A line on which an answer is late or half read is never used again: what
 * comes next on it would be taken for another question's answer. */
static apr_status_t call_end(call_t *call, memcached_return_t said)
{
    yk_cache_digest_t *digest = call->digest;
    int64_t took = steady() - call->began;
    apr_status_t rv = status_of(said);
    int bucket = 0;

    while (bucket < YK_CACHE_BUCKETS - 1 && took >> bucket != 0) {
        bucket++;
    }
    atomic_fetch_add(&digest->took[bucket], 1);
    atomic_fetch_add(&digest->took_us, (uint64_t)took);
    if (rv == APR_TIMEUP || rv == APR_ECONNRESET) {
        atomic_fetch_add(rv == APR_TIMEUP ? &digest->timeouts : &digest->errors,
                         1);
        memcached_quit(call->line->memc);
        atomic_store(&call->cache->shared->rests_until,
                     steady() + YK_CACHE_REST);
    }
    else if (rv == APR_ENOSPC) {
        atomic_fetch_add(&digest->errors, 1);
    }
    atomic_store(&call->line->busy, 0);
    return rv;
}

/* ---- written and never read ---- */

static _Atomic uint64_t *mark_of(uint64_t *mark, yk_cache_t *cache,
                                 yk_cache_kind_e kind, uint64_t id)
{
    uint64_t x = (id * YK_CACHE_KIND_COUNT + (uint64_t)kind + 1) *
                 UINT64_C(0x9e3779b97f4a7c15);

    *mark = x | 1;
    return &cache->shared->marks[(x >> 32) % YK_CACHE_MARKS];
}

static void mark_written(yk_cache_t *cache, yk_cache_digest_t *digest,
                         yk_cache_kind_e kind, uint64_t id)
{
    uint64_t mark;
    _Atomic uint64_t *at = mark_of(&mark, cache, kind, id);

    if (atomic_exchange(at, mark) == mark) {
        atomic_fetch_add(&digest->never_read, 1);
    }
}

static void mark_read(yk_cache_t *cache, yk_cache_kind_e kind, uint64_t id)
{
    uint64_t mark;
    _Atomic uint64_t *at = mark_of(&mark, cache, kind, id);

    atomic_compare_exchange_strong(at, &mark, 0);
}

apr_status_t yk_cache_get(yk_cache_t *cache, const char **bytes,
                          apr_size_t *len, yk_cache_kind_e kind, uint64_t id,
                          apr_pool_t *p)
{
    memcached_return_t said;
    uint32_t flags;
    char *value;
    call_t call;
    apr_status_t rv = call_begin(&call, cache, kind, id);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    atomic_fetch_add(&call.digest->gets, 1);
    value = memcached_get(call.line->memc, call.key, call.key_len, len, &flags,
                          &said);
    if (said == MEMCACHED_SUCCESS) {
        *bytes = value != NULL ? apr_pmemdup(p, value, *len) : "";
        atomic_fetch_add(&call.digest->hits, 1);
        atomic_fetch_add(&call.digest->bytes_in, *len);
        mark_read(cache, kind, id);
    }
    else if (said == MEMCACHED_NOTFOUND) {
        atomic_fetch_add(&call.digest->misses, 1);
    }
    free(value);
    return call_end(&call, said);
}

apr_status_t yk_cache_set(yk_cache_t *cache, yk_cache_kind_e kind, uint64_t id,
                          const char *bytes, apr_size_t len, uint32_t ttl)
{
    call_t call;
    apr_status_t rv = call_begin(&call, cache, kind, id);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    atomic_fetch_add(&call.digest->sets, 1);
    atomic_fetch_add(&call.digest->bytes_out, len);
    mark_written(cache, call.digest, kind, id);
    return call_end(&call, memcached_set(call.line->memc, call.key,
                                         call.key_len, bytes, len, ttl, 0));
}

apr_status_t yk_cache_add(yk_cache_t *cache, yk_cache_kind_e kind, uint64_t id,
                          const char *bytes, apr_size_t len, uint32_t ttl)
{
    call_t call;
    apr_status_t rv = call_begin(&call, cache, kind, id);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    atomic_fetch_add(&call.digest->adds, 1);
    atomic_fetch_add(&call.digest->bytes_out, len);
    return call_end(&call, memcached_add(call.line->memc, call.key,
                                         call.key_len, bytes, len, ttl, 0));
}

apr_status_t yk_cache_drop(yk_cache_t *cache, yk_cache_kind_e kind, uint64_t id)
{
    call_t call;
    apr_status_t rv = call_begin(&call, cache, kind, id);

    return rv != APR_SUCCESS
               ? rv
               : call_end(&call, memcached_delete(call.line->memc, call.key,
                                                  call.key_len, 0));
}
