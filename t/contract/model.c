/* SPDX-License-Identifier: Apache-2.0 */
#include "model.h"
#include <string.h>

/* Places seen on the way are not looked at twice: a power of two of marks. */
#define MARKS (1U << 16)

typedef struct moment_t {
    uint8_t done[MODEL_WORKERS]; /* deeds of each */
    uint8_t never;               /* workers whose last deed was not done */
    uint8_t owner[MODEL_PLACES]; /* 0: free; else 1 + the order's number */
} moment_t;

typedef struct search_t {
    const model_history_t *histories;
    const model_book_t *book;
    uint64_t marks[MARKS]; /* of moments that led nowhere; 0: none */
} search_t;

static uint8_t order_name(uint32_t worker, uint32_t order)
{
    return (uint8_t)(1 + worker * MODEL_DEEDS + order);
}

static uint64_t mark_of(const moment_t *moment)
{
    const unsigned char *bytes = (const unsigned char *)moment;
    uint64_t hash = 0xcbf29ce484222325U;

    for (size_t i = 0; i < sizeof(*moment); i++) {
        hash = (hash ^ bytes[i]) * 0x100000001b3U;
    }
    return hash | 1;
}

/* @return 1: seen before */
static int mark(search_t *search, const moment_t *moment)
{
    uint64_t mark = mark_of(moment);

    for (uint32_t i = 0; i < MARKS; i++) {
        uint64_t *at = &search->marks[((mark >> 20) + i) % MARKS];

        if (*at == mark) {
            return 1;
        }
        if (*at == 0) {
            *at = mark;
            return 0;
        }
    }
    return 0;
}

/* Whose deed may be next? Not when another's had ended before it began. */
static int may_be_next(const search_t *search, const moment_t *moment,
                       uint32_t worker)
{
    const model_history_t *own = &search->histories[worker];

    if (moment->done[worker] >= own->n) {
        return 0;
    }
    for (uint32_t i = 0; i < MODEL_WORKERS; i++) {
        const model_history_t *other = &search->histories[i];
        const model_deed_t *deed = &other->deeds[moment->done[i]];

        if (i != worker && moment->done[i] < other->n && deed->to != 0 &&
            deed->to < own->deeds[moment->done[worker]].from) {
            return 0;
        }
    }
    return 1;
}

/* Serve it. @return 1: the clerk would have told him what he was told */
static int serve(moment_t *moment, uint32_t worker, const model_deed_t *deed,
                 uint32_t index)
{
    uint32_t order = deed->what == MODEL_HOLD ? index : deed->order;
    uint8_t name = order_name(worker, order);
    int is_free = 1;

    moment->done[worker]++;
    if (deed->what == MODEL_CONFIRM) {
        return 1;
    }
    for (uint32_t i = 0; i < MODEL_PLACES; i++) {
        if (deed->what == MODEL_RELEASE && moment->owner[i] == name) {
            moment->owner[i] = 0;
        }
        is_free = is_free && (!(deed->places >> i & 1) || !moment->owner[i]);
    }
    if (deed->what == MODEL_RELEASE) {
        return 1;
    }
    for (uint32_t i = 0; is_free && i < MODEL_PLACES; i++) {
        if (deed->places >> i & 1) {
            moment->owner[i] = name;
        }
    }
    return deed->to == 0 || deed->taken == is_free;
}

/* Is the order confirmed? @return 0, 1, or -1: nobody was told */
static int is_confirmed(const model_history_t *history, uint32_t order)
{
    for (uint32_t i = 0; i < history->n; i++) {
        const model_deed_t *deed = &history->deeds[i];

        if (deed->what == MODEL_CONFIRM && deed->order == order) {
            return deed->to != 0 ? 1 : -1;
        }
    }
    return 0;
}

static int is_told(const search_t *search, uint64_t order_id)
{
    for (uint32_t i = 0; i < MODEL_WORKERS; i++) {
        for (uint32_t j = 0; j < search->histories[i].n; j++) {
            if (search->histories[i].deeds[j].order_id == order_id) {
                return 1;
            }
        }
    }
    return 0;
}

static int is_as_the_book_says(const search_t *search, const moment_t *moment)
{
    for (uint32_t i = 0; i < MODEL_PLACES; i++) {
        uint64_t order_id = search->book->order_id[i];
        uint32_t worker, order;
        int confirmed;

        if (moment->owner[i] == 0 || order_id == 0) {
            if (moment->owner[i] != 0 || order_id != 0) {
                return 0;
            }
            continue;
        }
        worker = (moment->owner[i] - 1U) / MODEL_DEEDS;
        order = (moment->owner[i] - 1U) % MODEL_DEEDS;
        confirmed = is_confirmed(&search->histories[worker], order);
        /* An order nobody was told of is the one its worker died over. */
        if (search->histories[worker].deeds[order].order_id !=
            (is_told(search, order_id) ? order_id : 0)) {
            return 0;
        }
        if (confirmed >= 0 && confirmed != search->book->is_booked[i]) {
            return 0;
        }
    }
    return 1;
}

static int goes_on(search_t *search, const moment_t *from)
{
    int is_over = 1;

    if (mark(search, from)) {
        return 0;
    }
    for (uint32_t i = 0; i < MODEL_WORKERS; i++) {
        const model_deed_t *deed = &search->histories[i].deeds[from->done[i]];
        moment_t to = *from;

        is_over = is_over && from->done[i] >= search->histories[i].n;
        if (!may_be_next(search, from, i)) {
            continue;
        }
        if (serve(&to, i, deed, from->done[i]) && goes_on(search, &to)) {
            return 1;
        }
        if (deed->to == 0) {
            to = *from;
            to.done[i]++;
            to.never |= (uint8_t)(1U << i);
            if (goes_on(search, &to)) {
                return 1;
            }
        }
    }
    return is_over && is_as_the_book_says(search, from);
}

int model_explains(const model_history_t histories[MODEL_WORKERS],
                   const model_book_t *book)
{
    static search_t search;
    moment_t moment;

    memset(&search, 0, sizeof(search));
    memset(&moment, 0, sizeof(moment));
    search.histories = histories;
    search.book = book;
    return goes_on(&search, &moment);
}
