/* SPDX-License-Identifier: Apache-2.0 */
#include "plan_file.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

/*
 * Runs under a lock: side by side is one walk over the section; close together
 * looks at so many distances at most, whatever the section's size.
 */
#define DISTANCES_MAX 2000000

typedef struct party_t {
    const yk_plan_file_place_t *places; /* of the section */
    const unsigned char *map;
    uint32_t nplaces;
    uint32_t n; /* people */
} party_t;

static int is_free(const party_t *party, uint32_t i)
{
    return party->map[i / 8] >> (i % 8) & 1;
}

/* ---- side by side ---- */

/* A free run is [start, end); the party would sit at [at, at + n). */
typedef struct window_t {
    uint32_t at;
    int cost;
} window_t;

/* A single place left on one side: in the middle of a row nobody wants it
 * (both neighbours gone), at its end hardly anybody. */
static int cost_of_rest(uint32_t rest, int is_row_end)
{
    return rest != 1 ? 0 : is_row_end ? 1 : 4;
}

/* Small is good: first no lonely places, then a run that is filled or at
 * least eaten from one end. The earlier in plan order wins. */
static int cost(const party_t *party, uint32_t start, uint32_t end, uint32_t at)
{
    int starts_row = start == 0 || !party->places[start - 1].joined;
    int ends_row = !party->places[end - 1].joined;
    uint32_t left = at - start, right = end - at - party->n;
    int lonely = cost_of_rest(left, starts_row) + cost_of_rest(right, ends_row);

    return 4 * lonely + (left > 0) + (right > 0);
}

static void look_at_run(const party_t *party, window_t *best, uint32_t start,
                        uint32_t end)
{
    for (uint32_t at = start; at + party->n <= end; at++) {
        int its = cost(party, start, end, at);

        if (its < best->cost) {
            best->cost = its;
            best->at = at;
        }
    }
}

static int seat_together(const party_t *party, uint32_t *at)
{
    window_t best = {0, INT32_MAX};
    uint32_t start = 0;

    while (start < party->nplaces) {
        uint32_t end = start;

        if (!is_free(party, start)) {
            start++;
            continue;
        }
        do {
            end++;
        } while (end < party->nplaces && party->places[end - 1].joined &&
                 is_free(party, end));
        look_at_run(party, &best, start, end);
        start = end;
    }
    *at = best.at;
    return best.cost != INT32_MAX;
}

/* ---- as close as may be ---- */

typedef struct near_t {
    double distance; /* squared */
    uint32_t no;
} near_t;

/* Keep the n nearest in a heap, the farthest on top. */
static void sift(near_t *heap, uint32_t n, near_t item)
{
    uint32_t at = 0;

    for (;;) {
        uint32_t child = 2 * at + 1;

        if (child >= n) {
            break;
        }
        child +=
            child + 1 < n && heap[child + 1].distance > heap[child].distance;
        if (heap[child].distance <= item.distance) {
            break;
        }
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = item;
}

/* The n free places nearest to one of them. @return how far they are in all */
static double nearest(const party_t *party, near_t *heap,
                      const uint32_t *free_nos, uint32_t nfree, uint32_t centre)
{
    const yk_plan_file_place_t *middle = &party->places[centre];
    double sum = 0;

    for (uint32_t i = 0; i < party->n; i++) {
        heap[i].distance = DBL_MAX;
        heap[i].no = 0;
    }
    for (uint32_t i = 0; i < nfree; i++) {
        const yk_plan_file_place_t *place = &party->places[free_nos[i]];
        double dx = place->x - middle->x, dy = place->y - middle->y;
        near_t its = {dx * dx + dy * dy, free_nos[i]};

        if (its.distance < heap[0].distance) {
            sift(heap, party->n, its);
        }
    }
    for (uint32_t i = 0; i < party->n; i++) {
        sum += heap[i].distance;
    }
    return sum;
}

static int by_no(const void *a, const void *b)
{
    uint32_t one = *(const uint32_t *)a, two = *(const uint32_t *)b;

    return one < two ? -1 : one > two;
}

/* Around every free place when there are few, around evenly many else. */
static void seat_spread(const party_t *party, uint32_t *places,
                        const uint32_t *free_nos, uint32_t nfree, near_t *heap)
{
    uint32_t centres = DISTANCES_MAX / nfree, step;
    double least = DBL_MAX;

    centres = centres < 8 ? 8 : centres;
    step = nfree > centres ? nfree / centres : 1;
    for (uint32_t i = 0; i < nfree; i += step) {
        double sum = nearest(party, heap, free_nos, nfree, free_nos[i]);

        if (sum < least) {
            least = sum;
            for (uint32_t j = 0; j < party->n; j++) {
                places[j] = heap[j].no;
            }
        }
    }
    qsort(places, party->n, sizeof(*places), by_no);
}

static uint32_t count_free(const party_t *party)
{
    uint32_t nfree = 0;

    for (uint32_t i = 0; i < party->nplaces; i++) {
        nfree += (uint32_t)is_free(party, i);
    }
    return nfree;
}

yk_seating_e yk_plan_seat(const yk_plan_t *plan, uint32_t *places,
                          uint32_t section_no, const unsigned char *map,
                          uint32_t n, int together)
{
    yk_plan_section_t section;
    party_t party = {NULL, map, 0, n};
    uint32_t nfree, at = 0, *free_nos;
    near_t *heap;

    yk_plan_section(plan, &section, section_no);
    party.places = plan->places + section.first;
    party.nplaces = section.places;
    nfree = count_free(&party);
    if (n == 0 || nfree < n) {
        return YK_SEATING_NONE;
    }
    if (seat_together(&party, &at)) {
        for (uint32_t i = 0; i < n; i++) {
            places[i] = section.first + at + i;
        }
        return YK_SEATING_TOGETHER;
    }
    if (together) {
        return YK_SEATING_SPREAD;
    }
    free_nos = malloc(nfree * sizeof(*free_nos));
    heap = malloc(n * sizeof(*heap));
    if (free_nos == NULL || heap == NULL) {
        abort();
    }
    for (uint32_t i = 0; i < party.nplaces; i++) {
        if (is_free(&party, i)) {
            free_nos[at++] = i;
        }
    }
    seat_spread(&party, places, free_nos, nfree, heap);
    for (uint32_t i = 0; i < n; i++) {
        places[i] += section.first;
    }
    free(heap);
    free(free_nos);
    return YK_SEATING_SPREAD;
}
