/* SPDX-License-Identifier: Apache-2.0 */
#include "board_memory.h"
#include "yoyaku/pool.h"
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* A window of 8 KiB and 64 KiB of work space: a board repeats itself within
 * a row, and a worker that renders must not grow by a window of 32. */
#define GZIP_WINDOW 13
#define GZIP_MEMORY 7
#define GZIP_HEAD 32
/* Above this the work counts more than the bytes. */
#define GZIP_LARGE (32 * 1024)

apr_size_t yk_board_gzip_space(apr_size_t len)
{
    /* deflateBound() of such a stream, from above */
    return len + (len >> 3) + (len >> 6) + 64 + GZIP_HEAD;
}

apr_size_t yk_board_gzip(void *to, apr_size_t space, const void *from,
                         apr_size_t len)
{
    z_stream z;
    apr_size_t made = 0;

    memset(&z, 0, sizeof(z));
    if (deflateInit2(&z, len > GZIP_LARGE ? 1 : 4, Z_DEFLATED, GZIP_WINDOW + 16,
                     GZIP_MEMORY, Z_DEFAULT_STRATEGY) != Z_OK) {
        return 0;
    }
    z.next_in = (z_const Bytef *)from;
    z.avail_in = (uInt)len;
    z.next_out = to;
    z.avail_out = (uInt)space;
    if (deflate(&z, Z_FINISH) == Z_STREAM_END) {
        made = space - z.avail_out;
    }
    deflateEnd(&z);
    return made;
}

/* ---- the document ---- */

static char *put_number(char *to, uint64_t number)
{
    char digits[20];
    int n = 0;

    do {
        digits[n++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    while (n > 0) {
        *to++ = digits[--n];
    }
    return to;
}

static char *put(char *to, const char *text, apr_size_t len)
{
    memcpy(to, text, len);
    return to + len;
}

#define PUT(to, literal) put(to, literal, sizeof(literal) - 1)

static int64_t left_of(const area_t *areas, uint32_t n)
{
    int64_t left = 0;

    for (uint32_t i = 0; i < n; i++) {
        left += areas[i].mode != YK_MODE_CLOSED ? areas[i].left : 0;
    }
    return left;
}

static char *put_area(char *to, const char *text, const area_t *area,
                      const cell_t *cells)
{
    to = put(to, text + area->name_at, area->name_len);
    to = put(to, text + area->name_at + area->name_len,
             area->text_len - area->name_len);
    to =
        put_number(to, area->mode != YK_MODE_CLOSED ? (uint64_t)area->left : 0);
    if (area->mode != YK_MODE_POOLED) {
        to = PUT(to, ",\"places\":\"");
        for (uint32_t i = 0; i < area->places; i++) {
            *to++ = (char)('0' + cells[area->first + i].shown);
        }
        *to++ = '"';
    }
    *to++ = '}';
    return to;
}

static apr_size_t write_document(yk_boards_t *boards, const entry_t *e,
                                 char *bytes)
{
    const area_t *areas = AREAS(boards, e);
    const char *text = TEXT(boards, e);
    char *to = put(bytes, text, e->head_len);

    to = put_number(to, atomic_load(&e->generation));
    to = PUT(to, ",\"free\":");
    to = put_number(to, (uint64_t)left_of(areas, e->nareas));
    to = PUT(to, ",\"sections\":[");
    for (uint32_t i = 0; i < e->nareas; i++) {
        if (i > 0) {
            *to++ = ',';
        }
        to = put_area(to, text, &areas[i], CELLS(boards, e));
    }
    to = PUT(to, "]}\n");
    return (apr_size_t)(to - bytes);
}

void yk_board_show(yk_boards_t *boards, entry_t *e, apr_size_t json_len,
                   uint64_t generation, uint64_t hash)
{
    uint32_t next = atomic_load(&e->shown) == 0 ? 1 : 0;
    rendering_t *r = &e->rendering[next];

    r->json_len = (uint32_t)json_len;
    r->gzip_len =
        (uint32_t)yk_board_gzip(yk_board_at(boards, r->gzip_at), e->gzip_space,
                                yk_board_at(boards, r->json_at), json_len);
    r->generation = generation;
    r->hash = hash;
    yk_seq_end(&r->seq);
    atomic_store(&e->shown, next);
}

apr_status_t yk_board_render(yk_boards_t *boards, entry_t *e)
{
    uint32_t shown = atomic_load(&e->shown);
    uint64_t generation = atomic_load(&e->generation);
    rendering_t *r;

    if (shown < NOT_SHOWN && e->rendering[shown].generation == generation) {
        return APR_SUCCESS;
    }
    r = &e->rendering[shown == 0 ? 1 : 0];
    yk_seq_begin(&r->seq);
    yk_board_show(boards, e,
                  write_document(boards, e, yk_board_at(boards, r->json_at)),
                  generation, e->hash);
    COUNT(boards, rendered);
    return APR_SUCCESS;
}

/* ---- without a lock ---- */

/* Copy out what is shown.
 * @return APR_EAGAIN: this generation was not rendered yet */
static apr_status_t copy_shown(yk_boards_t *boards, const yk_board_ref_t *ref,
                               yk_board_answer_t *answer, yk_board_form_e form,
                               apr_pool_t *p)
{
    entry_t *e = &boards->entries[ref->entry];
    uint32_t shown = atomic_load(&e->shown);
    const rendering_t *r = &e->rendering[shown & 1];
    uint32_t seq = atomic_load(&r->seq.n);
    uint64_t at = form == YK_BOARD_GZIP ? r->gzip_at : r->json_at;
    apr_size_t len = form == YK_BOARD_GZIP ? r->gzip_len : r->json_len;
    char *bytes = NULL;

    if (shown >= NOT_SHOWN || (seq & 1) != 0 ||
        r->generation != atomic_load(&e->generation)) {
        return APR_EAGAIN;
    }
    answer->hash = r->hash;
    answer->generation = r->generation;
    answer->opens_us = atomic_load(&e->opens_us);
    if (form != YK_BOARD_HEAD) {
        if (len > boards->arena_bytes || at > boards->arena_bytes - len) {
            return APR_EAGAIN;
        }
        bytes = yk_pool_room(p, len + 1);
        memcpy(bytes, yk_board_at(boards, at), len);
        bytes[len] = '\0';
    }
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load(&r->seq.n) != seq || atomic_load(&e->life) != ref->life) {
        return APR_EAGAIN;
    }
    answer->bytes = bytes;
    answer->len = len;
    return APR_SUCCESS;
}

apr_status_t yk_board_get(yk_boards_t *boards, const yk_board_ref_t *ref,
                          yk_board_answer_t *answer, yk_board_form_e form,
                          apr_pool_t *p)
{
    entry_t *e;
    apr_status_t rv;

    memset(answer, 0, sizeof(*answer));
    for (int tries = 0; tries < 8; tries++) {
        rv = copy_shown(boards, ref, answer, form, p);
        if (rv == APR_SUCCESS) {
            answer->now_us = yk_board_clock(&boards->entries[ref->entry]);
            return rv;
        }
        rv = yk_board_lock(boards, &e, ref, YK_LOCK_WRITE);
        if (rv != APR_SUCCESS) {
            return rv;
        }
        rv = yk_board_render(boards, e);
        yk_board_unlock(e);
        if (rv != APR_SUCCESS) {
            return rv;
        }
    }
    return APR_TIMEUP;
}

/* ---- what changed ---- */

typedef struct delta_t {
    uint32_t n;
    uint32_t *nos; /* ascending, each once: places, then areas with AREA_BIT */
} delta_t;

static int no_order(const uint32_t *a, const uint32_t *b)
{
    return *a < *b ? -1 : *a > *b;
}

/* Newest first back to the generation asked for. @return 0: too much */
static int gather(yk_boards_t *boards, const entry_t *e, delta_t *delta,
                  uint64_t generation, apr_pool_t *p)
{
    const ring_t *ring = RING(boards, e);
    uint32_t kept = 0, i;
    uint64_t at = e->ring_head;

    delta->nos = apr_palloc(p, (YK_BOARD_DELTA + 1) * sizeof(*delta->nos));
    delta->n = 0;
    while (at > 0 && at + e->ring_size > e->ring_head &&
           ring[(at - 1) % e->ring_size].generation > generation) {
        if (delta->n == YK_BOARD_DELTA) {
            return 0;
        }
        delta->nos[delta->n++] = ring[(at - 1) % e->ring_size].no;
        at--;
    }
    qsort(delta->nos, delta->n, sizeof(*delta->nos),
          (int (*)(const void *, const void *))no_order);
    for (i = 0; i < delta->n; i++) {
        if (kept == 0 || delta->nos[kept - 1] != delta->nos[i]) {
            delta->nos[kept++] = delta->nos[i];
        }
    }
    delta->n = kept;
    return 1;
}

static int is_pool_changed(const delta_t *delta, uint32_t area_no)
{
    for (uint32_t i = delta->n; i > 0 && (delta->nos[i - 1] & AREA_BIT); i--) {
        if (delta->nos[i - 1] == (AREA_BIT | area_no)) {
            return 1;
        }
    }
    return 0;
}

static char *put_changes(char *to, const delta_t *delta, uint32_t *at,
                         const area_t *area, const cell_t *cells)
{
    const char *comma = "";

    to = PUT(to, ",\"changes\":[");
    while (*at < delta->n && delta->nos[*at] >= area->first &&
           delta->nos[*at] - area->first < area->places) {
        to = put(to, comma, strlen(comma));
        *to++ = '[';
        to = put_number(to, delta->nos[*at] - area->first);
        to = PUT(to, ",\"");
        *to++ = (char)('0' + cells[delta->nos[*at]].shown);
        to = PUT(to, "\"]");
        comma = ",";
        (*at)++;
    }
    *to++ = ']';
    return to;
}

static char *put_sections(yk_boards_t *boards, const entry_t *e, char *to,
                          const delta_t *delta)
{
    const area_t *areas = AREAS(boards, e);
    const char *comma = "";
    uint32_t at = 0;

    for (uint32_t i = 0; i < e->nareas; i++) {
        const area_t *area = &areas[i];
        int pool = area->mode == YK_MODE_POOLED;
        int touched = pool ? is_pool_changed(delta, i)
                           : at < delta->n && delta->nos[at] >= area->first &&
                                 delta->nos[at] - area->first < area->places;

        if (!touched) {
            continue;
        }
        to = put(to, comma, strlen(comma));
        to = put(to, TEXT(boards, e) + area->name_at, area->name_len);
        to = PUT(to, ",\"free\":");
        to = put_number(to, area->mode != YK_MODE_CLOSED ? (uint64_t)area->left
                                                         : 0);
        if (!pool) {
            to = put_changes(to, delta, &at, area, CELLS(boards, e));
        }
        *to++ = '}';
        comma = ",";
    }
    return to;
}

static void write_delta(yk_boards_t *boards, const entry_t *e,
                        yk_board_answer_t *answer, const delta_t *delta,
                        uint64_t since, apr_pool_t *p)
{
    const area_t *areas = AREAS(boards, e);
    apr_size_t space = e->head_len + 128 + 24 * (apr_size_t)delta->n;
    char *bytes, *to;

    for (uint32_t i = 0; i < e->nareas; i++) {
        space += areas[i].text_len + 64;
    }
    bytes = apr_palloc(p, space);
    to = put(bytes, TEXT(boards, e), e->head_len);
    to = put_number(to, atomic_load(&e->generation));
    to = PUT(to, ",\"since\":");
    to = put_number(to, since);
    to = PUT(to, ",\"free\":");
    to = put_number(to, (uint64_t)left_of(areas, e->nareas));
    to = PUT(to, ",\"sections\":[");
    to = put_sections(boards, e, to, delta);
    to = PUT(to, "]}\n");
    answer->bytes = bytes;
    answer->len = (apr_size_t)(to - bytes);
    answer->is_delta = 1;
    answer->hash = e->hash;
    answer->generation = atomic_load(&e->generation);
    answer->opens_us = atomic_load(&e->opens_us);
    answer->now_us = yk_board_clock(e);
}

apr_status_t yk_board_since(yk_boards_t *boards, const yk_board_ref_t *ref,
                            yk_board_answer_t *answer, uint64_t epoch,
                            uint64_t generation, apr_pool_t *p)
{
    delta_t delta;
    entry_t *e;
    apr_status_t rv;

    if (epoch == yk_boards_epoch(boards)) {
        rv = yk_board_lock(boards, &e, ref, YK_LOCK_READ);
        if (rv != APR_SUCCESS) {
            return rv;
        }
        memset(answer, 0, sizeof(*answer));
        if (generation >= e->ring_lost &&
            generation <= atomic_load(&e->generation) &&
            gather(boards, e, &delta, generation, p)) {
            write_delta(boards, e, answer, &delta, generation, p);
        }
        yk_board_unlock(e);
        if (answer->is_delta) {
            return APR_SUCCESS;
        }
    }
    return yk_board_get(boards, ref, answer, YK_BOARD_JSON, p);
}

/* ---- small questions ---- */

apr_status_t yk_board_place(yk_boards_t *boards, const yk_board_ref_t *ref,
                            yk_place_state_e *state, apr_time_t *until_us,
                            apr_time_t *now_us, uint32_t place_no)
{
    const cell_t *cell;
    entry_t *e;
    apr_status_t rv = yk_board_lock(boards, &e, ref, YK_LOCK_READ);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    if (place_no >= e->nplaces) {
        rv = APR_NOTFOUND;
    }
    else {
        cell = &CELLS(boards, e)[place_no];
        *state = (yk_place_state_e)cell->state;
        *until_us = (apr_time_t)cell->until_us;
        *now_us = yk_board_clock(e);
    }
    yk_board_unlock(e);
    return rv;
}

int yk_board_is_current(yk_boards_t *boards, const yk_board_ref_t *ref,
                        const yk_slot_t *slot)
{
    entry_t *e;
    int is_current;

    if (yk_board_lock(boards, &e, ref, YK_LOCK_READ) != APR_SUCCESS) {
        return 0;
    }
    is_current = e->slot_id == slot->slot_id &&
                 e->slot_version == slot->version &&
                 e->tenant_version == slot->tenant_version;
    yk_board_unlock(e);
    return is_current;
}

apr_status_t yk_board_free(yk_boards_t *boards, const yk_board_ref_t *ref,
                           int64_t *left, apr_time_t *now_us, uint32_t n)
{
    const area_t *areas;
    entry_t *e;
    apr_status_t rv = yk_board_lock(boards, &e, ref, YK_LOCK_READ);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    areas = AREAS(boards, e);
    for (uint32_t i = 0; i < n; i++) {
        left[i] = i < e->nareas && areas[i].mode != YK_MODE_CLOSED
                      ? areas[i].left
                      : 0;
    }
    *now_us = yk_board_clock(e);
    yk_board_unlock(e);
    return APR_SUCCESS;
}
