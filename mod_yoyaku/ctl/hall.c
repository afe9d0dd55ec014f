/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_file_io.h>
#include <apr_strings.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "ctl.h"

/** How far it is, for whoever looks at the terminal. */
typedef struct progress_t {
    apr_time_t said;
    int tty;
    int any;
} progress_t;

static void progress_say(void *baton, uint32_t done, uint32_t all)
{
    progress_t *progress = baton;
    apr_time_t now = apr_time_now();
    apr_time_t pause = apr_time_from_msec(progress->tty ? 100 : 2000);

    if (progress->said == 0) {
        progress->said = now;
    }
    if (now - progress->said < pause) {
        return;
    }
    progress->said = now;
    progress->any = 1;
    fprintf(stderr, "%s%u of %u places%s", progress->tty ? "\r" : "", done, all,
            progress->tty ? "" : "\n");
}

/** All of a file, or of standard input. */
static int file_read(yk_ctl_t *ctl, char **bytes, apr_size_t *len,
                     const char *path)
{
    apr_size_t space = 1 << 20;
    apr_file_t *file;
    apr_status_t rv =
        strcmp(path, "-") == 0
            ? apr_file_open_stdin(&file, ctl->p)
            : apr_file_open(&file, path, APR_FOPEN_READ, 0, ctl->p);
    char text[200];

    if (rv != APR_SUCCESS) {
        return yk_ctl_fail(ctl, "%s: %s", path,
                           apr_strerror(rv, text, sizeof(text)));
    }
    *bytes = malloc(space);
    *len = 0;
    while (*bytes != NULL && rv == APR_SUCCESS && *len < YK_CTL_FILE_BYTES) {
        apr_size_t n = space - *len;

        rv = apr_file_read(file, *bytes + *len, &n);
        if (rv == APR_SUCCESS) {
            *len += n;
        }
        if (*len == space) {
            space *= 2;
            *bytes = realloc(*bytes, space);
        }
    }
    apr_file_close(file);
    if (*bytes == NULL || rv != APR_EOF) {
        return yk_ctl_fail(ctl, "%s: %s", path,
                           rv == APR_SUCCESS
                               ? "longer than 256 MiB"
                               : apr_strerror(rv, text, sizeof(text)));
    }
    return YK_CTL_DONE;
}

/** "generated:SECTIONSxPLACES" */
static int generate(yk_ctl_t *ctl, yk_hall_t **hall, const char *shape,
                    const char *name)
{
    unsigned sections, places;
    char rest;

    if (sscanf(shape, "%ux%u%c", &sections, &places, &rest) != 2 ||
        yk_hall_generate(hall, sections, places, ctl->p) != APR_SUCCESS) {
        return yk_ctl_usage(ctl,
                            "generated:SECTIONSxPLACES, at most %d "
                            "places in all",
                            YK_PLAN_PLACES_MAX);
    }
    if (name != NULL) {
        (*hall)->name = name;
    }
    return YK_CTL_DONE;
}

/** A hall's name when none was given: the file's, without what is around. */
static const char *name_of(const char *path, apr_pool_t *p)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    const char *dot = strrchr(name, '.');

    return dot != NULL && dot != name
               ? apr_pstrmemdup(p, name, (apr_size_t)(dot - name))
               : name;
}

/** Does the drawing have a name of its own? */
static int is_json(const char *bytes, apr_size_t len)
{
    apr_size_t i = 0;

    while (i < len && strchr(" \t\r\n\xef\xbb\xbf", bytes[i]) != NULL) {
        i++;
    }
    return i < len && bytes[i] == '{';
}

static int hall_read(yk_ctl_t *ctl, yk_hall_t **hall, const char *path)
{
    const char *name = yk_ctl_args_get(ctl->args, "name");
    const char *errors = NULL;
    char *bytes = NULL;
    apr_size_t len = 0;
    apr_status_t rv;
    int status;

    if (strncmp(path, "generated:", 10) == 0) {
        return generate(ctl, hall, path + 10, name);
    }
    if (name == NULL && strcmp(path, "-") == 0) {
        return yk_ctl_usage(ctl, "a hall from standard input needs --name");
    }
    status = file_read(ctl, &bytes, &len, path);
    if (status == YK_CTL_DONE) {
        if (name == NULL && !is_json(bytes, len)) {
            name = name_of(path, ctl->p); /* a table names no hall */
        }
        rv = yk_hall_parse(hall, &errors, bytes, len, name, ctl->p);
        if (rv != APR_SUCCESS) {
            status = errors != NULL ? yk_ctl_fail(ctl, "%s: %s", path, errors)
                                    : yk_ctl_status(ctl, rv, NULL);
        }
    }
    free(bytes);
    return status;
}

int yk_ctl_hall_import(yk_ctl_t *ctl)
{
    progress_t progress = {0, isatty(STDERR_FILENO), 0};
    const char *say = NULL;
    yk_hall_t *hall;
    uint64_t hall_id;
    apr_status_t rv;
    int status = hall_read(ctl, &hall, ctl->args->words[0]);

    if (status == YK_CTL_DONE) {
        status = yk_ctl_open_tenant(ctl);
    }
    if (status != YK_CTL_DONE) {
        return status;
    }
    rv = yk_setup_hall(ctl->store, &say, &hall_id, ctl->tenant_id, hall,
                       progress_say, &progress, ctl->p);
    if (progress.any && progress.tty) {
        fprintf(stderr, "\r%24s\r", "");
    }
    if (rv != APR_SUCCESS) {
        return yk_ctl_status(ctl, rv, say);
    }
    return yk_ctl_done(ctl, say,
                       json_pack("{s:s, s:i, s:i, s:s}", "hall", hall->name,
                                 "sections", (int)hall->nsections, "places",
                                 (int)hall->nplaces, "said", say));
}

int yk_ctl_hall_list(yk_ctl_t *ctl)
{
    json_t *list = json_array();
    const char *text = "";
    yk_hall_t **halls;
    uint32_t n;
    apr_status_t rv;
    int status = yk_ctl_open_tenant(ctl);

    if (status != YK_CTL_DONE) {
        return status;
    }
    rv = yk_store_halls(ctl->store, &halls, &n, ctl->tenant_id, ctl->p);
    if (rv != APR_SUCCESS) {
        return yk_ctl_status(ctl, rv, NULL);
    }
    for (uint32_t i = 0; i < n; i++) {
        json_array_append_new(
            list, json_pack("{s:s, s:i, s:i, s:i, s:i}", "hall", halls[i]->name,
                            "version", (int)halls[i]->version, "sections",
                            (int)halls[i]->nsections, "places",
                            (int)halls[i]->nplaces, "grades",
                            (int)halls[i]->ngrades));
        text = apr_psprintf(ctl->p,
                            "%s%s%-30s version %u, %u sections, "
                            "%u places, %u grades",
                            text, i > 0 ? "\n" : "", halls[i]->name,
                            halls[i]->version, halls[i]->nsections,
                            halls[i]->nplaces, halls[i]->ngrades);
    }
    return yk_ctl_done(ctl, n > 0 ? text : "There is no hall yet.",
                       json_pack("{s:o}", "halls", list));
}
