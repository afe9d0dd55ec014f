/* SPDX-License-Identifier: Apache-2.0 */
#include "lane.h"
#include <apr_lib.h>
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "desk.h"
#include "throttle.h"
#include <yoyaku/text.h>

#define CONNECTIONS_DEFAULT 16
#define UNSAID -1

typedef struct lane_dir_t {
    int width; /* 0: off */
} lane_dir_t;

typedef struct lane_server_t {
    int connections;
} lane_server_t;

/* Made in the parent from pconf, inherited; the row is a child's own. */
static yk_lane_host_t host;
static int is_joined;

/* ---- configuration ---- */

static void *dir_create(apr_pool_t *p)
{
    lane_dir_t *conf = apr_pcalloc(p, sizeof(*conf));

    conf->width = UNSAID;
    return conf;
}

static void *dir_merge(apr_pool_t *p, void *base, void *add)
{
    lane_dir_t *conf = apr_pmemdup(p, base, sizeof(*conf));

    if (((lane_dir_t *)add)->width != UNSAID) {
        conf->width = ((lane_dir_t *)add)->width;
    }
    return conf;
}

static void *server_create(apr_pool_t *p, server_rec *s)
{
    lane_server_t *conf = apr_pcalloc(p, sizeof(*conf));

    conf->connections = UNSAID;
    return conf;
}

const char *yk_http_lane_set(cmd_parms *cmd, void *dummy, const char *arg)
{
    lane_dir_t *conf = yk_http_dir_of(dummy, YK_HTTP_LANE);
    char *end;
    long n = strtol(arg, &end, 10);

    if (strcasecmp(arg, "on") == 0) {
        n = YK_LANES;
    }
    else if (strcasecmp(arg, "off") == 0) {
        n = 0;
    }
    else if (!apr_isdigit(*arg) || *end != '\0' || n < 1 || n > YK_LANES) {
        return apr_psprintf(cmd->pool,
                            "YoyakuLane: '%s' is neither on nor off nor a "
                            "number of lanes from 1 to %d; for example: "
                            "YoyakuLane on",
                            arg, YK_LANES);
    }
    conf->width = (int)n;
    return NULL;
}

const char *yk_http_lane_set_connections(cmd_parms *cmd, void *dummy,
                                         const char *arg)
{
    const char *error = ap_check_cmd_context(cmd, GLOBAL_ONLY);
    lane_server_t *conf = yk_http_server(cmd->server, YK_HTTP_LANE);
    char *end;
    long n = strtol(arg, &end, 10);

    if (error != NULL) {
        return error;
    }
    if (!apr_isdigit(*arg) || *end != '\0' || n < 0 || n > YK_LANE_LINES) {
        return apr_psprintf(cmd->pool,
                            "YoyakuConnections: '%s' is not a number from 0 "
                            "to %d; for example: YoyakuConnections 16",
                            arg, YK_LANE_LINES);
    }
    conf->connections = (int)n;
    return NULL;
}

/* ---- life ---- */

static int post_config(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp,
                       server_rec *s)
{
    const lane_server_t *conf = yk_http_server(s, YK_HTTP_LANE);
    const char *folder = yk_http_desk_config_state_dir(s, ptemp);
    yk_state_t *lanes;
    apr_status_t rv = APR_ENOTIMPL; /* why, the throttle has logged */

    host.lanes = NULL;
    if (ap_state_query(AP_SQ_MAIN_STATE) == AP_SQ_MS_CREATE_PRE_CONFIG) {
        return OK;
    }
    host.width = YK_LANES;
    host.connections = conf->connections == UNSAID
                           ? CONNECTIONS_DEFAULT
                           : (uint32_t)conf->connections;
    if (yk_http_throttle_shared() != NULL) {
        rv = yk_state_create(&lanes, &yk_lanes_kind, folder, pconf);
    }
    if (rv != APR_SUCCESS) {
        ap_log_error(APLOG_MARK, APLOG_WARNING, rv, s,
                     "YK0450: lanes: no shared state in %s; bookings are "
                     "committed one by one",
                     folder);
        return OK;
    }
    host.workers = yk_throttle_workers(yk_http_throttle_shared());
    host.lanes = yk_state_memory(lanes);
    return OK;
}

/* The throttle has joined the table of workers, first of all hooks: a process
 * has one row. */
static void child_init(apr_pool_t *pchild, server_rec *s)
{
    is_joined = 0;
    if (host.lanes == NULL) {
        return;
    }
    host.worker = yk_throttle_worker(yk_http_throttle_shared());
    host.identity = yk_throttle_identity(yk_http_throttle_shared());
    is_joined = host.worker != YK_WORKER_NONE && host.identity != 0;
    if (!is_joined) {
        ap_log_error(APLOG_MARK, APLOG_WARNING, 0, s,
                     "YK0451: lanes: no row is left for this worker; its "
                     "bookings are committed one by one");
    }
}

static void hooks(apr_pool_t *p)
{
    /* After the throttle's, which knows the workers. */
    ap_hook_post_config(post_config, NULL, NULL, APR_HOOK_LAST);
    ap_hook_child_init(child_init, NULL, NULL, APR_HOOK_MIDDLE);
}

const yk_http_part_t yk_http_lane = {
    .dir_create = dir_create,
    .dir_merge = dir_merge,
    .server_create = server_create,
    .hooks = hooks,
};

/* ---- requests ---- */

void yk_http_lane_bind(request_rec *r, yk_desk_t *desk, const char *realm)
{
    const lane_dir_t *conf = yk_http_dir(r->per_dir_config, YK_HTTP_LANE);
    yk_lane_host_t *own;

    if (!is_joined || conf->width == 0) {
        return;
    }
    own = apr_pmemdup(r->pool, &host, sizeof(host));
    if (conf->width != UNSAID) {
        own->width = (uint32_t)conf->width;
    }
    own->realm = yk_text_fnv(YK_TEXT_FNV, realm, strlen(realm));
    own->has_line = yk_http_desk_dbd_has_line(r->server);
    yk_desk_lane(desk, own);
}

/* Without shared state every process may keep one. */
static _Atomic int kept_alone;

const yk_lanes_t *yk_http_lane_shared(void)
{
    return host.lanes;
}

int yk_http_lane_permit_take(void)
{
    int none = 0;

    if (is_joined) {
        return yk_lane_permit_take(&host);
    }
    return atomic_compare_exchange_strong(&kept_alone, &none, 1)
               ? 0
               : YK_LANE_NO_PERMIT;
}

int yk_http_lane_permit_holds(int permit)
{
    return !is_joined || yk_lane_permit_holds(&host, permit);
}

void yk_http_lane_permit_give(int permit)
{
    if (is_joined) {
        yk_lane_permit_give(&host, permit);
    }
    else {
        kept_alone = 0;
    }
}
