/* SPDX-License-Identifier: Apache-2.0 */
#include "board_memory.h"
#include "yoyaku/text.h"
#include <apr_strings.h>
#include <string.h>

/* However dear a page is, making it takes at most a twentieth of the time. */
#define DEAR 20

/* Lock it and copy it out: pages are small and seldom asked for. */
static apr_status_t copy(yk_boards_t *boards, const yk_board_ref_t *ref,
                         yk_page_t *page, apr_interval_time_t *age,
                         apr_interval_time_t *took, apr_pool_t *p)
{
    const rendering_t *r;
    entry_t *e;
    apr_status_t rv = yk_board_lock(boards, &e, ref, YK_LOCK_READ);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    if (atomic_load(&e->shown) >= NOT_SHOWN) {
        yk_board_unlock(e);
        return APR_EAGAIN;
    }
    r = &e->rendering[atomic_load(&e->shown)];
    page->len = r->json_len;
    page->bytes = apr_pmemdup(p, yk_board_at(boards, r->json_at), r->json_len);
    page->gzip_len = r->gzip_len;
    page->gzip = apr_pmemdup(p, yk_board_at(boards, r->gzip_at), r->gzip_len);
    page->hash = r->hash;
    *age = yk_state_now() - e->page_made_us;
    *took = e->page_took_us;
    yk_board_unlock(e);
    return APR_SUCCESS;
}

static void keep(yk_boards_t *boards, const yk_board_ref_t *ref,
                 const yk_page_t *page, apr_time_t began)
{
    rendering_t *r;
    entry_t *e;

    if (yk_board_lock(boards, &e, ref, YK_LOCK_WRITE) != APR_SUCCESS) {
        return;
    }
    if (page->len > e->json_space || e->kind != ENTRY_PAGE) {
        yk_board_end_life(boards, e);
    }
    else if (began > e->page_made_us) {
        r = &e->rendering[atomic_load(&e->shown) == 0 ? 1 : 0];
        yk_seq_begin(&r->seq);
        memcpy(yk_board_at(boards, r->json_at), page->bytes, page->len);
        yk_board_show(boards, e, page->len, 0, page->hash);
        e->page_made_us = began;
        e->page_took_us = yk_state_now() - began;
    }
    yk_board_unlock(e);
}

static apr_status_t make_now(yk_boards_t *boards, const yk_board_ref_t *ref,
                             yk_page_t *page, uint64_t id,
                             yk_page_make_fn *make, void *baton, apr_pool_t *p)
{
    apr_time_t began = yk_state_now();
    yk_board_ref_t own;
    apr_status_t rv;

    memset(page, 0, sizeof(*page));
    rv = make(baton, &page->bytes, &page->len, p);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    page->hash = yk_text_fnv(YK_TEXT_FNV, page->bytes, page->len);
    if (ref != NULL) {
        keep(boards, ref, page, began);
    }
    if (yk_board_find(boards, &own, id) != APR_SUCCESS &&
        yk_board_page_make(boards, &own, id, page->len) == APR_SUCCESS) {
        keep(boards, &own, page, began);
    }
    return APR_SUCCESS;
}

apr_status_t yk_page_get(yk_boards_t *boards, yk_page_t *page, uint64_t id,
                         apr_interval_time_t age, yk_page_make_fn *make,
                         void *baton, apr_pool_t *p)
{
    apr_time_t deadline = yk_state_now() + YK_BOARD_FLIGHT;
    yk_board_ref_t ref;

    while (yk_board_find(boards, &ref, id) == APR_SUCCESS) {
        uint32_t news = atomic_load(&boards->entries[ref.entry].news);
        apr_interval_time_t is, took, good;
        apr_status_t rv = copy(boards, &ref, page, &is, &took, p);
        int64_t flight;

        good = DEAR * took > age ? DEAR * took : age;
        if (rv == APR_SUCCESS && is < good) {
            return APR_SUCCESS;
        }
        flight = yk_board_fly(boards, &ref);
        if (flight != 0) {
            yk_page_t fresh;
            apr_status_t made =
                make_now(boards, &ref, &fresh, id, make, baton, p);

            yk_board_land(boards, &ref, flight);
            /* While the book is away the one before is better than none. */
            if (made == APR_SUCCESS || made == APR_NOTFOUND ||
                rv != APR_SUCCESS) {
                *page = fresh;
                return made;
            }
            return APR_SUCCESS;
        }
        if (rv == APR_SUCCESS && is < 2 * good) {
            return APR_SUCCESS;
        }
        if (yk_state_now() >= deadline) {
            return rv == APR_SUCCESS ? rv : APR_TIMEUP;
        }
        yk_board_await(boards, &ref, news, deadline - yk_state_now());
    }
    return make_now(boards, NULL, page, id, make, baton, p);
}
