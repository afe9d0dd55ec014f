/* SPDX-License-Identifier: Apache-2.0 */
#include "desk.h"
#include <apr_file_info.h>
#include <apr_strings.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <unixd.h>
#include <yoyaku/log.h>
#include "call.h"

#define NO_FILE "yoyaku:" /**< what stands for a file's name begins so */
#define PLANS "plans"     /**< in the state folder; the children's own */

/* made in the parent from pconf, read by the children */
static const char *plans_folder;
static server_rec *main_server;

yk_catalogue_t *yk_http_desk_catalogue(server_rec *s)
{
    const yk_http_database_t *database = yk_http_desk_scan_database(s);

    return database != NULL ? database->catalogue : NULL;
}

const char *yk_http_desk_plans(server_rec *s, apr_pool_t *p)
{
    const yk_http_database_t *database = yk_http_desk_scan_database(s);

    return database == NULL
               ? NULL
               : apr_pstrcat(p, plans_folder, "/", database->name, NULL);
}

static void log_sink(yk_log_e level, apr_status_t rv, const char *line)
{
    static const int levels[] = {APLOG_ERR, APLOG_WARNING, APLOG_NOTICE,
                                 APLOG_INFO, APLOG_DEBUG};

    ap_log_error(APLOG_MARK, levels[level], rv, main_server, "%s", line);
}

/* ---- the state folder ---- */

/**
 * The state folder is this server's alone: what lies in it is mapped by the
 * parent. Only its subfolder for plans belongs to the children.
 */
static int folder_check(const char *path, uid_t owner, server_rec *s)
{
    struct stat is;

    if (lstat(path, &is) != 0 || !S_ISDIR(is.st_mode) || is.st_uid != owner ||
        (is.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        ap_log_error(APLOG_MARK, APLOG_ERR, 0, s,
                     "YK0403: state: %s is not a folder that only its owner "
                     "(uid %lu) can write to; remove it or name another one "
                     "with YoyakuStateDir",
                     path, (unsigned long)owner);
        return HTTP_INTERNAL_SERVER_ERROR;
    }
    return OK;
}

static int folder_make(server_rec *s, apr_pool_t *pconf)
{
    const apr_fileperms_t mode = APR_UREAD | APR_UWRITE | APR_UEXECUTE |
                                 APR_GREAD | APR_GEXECUTE | APR_WREAD |
                                 APR_WEXECUTE;
    const char *folder = yk_http_desk_config_state_dir(s, pconf);
    uid_t child = geteuid() == 0 ? ap_unixd_config.user_id : geteuid();
    apr_status_t rv = apr_dir_make_recursive(folder, mode, pconf);

    if (rv != APR_SUCCESS) {
        ap_log_error(APLOG_MARK, APLOG_ERR, rv, s,
                     "YK0404: state: %s cannot be made; name a folder on a "
                     "local disk with YoyakuStateDir",
                     folder);
        return HTTP_INTERNAL_SERVER_ERROR;
    }
    if (folder_check(folder, geteuid(), s) != OK) {
        return HTTP_INTERNAL_SERVER_ERROR;
    }
    plans_folder = apr_pstrcat(pconf, folder, "/" PLANS, NULL);
    if (mkdir(plans_folder, 0700) == 0 && geteuid() == 0 &&
        lchown(plans_folder, child, (gid_t)-1) != 0) {
        ap_log_error(APLOG_MARK, APLOG_ERR, errno, s,
                     "YK0405: state: %s cannot be given to the children",
                     plans_folder);
        return HTTP_INTERNAL_SERVER_ERROR;
    }
    return folder_check(plans_folder, child, s);
}

/* ---- life ---- */

static int check_config(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp,
                        server_rec *s)
{
    return yk_http_desk_scan(pconf, s);
}

static int post_config(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp,
                       server_rec *s)
{
    main_server = s;
    yk_log_sink_set(log_sink);
    /* optional functions are another generation's after a restart */
    yk_http_desk_dbd_bind();
    if (ap_state_query(AP_SQ_MAIN_STATE) == AP_SQ_MS_CREATE_PRE_CONFIG) {
        return OK;
    }
    if (yk_http_desk_probe_create(pconf) != APR_SUCCESS) {
        ap_log_error(APLOG_MARK, APLOG_ERR, 0, s,
                     "YK0406: state: no shared memory for a single page");
        return HTTP_INTERNAL_SERVER_ERROR;
    }
    if (folder_make(s, pconf) != OK) {
        return HTTP_INTERNAL_SERVER_ERROR;
    }
    yk_http_desk_sweep_register(s, pconf);
    return OK;
}

/* Runs before the pools below pchild, a request's among them, are cleaned up,
 * which under prefork may happen inside a signal handler: nothing may be sent
 * from there. The end of the process closes its lines, and the database rolls
 * back what was open. */
static apr_status_t abandon(void *data)
{
    yk_http_desk_dbd_abandon();
    yk_catalogue_abandon();
    return APR_SUCCESS;
}

/* Two databases may number different halls alike: a folder each. */
static apr_status_t catalogue_make(yk_http_database_t *database,
                                   apr_pool_t *pchild)
{
    const char *folder =
        apr_pstrcat(pchild, plans_folder, "/", database->name, NULL);
    apr_status_t rv = apr_dir_make(
        folder, APR_FPROT_UREAD | APR_FPROT_UWRITE | APR_FPROT_UEXECUTE,
        pchild);

    if (rv != APR_SUCCESS && !APR_STATUS_IS_EEXIST(rv)) {
        return rv;
    }
    rv = yk_http_desk_dbd_keep(database, pchild);
    return rv != APR_SUCCESS
               ? rv
               : yk_catalogue_create(&database->catalogue, folder, pchild);
}

static void child_init(apr_pool_t *pchild, server_rec *s)
{
    const apr_array_header_t *databases = yk_http_desk_scan_databases();
    apr_status_t rv = APR_SUCCESS;

    main_server = s;
    yk_log_sink_set(log_sink);
    apr_pool_pre_cleanup_register(pchild, NULL, abandon);
    for (int i = 0; rv == APR_SUCCESS && i < databases->nelts; i++) {
        yk_http_database_t *database =
            &APR_ARRAY_IDX(databases, i, yk_http_database_t);

        rv = catalogue_make(database, pchild);
        if (rv != APR_SUCCESS) {
            database->catalogue = NULL;
        }
    }
    if (rv != APR_SUCCESS) {
        ap_log_error(APLOG_MARK, APLOG_ERR, rv, s,
                     "YK0407: desk: no catalogue in this process; it takes "
                     "no bookings");
    }
}

/* ---- requests ---- */

static int is_ours(const char *handler)
{
    return handler != NULL && (strcmp(handler, "yoyaku") == 0 ||
                               strcmp(handler, "yoyaku-shop") == 0);
}

/** Set by SetHandler for this URL? Known before the handler phase, from the
 *  first look at <Location>; httpd keeps it as an expression. */
static int is_ours_early(request_rec *r)
{
    const core_dir_config *core = ap_get_core_module_config(r->per_dir_config);
    const char *error = NULL;

    if (core->expr_handler == NULL) {
        return is_ours(core->handler);
    }
    return is_ours(ap_expr_str_exec(r, core->expr_handler, &error)) &&
           error == NULL;
}

/* No file lies behind our paths: nothing is looked for on the disk, and what
 * ends like a file's name in them says nothing of type or coding. Access
 * control of <Location> has its say as ever, that of <Directory> has none. */
static int translate_name(request_rec *r)
{
    if (!is_ours_early(r)) {
        return DECLINED;
    }
    r->filename = apr_pstrcat(r->pool, NO_FILE, r->uri, NULL);
    return OK;
}

/* By the name we gave it: the configuration is the server's own again here. */
static int is_no_file(const request_rec *r)
{
    return r->filename != NULL &&
           strncmp(r->filename, NO_FILE, sizeof(NO_FILE) - 1) == 0;
}

static int map_to_storage(request_rec *r)
{
    return is_no_file(r) ? OK : DECLINED;
}

static int type_checker(request_rec *r)
{
    return is_no_file(r) ? OK : DECLINED;
}

static int handler(request_rec *r)
{
    return is_ours(r->handler) ? yk_http_route(r) : DECLINED;
}

static void desk_hooks(apr_pool_t *p)
{
    yk_http_desk_dbd_hooks(p);
    ap_hook_check_config(check_config, NULL, NULL, APR_HOOK_MIDDLE);
    /* before mod_watchdog's, which starts what was registered by then */
    ap_hook_post_config(post_config, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_child_init(child_init, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_translate_name(translate_name, NULL, NULL, APR_HOOK_FIRST);
    ap_hook_map_to_storage(map_to_storage, NULL, NULL, APR_HOOK_FIRST);
    ap_hook_type_checker(type_checker, NULL, NULL, APR_HOOK_FIRST);
    ap_hook_handler(handler, NULL, NULL, APR_HOOK_MIDDLE);
}

const yk_http_part_t yk_http_desk = {
    yk_http_desk_config_dir_create,
    yk_http_desk_config_dir_merge,
    yk_http_desk_config_server_create,
    yk_http_desk_config_server_merge,
    desk_hooks,
};
