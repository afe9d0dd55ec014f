/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include "http.h"
#include "board.h"
#include "desk.h"
#include "measure.h"
#include "room.h"
#include "throttle.h"
#include "lane.h"

/*
 * The frame. Configuration of a directory and of a server is one pointer a
 * part; the parts make, merge and read their own.
 */

static const yk_http_part_t *const parts[] = {
#define PART_ADDRESS(name, part) &part,
    YK_HTTP_PARTS(PART_ADDRESS)
#undef PART_ADDRESS
};

/* One more than there are parts: the pool they are made from. */
static void **config_make(apr_pool_t *p)
{
    void **config = apr_pcalloc(p, (YK_HTTP_PART_COUNT + 1) * sizeof(void *));

    config[YK_HTTP_PART_COUNT] = p;
    return config;
}

/* A server's own is whole. A section's parts are made with the first directive
 * that says something of them: sections are merged for every request, and what
 * says nothing is passed on as it is. */
static void *dir_create(apr_pool_t *p, char *path)
{
    void **config = config_make(p);

    for (int i = 0; path == NULL && i < YK_HTTP_PART_COUNT; i++) {
        if (parts[i]->dir_create != NULL) {
            config[i] = parts[i]->dir_create(p);
        }
    }
    return config;
}

static void *dir_merge(apr_pool_t *p, void *base, void *add)
{
    void **outer = base, **inner = add;
    void **config = config_make(p);

    for (int i = 0; i < YK_HTTP_PART_COUNT; i++) {
        config[i] = inner[i] != NULL ? inner[i] : outer[i];
        if (inner[i] != NULL && outer[i] != NULL &&
            parts[i]->dir_merge != NULL) {
            config[i] = parts[i]->dir_merge(p, outer[i], inner[i]);
        }
    }
    return config;
}

static void *server_create(apr_pool_t *p, server_rec *s)
{
    void **config = config_make(p);

    for (int i = 0; i < YK_HTTP_PART_COUNT; i++) {
        if (parts[i]->server_create != NULL) {
            config[i] = parts[i]->server_create(p, s);
        }
    }
    return config;
}

static void *server_merge(apr_pool_t *p, void *base, void *add)
{
    void **config = config_make(p);

    for (int i = 0; i < YK_HTTP_PART_COUNT; i++) {
        config[i] = parts[i]->server_merge != NULL
                        ? parts[i]->server_merge(p, ((void **)base)[i],
                                                 ((void **)add)[i])
                        : ((void **)add)[i];
    }
    return config;
}

void *yk_http_dir(ap_conf_vector_t *dir_config, yk_http_part_e part)
{
    void **config = ap_get_module_config(dir_config, &yoyaku_module);

    return config[part];
}

void *yk_http_server(server_rec *s, yk_http_part_e part)
{
    void **config = ap_get_module_config(s->module_config, &yoyaku_module);

    return config[part];
}

void *yk_http_dir_of(void *dummy, yk_http_part_e part)
{
    void **config = dummy;

    if (config[part] == NULL && parts[part]->dir_create != NULL) {
        config[part] = parts[part]->dir_create(config[YK_HTTP_PART_COUNT]);
    }
    return config[part];
}

static const request_rec *first_of(const request_rec *r)
{
    while (r->prev != NULL) {
        r = r->prev;
    }
    return r;
}

void *yk_http_kept(const request_rec *r, yk_http_part_e part)
{
    void **kept =
        ap_get_module_config(first_of(r)->request_config, &yoyaku_module);

    return kept != NULL ? kept[part] : NULL;
}

void yk_http_keep(request_rec *r, yk_http_part_e part, void *what)
{
    const request_rec *first = first_of(r);
    void **kept = ap_get_module_config(first->request_config, &yoyaku_module);

    if (kept == NULL) {
        kept = config_make(first->pool);
        ap_set_module_config(first->request_config, &yoyaku_module, kept);
    }
    kept[part] = what;
}

int yk_http_is_said_twice(char *const argv[], int at)
{
    apr_size_t n = strcspn(argv[at], "=");

    for (int i = 0; i < at; i++) {
        if (strcspn(argv[i], "=") == n &&
            ap_cstr_casecmpn(argv[i], argv[at], n) == 0) {
            return 1;
        }
    }
    return 0;
}

static const command_rec directives[] = {
    YK_HTTP_DESK_DIRECTIVES YK_HTTP_BOARD_DIRECTIVES YK_HTTP_THROTTLE_DIRECTIVES
        YK_HTTP_MEASURE_DIRECTIVES YK_HTTP_ROOM_DIRECTIVES
            YK_HTTP_LANE_DIRECTIVES{NULL}};

static void hooks(apr_pool_t *p)
{
    for (int i = 0; i < YK_HTTP_PART_COUNT; i++) {
        if (parts[i]->hooks != NULL) {
            parts[i]->hooks(p);
        }
    }
}

/* not AP_DECLARE_MODULE: http.h has said whose log lines these are */
__attribute__((visibility("default")))
module AP_MODULE_DECLARE_DATA yoyaku_module = {
    STANDARD20_MODULE_STUFF,
    dir_create,
    dir_merge,
    server_create,
    server_merge,
    directives,
    hooks,
    0,
};
