/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YK_HTTP_DESK_H
#define YK_HTTP_DESK_H

#include <ap_expr.h>
#include <yoyaku/desk.h>
#include "http.h"

/**
 * @file desk.h
 * @brief The part that takes bookings: handlers `yoyaku` and `yoyaku-shop`.
 *
 *   desk.c         hooks, state folder, catalogue of the process
 *   desk_config.c  directives
 *   desk_scan.c    where the handlers live and which database they have
 *   desk_dbd.c     lines from mod_dbd
 *   desk_probe.c   is the database fit
 *   desk_sweep.c   due orders, from mod_watchdog
 *
 * A request runs through call.h: route, same site, body, claim, desk, reply.
 *
 * What lives where. Configuration and what the scan found are made in the
 * parent from pconf and only read afterwards. The catalogue and the probe's
 * state belong to one process and lock for themselves. Everything else is the
 * request's.
 */

/** Configuration of a directory; -1 and NULL: not said here. Read through the
 *  functions of desk_config.c, which know the defaults. */
typedef struct yk_http_desk_dir_t {
    const char *tenant;
    int has_booker;               /**< said here, be it none */
    const ap_expr_info_t *booker; /**< NULL: nobody is named */
    int booker_required;
    int confirm; /**< yk_confirm_e */
    apr_interval_time_t hold_ttl, hold_max_lifetime, checkout_ttl, hold_wait;
    apr_int64_t hold_places;
    apr_array_header_t *origins; /**< of const char *; empty: none */
    const char *checkout_url;    /**< "": none */
} yk_http_desk_dir_t;

/** Configuration of the main server. */
typedef struct yk_http_desk_server_t {
    apr_interval_time_t sweep_interval;
    const char *state_dir;
} yk_http_desk_server_t;

/* ---- desk_config.c ---- */

void *yk_http_desk_config_dir_create(apr_pool_t *p);
void *yk_http_desk_config_dir_merge(apr_pool_t *p, void *base, void *add);
void *yk_http_desk_config_server_create(apr_pool_t *p, server_rec *s);
void *yk_http_desk_config_server_merge(apr_pool_t *p, void *base, void *add);

/** The configuration's part of the terms; the rest stays nought. */
void yk_http_desk_config_terms(yk_terms_t *terms,
                               const yk_http_desk_dir_t *conf);
const char *yk_http_desk_config_tenant(const yk_http_desk_dir_t *conf);
apr_interval_time_t yk_http_desk_config_sweep_interval(server_rec *s);
/** Absolute; a path not said or relative lies under DefaultRuntimeDir. */
const char *yk_http_desk_config_state_dir(server_rec *s, apr_pool_t *p);

const char *yk_http_desk_set_tenant(cmd_parms *cmd, void *dummy,
                                    const char *arg);
const char *yk_http_desk_set_booker(cmd_parms *cmd, void *dummy,
                                    const char *arg);
const char *yk_http_desk_set_booker_required(cmd_parms *cmd, void *dummy,
                                             int on);
const char *yk_http_desk_set_confirm(cmd_parms *cmd, void *dummy,
                                     const char *arg);
const char *yk_http_desk_set_duration(cmd_parms *cmd, void *dummy,
                                      const char *arg);
const char *yk_http_desk_set_hold_places(cmd_parms *cmd, void *dummy,
                                         const char *arg);
const char *yk_http_desk_set_allow_origin(cmd_parms *cmd, void *dummy,
                                          const char *arg);
const char *yk_http_desk_set_checkout_url(cmd_parms *cmd, void *dummy,
                                          const char *arg);
const char *yk_http_desk_set_sweep_interval(cmd_parms *cmd, void *dummy,
                                            const char *arg);
const char *yk_http_desk_set_state_dir(cmd_parms *cmd, void *dummy,
                                       const char *arg);

#define YK_HTTP_ANYWHERE (RSRC_CONF | ACCESS_CONF)

/* The help texts are what `httpd -L` prints; conf.d/yoyaku-reference.conf has
 * a paragraph for each, and t/http/test_manual.py compares the two. */
#define YK_HTTP_DESK_DIRECTIVES                                                \
    AP_INIT_TAKE1("YoyakuTenant", yk_http_desk_set_tenant, NULL,               \
                  YK_HTTP_ANYWHERE, "the realm whose slots are sold here"),    \
        AP_INIT_TAKE1("YoyakuBooker", yk_http_desk_set_booker, NULL,           \
                      YK_HTTP_ANYWHERE,                                        \
                      "an expression that says who asks, or none"),            \
        AP_INIT_FLAG("YoyakuBookerRequired", yk_http_desk_set_booker_required, \
                     NULL, YK_HTTP_ANYWHERE, "on: no hold without a booker"),  \
        AP_INIT_TAKE1("YoyakuConfirm", yk_http_desk_set_confirm, NULL,         \
                      YK_HTTP_ANYWHERE,                                        \
                      "what a booker may confirm: free, booker or shop"),      \
        AP_INIT_TAKE1("YoyakuHoldTTL", yk_http_desk_set_duration, NULL,        \
                      YK_HTTP_ANYWHERE, "how long a hold keeps its places"),   \
        AP_INIT_TAKE1("YoyakuHoldMaxLifetime", yk_http_desk_set_duration,      \
                      NULL, YK_HTTP_ANYWHERE,                                  \
                      "how long renewed holds keep them"),                     \
        AP_INIT_TAKE1("YoyakuCheckoutTTL", yk_http_desk_set_duration, NULL,    \
                      YK_HTTP_ANYWHERE, "how long paying may take"),           \
        AP_INIT_TAKE1("YoyakuHoldPlaces", yk_http_desk_set_hold_places, NULL,  \
                      YK_HTTP_ANYWHERE, "the most places of one order"),       \
        AP_INIT_TAKE1("YoyakuHoldWait", yk_http_desk_set_duration, NULL,       \
                      YK_HTTP_ANYWHERE, "how long a hold waits for others"),   \
        AP_INIT_ITERATE("YoyakuAllowOrigin", yk_http_desk_set_allow_origin,    \
                        NULL, YK_HTTP_ANYWHERE,                                \
                        "other origins whose scripts may ask, or none"),       \
        AP_INIT_TAKE1("YoyakuCheckoutURL", yk_http_desk_set_checkout_url,      \
                      NULL, YK_HTTP_ANYWHERE,                                  \
                      "where a booker goes to pay, or none"),                  \
        AP_INIT_TAKE1("YoyakuSweepInterval", yk_http_desk_set_sweep_interval,  \
                      NULL, RSRC_CONF,                                         \
                      "how often due orders are tidied away"),                 \
        AP_INIT_TAKE1("YoyakuStateDir", yk_http_desk_set_state_dir, NULL,      \
                      RSRC_CONF, "the folder of shared state and plans"),

/* ---- desk.c ---- */

/** This process's slots and plans of that server's database; NULL: it could
 *  not be made. */
yk_catalogue_t *yk_http_desk_catalogue(server_rec *s);

/** The folder of that server's plans; NULL: it has no desk. */
const char *yk_http_desk_plans(server_rec *s, apr_pool_t *p);

/* ---- desk_scan.c ---- */

/** Look through the configuration once it is read. @return OK, or the sentence
 *  was logged and the server must not start */
int yk_http_desk_scan(apr_pool_t *pconf, server_rec *s);

/** Where this request's handler begins: "/yoyaku", or "" for the root.
 *  @return NULL: the path does not tell */
const char *yk_http_desk_scan_base(request_rec *r);

/** Whose <VirtualHost> this is. */
server_rec *yk_http_desk_scan_server(const ap_directive_t *node);
/** The path of <Location PATH>, without a slash at the end, or NULL: a
 *  pattern, or none at all. */
const char *yk_http_desk_scan_location(const ap_directive_t *node,
                                       apr_pool_t *p);
/** Where bookers are served, as seen from one server: the first <Location> of
 *  handler yoyaku of its own, else of the main server.
 *  @return NULL: no <Location> tells */
const char *yk_http_desk_scan_near(const server_rec *s);

/** A database with a desk. */
typedef struct yk_http_database_t {
    server_rec *s;               /**< the server whose DBD directives name it */
    const char *name;            /**< a hash of DBDParams: fit for a folder */
    yk_catalogue_t *catalogue;   /**< one process's; set by desk.c */
    struct yk_http_kept_t *kept; /**< one process's; set by desk_dbd.c */
} yk_http_database_t;

/** Each database once. Of yk_http_database_t. */
const apr_array_header_t *yk_http_desk_scan_databases(void);
/** The one that a server's requests go to, or NULL. */
yk_http_database_t *yk_http_desk_scan_database(server_rec *s);

/* ---- desk_dbd.c ---- */

/** One user's way to mod_dbd's lines. */
typedef struct yk_http_dbd_t yk_http_dbd_t;

void yk_http_desk_dbd_hooks(apr_pool_t *p);
/** A place for the lines that this process keeps. In child_init. */
apr_status_t yk_http_desk_dbd_keep(yk_http_database_t *database,
                                   apr_pool_t *pchild);
/** Does this process have a line open for this server's database? */
int yk_http_desk_dbd_has_line(server_rec *s);
/** Fetch mod_dbd's functions; each generation anew. */
void yk_http_desk_dbd_bind(void);
/** The process ends: from now on nothing is sent and nothing given back. */
void yk_http_desk_dbd_abandon(void);

/** A store over the lines that server `s` has. None is asked for yet. */
apr_status_t yk_http_desk_dbd_attach(yk_store_t **store, yk_http_dbd_t **dbd,
                                     server_rec *s, apr_pool_t *p);
/** Time from asking for lines to giving them back, so far. */
apr_time_t yk_http_desk_dbd_used(const yk_http_dbd_t *dbd);
/** In this thread, until `off`: new lines are the probe's own. */
void yk_http_desk_dbd_probing(int on);
/** Why there are never lines for this server, or NULL. */
const char *yk_http_desk_dbd_lacks(void);

/* ---- desk_probe.c ---- */

/** Make what the processes of a generation share. Before fork. */
apr_status_t yk_http_desk_probe_create(apr_pool_t *pconf);
/** A line to this server's database broke: it may be another one now. */
void yk_http_desk_probe_lost(server_rec *s);

/**
 * May changes be written? Asks the database when that is not known.
 * @return APR_SUCCESS; APR_ENOTIMPL or APR_ECONNRESET: not now
 */
apr_status_t yk_http_desk_probe_check(yk_store_t *store, server_rec *s,
                                      apr_pool_t *ptemp);

/** 1: some process found the database unfit and none has found it fit since.
 *  Asks nobody. */
int yk_http_desk_probe_is_unfit(void);

/* ---- desk_sweep.c ---- */

/** Register with mod_watchdog, if there is one. In post_config. */
void yk_http_desk_sweep_register(server_rec *s, apr_pool_t *pconf);

#endif
