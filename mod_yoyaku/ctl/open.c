/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_env.h>
#include <apr_file_info.h>
#include <apr_file_io.h>
#include <apr_strings.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "ctl.h"

/* ---- where the database is ---- */

/** The value of a line "DBDParams VALUE", without quotes; NULL: another. */
static const char *dbd_params(char *line, apr_pool_t *p)
{
    char *at = line + strspn(line, " \t");
    apr_size_t len;

    if (strncasecmp(at, "DBDParams", 9) != 0 || strchr(" \t", at[9]) == NULL) {
        return NULL;
    }
    at += 9;
    at += strspn(at, " \t");
    if (*at == '"') {
        at++;
        len = strcspn(at, "\"");
    }
    else {
        len = strcspn(at, " \t");
    }
    return apr_pstrmemdup(p, at, len);
}

/** From httpd's configuration, or from a file with nothing but the params. */
static const char *params_of_file(apr_file_t *file, apr_pool_t *p)
{
    const char *bare = NULL;
    char line[4096];

    while (apr_file_gets(line, sizeof(line), file) == APR_SUCCESS) {
        const char *params;

        line[strcspn(line, "\r\n")] = '\0';
        params = dbd_params(line, p);
        if (params != NULL) {
            return params;
        }
        if (bare == NULL && *line != '#' && strstr(line, "dbname=") != NULL) {
            bare = apr_pstrdup(p, line);
        }
    }
    return bare;
}

static int params_from(yk_ctl_t *ctl, const char *path)
{
    char reason[200];
    apr_file_t *file;
    apr_status_t rv = apr_file_open(
        &file, path, APR_FOPEN_READ | APR_FOPEN_BUFFERED, 0, ctl->p);

    if (rv != APR_SUCCESS) {
        return yk_ctl_fail(ctl, "%s cannot be read: %s", path,
                           apr_strerror(rv, reason, sizeof(reason)));
    }
    ctl->from = path;
    ctl->params = params_of_file(file, ctl->p);
    apr_file_close(file);
    return ctl->params != NULL
               ? YK_CTL_DONE
               : yk_ctl_fail(ctl,
                             "%s names no database (DBDParams; what it "
                             "includes is not looked at)",
                             path);
}

static int params_find(yk_ctl_t *ctl)
{
    const char *file = yk_ctl_args_get(ctl->args, "config");
    char *environment = NULL;

    ctl->params = yk_ctl_args_get(ctl->args, "db");
    if (ctl->params != NULL) {
        ctl->from = "--db";
        return YK_CTL_DONE;
    }
    if (file != NULL) {
        return params_from(ctl, file);
    }
    if (apr_env_get(&environment, "YOYAKU_DB", ctl->p) == APR_SUCCESS &&
        *environment != '\0') {
        ctl->params = environment;
        ctl->from = "YOYAKU_DB";
        return YK_CTL_DONE;
    }
    return yk_ctl_usage(ctl, "which database? Say --db, YOYAKU_DB or "
                             "--config");
}

/* ---- what a command starts with ---- */

int yk_ctl_open(yk_ctl_t *ctl)
{
    apr_status_t rv;
    int status = params_find(ctl);

    if (status != YK_CTL_DONE) {
        return status;
    }
    rv = yk_store_open(&ctl->store, ctl->params, ctl->p);
    if (rv == APR_EINVAL) {
        return yk_ctl_usage(ctl,
                            "%s is not \"name=value,...\" with the names host, "
                            "port, sock, user, pass and dbname",
                            ctl->from);
    }
    return rv == APR_SUCCESS ? YK_CTL_DONE : yk_ctl_status(ctl, rv, NULL);
}

int yk_ctl_open_tenant(yk_ctl_t *ctl)
{
    apr_status_t rv;
    int status = yk_ctl_open(ctl);

    if (status != YK_CTL_DONE) {
        return status;
    }
    rv = yk_store_tenant(ctl->store, &ctl->tenant_id, ctl->tenant);
    if (rv == APR_NOTFOUND) {
        return yk_ctl_fail(ctl,
                           "there is no tenant \"%s\" (yoyakuctl setup "
                           "--tenant makes one)",
                           ctl->tenant);
    }
    return rv == APR_SUCCESS ? YK_CTL_DONE : yk_ctl_status(ctl, rv, NULL);
}

/** The plans compiled on the way go with us. */
static apr_status_t folder_remove(void *data)
{
    yk_ctl_t *ctl = data;
    apr_finfo_t entry;
    apr_pool_t *ptemp;
    apr_dir_t *dir;

    apr_pool_create(&ptemp, NULL);
    if (apr_dir_open(&dir, ctl->folder, ptemp) == APR_SUCCESS) {
        while (apr_dir_read(&entry, APR_FINFO_NAME, dir) == APR_SUCCESS) {
            if (strcmp(entry.name, ".") != 0 && strcmp(entry.name, "..") != 0) {
                apr_file_remove(
                    apr_pstrcat(ptemp, ctl->folder, "/", entry.name, NULL),
                    ptemp);
            }
        }
        apr_dir_close(dir);
    }
    apr_pool_destroy(ptemp);
    rmdir(ctl->folder);
    return APR_SUCCESS;
}

int yk_ctl_open_desk(yk_ctl_t *ctl, yk_desk_t **desk)
{
    const char *temp = "/tmp";
    yk_terms_t terms = {0};
    apr_status_t rv;
    char *folder;
    int status = yk_ctl_open_tenant(ctl);

    if (status != YK_CTL_DONE) {
        return status;
    }
    apr_temp_dir_get(&temp, ctl->p);
    folder = apr_pstrcat(ctl->p, temp, "/yoyakuctl-XXXXXX", NULL);
    if (mkdtemp(folder) == NULL) {
        return yk_ctl_fail(ctl, "no temporary folder in %s: %s", temp,
                           strerror(errno));
    }
    ctl->folder = folder;
    apr_pool_cleanup_register(ctl->p, ctl, folder_remove,
                              apr_pool_cleanup_null);
    rv = yk_catalogue_create(&ctl->catalogue, folder, ctl->p);
    if (rv != APR_SUCCESS) {
        return yk_ctl_status(ctl, rv, NULL);
    }
    /* What the catalogue hands out must be let go before it ends itself. */
    apr_pool_create(&ctl->p, ctl->p);
    terms.tenant_id = ctl->tenant_id;
    terms.booker = "";
    terms.shop = 1;
    terms.who = "ctl";
    terms.confirm = YK_CONFIRM_SHOP;
    terms.hold_ttl = apr_time_from_sec(600);
    terms.hold_max_lifetime = apr_time_from_sec(1800);
    terms.checkout_ttl = apr_time_from_sec(2100);
    terms.wait = apr_time_from_sec(10);
    terms.hold_places = YK_WISH_LINES;
    *desk = yk_desk_make(ctl->store, ctl->catalogue, &terms, ctl->p);
    return YK_CTL_DONE;
}

/* ---- flags with a meaning ---- */

const char *yk_ctl_need(yk_ctl_t *ctl, const char *name)
{
    const char *value = yk_ctl_args_get(ctl->args, name);

    if (value == NULL || *value == '\0') {
        yk_ctl_usage(ctl, "--%s is missing", name);
        return NULL;
    }
    return value;
}

int yk_ctl_number(yk_ctl_t *ctl, int64_t *number, const char *name,
                  int64_t least, int64_t unless)
{
    const char *value = yk_ctl_args_get(ctl->args, name);
    char *end;

    *number = unless;
    if (value == NULL) {
        return YK_CTL_DONE;
    }
    errno = 0;
    *number = apr_strtoi64(value, &end, 10);
    if (*value == '\0' || *end != '\0' || errno != 0 || *number < least) {
        return yk_ctl_usage(ctl,
                            "--%s is a whole number of %" APR_INT64_T_FMT
                            " or more, not \"%s\"",
                            name, (apr_int64_t)least, value);
    }
    return YK_CTL_DONE;
}

int yk_ctl_time(yk_ctl_t *ctl, apr_time_t *when, const char *name)
{
    const char *value = yk_ctl_args_get(ctl->args, name);

    *when = 0;
    if (value == NULL || yk_time_parse(when, value) == APR_SUCCESS) {
        return YK_CTL_DONE;
    }
    return yk_ctl_usage(ctl,
                        "--%s is a time with its zone, as "
                        "2026-12-24T20:00+01:00, not \"%s\"",
                        name, value);
}
