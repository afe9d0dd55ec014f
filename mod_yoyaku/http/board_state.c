/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshot.h"
#include <apr_strings.h>

/* made in the parent for each generation */
static void *memory;
static apr_size_t memory_size;
/* one process's */
static yk_boards_t *boards;

yk_boards_t *yk_http_board_boards(void)
{
    return boards;
}

static void written(void *baton, yk_ledger_t *ledger, apr_interval_time_t took)
{
    yk_boards_apply_ledger(baton, ledger, took);
}

void yk_http_board_watch(yk_store_t *store)
{
    if (boards != NULL) {
        yk_store_written(store, written, boards);
    }
}

/* A file, so that the next start goes on with what stands in it; without one
 * memory of this generation alone, which each generation reads for itself. */
static int post_config(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp,
                       server_rec *s)
{
    const char *folder;
    yk_state_t *state = NULL;
    yk_state_kind_t kind;
    apr_status_t rv;

    memory = NULL;
    boards = NULL;
    if (ap_state_query(AP_SQ_MAIN_STATE) == AP_SQ_MS_CREATE_PRE_CONFIG ||
        yk_http_desk_scan_databases()->nelts == 0) {
        return OK;
    }
    folder = yk_http_desk_config_state_dir(s, ptemp);
    yk_boards_kind(&kind, yk_http_board_memory(s));
    rv = yk_state_create(&state, &kind, folder, pconf);
    if (rv == APR_SUCCESS) {
        memory = yk_state_memory(state);
    }
    else {
        ap_log_error(APLOG_MARK, APLOG_WARNING, rv, s,
                     rv == APR_EBUSY
                         ? "YK0440: board: %s is used by another server that "
                           "is running; boards of this one do not outlive a "
                           "restart. Give each its own YoyakuStateDir"
                         : "YK0441: board: no shared state in %s; boards do "
                           "not outlive a restart",
                     folder);
        rv = yk_boards_memory(&memory, &kind, pconf);
    }
    if (rv != APR_SUCCESS) {
        ap_log_error(APLOG_MARK, APLOG_ERR, rv, s,
                     "YK0442: board: there is no memory of %" APR_SIZE_T_FMT
                     " bytes for boards; say less with YoyakuMemory",
                     kind.size);
        return HTTP_INTERNAL_SERVER_ERROR;
    }
    memory_size = kind.size;
    yk_http_snapshot_create(pconf, s);
    return OK;
}

static void child_init(apr_pool_t *pchild, server_rec *s)
{
    const char *servers = yk_http_board_memcached(s);
    yk_cache_t *cache = NULL;

    if (memory == NULL ||
        yk_boards_attach(&boards, memory, memory_size, pchild) != APR_SUCCESS) {
        boards = NULL;
        return;
    }
    if (servers != NULL &&
        yk_cache_open(&cache, servers, yk_boards_cache_shared(boards),
                      pchild) == APR_SUCCESS) {
        yk_boards_cache(boards, cache);
    }
}

/* The answer is out: nobody waits for memcached. */
static int log_transaction(request_rec *r)
{
    if (boards != NULL) {
        yk_boards_tell(boards, r->pool);
    }
    return DECLINED;
}

static void hooks(apr_pool_t *p)
{
    /* mod_watchdog makes its mutexes for what is registered by then */
    static const char *const before_watchdog[] = {"mod_watchdog.c", NULL};

    /* behind the desk's, which makes the folder */
    ap_hook_post_config(post_config, NULL, before_watchdog, APR_HOOK_LAST);
    ap_hook_child_init(child_init, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_log_transaction(log_transaction, NULL, NULL, APR_HOOK_LAST);
}

const yk_http_part_t yk_http_board = {
    yk_http_board_dir_create, yk_http_board_dir_merge,
    yk_http_board_server_create, yk_http_board_server_merge, hooks};
