/* SPDX-License-Identifier: Apache-2.0 */
#include "room_rows.h"

#include <apr_strings.h>
#include <stddef.h>
#include <string.h>
#include "yoyaku/log.h"
#include "yoyaku/text.h"

#define WAIT apr_time_from_msec(500)

struct yk_rooms_t {
    yk_room_table_t *table;
    uint64_t generation;
};

static void fresh(void *memory)
{
    yk_room_table_t *table = memory;

    yk_lock_create(&table->lock);
    yk_room_fresh(table);
}

/* The machine was started anew: the steady clock began again. Who waited
 * keeps his place and is heard of from now on. */
static void renew(void *memory)
{
    yk_room_table_t *table = memory;
    apr_time_t steady = yk_state_now();

    yk_lock_create(&table->lock);
    for (uint32_t i = 0; i < YK_ROOMS_MAX; i++) {
        yk_room_t *room = &table->room[i];

        room->begun_us = steady;
        room->moved_us = room->swept_us = room->ranked_us = 0;
        room->refilled_us = 0;
        for (uint32_t j = 0; j < room->high && j < YK_ROOM_ROWS; j++) {
            room->visitor[j].heard_us = room->visitor[j].since_us = steady;
            room->visitor[j].stay_us = 0;
            memset(&room->held[j], 0, sizeof(room->held[j]));
        }
    }
}

const yk_state_kind_t yk_room_kind = {"room", YK_ROOM_LAYOUT,
                                      sizeof(yk_room_table_t), fresh, renew};

apr_status_t yk_rooms_create(yk_rooms_t **rooms, const char *folder,
                             apr_pool_t *p)
{
    yk_rooms_t *made = apr_pcalloc(p, sizeof(*made));
    yk_state_t *state;
    apr_status_t rv = yk_state_create(&state, &yk_room_kind, folder, p);

    if (rv == APR_SUCCESS) {
        made->table = yk_state_memory(state);
        made->generation = made->table->head.generation;
        *rooms = made;
    }
    return rv;
}

apr_status_t yk_rooms_attach(yk_rooms_t **rooms, const char *folder, int write,
                             apr_pool_t *p)
{
    yk_rooms_t *made = apr_pcalloc(p, sizeof(*made));
    yk_state_t *state;
    apr_status_t rv = yk_state_attach(&state, &yk_room_kind, folder, write, p);

    if (rv == APR_SUCCESS) {
        made->table = yk_state_memory(state);
        *rooms = made;
    }
    return rv;
}

yk_lock_t *yk_rooms_lock(const yk_rooms_t *rooms)
{
    return &rooms->table->lock;
}

static void now_set(yk_room_now_t *now)
{
    now->steady = yk_state_now();
    now->wall = apr_time_now();
}

static apr_status_t lock(yk_rooms_t *rooms, yk_lock_mode_e mode)
{
    int died;
    apr_status_t rv = yk_lock_take(&rooms->table->lock, &died, mode, WAIT);

    if (rv != APR_SUCCESS || !died) {
        return rv;
    }
    for (uint32_t i = 0; i < YK_ROOMS_MAX; i++) {
        if (rooms->table->room[i].name[0] != '\0') {
            yk_room_recount(&rooms->table->room[i]);
        }
    }
    rooms->table->recounts++;
    yk_lock_mend(&rooms->table->lock);
    yk_log(YK_LOG_NOTICE, 0,
           "YK0530: room: a worker died with the lock in hand; everything was "
           "counted anew.");
    return APR_SUCCESS;
}

static void unlock(yk_rooms_t *rooms)
{
    yk_lock_give(&rooms->table->lock);
}

/* ---- rooms by name ---- */

static yk_room_t *room_named(yk_room_table_t *table, const char *name)
{
    for (uint32_t i = 0; i < YK_ROOMS_MAX; i++) {
        if (strcmp(table->room[i].name, name) == 0) {
            return &table->room[i];
        }
    }
    return NULL;
}

/* A row never used, or one that no configuration names and nobody is in. */
static yk_room_t *room_free(yk_room_table_t *table)
{
    for (uint32_t i = 0; i < YK_ROOMS_MAX; i++) {
        yk_room_t *room = &table->room[i];

        if (room->name[0] == '\0') {
            return room;
        }
    }
    for (uint32_t i = 0; i < YK_ROOMS_MAX; i++) {
        yk_room_t *room = &table->room[i];

        if (room->generation < table->generation &&
            room->waiting + room->inside + room->calls + room->over == 0) {
            memset(room, 0, offsetof(yk_room_t, rank));
            memset(room->visitor, 0, room->high * sizeof(room->visitor[0]));
            room->free = YK_ROOM_NONE;
            return room;
        }
    }
    return NULL;
}

static void room_configure(yk_room_t *room, const yk_room_terms_t *terms,
                           const yk_hash_t *seed, uint64_t generation,
                           uint64_t made_us)
{
    int is_new = room->generation == 0;

    yk_seq_begin(&room->seq);
    if (is_new) {
        /* The file's beginning: of it we know everybody, of before nobody. */
        room->begun_us =
            yk_state_now() - (apr_time_now() - (apr_time_t)made_us);
    }
    if (is_new || room->configured.rate_milli != terms->rate_milli) {
        room->rate_milli = terms->rate_milli;
    }
    room->configured = *terms;
    memcpy(room->seed, seed->bytes, sizeof(room->seed));
    room->generation = generation;
    yk_seq_end(&room->seq);
}

apr_status_t yk_rooms_room(yk_rooms_t *rooms, uint32_t *row, const char *name,
                           const yk_room_terms_t *terms, const yk_hash_t *seed)
{
    yk_room_table_t *table = rooms->table;
    apr_status_t rv = lock(rooms, YK_LOCK_WRITE);
    yk_room_t *room;

    if (rv != APR_SUCCESS) {
        return rv;
    }
    if (table->generation < rooms->generation) {
        table->generation = rooms->generation;
    }
    room = room_named(table, name);
    if (room == NULL) {
        room = room_free(table);
        if (room != NULL) {
            apr_cpystrn(room->name + 1, name + 1, sizeof(room->name) - 1);
            room->name[0] = name[0];
        }
    }
    if (room != NULL) {
        *row = (uint32_t)(room - table->room);
        if (room->generation < rooms->generation) {
            room_configure(room, terms, seed, rooms->generation,
                           table->head.made_us);
        }
    }
    unlock(rooms);
    return room != NULL ? APR_SUCCESS : APR_ENOSPC;
}

/* ---- visitors ---- */

apr_status_t yk_rooms_arrive(yk_rooms_t *rooms, yk_room_answer_t *answer,
                             uint32_t row, const yk_room_ask_t *ask)
{
    yk_room_now_t now;
    apr_status_t rv = lock(rooms, YK_LOCK_WRITE);

    if (rv == APR_SUCCESS) {
        now_set(&now);
        yk_room_arrive(rooms->table, &rooms->table->room[row], answer, ask,
                       &now);
        unlock(rooms);
    }
    return rv;
}

apr_status_t yk_rooms_ask(yk_rooms_t *rooms, yk_room_answer_t *answer,
                          uint32_t row, uint64_t number)
{
    yk_room_now_t now;
    apr_status_t rv = lock(rooms, YK_LOCK_WRITE);

    if (rv == APR_SUCCESS) {
        now_set(&now);
        yk_room_ask(rooms->table, &rooms->table->room[row], answer, number,
                    &now);
        unlock(rooms);
    }
    return rv;
}

void yk_rooms_forged(yk_rooms_t *rooms, uint32_t row)
{
    __atomic_fetch_add(&rooms->table->room[row].forged, 1, __ATOMIC_RELAXED);
}

/* A number names one visitor of all rooms. */
static yk_room_t *room_of(yk_rooms_t *rooms, uint64_t number)
{
    for (uint32_t i = 0; number != 0 && i < YK_ROOMS_MAX; i++) {
        yk_room_t *room = &rooms->table->room[i];

        if (room->name[0] != '\0' && yk_room_visitor(room, number) != NULL) {
            return room;
        }
    }
    return NULL;
}

void yk_rooms_leave(yk_rooms_t *rooms, uint64_t number)
{
    if (lock(rooms, YK_LOCK_WRITE) == APR_SUCCESS) {
        yk_room_t *room = room_of(rooms, number);

        if (room != NULL) {
            yk_room_leave(room, number);
        }
        unlock(rooms);
    }
}

void yk_rooms_stay(yk_rooms_t *rooms, uint64_t number, apr_interval_time_t time)
{
    if (lock(rooms, YK_LOCK_WRITE) == APR_SUCCESS) {
        yk_room_t *room = room_of(rooms, number);

        if (room != NULL) {
            yk_room_stay(room, number, yk_state_now() + time);
        }
        unlock(rooms);
    }
}

void yk_rooms_held(yk_rooms_t *rooms, uint64_t number, uint64_t order,
                   apr_interval_time_t time)
{
    if (lock(rooms, YK_LOCK_WRITE) == APR_SUCCESS) {
        yk_room_t *room = room_of(rooms, number);

        if (room != NULL) {
            yk_room_held(room, number, order, yk_state_now() + time);
        }
        unlock(rooms);
    }
}

void yk_rooms_released(yk_rooms_t *rooms, uint64_t number, uint64_t order)
{
    if (lock(rooms, YK_LOCK_WRITE) == APR_SUCCESS) {
        yk_room_t *room = room_of(rooms, number);

        if (room != NULL) {
            yk_room_released(room, number, order);
        }
        unlock(rooms);
    }
}

void yk_rooms_bought(yk_rooms_t *rooms, uint64_t number, uint64_t order)
{
    yk_room_now_t now;

    if (lock(rooms, YK_LOCK_WRITE) == APR_SUCCESS) {
        yk_room_t *room = room_of(rooms, number);

        now_set(&now);
        if (room != NULL) {
            yk_room_bought(room, number, order, &now);
        }
        unlock(rooms);
    }
}

void yk_rooms_move(yk_rooms_t *rooms)
{
    yk_room_now_t now;

    if (lock(rooms, YK_LOCK_WRITE) != APR_SUCCESS) {
        return;
    }
    now_set(&now);
    for (uint32_t i = 0; i < YK_ROOMS_MAX; i++) {
        if (rooms->table->room[i].name[0] != '\0') {
            yk_room_move(&rooms->table->room[i], &now);
        }
    }
    unlock(rooms);
}

/* ---- what is told ---- */

static json_t *key_text(uint64_t key, apr_pool_t *p)
{
    return json_string(
        apr_psprintf(p, "%016" APR_UINT64_T_HEX_FMT, (apr_uint64_t)key));
}

static const char *state_of(const yk_room_t *room, apr_time_t wall)
{
    return yk_room_is_before(room, wall) ? "before"
           : room->paused                ? "paused"
                                         : "open";
}

/* Between two marks the page counts on. Nothing of it is told before the
 * opening: the order is not drawn yet. */
static json_t *marks(yk_room_t *room, const yk_room_now_t *now, apr_pool_t *p)
{
    json_t *list = json_array();
    uint32_t n;

    if (yk_room_is_before(room, now->wall)) {
        return list;
    }
    yk_room_rank(room, now->steady);
    n = room->nranks - room->rank_at;
    for (uint32_t i = 0; i < YK_ROOM_MARKS && n > 0; i++) {
        uint32_t at =
            n <= YK_ROOM_MARKS
                ? i
                : (uint32_t)((uint64_t)i * (n - 1) / (YK_ROOM_MARKS - 1));
        json_t *pair = json_array();

        if (at >= n) {
            break;
        }
        json_array_append_new(pair,
                              key_text(room->rank[room->rank_at + at].key, p));
        json_array_append_new(pair, json_integer(at));
        json_array_append_new(list, pair);
    }
    return list;
}

static void draw_add(json_t *object, const yk_room_t *room, apr_time_t wall,
                     apr_pool_t *p)
{
    yk_hash_t hash;

    if (room->configured.opens_us == 0) {
        return;
    }
    yk_secret_hash(&hash, room->seed, sizeof(room->seed));
    json_object_set_new(
        object, "opens",
        json_string(yk_time_write(room->configured.opens_us, p)));
    json_object_set_new(
        object, "seed_hash",
        json_string(yk_text_hex(hash.bytes, sizeof(hash.bytes), p)));
    if (!yk_room_is_before(room, wall)) {
        json_object_set_new(
            object, "seed",
            json_string(yk_text_hex(room->seed, sizeof(room->seed), p)));
    }
}

json_t *yk_rooms_public(yk_rooms_t *rooms, uint32_t row, apr_pool_t *p)
{
    yk_room_t *room = &rooms->table->room[row];
    yk_room_now_t now;
    json_t *object;

    if (lock(rooms, YK_LOCK_WRITE) != APR_SUCCESS) {
        return NULL;
    }
    now_set(&now);
    yk_room_move(room, &now);
    object = json_object();
    json_object_set_new(object, "room", json_string(room->name));
    json_object_set_new(object, "state", json_string(state_of(room, now.wall)));
    json_object_set_new(object, "serving", key_text(room->serving, p));
    json_object_set_new(object, "issued",
                        json_integer((json_int_t)room->issued));
    json_object_set_new(object, "waiting", json_integer(room->waiting));
    json_object_set_new(object, "rate",
                        json_string(yk_room_rate_write(room->rate_milli, p)));
    json_object_set_new(object, "message", json_string(room->say));
    json_object_set_new(object, "at", json_string(yk_time_write(now.wall, p)));
    draw_add(object, room, now.wall, p);
    json_object_set_new(object, "marks", marks(room, &now, p));
    unlock(rooms);
    return object;
}

static json_t *room_document(const yk_room_t *room, uint64_t generation,
                             apr_pool_t *p)
{
    json_t *object = json_object(), *counters = json_object();

    json_object_set_new(object, "name", json_string(room->name));
    json_object_set_new(object, "state",
                        json_string(state_of(room, apr_time_now())));
    json_object_set_new(object, "configured",
                        json_boolean(room->generation >= generation));
    json_object_set_new(object, "rate",
                        json_string(yk_room_rate_write(room->rate_milli, p)));
    json_object_set_new(object, "active",
                        json_integer(room->configured.active));
    json_object_set_new(object, "message", json_string(room->say));
    json_object_set_new(object, "unreturned", json_integer(room->unreturned));
    json_object_set_new(object, "waiting", json_integer(room->waiting));
    json_object_set_new(object, "called", json_integer(room->calls));
    json_object_set_new(object, "passed_over", json_integer(room->over));
    json_object_set_new(object, "passes", json_integer(room->inside));
#define COUNTER(member, counter, text)                                         \
    json_object_set_new(counters, counter,                                     \
                        json_integer((json_int_t)room->member));
    YK_ROOM_COUNTERS(COUNTER)
#undef COUNTER
    json_object_set_new(object, "counters", counters);
    return object;
}

json_t *yk_rooms_document(yk_rooms_t *rooms, apr_pool_t *p)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < YK_ROOMS_MAX; i++) {
        const yk_room_t *room = &rooms->table->room[i];

        if (room->name[0] != '\0') {
            json_array_append_new(
                list, room_document(room, rooms->table->generation, p));
        }
    }
    return list;
}

/* ---- the operator ---- */

static apr_status_t rate_set(yk_room_t *room, const char **problem,
                             const char *argument, apr_pool_t *p)
{
    uint32_t rate = room->configured.rate_milli;

    if (*argument != '\0' && strcmp(argument, "reset") != 0 &&
        yk_room_rate_parse(&rate, argument) != APR_SUCCESS) {
        *problem = apr_psprintf(p,
                                "%s is not a rate from 0.001/s to 10000/s; for "
                                "example: 40/s, 90/min, reset",
                                argument);
        return APR_EINVAL;
    }
    room->rate_milli = rate;
    return APR_SUCCESS;
}

apr_status_t yk_rooms_do(yk_rooms_t *rooms, const char **problem,
                         yk_rooms_do_e what, const char *name,
                         const char *argument, apr_pool_t *p)
{
    apr_status_t rv = lock(rooms, YK_LOCK_WRITE);
    yk_room_t *room;

    if (rv != APR_SUCCESS) {
        return rv;
    }
    room = *name != '\0' ? room_named(rooms->table, name) : NULL;
    if (room == NULL) {
        unlock(rooms);
        return APR_NOTFOUND;
    }
    yk_seq_begin(&room->seq);
    switch (what) {
    case YK_ROOMS_PAUSE:
    case YK_ROOMS_RESUME:
        room->paused = what == YK_ROOMS_PAUSE;
        break;
    case YK_ROOMS_RATE:
        rv = rate_set(room, problem, argument, p);
        break;
    case YK_ROOMS_SAY:
        if (strlen(argument) >= YK_ROOM_SAY ||
            !yk_text_is_utf8(argument, strlen(argument))) {
            *problem = apr_psprintf(p,
                                    "a message has at most %d bytes of "
                                    "UTF-8",
                                    YK_ROOM_SAY - 1);
            rv = APR_EINVAL;
        }
        else {
            apr_cpystrn(room->say, argument, sizeof(room->say));
        }
        break;
    }
    yk_seq_end(&room->seq);
    unlock(rooms);
    return rv;
}
