/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshot.h"
#include <apr_strings.h>
#include <string.h>
#include "room.h"

/*
 * A file has no access control: what a <Location> keeps from anybody is not
 * written to one. Known from the configuration as read: a container by path or
 * pattern in which anything but "Require all granted" is asked of a GET. In
 * doubt a thing is guarded: under an <If> beside the containers, under a
 * pattern of a path, and, where the handler is not set by a path, under every
 * guard of its server. Such things in a <Directory> are not seen; a slot under
 * one is public here.
 */

/** What is asked at a path of one server; the main server's are everybody's. */
typedef struct guard_t {
    server_rec *s;
    const char *path;    /* NULL: a pattern */
    ap_regex_t *pattern; /* NULL: nothing is known of it: guards all */
} guard_t;

/** Where the handler is set. */
typedef struct spot_t {
    server_rec *s;
    const char *path; /* NULL: the configuration does not tell */
} spot_t;

typedef struct door_t {
    server_rec *s;
    const char *path; /* NULL: as above */
    const char *database, *tenant;
    int any_tenant; /* a container names one: which it leads to is not known */
} door_t;

/* made in the parent for each generation, read by everybody after it */
static apr_array_header_t *guards, *spots, *doors;
static apr_array_header_t *renamed; /* server_rec *: a container has a tenant */
static server_rec *main_server;

/* ---- guards ---- */

static int is_word(const char *word, const char *const *words)
{
    while (*words != NULL && ap_cstr_casecmp(word, *words) != 0) {
        words++;
    }
    return *words != NULL;
}

/* <Limit POST> and <LimitExcept GET> leave reading alone. */
static int spares_reading(const ap_directive_t *node, apr_pool_t *p)
{
    int except = ap_cstr_casecmp(node->directive, "<LimitExcept") == 0;
    char *args = apr_pstrdup(p, node->args), *last = NULL;
    int has_get = 0;

    if (!except && ap_cstr_casecmp(node->directive, "<Limit") != 0) {
        return 0;
    }
    for (char *word = apr_strtok(args, " \t>", &last); word != NULL;
         word = apr_strtok(NULL, " \t>", &last)) {
        has_get = has_get || strcmp(word, "GET") == 0;
    }
    return has_get == except;
}

static int asks(const ap_directive_t *node, apr_pool_t *p)
{
    static const char *const words[] = {
        "AuthType",      "Deny",       "Order",        "Satisfy",
        "SSLRequireSSL", "SSLRequire", "<RequireNone", NULL};

    for (; node != NULL; node = node->next) {
        if (ap_cstr_casecmp(node->directive, "Require") == 0 &&
            ap_cstr_casecmp(node->args, "all granted") != 0) {
            return 1;
        }
        if (ap_cstr_casecmp(node->directive, "SSLVerifyClient") == 0 &&
            ap_cstr_casecmp(node->args, "none") != 0) {
            return 1;
        }
        if (is_word(node->directive, words)) {
            return 1;
        }
        if (node->first_child != NULL && !spares_reading(node, p) &&
            asks(node->first_child, p)) {
            return 1;
        }
    }
    return 0;
}

static guard_t *guard_add(server_rec *s)
{
    guard_t *guard = apr_array_push(guards);

    guard->s = s;
    guard->path = NULL;
    guard->pattern = NULL;
    return guard;
}

static void guard_location(const ap_directive_t *node, server_rec *s,
                           apr_pool_t *p)
{
    guard_t *guard = guard_add(s);
    char *args = apr_pstrdup(p, node->args);
    apr_size_t len = strlen(args);
    const char *rest = args;
    char *word;

    guard->path = yk_http_desk_scan_location(node, p);
    if (guard->path != NULL) {
        return;
    }
    if (len > 0 && args[len - 1] == '>') {
        args[len - 1] = '\0';
    }
    word = ap_getword_conf(p, &rest);
    if (ap_cstr_casecmp(node->directive, "<LocationMatch") == 0) {
        guard->pattern = ap_pregcomp(p, word, AP_REG_EXTENDED);
    }
    else if (strcmp(word, "~") == 0) {
        guard->pattern =
            ap_pregcomp(p, ap_getword_conf(p, &rest), AP_REG_EXTENDED);
    }
}

static int is_guarded(const guard_t *guard, const char *uri)
{
    apr_size_t len;

    if (guard->path == NULL) {
        return guard->pattern == NULL ||
               ap_regexec(guard->pattern, uri, 0, NULL, 0) == 0;
    }
    len = strlen(guard->path);
    return strncmp(guard->path, uri, len) == 0 &&
           (uri[len] == '/' || uri[len] == '\0' || len == 0);
}

/* ---- what the configuration says ---- */

static void note_directive(const ap_directive_t *node, server_rec *s,
                           const ap_directive_t *container, apr_pool_t *p)
{
    const char *args = node->args;

    if (ap_cstr_casecmp(node->directive, "SetHandler") == 0 &&
        strcmp(ap_getword_conf(p, &args), "yoyaku") == 0) {
        spot_t *spot = apr_array_push(spots);

        spot->s = s;
        spot->path = yk_http_desk_scan_location(container, p);
    }
    else if (container != NULL &&
             ap_cstr_casecmp(node->directive, "YoyakuTenant") == 0) {
        APR_ARRAY_PUSH(renamed, server_rec *) = s;
    }
    else if (container == NULL &&
             ap_cstr_casecmp(node->directive, "SSLVerifyClient") == 0 &&
             ap_cstr_casecmp(node->args, "none") != 0) {
        guard_add(s);
    }
}

/* A container of a path, of files, or of a condition. */
static const ap_directive_t *container_of(const ap_directive_t *node,
                                          const ap_directive_t *outer)
{
    if (ap_cstr_casecmpn(node->directive, "<Location", 9) == 0 ||
        ap_cstr_casecmpn(node->directive, "<Directory", 10) == 0 ||
        ap_cstr_casecmpn(node->directive, "<Proxy", 6) == 0 || outer == NULL) {
        return node;
    }
    return outer;
}

static int is_condition(const ap_directive_t *node)
{
    static const char *const words[] = {"<If", "<ElseIf", "<Else", NULL};

    return is_word(node->directive, words);
}

static int is_macro(const ap_directive_t *node)
{
    static const char *const words[] = {
        "<IfModule", "<IfDefine",  "<IfDirective", "<IfSection",
        "<IfFile",   "<IfVersion", "<Macro",       NULL};

    return is_word(node->directive, words);
}

static void walk(const ap_directive_t *node, server_rec *s,
                 const ap_directive_t *container, apr_pool_t *p)
{
    for (; node != NULL; node = node->next) {
        if (node->first_child == NULL) {
            note_directive(node, s, container, p);
            continue;
        }
        if (ap_cstr_casecmp(node->directive, "<VirtualHost") == 0) {
            walk(node->first_child, yk_http_desk_scan_server(node), NULL, p);
            continue;
        }
        if (ap_cstr_casecmpn(node->directive, "<Location", 9) == 0) {
            if (asks(node->first_child, p)) {
                guard_location(node, s, p);
            }
        }
        else if (container == NULL && is_condition(node) &&
                 asks(node->first_child, p)) {
            guard_add(s);
        }
        walk(node->first_child, s,
             is_macro(node) ? container : container_of(node, container), p);
    }
}

/* ---- doors and houses ---- */

static int is_renamed(const server_rec *s)
{
    for (int i = 0; i < renamed->nelts; i++) {
        const server_rec *in = APR_ARRAY_IDX(renamed, i, server_rec *);

        if (in == s || in == main_server) {
            return 1;
        }
    }
    return 0;
}

static void doors_of(server_rec *s)
{
    const yk_http_database_t *database = yk_http_desk_scan_database(s);

    for (int i = 0; database != NULL && i < spots->nelts; i++) {
        const spot_t *spot = &APR_ARRAY_IDX(spots, i, spot_t);
        door_t *door;

        if (spot->s != s && spot->s != main_server) {
            continue;
        }
        door = apr_array_push(doors);
        door->s = s;
        door->path = spot->path;
        door->database = database->name;
        door->tenant = yk_http_desk_config_tenant(
            yk_http_dir(s->lookup_defaults, YK_HTTP_DESK));
        door->any_tenant = is_renamed(s);
    }
}

static int is_of(const door_t *door, const yk_http_house_t *house)
{
    return strcmp(door->database, house->database->name) == 0 &&
           strcmp(door->tenant, house->tenant) == 0;
}

static int is_one_folder(const yk_http_house_t *a, const yk_http_house_t *b)
{
    return a->which->device == b->which->device &&
           a->which->inode == b->which->inode;
}

/* Each house once for each folder. */
static void house_add(apr_array_header_t *houses, const door_t *door)
{
    yk_http_house_t house = {yk_http_desk_scan_database(door->s), door->tenant,
                             NULL, NULL, door->s};

    house.folder = yk_http_room_folder(&house.which, door->s);
    if (house.folder == NULL) {
        return;
    }
    for (int i = 0; i < houses->nelts; i++) {
        const yk_http_house_t *known =
            &APR_ARRAY_IDX(houses, i, yk_http_house_t);

        if (is_of(door, known) && is_one_folder(&house, known)) {
            return;
        }
    }
    *(yk_http_house_t *)apr_array_push(houses) = house;
}

/* What is written twice over is written by nobody. */
static const apr_array_header_t *houses_apart(const apr_array_header_t *houses,
                                              apr_pool_t *pconf)
{
    apr_array_header_t *apart =
        apr_array_make(pconf, houses->nelts, sizeof(yk_http_house_t));

    for (int i = 0; i < houses->nelts; i++) {
        const yk_http_house_t *house =
            &APR_ARRAY_IDX(houses, i, yk_http_house_t);
        int other = 0;

        while (other < houses->nelts &&
               (other == i ||
                !is_one_folder(
                    house, &APR_ARRAY_IDX(houses, other, yk_http_house_t)))) {
            other++;
        }
        if (other == houses->nelts) {
            *(yk_http_house_t *)apr_array_push(apart) = *house;
            continue;
        }
        ap_log_error(APLOG_MARK, APLOG_ERR, 0, house->s,
                     "YK0447: snapshot: %s would hold the slots of more than "
                     "one database or tenant, so those of this server (tenant "
                     "%s) are not written; give each <VirtualHost> a "
                     "YoyakuSnapshotDir of its own",
                     house->folder, house->tenant);
    }
    return apart;
}

const apr_array_header_t *yk_http_snapshot_scope_read(apr_pool_t *pconf,
                                                      server_rec *s)
{
    apr_array_header_t *houses =
        apr_array_make(pconf, 2, sizeof(yk_http_house_t));

    guards = apr_array_make(pconf, 4, sizeof(guard_t));
    spots = apr_array_make(pconf, 4, sizeof(spot_t));
    doors = apr_array_make(pconf, 4, sizeof(door_t));
    renamed = apr_array_make(pconf, 4, sizeof(server_rec *));
    main_server = s;
    walk(ap_conftree, s, NULL, pconf);
    for (server_rec *each = s; each != NULL; each = each->next) {
        doors_of(each);
    }
    for (int i = 0; i < doors->nelts; i++) {
        house_add(houses, &APR_ARRAY_IDX(doors, i, door_t));
    }
    return houses_apart(houses, pconf);
}

/* ---- may anybody ask ---- */

static int is_open(const door_t *door, const char *below, apr_pool_t *ptemp)
{
    const char *uri =
        door->path != NULL ? apr_pstrcat(ptemp, door->path, below, NULL) : NULL;

    for (int i = 0; i < guards->nelts; i++) {
        const guard_t *guard = &APR_ARRAY_IDX(guards, i, guard_t);

        if ((guard->s == door->s || guard->s == main_server) &&
            (uri == NULL || is_guarded(guard, uri))) {
            return 0;
        }
    }
    return 1;
}

int yk_http_snapshot_is_public(const yk_http_house_t *house, const char *below,
                               apr_pool_t *ptemp)
{
    for (int i = 0; i < doors->nelts; i++) {
        const door_t *door = &APR_ARRAY_IDX(doors, i, door_t);

        if (strcmp(door->database, house->database->name) == 0 &&
            (door->any_tenant || strcmp(door->tenant, house->tenant) == 0) &&
            !is_open(door, below, ptemp)) {
            return 0;
        }
    }
    return 1;
}
