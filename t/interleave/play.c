/* SPDX-License-Identifier: Apache-2.0 */
#include "play_act.h"
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

/* ---- packets ---- */

packet_e packet_of(const char *sql)
{
    /* text of users is hex, so these words are statements */
    if (strstr(sql, "COMMIT")) {
        return PACKET_WRITE;
    }
    if (strstr(sql, "BEGIN") || strstr(sql, "FOR UPDATE")) {
        return PACKET_LOCK;
    }
    if (strncmp(sql, "ROLLBACK", 8) == 0) {
        return PACKET_ROLL;
    }
    if (strncmp(sql, "SELECT", 6) == 0) {
        return PACKET_READ;
    }
    return PACKET_OTHER;
}

const char *packet_name(packet_e kind)
{
    static const char *const names[] = {"read", "lock", "write", "roll",
                                        "other"};
    return names[kind];
}

/* ---- lines ---- */

static apr_status_t acquire(void *baton, void **line)
{
    player_t *me = baton;
    if (me->dead) {
        if (me->die) {
            me->die(me->baton);
        }
        return APR_ECONNRESET;
    }
    me->line = world_line(me->world, me->p);
    *line = me->line;
    me->line_id = me->line ? mysql_thread_id(me->line) : 0;
    return me->line ? APR_SUCCESS : APR_ECONNRESET;
}

static void release(void *baton, void *line, int broken)
{
    player_t *me = baton;
    MYSQL *mysql = line;
    if (!broken && (mysql->server_status & SERVER_STATUS_IN_TRANS)) {
        me->open_lines++;
        broken = 1;
    }
    world_line_back(me->world, mysql, broken);
    me->line = NULL;
    me->line_id = 0;
}

/* A catalogue must outlive whatever it handed slots out for. */
static apr_status_t acts_first(void *data)
{
    player_t *me = data;
    apr_pool_destroy(me->p);
    return APR_SUCCESS;
}

player_t *player_make(world_t *world, const script_t *script, cast_t *cast,
                      const role_t *role, apr_pool_t *p)
{
    player_t *me = apr_pcalloc(p, sizeof(*me));
    yk_store_host_t *host = apr_pcalloc(p, sizeof(*host));
    host->baton = me;
    host->acquire = acquire;
    host->release = release;
    me->world = world;
    me->script = script;
    me->cast = cast;
    me->role = role;
    me->counted = -1;
    apr_pool_create(&me->p, p);
    apr_pool_pre_cleanup_register(p, me, acts_first);
    me->results =
        apr_pcalloc(p, sizeof(result_t) * (apr_size_t)role->acts->nelts);
    if (yk_store_attach(&me->store, host, me->p) != APR_SUCCESS ||
        yk_catalogue_create(&me->catalogue, world->server->folder, p) !=
            APR_SUCCESS) {
        script_wrong("no store or catalogue", role->name);
    }
    return me;
}

void player_warm(player_t *me)
{
    int i;
    for (i = 0; i < me->script->setup->nelts; i++) {
        const line_t *line = ITEM(me->script->setup, i, const line_t *);
        const yk_slot_t *slot;
        if (strcmp(line->keyword, "slot") == 0 ||
            strcmp(line->keyword, "pool") == 0) {
            yk_catalogue_slot(me->catalogue, &slot, NULL, me->store,
                              me->world->tenant_id,
                              ITEM(line->items, 0, const char *), 0, me->p);
        }
    }
    yk_store_rest(me->store);
}

void player_watch(player_t *me, yk_store_watch_fn *watch, void *baton)
{
    me->watch = watch;
    me->baton = baton;
    yk_store_watch(me->store, watch, baton);
}

void player_leave(player_t *me)
{
    yk_store_rest(me->store);
    if (me->foreign) {
        mysql_close(me->foreign);
        me->foreign = NULL;
    }
}

/* Rows of places, locked by somebody who is not the product. */
static apr_status_t do_lock(player_t *me, const act_t *act)
{
    const char *slot = world_first_slot(me->script), *sql = "BEGIN";
    int i;
    me->foreign = server_connect(me->world->server, me->world->database);
    for (i = 0; i < act->items->nelts; i++) {
        yk_wish_line_t line = {0};
        play_item(&line, ITEM(act->items, i, const char *), slot, me->p);
        /* the numbers first: a locking statement that also reads without
         * locks fails with 1020 under snapshot isolation */
        sql = apr_psprintf(
            me->p,
            "%s; SELECT s.slot_id, p.place_no INTO @slot, @place FROM "
            "yoyaku_slot s JOIN yoyaku_place p ON p.hall_id = s.hall_id "
            "WHERE s.slot_key = '%s' AND p.guid = '%s'; "
            "SELECT order_id FROM yoyaku_slot_place "
            "WHERE slot_id = @slot AND place_no = @place FOR UPDATE",
            sql, line.slot, line.place);
    }
    sql = me->watch ? me->watch(me->baton, sql, me->p) : sql;
    me->line_id = mysql_thread_id(me->foreign);
    server_do(me->foreign, sql);
    me->line_id = 0;
    return APR_SUCCESS;
}

static apr_status_t do_plain(player_t *me, const act_t *act)
{
    if (me->watch) {
        me->watch(me->baton, act->text, me->p);
    }
    if (strcmp(act->verb, "count") == 0) {
        MYSQL *line = server_connect(me->world->server, me->world->database);
        me->counted = atol(server_ask(line,
                                      "SELECT COALESCE(SUM(quantity), 0) FROM "
                                      "yoyaku_booking WHERE live = 1",
                                      me->p));
        mysql_close(line);
    }
    else if (strcmp(act->verb, "pause") == 0) {
        apr_sleep(script_time(ITEM(act->items, 0, const char *)));
    }
    else if (strcmp(act->verb, "unlock") == 0 && me->foreign) {
        mysql_close(me->foreign);
        me->foreign = NULL;
    }
    return APR_SUCCESS;
}

static void do_clock(player_t *me, const act_t *act)
{
    me->shift = script_time(ITEM(act->items, 0, const char *));
    yk_store_clock_shift(me->store, me->shift);
    apr_thread_mutex_lock(me->cast->mutex);
    if (me->shift > me->cast->most_shift) {
        me->cast->most_shift = me->shift;
    }
    apr_thread_mutex_unlock(me->cast->mutex);
}

const char *play_word(apr_status_t rv, const yk_reply_t *reply)
{
    switch (rv) {
    case APR_SUCCESS:
        return yk_answer_reason(reply->answer);
    case APR_TIMEUP:
        return "busy";
    case APR_ECONNRESET:
        return "away";
    case APR_INCOMPLETE:
        return "unresolved";
    default:
        return "error";
    }
}

static void perform(player_t *me, int i)
{
    const act_t *act = ITEM(me->role->acts, i, const act_t *);
    yk_reply_t *reply = apr_pcalloc(me->p, sizeof(*reply));
    const char *verb = act->verb, *name = me->role->name;
    const char *lose = apr_table_get(act->options, "lose"), *words = NULL;
    apr_status_t rv = APR_SUCCESS;
    me->now = i;
    me->lose = lose ? lose : apr_table_get(act->options, "dies");
    if (strcmp(verb, "clock") == 0) {
        do_clock(me, act);
    }
    else if (strcmp(verb, "lock") == 0) {
        rv = do_lock(me, act);
    }
    else if (strcmp(verb, "unlock") == 0 || strcmp(verb, "pause") == 0 ||
             strcmp(verb, "await") == 0 || strcmp(verb, "count") == 0) {
        rv = do_plain(me, act);
    }
    else if (strcmp(verb, "price") == 0 || strcmp(verb, "limit") == 0 ||
             strcmp(verb, "open") == 0 || strcmp(verb, "close") == 0) {
        rv = world_operate(me->world, me->store, verb, act->items, act->options,
                           me->p);
    }
    else if (strcmp(verb, "batch") == 0) {
        words = play_batch(me, act);
    }
    else {
        rv = play_desk(me, reply, act, &name);
    }
    yk_store_rest(me->store);
    if (rv == APR_SUCCESS || rv == APR_INCOMPLETE) {
        cast_learn(me->cast, name,
                   apr_psprintf(me->p, "%s: %s", me->role->name, act->text),
                   rv == APR_SUCCESS && !me->dead, reply);
    }
    me->results[i].act = act;
    me->results[i].rv = rv;
    me->results[i].reply = reply;
    me->results[i].word = words ? words : play_word(rv, reply);
}

void player_perform(player_t *me)
{
    int i;
    for (i = 0; i < me->role->acts->nelts; i++) {
        perform(me, i);
        if (me->dead) {
            break;
        }
    }
}
