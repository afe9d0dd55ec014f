/* SPDX-License-Identifier: Apache-2.0 */
#include "room_rows.h"

#include <stdlib.h>
#include <string.h>

/*
 * Chains, counts and the sorted line: all of it derived from the visitors'
 * numbers and states, and made anew when the lock's owner died.
 */

/* The line may be so old; a short one is cheap to sort. */
#define RANK_AGE APR_USEC_PER_SEC
#define RANK_AGE_SHORT apr_time_from_msec(50)
#define SHORT 4096

void yk_room_fresh(yk_room_table_t *table)
{
    for (uint32_t i = 0; i < YK_ROOMS_MAX; i++) {
        table->room[i].free = YK_ROOM_NONE;
    }
}

static uint32_t chain_of(uint64_t number)
{
    return (uint32_t)((number * UINT64_C(0x9E3779B97F4A7C15)) >> 47);
}

/* Chains hold row + 1, so that a room of zeros is a room of empty chains and
 * an unused room costs no memory. */
static void chain_in(yk_room_t *room, uint32_t row)
{
    uint32_t *first = &room->chain[chain_of(room->visitor[row].number)];

    room->visitor[row].next = *first;
    *first = row + 1;
}

static void chain_out(yk_room_t *room, uint32_t row)
{
    uint32_t *at = &room->chain[chain_of(room->visitor[row].number)];

    while (*at != 0 && *at != row + 1) {
        at = &room->visitor[*at - 1].next;
    }
    if (*at != 0) {
        *at = room->visitor[row].next;
    }
}

yk_visitor_t *yk_room_visitor(yk_room_t *room, uint64_t number)
{
    uint32_t at = room->chain[chain_of(number)];

    while (at != 0 && room->visitor[at - 1].number != number) {
        at = room->visitor[at - 1].next;
    }
    return at != 0 ? &room->visitor[at - 1] : NULL;
}

static uint32_t *count_of(yk_room_t *room, uint32_t state)
{
    switch (state) {
    case YK_VISITOR_ISSUED:
        return &room->unreturned;
    case YK_VISITOR_WAITING:
        return &room->waiting;
    case YK_VISITOR_CALLED:
        return &room->calls;
    case YK_VISITOR_PASSED_OVER:
        return &room->over;
    case YK_VISITOR_PASS:
        return &room->inside;
    default:
        return NULL; /* after the last order nothing is counted */
    }
}

void yk_room_become(yk_room_t *room, yk_visitor_t *v, yk_visitor_e state)
{
    uint32_t *was = count_of(room, v->state), *is = count_of(room, state);

    v->state = state;
    if (was != NULL) {
        --*was;
    }
    if (is != NULL) {
        ++*is;
    }
}

yk_visitor_t *yk_room_add(yk_room_t *room, uint64_t number, uint64_t key,
                          yk_visitor_e state, apr_time_t steady)
{
    uint32_t row = room->free;
    yk_visitor_t *v;

    if (row != YK_ROOM_NONE) {
        room->free = room->visitor[row].next;
    }
    else if (room->high < YK_ROOM_ROWS) {
        row = room->high++;
    }
    else {
        return NULL;
    }
    v = &room->visitor[row];
    memset(v, 0, sizeof(*v));
    v->number = number;
    v->key = key;
    v->heard_us = v->since_us = steady;
    chain_in(room, row);
    yk_room_become(room, v, state);
    return v;
}

void yk_room_drop(yk_room_t *room, yk_visitor_t *v)
{
    uint32_t row = (uint32_t)(v - room->visitor);

    yk_room_become(room, v, YK_VISITOR_NONE);
    chain_out(room, row);
    v->number = 0;
    v->next = room->free;
    room->free = row;
}

void yk_room_recount(yk_room_t *room)
{
    yk_seq_mend(&room->seq);
    memset(room->chain, 0, sizeof(room->chain));
    room->waiting = room->inside = room->calls = room->unreturned = 0;
    room->over = room->nranks = room->rank_at = 0;
    room->ranked_us = 0;
    room->free = YK_ROOM_NONE;
    room->high = YK_ROOM_ROWS;
    while (room->high > 0 &&
           room->visitor[room->high - 1].state == YK_VISITOR_NONE) {
        room->high--;
    }
    for (uint32_t i = room->high; i-- > 0;) {
        yk_visitor_t *v = &room->visitor[i];
        uint32_t *n = count_of(room, v->state);

        if (v->state == YK_VISITOR_NONE || v->state > YK_VISITOR_AFTER ||
            v->number == 0) {
            v->state = YK_VISITOR_NONE;
            v->number = 0;
            v->next = room->free;
            room->free = i;
            continue;
        }
        chain_in(room, i);
        if (n != NULL) {
            ++*n;
        }
    }
}

/* ---- the line ---- */

static int by_key(const void *a, const void *b)
{
    uint64_t x = ((const yk_room_rank_t *)a)->key;
    uint64_t y = ((const yk_room_rank_t *)b)->key;

    return x < y ? -1 : x > y;
}

void yk_room_rank_now(yk_room_t *room, apr_time_t steady)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < room->high; i++) {
        if (room->visitor[i].state == YK_VISITOR_WAITING) {
            room->rank[n].key = room->visitor[i].key;
            room->rank[n++].row = i;
        }
    }
    qsort(room->rank, n, sizeof(room->rank[0]), by_key);
    room->nranks = n;
    room->rank_at = 0;
    room->ranked_us = steady;
}

void yk_room_rank(yk_room_t *room, apr_time_t steady)
{
    apr_time_t age = room->high <= SHORT ? RANK_AGE_SHORT : RANK_AGE;

    if (room->ranked_us == 0 || steady - room->ranked_us >= age) {
        yk_room_rank_now(room, steady);
    }
}

uint32_t yk_room_ahead(const yk_room_t *room, uint64_t key)
{
    uint32_t low = room->rank_at, high = room->nranks;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (room->rank[middle].key < key) {
            low = middle + 1;
        }
        else {
            high = middle;
        }
    }
    return low - room->rank_at;
}

yk_visitor_t *yk_room_first(yk_room_t *room, apr_time_t steady)
{
    if (room->waiting == 0) {
        return NULL;
    }
    yk_room_rank(room, steady);
    for (int tries = 0; tries < 2; tries++) {
        while (room->rank_at < room->nranks) {
            const yk_room_rank_t *rank = &room->rank[room->rank_at];
            yk_visitor_t *v = &room->visitor[rank->row];

            if (v->state == YK_VISITOR_WAITING && v->key == rank->key) {
                return v;
            }
            room->rank_at++;
        }
        yk_room_rank_now(room, steady);
    }
    return NULL;
}
