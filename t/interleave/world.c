/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"
#include <apr_strings.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yoyaku/setup.h>

/* The tree this file was compiled from: the schema beside it is applied. */
static const char *schema_folder(apr_pool_t *p)
{
    char *path = apr_pstrdup(p, __FILE__);
    int up;
    for (up = 0; up < 3; up++) {
        char *slash = strrchr(path, '/');
        if (!slash) {
            return "mod_yoyaku/schema";
        }
        *slash = '\0';
    }
    return apr_pstrcat(p, path, "/mod_yoyaku/schema", NULL);
}

static void list_tables(world_t *world)
{
    char *all = server_ask_all(
        world->monitor,
        "SELECT TABLE_NAME FROM information_schema.TABLES "
        "WHERE TABLE_SCHEMA = DATABASE() AND TABLE_TYPE = 'BASE TABLE' "
        "AND TABLE_NAME NOT IN ('yoyaku_hall', 'yoyaku_section', "
        "'yoyaku_place', 'yoyaku_grade', 'yoyaku_schema_version', "
        "'yoyaku_tenant') ORDER BY 1",
        world->p);
    char *rest, *one;
    for (one = apr_strtok(all, "\n", &rest); one;
         one = apr_strtok(NULL, "\n", &rest)) {
        APR_ARRAY_PUSH(world->tables, const char *) = one;
    }
    server_do(world->monitor, apr_psprintf(world->p, "CREATE DATABASE %s_copy",
                                           world->database));
    for (int i = 0; i < world->tables->nelts; i++) {
        const char *name = ITEM(world->tables, i, const char *);
        server_do(world->monitor,
                  apr_psprintf(world->p, "CREATE TABLE %s_copy.%s LIKE %s",
                               world->database, name, name));
    }
}

world_t *world_make(server_t *server, const char *database, apr_pool_t *p)
{
    world_t *world = apr_pcalloc(p, sizeof(*world));
    const char *say = "";
    yk_store_t *store;
    apr_pool_t *ptemp;
    MYSQL *line = server_connect(server, "");

    apr_pool_create(&ptemp, p);
    world->p = p;
    world->server = server;
    world->database = database;
    world->schema = schema_folder(p);
    world->tables = apr_array_make(p, 16, sizeof(char *));
    world->idle = apr_array_make(p, 300, sizeof(MYSQL *));
    apr_thread_mutex_create(&world->mutex, APR_THREAD_MUTEX_DEFAULT, p);
    server_do(line, apr_psprintf(ptemp, "CREATE DATABASE %s", database));
    mysql_close(line);
    world->monitor = server_connect(server, database);
    world->params = apr_psprintf(p, "sock=%s,user=root,dbname=%s",
                                 server->socket, database);
    if (yk_store_open(&store, world->params, ptemp) != APR_SUCCESS ||
        yk_setup_schema(store, &say, world->schema, ptemp) != APR_SUCCESS) {
        script_wrong("the schema could not be applied", say);
    }
    if (yk_store_tenant(store, &world->tenant_id, "default") != APR_SUCCESS) {
        script_wrong("no tenant", "default");
    }
    apr_pool_destroy(ptemp);
    list_tables(world);
    return world;
}

void world_destroy(world_t *world)
{
    for (int i = 0; i < world->idle->nelts; i++) {
        mysql_close(ITEM(world->idle, i, MYSQL *));
    }
    world->idle->nelts = 0;
    mysql_close(world->monitor);
}

MYSQL *world_line(world_t *world, apr_pool_t *p)
{
    MYSQL *line = NULL, **top;
    apr_thread_mutex_lock(world->mutex);
    top = apr_array_pop(world->idle);
    line = top ? *top : NULL;
    apr_thread_mutex_unlock(world->mutex);
    if (line) {
        return line;
    }
    line = server_connect(world->server, world->database);
    if (yk_store_session_set(line, p) != APR_SUCCESS) {
        mysql_close(line);
        return NULL;
    }
    return line;
}

void world_line_back(world_t *world, MYSQL *line, int broken)
{
    if (broken) {
        mysql_close(line);
        return;
    }
    apr_thread_mutex_lock(world->mutex);
    APR_ARRAY_PUSH(world->idle, MYSQL *) = line;
    apr_thread_mutex_unlock(world->mutex);
}

/* ---- the beginning, again and again ---- */

/* 65,536 booker anchors a tenant stay, and the probe's row: they count nothing.
 */
static const char *part_of(const char *table)
{
    return strcmp(table, "yoyaku_lock_anchor") == 0 ? " WHERE kind >= 2" : "";
}

static void for_all_tables(world_t *world, const char *format)
{
    apr_pool_t *ptemp;
    apr_array_header_t *all;
    int i;
    apr_pool_create(&ptemp, world->p);
    all = apr_array_make(ptemp, 32, sizeof(char *));
    for (i = 0; i < world->tables->nelts; i++) {
        const char *name = ITEM(world->tables, i, const char *);
        const char *at;
        for (at = format; *at; at++) {
            const char *put = *at == '$'   ? name
                              : *at == '%' ? part_of(name)
                              : *at == '@' ? world->database
                                           : apr_pstrndup(ptemp, at, 1);
            APR_ARRAY_PUSH(all, const char *) = put;
        }
    }
    APR_ARRAY_PUSH(all, const char *) = "COMMIT";
    server_do(
        world->monitor,
        apr_pstrcat(ptemp, "BEGIN; ", apr_array_pstrcat(ptemp, all, 0), NULL));
    apr_pool_destroy(ptemp);
}

void world_wipe(world_t *world)
{
    for_all_tables(world, "DELETE FROM $%; ");
}

void world_save(world_t *world)
{
    for_all_tables(world, "DELETE FROM @_copy.$; "
                          "INSERT INTO @_copy.$ SELECT * FROM $%; ");
    world->saved_at = apr_time_now();
}

void world_restore(world_t *world)
{
    for_all_tables(world, "DELETE FROM $%; "
                          "INSERT INTO $ SELECT * FROM @_copy.$; ");
}

/* ---- what operators do ---- */

static const char *option(const apr_table_t *options, const char *key)
{
    return apr_table_get(options, key);
}

static apr_status_t set_price(world_t *world, yk_store_t *store,
                              const char **say, const apr_array_header_t *items,
                              const apr_table_t *options, apr_pool_t *p)
{
    const char *quota = option(options, "quota");
    if (items->nelts != 4) {
        script_wrong("price SLOT TARIFF AMOUNT CURRENCY", "");
    }
    return yk_setup_price(
        store, say, world->tenant_id, ITEM(items, 0, const char *),
        option(options, "grade"), option(options, "area"),
        ITEM(items, 1, const char *), atol(ITEM(items, 2, const char *)),
        ITEM(items, 3, const char *), quota ? atol(quota) : -1, p);
}

static apr_status_t set_limit(world_t *world, yk_store_t *store,
                              const char **say, const apr_array_header_t *items,
                              apr_pool_t *p)
{
    static const char *const overs[] = {"slot", "resource", "series", "all"};
    static const char *const counts[] = {"places", "slots", "resources"};
    const char *over, *colon;
    yk_per_e per;
    int o, c;
    if (items->nelts != 4) {
        script_wrong("limit order|booker OVER:KEY COUNT MAX|none", "");
    }
    over = ITEM(items, 1, const char *);
    colon = strchr(over, ':');
    for (o = 0; o < 3; o++) {
        if (strncmp(overs[o], over, strlen(overs[o])) == 0) {
            break;
        }
    }
    for (c = 0; c < 2; c++) {
        if (strcmp(counts[c], ITEM(items, 2, const char *)) == 0) {
            break;
        }
    }
    per = strcmp(ITEM(items, 0, const char *), "booker") == 0 ? YK_PER_BOOKER
                                                              : YK_PER_ORDER;
    if (strcmp(ITEM(items, 3, const char *), "none") == 0) {
        return yk_setup_limit_remove(store, say, world->tenant_id, per,
                                     (yk_over_e)o, colon ? colon + 1 : "",
                                     (yk_counted_e)c, p);
    }
    return yk_setup_limit(store, say, world->tenant_id, per, (yk_over_e)o,
                          colon ? colon + 1 : "", (yk_counted_e)c,
                          atol(ITEM(items, 3, const char *)), p);
}

apr_status_t world_operate(world_t *world, yk_store_t *store,
                           const char *keyword, const apr_array_header_t *items,
                           const apr_table_t *options, apr_pool_t *p)
{
    const char *say = "";
    apr_status_t rv;
    if (strcmp(keyword, "price") == 0) {
        rv = set_price(world, store, &say, items, options, p);
    }
    else if (strcmp(keyword, "limit") == 0) {
        rv = set_limit(world, store, &say, items, p);
    }
    else {
        rv = yk_setup_slot_state(
            store, &say, world->tenant_id, ITEM(items, 0, const char *),
            strcmp(keyword, "open") == 0 ? YK_SLOT_OPEN : YK_SLOT_CLOSED, p);
    }
    if (rv == APR_EINVAL || rv == APR_NOTFOUND) {
        script_wrong(keyword, say);
    }
    return rv;
}

/* ---- a script's house ---- */

/* One section: NAME:PLACES[:GRADE], one row of neighbours. */
static void draw_section(yk_hall_t *hall, const char *spec, apr_pool_t *p)
{
    char *rest, *copy = apr_pstrdup(p, spec);
    char *name = apr_strtok(copy, ":", &rest);
    char *count = apr_strtok(NULL, ":", &rest);
    char *grade = apr_strtok(NULL, ":", &rest);
    uint32_t n = count ? (uint32_t)atoi(count) : 0, i, g;
    yk_plan_section_t *section = &hall->sections[hall->nsections];
    if (n == 0) {
        script_wrong("hall NAME:PLACES[:GRADE]", spec);
    }
    grade = grade ? grade : "T1";
    for (g = 0; g < hall->ngrades; g++) {
        if (strcmp(hall->grades[g].name, grade) == 0) {
            break;
        }
    }
    if (g == hall->ngrades) {
        hall->grades[g].name = grade;
        hall->grades[g].color = "#808080";
        hall->ngrades++;
    }
    section->name = name;
    section->first = hall->nplaces;
    section->places = n;
    for (i = 0; i < n; i++) {
        yk_plan_place_t *place = &hall->places[hall->nplaces++];
        place->guid = apr_psprintf(p, "%s-%u", name, i + 1);
        place->row = "1";
        place->seat = apr_psprintf(p, "%u", i + 1);
        place->grade = grade;
        place->section_no = hall->nsections;
        place->x = i;
        place->y = hall->nsections * 10.0;
        place->joined = i + 1 < n;
    }
    hall->nsections++;
}

static const char *build_hall(world_t *world, yk_store_t *store,
                              const apr_array_header_t *specs, apr_pool_t *p)
{
    yk_hall_t *hall = apr_pcalloc(p, sizeof(*hall));
    const char *say = "";
    uint64_t hall_id;
    int i;
    hall->sections = apr_pcalloc(p, 16 * sizeof(yk_plan_section_t));
    hall->grades = apr_pcalloc(p, 16 * sizeof(yk_plan_grade_t));
    hall->places = apr_pcalloc(p, 2048 * sizeof(yk_plan_place_t));
    hall->width = hall->height = 1000;
    hall->version = 1;
    hall->name = "hall";
    for (i = 0; i < specs->nelts; i++) {
        const char *spec = ITEM(specs, i, const char *);
        hall->name = apr_pstrcat(p, hall->name, "_", spec, NULL);
        draw_section(hall, spec, p);
    }
    yk_secret_hash(&hall->digest, hall->name, strlen(hall->name));
    if (yk_setup_hall(store, &say, &hall_id, world->tenant_id, hall, NULL, NULL,
                      p) != APR_SUCCESS) {
        script_wrong("the hall could not be imported", say);
    }
    return hall->name;
}

/* NAME AREA=MODE.. [closed] */
static void build_slot(world_t *world, yk_store_t *store, const line_t *line,
                       const char *hall, apr_pool_t *p)
{
    yk_setup_slot_t slot = {0};
    const char *say = "", *mode;
    apr_status_t rv;
    int i, m, open = 1;
    slot.key = slot.title = ITEM(line->items, 0, const char *);
    slot.resource = option(line->options, "resource");
    slot.series = option(line->options, "series");
    slot.hall = strcmp(line->keyword, "pool") == 0 ? NULL : hall;
    slot.starts = apr_time_from_sec(4102444800); /* 2100 */
    slot.areas = apr_pcalloc(p, 16 * sizeof(yk_setup_area_t));
    for (i = 1; i < line->items->nelts; i++) {
        const char *one = ITEM(line->items, i, const char *);
        yk_setup_area_t *area = &slot.areas[slot.nareas];
        if (strcmp(one, "closed") == 0) {
            open = 0;
            continue;
        }
        mode = strchr(one, '=');
        if (!mode) {
            script_wrong("slot NAME AREA=MODE", one);
        }
        area->name = apr_pstrndup(p, one, (apr_size_t)(mode - one));
        mode++;
        area->mode = YK_MODE_POOLED;
        area->max = atol(strncmp(mode, "pooled:", 7) == 0 ? mode + 7 : mode);
        for (m = 0; m < YK_MODE_POOLED; m++) {
            if (strcmp(yk_mode_name((yk_mode_e)m), mode) == 0) {
                area->mode = (yk_mode_e)m;
            }
        }
        slot.nareas++;
    }
    rv = yk_setup_slot(store, &say, world->tenant_id, &slot, p);
    if (rv == APR_SUCCESS && open) {
        rv = yk_setup_slot_state(store, &say, world->tenant_id, slot.key,
                                 YK_SLOT_OPEN, p);
    }
    if (rv != APR_SUCCESS) {
        script_wrong(slot.key, say);
    }
}

void world_furnish(world_t *world, yk_store_t *store, const script_t *script,
                   apr_pool_t *p)
{
    const char *hall = NULL;
    int i;
    for (i = 0; i < script->setup->nelts; i++) {
        const line_t *line = ITEM(script->setup, i, const line_t *);
        if (strcmp(line->keyword, "hall") == 0) {
            hall = build_hall(world, store, line->items, p);
        }
        else if (strcmp(line->keyword, "slot") == 0 ||
                 strcmp(line->keyword, "pool") == 0) {
            build_slot(world, store, line, hall, p);
        }
        else if (strcmp(line->keyword, "terms") != 0 &&
                 world_operate(world, store, line->keyword, line->items,
                               line->options, p) != APR_SUCCESS) {
            script_wrong(script->name, line->keyword);
        }
    }
}

const char *world_first_slot(const script_t *script)
{
    int i;
    for (i = 0; i < script->setup->nelts; i++) {
        const line_t *line = ITEM(script->setup, i, const line_t *);
        if (strcmp(line->keyword, "slot") == 0 ||
            strcmp(line->keyword, "pool") == 0) {
            return ITEM(line->items, 0, const char *);
        }
    }
    script_wrong(script->name, "no slot");
}

void world_terms(yk_terms_t *terms, const world_t *world,
                 const script_t *script)
{
    static const apr_table_t *none;
    const apr_table_t *options = none;
    int i;
#define TERM(key, otherwise)                                                   \
    script_time(options &&option(options, key) ? option(options, key)          \
                                               : (otherwise))
    memset(terms, 0, sizeof(*terms));
    for (i = 0; i < script->setup->nelts; i++) {
        const line_t *line = ITEM(script->setup, i, const line_t *);
        if (strcmp(line->keyword, "terms") == 0) {
            options = line->options;
        }
    }
    terms->tenant_id = world->tenant_id;
    terms->booker = "";
    terms->who = "";
    terms->hold_ttl = TERM("ttl", "600s");
    terms->hold_max_lifetime = TERM("life", "1800s");
    terms->checkout_ttl = TERM("checkout", "2100s");
    terms->wait = TERM("wait", "10s");
    terms->hold_places = (uint32_t)apr_time_sec(TERM("places", "8"));
    terms->confirm = options && option(options, "confirm") &&
                             strcmp(option(options, "confirm"), "shop") == 0
                         ? YK_CONFIRM_SHOP
                         : YK_CONFIRM_BOOKER;
#undef TERM
}
