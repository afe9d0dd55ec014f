/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_lib.h>
#include <apr_strings.h>
#include <string.h>
#include "desk.h"

/*
 * What httpd does not tell a handler: at which path it was set, and whether the
 * database of that server is one we can use. Both stand in the configuration as
 * read, so it is walked once, before anything runs; `httpd -t` walks it too.
 */

/** A server as far as a desk is concerned. */
typedef struct scope_t {
    server_rec *s;
    int has_desk;       /**< a handler of ours */
    int has_dbd;        /**< DBD directives of its own */
    const char *driver; /**< NULL: not said here */
    int dbd_max;        /**< 0: not said here */
    const char *params; /**< NULL: not said here */
} scope_t;

/** A <Location> with SetHandler in it. */
typedef struct spot_t {
    server_rec *s; /**< the main server's are everybody's */
    const char *handler;
    const char *path; /**< without a slash at the end */
} spot_t;

/* made in the parent for each generation, read by everybody after it */
static apr_array_header_t *scopes;
static apr_array_header_t *spots;
static apr_array_header_t *databases;
static server_rec *main_server;

static int is_ours(const char *handler)
{
    return strcmp(handler, "yoyaku") == 0 ||
           strcmp(handler, "yoyaku-shop") == 0;
}

const char *yk_http_desk_scan_location(const ap_directive_t *node,
                                       apr_pool_t *p)
{
    char *args = NULL;
    const char *rest = NULL;
    char *path = NULL;
    apr_size_t len;

    if (node == NULL || ap_cstr_casecmp(node->directive, "<Location") != 0) {
        return NULL;
    }
    args = apr_pstrdup(p, node->args);
    len = strlen(args);
    if (len > 0 && args[len - 1] == '>') {
        args[len - 1] = '\0';
    }
    rest = args;
    path = ap_getword_conf(p, &rest);
    if (*path != '/' || strpbrk(path, "*?[") != NULL) {
        return NULL;
    }
    for (len = strlen(path); len > 0 && path[len - 1] == '/'; len--) {
        path[len - 1] = '\0';
    }
    return path;
}

/** Good until the next call: the array may move. */
static scope_t *scope_of(server_rec *s)
{
    scope_t *scope = NULL;

    for (int i = 0; i < scopes->nelts; i++) {
        if (APR_ARRAY_IDX(scopes, i, scope_t).s == s) {
            return &APR_ARRAY_IDX(scopes, i, scope_t);
        }
    }
    scope = apr_array_push(scopes);
    memset(scope, 0, sizeof(*scope));
    scope->s = s;
    return scope;
}

server_rec *yk_http_desk_scan_server(const ap_directive_t *node)
{
    for (server_rec *s = main_server->next; s != NULL; s = s->next) {
        if (s->defn_name != NULL && strcmp(s->defn_name, node->filename) == 0 &&
            s->defn_line_number == (unsigned)node->line_num) {
            return s;
        }
    }
    return main_server;
}

static void note_directive(const ap_directive_t *node, server_rec *s,
                           const ap_directive_t *location, apr_pool_t *p)
{
    const char *args = node->args;
    const char *word = ap_getword_conf(p, &args);

    if (ap_cstr_casecmp(node->directive, "SetHandler") == 0) {
        if (is_ours(word)) {
            const char *path = yk_http_desk_scan_location(location, p);

            scope_of(s)->has_desk = 1;
            if (path != NULL) {
                spot_t *spot = apr_array_push(spots);

                spot->s = s;
                spot->handler = word;
                spot->path = path;
            }
        }
    }
    else if (ap_cstr_casecmpn(node->directive, "DBD", 3) == 0) {
        scope_t *scope = scope_of(s);

        scope->has_dbd = 1;
        if (ap_cstr_casecmp(node->directive, "DBDriver") == 0) {
            scope->driver = word;
        }
        if (ap_cstr_casecmp(node->directive, "DBDParams") == 0) {
            scope->params = word;
        }
        if (ap_cstr_casecmp(node->directive, "DBDMax") == 0) {
            scope->dbd_max = atoi(word);
        }
    }
}

static void walk(const ap_directive_t *node, server_rec *s,
                 const ap_directive_t *location, apr_pool_t *p)
{
    for (; node != NULL; node = node->next) {
        if (node->first_child == NULL) {
            note_directive(node, s, location, p);
        }
        else if (ap_cstr_casecmp(node->directive, "<VirtualHost") == 0) {
            walk(node->first_child, yk_http_desk_scan_server(node), NULL, p);
        }
        else {
            const ap_directive_t *inner = location;

            if (ap_cstr_casecmpn(node->directive, "<Location", 9) == 0 ||
                ap_cstr_casecmpn(node->directive, "<Directory", 10) == 0 ||
                ap_cstr_casecmpn(node->directive, "<Proxy", 6) == 0) {
                inner = node;
            }
            walk(node->first_child, s, inner, p);
        }
    }
}

/** Is the database of a server with a desk one we can use? */
static int scope_check(const scope_t *scope, const scope_t *outer)
{
    const char *driver = scope->driver != NULL ? scope->driver : outer->driver;
    int dbd_max = scope->dbd_max != 0 ? scope->dbd_max : outer->dbd_max;

    if (driver != NULL && ap_cstr_casecmp(driver, "mysql") != 0) {
        ap_log_error(APLOG_MARK, APLOG_ERR, 0, scope->s,
                     "YK0401: dbd: DBDriver %s cannot take bookings, only "
                     "mysql (MariaDB or MySQL) can: row locks of other "
                     "drivers do not hold what they promise; for example: "
                     "DBDriver mysql",
                     driver);
        return HTTP_INTERNAL_SERVER_ERROR;
    }
    if (dbd_max == 1) {
        ap_log_error(APLOG_MARK, APLOG_ERR, 0, scope->s,
                     "YK0402: dbd: DBDMax 1 is too few: the check of the "
                     "database takes two connections; for example: DBDMax 2");
        return HTTP_INTERNAL_SERVER_ERROR;
    }
    return OK;
}

static yk_http_database_t *database_of(const server_rec *s)
{
    for (int i = 0; i < databases->nelts; i++) {
        yk_http_database_t *database =
            &APR_ARRAY_IDX(databases, i, yk_http_database_t);

        if (database->s == s) {
            return database;
        }
    }
    return NULL;
}

static void database_add(const scope_t *scope, apr_pool_t *pconf)
{
    yk_http_database_t *database = apr_array_push(databases);
    yk_hash_t hash;

    yk_secret_hash_parts(&hash, scope->params != NULL ? scope->params : "",
                         NULL);
    database->s = scope->s;
    database->name = yk_text_hex(hash.bytes, 8, pconf);
    database->catalogue = NULL;
}

int yk_http_desk_scan(apr_pool_t *pconf, server_rec *s)
{
    const scope_t *outer = NULL;

    scopes = apr_array_make(pconf, 4, sizeof(scope_t));
    spots = apr_array_make(pconf, 4, sizeof(spot_t));
    databases = apr_array_make(pconf, 4, sizeof(yk_http_database_t));
    main_server = s;
    scope_of(s);
    walk(ap_conftree, s, NULL, pconf);

    outer = scope_of(s);
    for (int i = 0; i < scopes->nelts; i++) {
        const scope_t *scope = &APR_ARRAY_IDX(scopes, i, scope_t);

        /* a virtual host has the main server's desk, on its own database */
        if (!scope->has_desk && !(outer->has_desk && scope->has_dbd)) {
            continue;
        }
        if (scope_check(scope, outer) != OK) {
            return HTTP_INTERNAL_SERVER_ERROR;
        }
        if (!scope->has_dbd) {
            scope = outer;
        }
        if (database_of(scope->s) == NULL) {
            database_add(scope, pconf);
        }
    }
    return OK;
}

const apr_array_header_t *yk_http_desk_scan_databases(void)
{
    return databases;
}

yk_http_database_t *yk_http_desk_scan_database(server_rec *s)
{
    yk_http_database_t *database = database_of(s);

    return database != NULL ? database : database_of(main_server);
}

const char *yk_http_desk_scan_near(const server_rec *s)
{
    const char *outer = NULL;

    for (int i = 0; spots != NULL && i < spots->nelts; i++) {
        const spot_t *spot = &APR_ARRAY_IDX(spots, i, spot_t);

        if (strcmp(spot->handler, "yoyaku") != 0) {
            continue;
        }
        if (spot->s == s) {
            return spot->path;
        }
        if (spot->s == main_server && outer == NULL) {
            outer = spot->path;
        }
    }
    return outer;
}

/** Without a <Location> to go by: before the first word of ours. */
static const char *base_guess(request_rec *r)
{
    static const char *const words[] = {"/slots", "/holds", "/orders",
                                        "/order", "/rooms", "/static"};

    for (apr_size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        apr_size_t len = strlen(words[i]);

        for (const char *at = strstr(r->uri, words[i]); at != NULL;
             at = strstr(at + 1, words[i])) {
            if (at[len] == '\0' || at[len] == '/') {
                return apr_pstrmemdup(r->pool, r->uri,
                                      (apr_size_t)(at - r->uri));
            }
        }
    }
    return NULL;
}

const char *yk_http_desk_scan_base(request_rec *r)
{
    const char *best = NULL;

    for (int i = 0; i < spots->nelts; i++) {
        const spot_t *spot = &APR_ARRAY_IDX(spots, i, spot_t);
        apr_size_t len = strlen(spot->path);

        if ((spot->s == r->server || spot->s == main_server) &&
            strcmp(spot->handler, r->handler) == 0 &&
            strncmp(spot->path, r->uri, len) == 0 &&
            (r->uri[len] == '/' || r->uri[len] == '\0') &&
            (best == NULL || len > strlen(best))) {
            best = spot->path;
        }
    }
    return best != NULL ? best : base_guess(r);
}
