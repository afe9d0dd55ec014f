/* SPDX-License-Identifier: Apache-2.0 */
#include "room_rows.h"

#include <string.h>

#define MOVE_AGE apr_time_from_msec(50)
#define SWEEP_AGE APR_USEC_PER_SEC
#define SWEEP_AGE_SHORT apr_time_from_msec(200)
#define SHORT 4096
#define LATER (UINT64_C(1) << 63) /* in a key: issued after `opens` */
#define UNRETURNED_FEW 5 /* then no more is sent back with a fresh cookie */

int yk_room_is_before(const yk_room_t *room, apr_time_t wall)
{
    return room->configured.opens_us != 0 && wall < room->configured.opens_us;
}

static uint64_t key_of(const yk_room_t *room, uint64_t number)
{
    yk_hash_t mac;
    uint64_t key = 0;

    if (room->configured.opens_us == 0 ||
        number >= (uint64_t)room->configured.opens_us) {
        return LATER | number;
    }
    yk_secret_hmac(&mac, room->seed, sizeof(room->seed), &number,
                   sizeof(number));
    for (int i = 0; i < 8; i++) {
        key = key << 8 | mac.bytes[i];
    }
    return key & ~LATER;
}

static int has_room(const yk_room_t *room)
{
    return room->inside + room->calls < room->configured.active;
}

static int is_calling(const yk_room_t *room, const yk_room_now_t *now)
{
    return !room->paused && !yk_room_is_before(room, now->wall) &&
           now->steady >= room->begun_us + room->configured.grace_us;
}

/* ---- time passes ---- */

/* Is an order of his pass held that is in time? */
static int has_order(yk_room_t *room, const yk_visitor_t *v, apr_time_t steady)
{
    const yk_room_held_t *held = &room->held[v - room->visitor];

    for (int i = 0; i < YK_ROOM_HELD; i++) {
        if (held->one[i].order != 0 &&
            steady < apr_time_from_sec((apr_time_t)held->one[i].until_s)) {
            return 1;
        }
    }
    return 0;
}

/* The end of a pass, if it has one now. */
static void pass_end(yk_room_t *room, yk_visitor_t *v, apr_time_t steady)
{
    int idle = steady - v->heard_us > room->configured.idle_us;

    if (v->state == YK_VISITOR_AFTER) {
        if (steady - v->since_us > room->configured.idle_us) {
            yk_room_drop(room, v);
        }
        return;
    }
    if ((idle || steady - v->since_us > room->configured.visit_us) &&
        steady >= v->stay_us && !has_order(room, v, steady)) {
        room->idled += idle != 0;
        room->visited += !idle;
        yk_room_drop(room, v);
    }
}

static void visitor_sweep(yk_room_t *room, yk_visitor_t *v, apr_time_t steady)
{
    switch (v->state) {
    case YK_VISITOR_CALLED:
        if (steady - v->since_us > room->configured.grace_us) {
            room->passed_over++;
            yk_room_become(room, v, YK_VISITOR_PASSED_OVER);
        }
        break;
    case YK_VISITOR_ISSUED:
    case YK_VISITOR_WAITING:
    case YK_VISITOR_PASSED_OVER:
        if (steady - v->heard_us > YK_ROOM_UNHEARD) {
            room->dropped++;
            yk_room_drop(room, v);
        }
        break;
    case YK_VISITOR_PASS:
    case YK_VISITOR_AFTER:
        pass_end(room, v, steady);
        break;
    default:
        break;
    }
}

static void sweep(yk_room_t *room, apr_time_t steady)
{
    apr_time_t age = room->high <= SHORT ? SWEEP_AGE_SHORT : SWEEP_AGE;

    if (room->swept_us != 0 && steady - room->swept_us < age) {
        return;
    }
    room->swept_us = steady;
    for (uint32_t i = 0; i < room->high; i++) {
        visitor_sweep(room, &room->visitor[i], steady);
    }
}

/* A bucket of one second, of at least one call. */
static void refill(yk_room_t *room, apr_time_t steady)
{
    int64_t most = (int64_t)room->rate_milli * 1000;
    int64_t past = steady - room->refilled_us;

    if (most < 1000000) {
        most = 1000000;
    }
    if (room->refilled_us == 0 ||
        past > 10 * APR_USEC_PER_SEC * (1 + 1000 / room->rate_milli)) {
        room->tokens_micro = most;
    }
    else {
        room->tokens_micro += past * room->rate_milli / 1000;
    }
    if (room->tokens_micro > most) {
        room->tokens_micro = most;
    }
    room->refilled_us = steady;
}

static void call(yk_room_t *room, const yk_room_now_t *now)
{
    refill(room, now->steady);
    while (is_calling(room, now) && has_room(room) &&
           room->tokens_micro >= 1000000) {
        yk_visitor_t *v = yk_room_first(room, now->steady);

        if (v == NULL) {
            return;
        }
        room->rank_at++;
        room->tokens_micro -= 1000000;
        room->called++;
        room->serving = v->key;
        v->since_us = now->steady;
        yk_room_become(room, v, YK_VISITOR_CALLED);
    }
}

void yk_room_move(yk_room_t *room, const yk_room_now_t *now)
{
    if (room->moved_us != 0 && now->steady - room->moved_us < MOVE_AGE) {
        return;
    }
    room->moved_us = now->steady;
    sweep(room, now->steady);
    call(room, now);
}

/* ---- addresses ---- */

static yk_address_t *address_of(yk_room_table_t *table, uint32_t hash,
                                apr_time_t wall)
{
    yk_address_t *a = &table->address[hash % YK_ROOM_ADDRESSES];
    uint32_t minute = (uint32_t)(wall / apr_time_from_sec(60));

    if (a->hash != hash || a->minute != minute) {
        a->hash = hash;
        a->minute = minute;
        a->unreturned = 0;
    }
    return a;
}

/* ---- a visitor comes ---- */

static void enter(yk_room_t *room, yk_room_answer_t *answer, yk_visitor_t *v,
                  const yk_room_now_t *now)
{
    room->redeemed++;
    v->since_us = now->steady;
    memset(&room->held[v - room->visitor], 0, sizeof(room->held[0]));
    yk_room_become(room, v, YK_VISITOR_PASS);
    answer->what = YK_ROOM_ENTER;
    answer->issued = now->wall;
}

static void estimate(yk_room_t *room, yk_room_answer_t *answer,
                     const yk_visitor_t *v, const yk_room_now_t *now)
{
    answer->number = v->number;
    answer->key = v->state != YK_VISITOR_ISSUED ? v->key : 0;
    answer->wait_us = -1;
    answer->is_known = !yk_room_is_before(room, now->wall);
    if (!answer->is_known || v->state != YK_VISITOR_WAITING) {
        return;
    }
    yk_room_rank(room, now->steady);
    answer->ahead = yk_room_ahead(room, v->key);
    if (!room->paused && has_room(room)) {
        answer->wait_us =
            (int64_t)(answer->ahead + 1) * 1000000000 / room->rate_milli;
    }
}

/* What a number comes to that is known here. */
static void stand(yk_room_t *room, yk_room_answer_t *answer, yk_visitor_t *v,
                  const yk_room_now_t *now)
{
    v->heard_us = now->steady;
    if (v->state == YK_VISITOR_ISSUED) {
        room->confirmed++;
        yk_room_become(room, v, YK_VISITOR_WAITING);
        room->ranked_us = 0;
        call(room, now);
    }
    yk_room_move(room, now);
    if (v->state == YK_VISITOR_CALLED ||
        (v->state == YK_VISITOR_PASSED_OVER && has_room(room) &&
         is_calling(room, now))) {
        enter(room, answer, v, now);
    }
    else {
        answer->what =
            v->state == YK_VISITOR_PASS ? YK_ROOM_PASS : YK_ROOM_WAIT;
    }
    estimate(room, answer, v, now);
}

/* A fresh number. */
static void issue(yk_room_table_t *table, yk_room_t *room,
                  yk_room_answer_t *answer, const yk_room_ask_t *ask,
                  const yk_room_now_t *now)
{
    yk_address_t *address = address_of(table, ask->address, now->wall);
    uint64_t number = (uint64_t)now->wall;
    yk_visitor_t *v;

    answer->what = YK_ROOM_FULL;
    if (address->unreturned >= YK_ROOM_PER_ADDRESS) {
        room->greedy++;
        return;
    }
    if (number <= table->last_number) {
        number = table->last_number + 1;
    }
    v = room->waiting + room->unreturned + room->calls + room->over <
                YK_ROOM_LIVE
            ? yk_room_add(room, number, key_of(room, number), YK_VISITOR_ISSUED,
                          now->steady)
            : NULL;
    if (v == NULL) {
        room->full++;
        return;
    }
    v->address = ask->address;
    table->last_number = number;
    room->issued++;
    address->unreturned++;
    answer->is_new = 1;
    refill(room, now->steady);
    answer->what = ask->may_return && is_calling(room, now) && has_room(room) &&
                           room->waiting == 0 &&
                           room->tokens_micro >= 1000000 &&
                           address->unreturned < UNRETURNED_FEW
                       ? YK_ROOM_BACK
                       : YK_ROOM_WAIT;
    estimate(room, answer, v, now);
    if (answer->is_known && answer->what == YK_ROOM_WAIT) {
        /* A crowd that comes at once has not returned yet, all of it: who of
         * them does is before him. He himself is one of the unreturned. */
        answer->ahead = room->waiting + room->unreturned - 1;
    }
}

/* A number of a file that was lost. One issued under this file that is not
 * known any more was used or dropped. */
static yk_visitor_t *number_recover(yk_room_table_t *table, yk_room_t *room,
                                    uint64_t number, const yk_room_now_t *now)
{
    yk_visitor_t *v;

    if (number >= table->head.made_us ||
        now->steady > room->begun_us + YK_ROOM_UNHEARD) {
        return NULL;
    }
    v = yk_room_add(room, number, key_of(room, number), YK_VISITOR_WAITING,
                    now->steady);
    if (v != NULL) {
        room->recovered++;
        room->ranked_us = 0;
    }
    return v;
}

static yk_visitor_t *pass_recover(yk_room_table_t *table, yk_room_t *room,
                                  const yk_room_ask_t *ask,
                                  const yk_room_now_t *now)
{
    apr_time_t age = now->wall - ask->pass_issued;
    yk_visitor_t *v;

    if ((uint64_t)ask->pass_issued >= table->head.made_us || age < 0 ||
        age > room->configured.visit_us) {
        return NULL;
    }
    v = yk_room_add(room, ask->pass, key_of(room, ask->pass), YK_VISITOR_PASS,
                    now->steady);
    if (v != NULL) {
        room->recovered++;
        v->since_us = now->steady - age;
        memset(&room->held[v - room->visitor], 0, sizeof(room->held[0]));
    }
    return v;
}

static int is_inside(yk_room_table_t *table, yk_room_t *room,
                     yk_room_answer_t *answer, const yk_room_ask_t *ask,
                     const yk_room_now_t *now)
{
    yk_visitor_t *v = yk_room_visitor(room, ask->pass);

    if (v == NULL) {
        v = pass_recover(table, room, ask, now);
    }
    if (v == NULL || v->state < YK_VISITOR_PASS) {
        return 0;
    }
    pass_end(room, v, now->steady);
    if (v->state < YK_VISITOR_PASS ||
        (v->state == YK_VISITOR_AFTER && !ask->is_reading)) {
        return 0;
    }
    v->heard_us = now->steady;
    answer->what = YK_ROOM_PASS;
    answer->number = v->number;
    answer->key = v->key;
    return 1;
}

void yk_room_arrive(yk_room_table_t *table, yk_room_t *room,
                    yk_room_answer_t *answer, const yk_room_ask_t *ask,
                    const yk_room_now_t *now)
{
    yk_visitor_t *v = NULL;

    memset(answer, 0, sizeof(*answer));
    answer->what = YK_ROOM_FULL;
    answer->wait_us = -1;
    yk_room_move(room, now);
    if (ask->pass != 0 && is_inside(table, room, answer, ask, now)) {
        return;
    }
    if (ask->number != 0) {
        v = yk_room_visitor(room, ask->number);
        if (v == NULL) {
            v = number_recover(table, room, ask->number, now);
        }
    }
    if (v != NULL && v->state != YK_VISITOR_AFTER) {
        if (v->state == YK_VISITOR_ISSUED) {
            yk_address_t *a = address_of(table, v->address, now->wall);

            a->unreturned -= a->unreturned > 0;
        }
        stand(room, answer, v, now);
    }
    else if (ask->may_issue) {
        issue(table, room, answer, ask, now);
    }
}

void yk_room_ask(yk_room_table_t *table, yk_room_t *room,
                 yk_room_answer_t *answer, uint64_t number,
                 const yk_room_now_t *now)
{
    yk_visitor_t *v = number != 0 ? yk_room_visitor(room, number) : NULL;

    memset(answer, 0, sizeof(*answer));
    answer->what = YK_ROOM_FULL;
    answer->wait_us = -1;
    yk_room_move(room, now);
    if (v == NULL && number != 0) {
        v = number_recover(table, room, number, now);
    }
    if (v == NULL || v->state == YK_VISITOR_AFTER) {
        return;
    }
    v->heard_us = now->steady;
    if (v->state == YK_VISITOR_ISSUED) {
        yk_address_t *a = address_of(table, v->address, now->wall);

        a->unreturned -= a->unreturned > 0;
        room->confirmed++;
        yk_room_become(room, v, YK_VISITOR_WAITING);
        room->ranked_us = 0;
    }
    /* who is called, or was and may come in, has nothing to wait for */
    answer->what = v->state == YK_VISITOR_WAITING ? YK_ROOM_WAIT
                   : v->state == YK_VISITOR_PASSED_OVER &&
                           !(has_room(room) && is_calling(room, now))
                       ? YK_ROOM_WAIT
                       : YK_ROOM_ENTER;
    estimate(room, answer, v, now);
}

/* ---- what ends a pass ---- */

void yk_room_leave(yk_room_t *room, uint64_t number)
{
    yk_visitor_t *v = yk_room_visitor(room, number);

    if (v != NULL && v->state >= YK_VISITOR_PASS) {
        room->left++;
        yk_room_drop(room, v);
    }
}

void yk_room_stay(yk_room_t *room, uint64_t number, apr_time_t until_steady)
{
    yk_visitor_t *v = yk_room_visitor(room, number);

    if (v != NULL && v->state == YK_VISITOR_PASS) {
        v->stay_us = until_steady;
    }
}

/* A pass has few orders: their ids are told apart by 32 bits. */
static uint32_t order_of(uint64_t order)
{
    uint32_t short_id = (uint32_t)(order ^ order >> 32);

    return short_id != 0 ? short_id : 1;
}

void yk_room_held(yk_room_t *room, uint64_t number, uint64_t order,
                  apr_time_t until_steady)
{
    yk_visitor_t *v = yk_room_visitor(room, number);
    yk_room_held_t *held;
    int at = 0;

    if (v == NULL || v->state != YK_VISITOR_PASS) {
        return;
    }
    held = &room->held[v - room->visitor];
    for (int i = 0; i < YK_ROOM_HELD; i++) {
        if (held->one[i].order == order_of(order)) {
            at = i;
            break;
        }
        if (held->one[i].until_s < held->one[at].until_s) {
            at = i;
        }
    }
    held->one[at].order = order_of(order);
    held->one[at].until_s = (uint32_t)apr_time_sec(until_steady) + 1;
}

void yk_room_released(yk_room_t *room, uint64_t number, uint64_t order)
{
    yk_visitor_t *v = yk_room_visitor(room, number);

    for (int i = 0; v != NULL && i < YK_ROOM_HELD; i++) {
        yk_room_held_t *held = &room->held[v - room->visitor];

        if (held->one[i].order == order_of(order)) {
            held->one[i].order = held->one[i].until_s = 0;
        }
    }
}

void yk_room_bought(yk_room_t *room, uint64_t number, uint64_t order,
                    const yk_room_now_t *now)
{
    yk_visitor_t *v = yk_room_visitor(room, number);

    if (v == NULL || v->state != YK_VISITOR_PASS) {
        return;
    }
    v->orders++;
    yk_room_released(room, number, order);
    if (room->configured.orders != 0 && v->orders >= room->configured.orders) {
        room->bought++;
        v->since_us = now->steady;
        yk_room_become(room, v, YK_VISITOR_AFTER);
    }
}
