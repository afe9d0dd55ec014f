/* SPDX-License-Identifier: Apache-2.0 */
#include "../arm.h"
#include <libmemcached/memcached.h>
#include <stdlib.h>

/*
 * A board that is kept in memcached and nowhere else: one get for each
 * question, over a line of this thread's own that stays open. No database, no
 * page made: the least that such a pass costs.
 *
 *   GET /pass/board/x   the value of `board:x`; 500 when there is none
 *   GET /pass/count     how many of these there were
 */

extern module AP_MODULE_DECLARE_DATA load_memcached_module;

#define BOARDS "/pass/board/"
#define WAIT_MS 500

static const char *server;
static _Thread_local memcached_st *line;

static memcached_st *line_open(apr_pool_t *p)
{
    const char *text = apr_psprintf(p, "--SERVER=%s", server);

    if (line == NULL) {
        line = memcached(text, strlen(text));
    }
    if (line != NULL) {
        memcached_behavior_set(line, MEMCACHED_BEHAVIOR_TCP_NODELAY, 1);
        memcached_behavior_set(line, MEMCACHED_BEHAVIOR_POLL_TIMEOUT, WAIT_MS);
    }
    return line;
}

static int reply(request_rec *r, const char *bytes, apr_size_t len)
{
    return arm_reply(r, "application/json", bytes, len);
}

static int send_board(request_rec *r)
{
    const char *key =
        apr_pstrcat(r->pool, "board:", r->uri + strlen(BOARDS), NULL);
    memcached_st *from = line != NULL ? line : line_open(r->pool);
    memcached_return_t rc;
    uint32_t flags;
    size_t len;
    char *value;
    int rv;

    if (from == NULL || strlen(key) >= MEMCACHED_MAX_KEY) {
        return HTTP_INTERNAL_SERVER_ERROR;
    }
    value = memcached_get(from, key, strlen(key), &len, &flags, &rc);
    if (value == NULL) {
        return HTTP_INTERNAL_SERVER_ERROR;
    }
    rv = reply(r, value, len);
    free(value);
    return rv;
}

static int handler(request_rec *r)
{
    if (r->handler == NULL || strcmp(r->handler, "load-memcached") != 0) {
        return DECLINED;
    }
    if (strncmp(r->uri, BOARDS, strlen(BOARDS)) == 0) {
        apr_atomic_inc32(arm_counter());
        return send_board(r);
    }
    return arm_reply_count(r, "application/json");
}

static const char *set_server(cmd_parms *cmd, void *dummy, const char *value)
{
    server = value;
    return NULL;
}

static const command_rec directives[] = {AP_INIT_TAKE1("LoadMemcachedServer",
                                                       set_server, NULL,
                                                       RSRC_CONF, "host:port"),
                                         {NULL}};

static void hooks(apr_pool_t *p)
{
    ap_hook_post_config(arm_begin, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_handler(handler, NULL, NULL, APR_HOOK_MIDDLE);
}

AP_DECLARE_MODULE(load_memcached) = {
    STANDARD20_MODULE_STUFF, NULL, NULL, NULL, NULL, directives, hooks, 0,
};
