/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_file_io.h>
#include <apr_strings.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yoyaku/rule.h>
#include "room.h"

#define EXAMPLE "YoyakuWaitingRoom sale active=2000 rate=40/s visit=15min"
#define KEY_LEAST 16 /* bytes of a key file */
#define PAGE_MOST (1024 * 1024)

static apr_array_header_t *rooms; /* made anew with every configuration */
static const yk_http_room_server_t *main_server;

void yk_http_room_config_begin(apr_pool_t *pconf)
{
    rooms = apr_array_make(pconf, 4, sizeof(yk_http_room_t *));
    main_server = NULL;
}

const apr_array_header_t *yk_http_room_all(void)
{
    return rooms;
}

const yk_http_room_server_t *yk_http_room_keys(void)
{
    return main_server;
}

void *yk_http_room_dir_create(apr_pool_t *p)
{
    return apr_pcalloc(p, sizeof(yk_http_room_dir_t));
}

void *yk_http_room_dir_merge(apr_pool_t *p, void *base, void *add)
{
    yk_http_room_dir_t *merged = apr_pmemdup(p, base, sizeof(*merged));
    const yk_http_room_dir_t *inner = add;

    if (inner->is_off || inner->room != NULL) {
        merged->is_off = inner->is_off;
        merged->room = inner->room;
    }
    if (inner->page != NULL) {
        merged->page = inner->page;
    }
    return merged;
}

void *yk_http_room_server_create(apr_pool_t *p, server_rec *s)
{
    return apr_pcalloc(p, sizeof(yk_http_room_server_t));
}

/* ---- YoyakuWaitingRoom ---- */

static yk_http_room_t *room_named(cmd_parms *cmd, const char *name)
{
    yk_http_room_t *made;

    for (int i = 0; i < rooms->nelts; i++) {
        yk_http_room_t *room = APR_ARRAY_IDX(rooms, i, yk_http_room_t *);

        if (strcmp(room->name, name) == 0) {
            return room;
        }
    }
    made = apr_pcalloc(cmd->pool, sizeof(*made));
    made->name = apr_pstrdup(cmd->pool, name);
    made->where = apr_psprintf(cmd->pool, "%s:%d", cmd->directive->filename,
                               cmd->directive->line_num);
    atomic_init(&made->row, YK_ROOM_NONE);
    APR_ARRAY_PUSH(rooms, yk_http_room_t *) = made;
    return made;
}

static const char *terms_parse(yk_room_terms_t *terms, int argc,
                               char *const argv[], apr_pool_t *p)
{
    const char *problem = NULL;
    apr_status_t rv;

    yk_room_terms_default(terms);
    for (int i = 0; i < argc; i++) {
        if (yk_http_is_said_twice(argv, i)) {
            return apr_psprintf(p,
                                "YoyakuWaitingRoom: %s is said twice; once is "
                                "enough, for example: " EXAMPLE,
                                argv[i]);
        }
        rv = yk_room_terms_parse(terms, &problem, argv[i], p);
        if (rv == APR_NOTFOUND) {
            return apr_psprintf(p,
                                "YoyakuWaitingRoom: %s is none of active=, "
                                "rate=, visit=, idle=, grace=, orders=, "
                                "opens=; for example: " EXAMPLE,
                                argv[i]);
        }
        if (rv != APR_SUCCESS) {
            return apr_pstrcat(p, "YoyakuWaitingRoom: ", problem, NULL);
        }
    }
    return yk_room_terms_check(terms, &problem, p) == APR_SUCCESS
               ? NULL
               : apr_pstrcat(p, "YoyakuWaitingRoom: ", problem, NULL);
}

const char *yk_http_room_set(cmd_parms *cmd, void *dummy, int argc,
                             char *const argv[])
{
    yk_http_room_dir_t *dir = yk_http_dir_of(dummy, YK_HTTP_ROOM);
    yk_room_terms_t terms;
    const char *error = NULL;

    if (argc < 1) {
        return "YoyakuWaitingRoom needs a name; for example: " EXAMPLE;
    }
    dir->is_off = ap_cstr_casecmp(argv[0], "off") == 0;
    dir->room = NULL;
    if (dir->is_off) {
        return argc == 1 ? NULL
                         : "YoyakuWaitingRoom off takes nothing else; for "
                           "example: YoyakuWaitingRoom off";
    }
    if (!yk_rule_is_name(argv[0])) {
        return apr_psprintf(cmd->pool,
                            "YoyakuWaitingRoom: '%s' is not a name of 1 to %d "
                            "letters, digits, dots, hyphens and underscores; "
                            "for example: " EXAMPLE,
                            argv[0], YK_ROOM_NAME - 1);
    }
    dir->room = room_named(cmd, argv[0]);
    if (argc == 1) {
        return NULL;
    }
    error = terms_parse(&terms, argc - 1, argv + 1, cmd->pool);
    if (error == NULL && dir->room->is_defined &&
        memcmp(&terms, &dir->room->terms, sizeof(terms)) != 0) {
        return apr_psprintf(cmd->pool,
                            "YoyakuWaitingRoom: %s says something else in %s; "
                            "the name alone joins it: YoyakuWaitingRoom %s",
                            dir->room->name, dir->room->where, dir->room->name);
    }
    dir->room->terms = terms;
    dir->room->is_defined = 1;
    return error;
}

/* ---- files ---- */

static const char *file_read(char **text, apr_size_t *len, const char *path,
                             apr_size_t most, apr_pool_t *p)
{
    apr_file_t *file;
    apr_finfo_t info;
    apr_status_t rv =
        apr_file_open(&file, path, APR_FOPEN_READ | APR_FOPEN_BINARY, 0, p);

    if (rv == APR_SUCCESS) {
        rv = apr_file_info_get(&info, APR_FINFO_SIZE, file);
    }
    if (rv != APR_SUCCESS) {
        char reason[120];

        return apr_psprintf(p, "%s cannot be read: %s", path,
                            apr_strerror(rv, reason, sizeof(reason)));
    }
    if (info.size > (apr_off_t)most) {
        apr_file_close(file);
        return apr_psprintf(p, "%s is larger than %" APR_SIZE_T_FMT " bytes",
                            path, most);
    }
    *text = apr_pcalloc(p, (apr_size_t)info.size + 1);
    *len = (apr_size_t)info.size;
    rv = apr_file_read_full(file, *text, *len, len);
    apr_file_close(file);
    return rv == APR_SUCCESS || *len == 0
               ? NULL
               : apr_psprintf(p, "%s cannot be read", path);
}

const char *yk_http_room_set_page(cmd_parms *cmd, void *dummy, const char *arg)
{
    yk_http_room_dir_t *dir = yk_http_dir_of(dummy, YK_HTTP_ROOM);
    const char *path = ap_server_root_relative(cmd->pool, arg);
    apr_size_t len;
    char *text = NULL;
    const char *error;

    if (ap_cstr_casecmp(arg, "none") == 0) {
        dir->page = ""; /* the built-in one */
        return NULL;
    }
    error = path == NULL ? "not a path"
                         : file_read(&text, &len, path, PAGE_MOST, cmd->pool);

    if (error != NULL) {
        return apr_psprintf(cmd->pool,
                            "YoyakuWaitingPage: %s; for example: "
                            "YoyakuWaitingPage conf/waiting.html",
                            error);
    }
    dir->page = text;
    return NULL;
}

/* A key is read by the parent and kept as its hash. Others than root and the
 * server's own user must not be able to sign. */
static const char *key_read(yk_hash_t *key, const char *arg, apr_pool_t *p)
{
    const char *path = ap_server_root_relative(p, arg), *error;
    struct stat st;
    apr_size_t len;
    char *text;

    if (path == NULL) {
        return apr_psprintf(p, "'%s' is not a path", arg);
    }
    error = file_read(&text, &len, path, 65536, p);
    if (error != NULL) {
        return error;
    }
    if (len < KEY_LEAST) {
        return apr_psprintf(p, "%s has fewer than %d bytes", path, KEY_LEAST);
    }
    if (stat(path, &st) == 0 && (st.st_mode & S_IRWXO) != 0) {
        return apr_psprintf(p, "%s is open to everybody (chmod o= %s)", path,
                            path);
    }
    yk_secret_hash(key, text, len);
    return NULL;
}

const char *yk_http_room_set_keys(cmd_parms *cmd, void *dummy, const char *arg,
                                  const char *old)
{
    yk_http_room_server_t *server = yk_http_server(cmd->server, YK_HTTP_ROOM);
    const char *error = ap_check_cmd_context(cmd, GLOBAL_ONLY);

    if (error != NULL) {
        return error;
    }
    server->nkeys = 0;
    if (ap_cstr_casecmp(arg, "none") == 0 && old == NULL) {
        return NULL;
    }
    error = key_read(&server->keys[0], arg, cmd->pool);
    server->nkeys = 1;
    if (error == NULL && old != NULL) {
        error = key_read(&server->keys[1], old, cmd->pool);
        server->nkeys = 2;
    }
    return error == NULL ? NULL
                         : apr_psprintf(cmd->pool,
                                        "YoyakuKeyFile: %s; make one with: "
                                        "(umask 077; head -c 32 /dev/urandom "
                                        "> FILE)",
                                        error);
}

const char *yk_http_room_set_snapshots(cmd_parms *cmd, void *dummy,
                                       const char *arg)
{
    yk_http_room_server_t *server = yk_http_server(cmd->server, YK_HTTP_ROOM);
    const char *error = ap_check_cmd_context(cmd, NOT_IN_DIR_LOC_FILE);

    if (error != NULL) {
        return error;
    }
    server->has_snapshots = 1;
    server->snapshots = NULL;
    if (ap_cstr_casecmp(arg, "none") == 0) {
        return NULL;
    }
    server->snapshots = ap_server_root_relative(cmd->pool, arg);
    if (server->snapshots == NULL ||
        apr_stat(&server->folder, server->snapshots,
                 APR_FINFO_TYPE | APR_FINFO_IDENT, cmd->pool) != APR_SUCCESS ||
        server->folder.filetype != APR_DIR) {
        return apr_psprintf(cmd->pool,
                            "YoyakuSnapshotDir: '%s' is not a folder that "
                            "exists; the children's user must be able to "
                            "write to it; for example: YoyakuSnapshotDir "
                            "/var/www/yoyaku",
                            arg);
    }
    return NULL;
}

const char *yk_http_room_folder(const apr_finfo_t **folder, server_rec *s)
{
    const yk_http_room_server_t *server = yk_http_server(s, YK_HTTP_ROOM);

    if (!server->has_snapshots) {
        server = main_server;
    }
    if (server->snapshots != NULL) {
        *folder = &server->folder;
    }
    return server->snapshots;
}

/* ---- once it is read ---- */

int yk_http_room_config_check(server_rec *s, apr_pool_t *ptemp)
{
    main_server = yk_http_server(s, YK_HTTP_ROOM);
    for (int i = 0; i < rooms->nelts; i++) {
        yk_http_room_t *room = APR_ARRAY_IDX(rooms, i, yk_http_room_t *);

        if (!room->is_defined) {
            ap_log_error(APLOG_MARK, APLOG_ERR, 0, s,
                         "YK0531: room: %s is named in %s but its terms stand "
                         "nowhere; for example: YoyakuWaitingRoom %s "
                         "active=2000",
                         room->name, room->where, room->name);
            return HTTP_INTERNAL_SERVER_ERROR;
        }
        if (main_server->nkeys == 0) {
            ap_log_error(APLOG_MARK, APLOG_ERR, 0, s,
                         "YK0532: room: %s in %s needs YoyakuKeyFile, which "
                         "its numbers are signed with; make a file with: "
                         "(umask 077; head -c 32 /dev/urandom > FILE)",
                         room->name, room->where);
            return HTTP_INTERNAL_SERVER_ERROR;
        }
        yk_room_seed(&room->seed, room->name, room->terms.opens_us,
                     &main_server->keys[0]);
    }
    if (rooms->nelts > YK_ROOMS_MAX) {
        ap_log_error(APLOG_MARK, APLOG_ERR, 0, s,
                     "YK0533: room: %d rooms; at most %d", rooms->nelts,
                     YK_ROOMS_MAX);
        return HTTP_INTERNAL_SERVER_ERROR;
    }
    return OK;
}
