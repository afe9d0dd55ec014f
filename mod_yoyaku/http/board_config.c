/* SPDX-License-Identifier: Apache-2.0 */
#include "board.h"
#include <apr_lib.h>
#include <apr_strings.h>
#include <yoyaku/text.h>

#define MEMORY (64 * 1024 * 1024)
#define MEMORY_MIN (1024 * 1024)
#define MEMORY_MAX (INT64_C(16) * 1024 * 1024 * 1024)
#define AGE APR_USEC_PER_SEC
#define AGE_MIN (APR_USEC_PER_SEC / 10)
#define AGE_MAX (60 * APR_USEC_PER_SEC)

void *yk_http_board_dir_create(apr_pool_t *p)
{
    yk_http_board_dir_t *made = apr_pcalloc(p, sizeof(*made));

    made->age = -1;
    return made;
}

void *yk_http_board_dir_merge(apr_pool_t *p, void *base, void *add)
{
    const yk_http_board_dir_t *outer = base;
    yk_http_board_dir_t *merged = apr_pmemdup(p, add, sizeof(*merged));

    if (merged->age == -1) {
        merged->age = outer->age;
    }
    return merged;
}

void *yk_http_board_server_create(apr_pool_t *p, server_rec *s)
{
    yk_http_board_server_t *made = apr_pcalloc(p, sizeof(*made));

    made->memory = -1;
    return made;
}

void *yk_http_board_server_merge(apr_pool_t *p, void *base, void *add)
{
    /* the main server's alone */
    return base;
}

apr_size_t yk_http_board_memory(server_rec *s)
{
    const yk_http_board_server_t *conf = yk_http_server(s, YK_HTTP_BOARD);

    return conf->memory != -1 ? (apr_size_t)conf->memory : MEMORY;
}

const char *yk_http_board_memcached(server_rec *s)
{
    const yk_http_board_server_t *conf = yk_http_server(s, YK_HTTP_BOARD);

    return conf->memcached != NULL && *conf->memcached != '\0' ? conf->memcached
                                                               : NULL;
}

apr_interval_time_t yk_http_board_age(const request_rec *r)
{
    const yk_http_board_dir_t *conf =
        yk_http_dir(r->per_dir_config, YK_HTTP_BOARD);

    return conf->age != -1 ? conf->age : AGE;
}

/* ---- directives ---- */

const char *yk_http_board_set_memory(cmd_parms *cmd, void *dummy,
                                     const char *arg)
{
    yk_http_board_server_t *conf = yk_http_server(cmd->server, YK_HTTP_BOARD);
    const char *wrong = ap_check_cmd_context(cmd, GLOBAL_ONLY);
    int64_t n;

    if (wrong != NULL) {
        return wrong;
    }
    if (yk_text_size(&n, arg) != APR_SUCCESS || n < MEMORY_MIN ||
        n > MEMORY_MAX) {
        return apr_psprintf(cmd->pool,
                            "YoyakuMemory: '%s' is not a size from 1M to 16G; "
                            "for example: YoyakuMemory 64M",
                            arg);
    }
    conf->memory = n;
    return NULL;
}

const char *yk_http_board_set_memcached(cmd_parms *cmd, void *dummy,
                                        const char *arg)
{
    yk_http_board_server_t *conf = yk_http_server(cmd->server, YK_HTTP_BOARD);
    const char *wrong = ap_check_cmd_context(cmd, GLOBAL_ONLY);

    if (wrong != NULL) {
        return wrong;
    }
    if (ap_cstr_casecmp(arg, "none") == 0) {
        conf->memcached = "";
        return NULL;
    }
    wrong = yk_cache_check(arg, cmd->pool);
    if (wrong != NULL) {
        return apr_psprintf(cmd->pool,
                            "YoyakuMemcached: '%s': %s; for example: "
                            "YoyakuMemcached 10.0.0.1:11211,10.0.0.2:11211",
                            arg, wrong);
    }
    conf->memcached = arg;
    return NULL;
}

const char *yk_http_board_set_age(cmd_parms *cmd, void *dummy, const char *arg)
{
    yk_http_board_dir_t *conf = yk_http_dir_of(dummy, YK_HTTP_BOARD);
    apr_interval_time_t t = -1;

    if (!apr_isdigit(*arg) ||
        ap_timeout_parameter_parse(arg, &t, "s") != APR_SUCCESS ||
        t < AGE_MIN || t > AGE_MAX) {
        return apr_psprintf(cmd->pool,
                            "YoyakuBoardAge: '%s' is not a duration between "
                            "100ms and 60s; for example: YoyakuBoardAge 1s",
                            arg);
    }
    conf->age = t;
    return NULL;
}
