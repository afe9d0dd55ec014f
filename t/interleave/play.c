/* SPDX-License-Identifier: Apache-2.0 */
#include "play.h"
#include <apr_allocator.h>
#include <apr_strings.h>
#include <string.h>
#include <stdlib.h>

/* ---- names ---- */

apr_pool_t *cast_pool(apr_pool_t *parent)
{
    apr_allocator_t *allocator;
    apr_pool_t *p;
    apr_allocator_create(&allocator);
    apr_pool_create_ex(&p, parent, NULL, allocator);
    apr_allocator_owner_set(allocator, p);
    return p;
}

cast_t *cast_make(apr_pool_t *parent)
{
    apr_pool_t *p = cast_pool(parent);
    cast_t *cast = apr_pcalloc(p, sizeof(*cast));
    cast->p = p;
    cast->names = apr_array_make(p, 8, sizeof(named_t));
    cast->told = apr_array_make(p, 8, sizeof(told_t));
    apr_thread_mutex_create(&cast->mutex, APR_THREAD_MUTEX_DEFAULT, p);
    return cast;
}

cast_t *cast_copy(const cast_t *from, apr_pool_t *p)
{
    cast_t *cast = cast_make(p);
    apr_array_cat(cast->names, from->names);
    cast->most_shift = from->most_shift;
    return cast;
}

static named_t *find(cast_t *cast, const char *name)
{
    int i;
    for (i = 0; i < cast->names->nelts; i++) {
        named_t *one = &ITEM(cast->names, i, named_t);
        if (strcmp(one->name, name) == 0) {
            return one;
        }
    }
    return NULL;
}

int cast_find(cast_t *cast, named_t *named, const char *name)
{
    named_t *one;
    apr_thread_mutex_lock(cast->mutex);
    one = find(cast, name);
    if (one) {
        *named = *one;
    }
    apr_thread_mutex_unlock(cast->mutex);
    return one != NULL;
}

const char *cast_name_of(cast_t *cast, uint64_t order_id)
{
    int i;
    for (i = 0; i < cast->names->nelts; i++) {
        if (ITEM(cast->names, i, named_t).order_id == order_id) {
            return ITEM(cast->names, i, named_t).name;
        }
    }
    return order_id ? "somebody" : "nobody";
}

/* Everything a reply says of an order is a promise: remember it. */
static void cast_learn(cast_t *cast, const char *name, const char *by,
                       int answered, const yk_reply_t *reply)
{
    named_t *one;
    told_t *told;
    if (!reply->order) {
        return;
    }
    apr_thread_mutex_lock(cast->mutex);
    one = find(cast, name);
    if (!one) {
        one = apr_array_push(cast->names);
        memset(one, 0, sizeof(*one));
        one->name = apr_pstrdup(cast->p, name);
    }
    if (one->order_id != reply->order->order_id) {
        one->order_id = reply->order->order_id;
        one->token = NULL;
    }
    if (reply->token) {
        one->token = apr_pstrdup(cast->p, reply->token);
    }
    one->total = yk_order_total(reply->order);
    one->currency = apr_pstrdup(cast->p, reply->order->currency);
    one->attempt = reply->order->attempt;
    if (answered &&
        (reply->answer == YK_ANSWER_OK || reply->answer == YK_ANSWER_HELD)) {
        told = apr_array_push(cast->told);
        told->order_id = reply->order->order_id;
        told->state = reply->order->state;
        told->by = apr_pstrdup(cast->p, by);
    }
    apr_thread_mutex_unlock(cast->mutex);
}

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

/* ---- wishes ---- */

/* [SLOT/]PLACE[:TARIFF]   [SLOT/]AREA*N[:TARIFF]
 * [SLOT/]AREA*N:TARIFF*M:TARIFF: N of the first, M of the second */
static void read_item(yk_wish_line_t *line, const char *item, const char *slot,
                      apr_pool_t *p)
{
    char *text = apr_pstrdup(p, item), *slash = strchr(text, '/');
    char *rest, *head, *tariff, *star;
    uint32_t n = 1;
    line->slot = slot;
    if (slash) {
        *slash = '\0';
        line->slot = text;
        text = slash + 1;
    }
    head = apr_strtok(text, ":", &rest);
    star = strchr(head, '*');
    if (star) {
        *star = '\0';
        line->area = head;
        n = (uint32_t)atoi(star + 1);
    }
    else {
        line->place = head;
    }
    line->field = apr_pstrdup(p, item);
    line->nparts = 1;
    line->parts[0].quantity = n;
    for (tariff = apr_strtok(NULL, ":", &rest); tariff;
         tariff = apr_strtok(NULL, ":", &rest)) {
        star = strchr(tariff, '*');
        if (star) {
            *star = '\0';
        }
        line->parts[line->nparts - 1].tariff = tariff;
        if (star) {
            line->parts[line->nparts++].quantity = (uint32_t)atoi(star + 1);
        }
    }
}

/* "A-3..9": A-3 A-4 .. A-9 */
static apr_array_header_t *spread(const apr_array_header_t *items,
                                  apr_pool_t *p)
{
    apr_array_header_t *list = apr_array_make(p, 16, sizeof(char *));
    int i, k;
    for (i = 0; i < items->nelts; i++) {
        const char *item = ITEM(items, i, const char *);
        const char *dots = strstr(item, "..");
        const char *dash = strrchr(item, '-');
        if (!dots || !dash) {
            APR_ARRAY_PUSH(list, const char *) = item;
            continue;
        }
        for (k = atoi(dash + 1); k <= atoi(dots + 2); k++) {
            APR_ARRAY_PUSH(list, const char *) =
                apr_psprintf(p, "%.*s%d", (int)(dash + 1 - item), item, k);
        }
    }
    return list;
}

static yk_wish_t *read_wish(const player_t *me, const act_t *act)
{
    yk_wish_t *wish = apr_pcalloc(me->p, sizeof(*wish));
    const char *slot = world_first_slot(me->script);
    const apr_array_header_t *items = spread(act->items, me->p);
    int i;
    wish->nlines = (uint32_t)items->nelts;
    wish->lines = apr_pcalloc(me->p, sizeof(yk_wish_line_t) * wish->nlines);
    for (i = 0; i < items->nelts; i++) {
        read_item(&wish->lines[i], ITEM(items, i, const char *), slot, me->p);
    }
    wish->together = apr_table_get(act->options, "together") != NULL;
    wish->confirm = apr_table_get(act->options, "confirm") != NULL;
    return wish;
}

/* "1,2*1": line 1, and one of line 2 */
static yk_give_t *read_gives(uint32_t *n, const char *text, apr_pool_t *p)
{
    yk_give_t *gives = apr_pcalloc(p, sizeof(*gives) * 16);
    char *rest, *one;
    *n = 0;
    for (one = apr_strtok(apr_pstrdup(p, text ? text : ""), ",", &rest); one;
         one = apr_strtok(NULL, ",", &rest)) {
        char *star = strchr(one, '*');
        gives[*n].line = (uint32_t)atoi(one);
        gives[*n].quantity = star ? (uint32_t)atoi(star + 1) : 0;
        (*n)++;
    }
    return gives;
}

static yk_once_t *read_once(const player_t *me, const act_t *act)
{
    yk_once_t *once;
    const char *key = apr_table_get(act->options, "key");
    if (!key) {
        return NULL;
    }
    once = apr_pcalloc(me->p, sizeof(*once));
    once->key = key;
    yk_secret_hash_parts(&once->scope, "1", act->verb, key, NULL);
    /* what is asked, not what then goes wrong */
    yk_secret_hash_parts(&once->request,
                         apr_array_pstrcat(me->p, act->items, ' '), NULL);
    return once;
}

/* ---- acts ---- */

static apr_status_t do_pay(player_t *me, yk_desk_t *desk, yk_reply_t *reply,
                           const act_t *act, const named_t *order,
                           const yk_claim_t *claim, const yk_once_t *once)
{
    yk_payment_t payment = {0};
    const char *attempt = apr_table_get(act->options, "attempt");
    const char *amount = apr_table_get(act->options, "amount");
    const char *text = apr_table_get(act->options, "payment");
    payment.attempt = attempt ? (uint32_t)atoi(attempt) : order->attempt;
    payment.amount = amount ? atol(amount) : order->total;
    payment.currency = order->currency ? order->currency : "";
    payment.payment = text ? text : "paid";
    return yk_desk_confirm(desk, reply, &payment, claim, once, me->p);
}

static apr_status_t do_exchange(player_t *me, yk_desk_t *desk,
                                yk_reply_t *reply, const act_t *act,
                                const yk_claim_t *claim, const yk_once_t *once)
{
    const char *amount = apr_table_get(act->options, "amount");
    uint32_t ngive;
    yk_give_t *give =
        read_gives(&ngive, apr_table_get(act->options, "give"), me->p);
    return yk_desk_exchange(desk, reply, give, ngive, read_wish(me, act),
                            amount ? atol(amount) : -1, amount ? "EUR" : "",
                            "test", claim, once, me->p);
}

static apr_status_t do_sweep(player_t *me, yk_desk_t *desk, yk_reply_t *reply)
{
    uint32_t settled = 0;
    apr_status_t rv = yk_desk_sweep(desk, &settled, me->p);
    reply->answer = YK_ANSWER_OK;
    return rv;
}

static apr_status_t on_order(player_t *me, yk_desk_t *desk, yk_reply_t *reply,
                             const act_t *act, const named_t *order,
                             const yk_claim_t *claim, const yk_once_t *once)
{
    const char *verb = act->verb;
    if (strcmp(verb, "add") == 0) {
        return yk_desk_hold(desk, reply, read_wish(me, act), claim, once,
                            me->p);
    }
    if (strcmp(verb, "exchange") == 0) {
        return do_exchange(me, desk, reply, act, claim, once);
    }
    if (strcmp(verb, "remove") == 0) {
        return yk_desk_remove(desk, reply,
                              (uint32_t)atoi(ITEM(act->items, 0, char *)),
                              claim, once, me->p);
    }
    if (strcmp(verb, "checkout") == 0) {
        return yk_desk_checkout(desk, reply, claim, once, me->p);
    }
    if (strcmp(verb, "reopen") == 0) {
        return yk_desk_reopen(desk, reply, claim, once, me->p);
    }
    if (strcmp(verb, "confirm") == 0) {
        return yk_desk_confirm(desk, reply, NULL, claim, once, me->p);
    }
    if (strcmp(verb, "pay") == 0) {
        return do_pay(me, desk, reply, act, order, claim, once);
    }
    if (strcmp(verb, "release") == 0) {
        return yk_desk_release(desk, reply, "test", claim, once, me->p);
    }
    if (strcmp(verb, "cancel") == 0) {
        return yk_desk_cancel(desk, reply, "test", claim, once, me->p);
    }
    if (strcmp(verb, "look") == 0) {
        return yk_desk_look(desk, reply, claim, me->p);
    }
    script_wrong("no such act", act->text);
}

static int is_shops(const act_t *act)
{
    return strcmp(act->verb, "pay") == 0 || strcmp(act->verb, "cancel") == 0 ||
           apr_table_get(act->options, "shop") != NULL;
}

static yk_desk_t *desk_for(player_t *me, const act_t *act)
{
    yk_terms_t terms;
    const char *booker = apr_table_get(me->role->options, "booker");
    world_terms(&terms, me->world, me->script);
    terms.booker = booker ? booker : "";
    terms.who = me->role->name;
    terms.shop = is_shops(act);
    return yk_desk_make(me->store, me->catalogue, &terms, me->p);
}

static apr_status_t at_desk(player_t *me, yk_reply_t *reply, const act_t *act,
                            const char **name)
{
    yk_desk_t *desk = desk_for(me, act);
    yk_once_t *once = read_once(me, act);
    yk_claim_t claim = {0};
    yk_hash_t token;
    named_t order;
    *name = act->order ? act->order : me->role->name;
    if (strcmp(act->verb, "hold") == 0) {
        return yk_desk_hold(desk, reply, read_wish(me, act), NULL, once, me->p);
    }
    if (strcmp(act->verb, "sweep") == 0) {
        return do_sweep(me, desk, reply);
    }
    if (!cast_find(me->cast, &order, *name)) {
        reply->answer = YK_ANSWER_UNKNOWN;
        return APR_SUCCESS;
    }
    claim.order_id = order.order_id;
    if (!is_shops(act) && order.token) {
        yk_token_hash(&token, order.token);
        claim.token = &token;
    }
    return on_order(me, desk, reply, act, &order, &claim, once);
}

/* Rows of places, locked by somebody who is not the product. */
static apr_status_t do_lock(player_t *me, const act_t *act)
{
    const char *slot = world_first_slot(me->script), *sql = "BEGIN";
    int i;
    me->foreign = server_connect(me->world->server, me->world->database);
    for (i = 0; i < act->items->nelts; i++) {
        yk_wish_line_t line = {0};
        read_item(&line, ITEM(act->items, i, const char *), slot, me->p);
        sql = apr_psprintf(
            me->p,
            "%s; SELECT order_id FROM yoyaku_slot_place WHERE slot_id = "
            "(SELECT slot_id FROM yoyaku_slot WHERE slot_key = '%s') AND "
            "place_no = (SELECT p.place_no FROM yoyaku_slot s JOIN "
            "yoyaku_place p ON p.hall_id = s.hall_id "
            "WHERE s.slot_key = '%s' AND p.guid = '%s') FOR UPDATE",
            sql, line.slot, line.slot, line.place);
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

static const char *word_of(apr_status_t rv, const yk_reply_t *reply)
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
    const char *lose = apr_table_get(act->options, "lose");
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
    else {
        rv = at_desk(me, reply, act, &name);
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
    me->results[i].word = word_of(rv, reply);
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
