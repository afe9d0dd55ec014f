/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_escape.h>
#include <apr_strings.h>
#include <string.h>
#include "board.h"

typedef struct filters_t {
    const char *resource, *series, *state, *after; /**< NULL: any */
} filters_t;

void yk_http_slots_members(yk_http_json_t *j, const yk_slot_t *slot,
                           apr_time_t now, int64_t free, int64_t places)
{
    yk_http_json_text(j, "slot", slot->key);
    yk_http_json_text(j, "title", slot->title);
    yk_http_json_said(j, "resource", slot->resource);
    yk_http_json_said(j, "series", slot->series);
    yk_http_json_time(j, "starts", slot->starts);
    yk_http_json_time(j, "ends", slot->ends);
    yk_http_json_time(j, "opens", slot->opens);
    yk_http_json_time(j, "closes", slot->closes);
    yk_http_json_text(j, "state", yk_slot_state_name(slot, now));
    yk_http_json_number(j, "free", free);
    yk_http_json_number(j, "places", places);
}

/** One of the two documents that are pages, and whom it is made for. */
typedef struct page_t {
    yk_http_call_t *call;
    const filters_t *filters;
} page_t;

/** From the board's memory, made by one for all. */
static int page_send(yk_http_call_t *call, page_t *page, const char *name,
                     yk_page_make_fn *make)
{
    request_rec *r = call->r;
    yk_boards_t *boards = yk_http_board_boards();
    yk_page_t found;
    apr_status_t rv = APR_ECONNRESET;
    int is_gzip;

    if (boards != NULL) {
        rv = yk_page_get(boards, &found, yk_http_board_id(call, name),
                         yk_http_board_age(r), make, page, r->pool);
    }
    if (rv != APR_SUCCESS) {
        return yk_http_board_refuse(call, rv);
    }
    is_gzip = found.gzip_len > 0 && yk_http_accept_gzip(r);
    return yk_http_board_send(call, found.hash, "", yk_http_board_cache(r, -1),
                              is_gzip ? found.gzip : found.bytes,
                              is_gzip ? found.gzip_len : found.len, is_gzip);
}

int yk_http_slots_index(yk_http_call_t *call)
{
    yk_http_json_t *j = yk_http_json_make(0, call->r->pool);

    yk_http_json_text(j, "slots", yk_http_route_url(call, "/slots"));
    yk_http_json_text(j, "holds", yk_http_route_url(call, "/holds"));
    yk_http_json_text(j, "order", yk_http_route_url(call, "/order"));
    apr_table_setn(call->r->headers_out, "Cache-Control", "public, max-age=60");
    return yk_http_reply_json(call, HTTP_OK, j);
}

/* ---- the list ---- */

static const char *filter_read(yk_body_t *query, const char *name)
{
    const char *text = yk_body_text(query, name, 0, YK_TEXT_KEY);

    return text != NULL && *text != '\0' ? text : NULL;
}

static apr_status_t filters_read(yk_http_call_t *call, filters_t *filters)
{
    static const char *const states[] = {"open", "closed", "before", "over"};
    const char *args = call->r->args != NULL ? call->r->args : "";
    yk_body_t *query = NULL;
    int is_state = 0;
    apr_status_t rv = yk_body_parse_form(&query, &call->fault, args,
                                         strlen(args), call->r->pool);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    filters->resource = filter_read(query, "resource");
    filters->series = filter_read(query, "series");
    filters->state = filter_read(query, "state");
    filters->after = filter_read(query, "after");
    for (int i = 0; filters->state != NULL && i < 4; i++) {
        is_state |= strcmp(filters->state, states[i]) == 0;
    }
    if (filters->state != NULL && !is_state) {
        yk_body_refuse(query, "state", "open, closed, before, over",
                       "There is no such state.");
    }
    if (filters->after != NULL && !yk_text_is_key(filters->after)) {
        yk_body_refuse(query, "after", "the key of a slot",
                       "No slot has such a key.");
    }
    return yk_body_check(query, &call->fault);
}

static const char *next_url(const yk_http_call_t *call,
                            const filters_t *filters, const char *last)
{
    apr_pool_t *p = call->r->pool;
    const struct {
        const char *name, *value;
    } parts[] = {{"resource", filters->resource},
                 {"series", filters->series},
                 {"state", filters->state},
                 {"after", last}};
    const char *url = yk_http_route_url(call, "/slots");
    const char *mark = "?";

    for (int i = 0; i < 4; i++) {
        if (parts[i].value != NULL) {
            url = apr_pstrcat(p, url, mark, parts[i].name, "=",
                              apr_pescape_urlencoded(p, parts[i].value), NULL);
            mark = "&";
        }
    }
    return url;
}

static apr_status_t list_make(void *baton, const char **json, apr_size_t *len,
                              apr_pool_t *p)
{
    const page_t *page = baton;
    const filters_t *filters = page->filters;
    yk_http_call_t *call = page->call;
    yk_listed_t *list = NULL;
    yk_http_json_t *j = NULL;
    apr_time_t now = 0;
    uint32_t n = 0;
    int more = 0;
    apr_status_t rv =
        call->store == NULL ? yk_http_call_open(call) : APR_SUCCESS;

    if (rv == APR_SUCCESS) {
        rv = yk_store_slots(call->store, &list, &n, &more, &now,
                            call->terms.tenant_id, filters->resource,
                            filters->series, filters->state, filters->after, p);
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    j = yk_http_json_make(512 * (n + 1), p);
    yk_http_json_array(j, "slots");
    for (uint32_t i = 0; i < n; i++) {
        yk_http_json_object(j, NULL);
        yk_http_slots_members(j, list[i].slot, now, list[i].free,
                              list[i].places);
        yk_http_json_end(j);
    }
    yk_http_json_end(j);
    yk_http_json_text(
        j, "next",
        more && n > 0 ? next_url(call, filters, list[n - 1].slot->key) : NULL);
    *json = yk_http_json_done(j, len);
    return APR_SUCCESS;
}

int yk_http_slots_list(yk_http_call_t *call)
{
    filters_t filters = {NULL, NULL, NULL, NULL};
    page_t page = {call, &filters};

    if (filters_read(call, &filters) != APR_SUCCESS) {
        return yk_http_reply_fault(call);
    }
    return page_send(
        call, &page,
        next_url(call, &filters, filters.after != NULL ? filters.after : ""),
        list_make);
}

/* ---- one ---- */

static void areas_write(yk_http_json_t *j, const yk_slot_t *slot,
                        const int64_t *free)
{
    yk_http_json_array(j, "areas");
    for (uint32_t i = 0; i < slot->nareas; i++) {
        yk_http_json_object(j, NULL);
        yk_http_json_text(j, "area", slot->areas[i].name);
        yk_http_json_text(j, "mode", yk_mode_name(slot->areas[i].mode));
        yk_http_json_number(j, "free", free[i]);
        yk_http_json_number(j, "places", slot->areas[i].max);
        yk_http_json_end(j);
    }
    yk_http_json_end(j);
}

static void prices_write(yk_http_json_t *j, const yk_slot_t *slot)
{
    yk_http_json_array(j, "prices");
    for (uint32_t i = 0; i < slot->nprices; i++) {
        const yk_price_t *price = &slot->prices[i];
        int has_area =
            price->area_no >= 0 && (uint32_t)price->area_no < slot->nareas;

        yk_http_json_object(j, NULL);
        yk_http_json_text(j, "tariff", price->tariff);
        yk_http_json_text(j, "grade", price->grade);
        yk_http_json_text(j, "area",
                          has_area ? slot->areas[price->area_no].name : NULL);
        yk_http_json_text(j, "price",
                          yk_money_write(price->amount, price->currency, j->p));
        yk_http_json_said(j, "currency", price->currency);
        if (price->quota >= 0) {
            yk_http_json_number(j, "quota", price->quota);
        }
        yk_http_json_end(j);
    }
    yk_http_json_end(j);
}

static void limits_write(yk_http_json_t *j, const yk_slot_t *slot)
{
    static const char *const pers[] = {"order", "booker"};
    static const char *const overs[] = {"slot", "resource", "series", "all"};
    static const char *const counts[] = {"places", "slots", "resources"};

    yk_http_json_array(j, "limits");
    for (uint32_t i = 0; i < slot->nlimits; i++) {
        const yk_limit_t *limit = &slot->limits[i];

        if (!limit->in_force) {
            continue;
        }
        yk_http_json_object(j, NULL);
        yk_http_json_text(j, "per", pers[limit->per]);
        yk_http_json_text(j, "over", overs[limit->over]);
        yk_http_json_said(j, "key", limit->key);
        yk_http_json_text(j, "count", counts[limit->count]);
        yk_http_json_number(j, "max", limit->max);
        yk_http_json_end(j);
    }
    yk_http_json_end(j);
}

/** Free by area where the board has no room: counted in the book. */
static apr_status_t free_count(yk_http_call_t *call, int64_t *free,
                               apr_time_t *now, const yk_slot_t *slot,
                               apr_pool_t *p)
{
    yk_board_t *board = NULL;
    apr_status_t rv = yk_store_board(call->store, &board, slot, p);

    for (uint32_t i = 0; rv == APR_SUCCESS && i < slot->nareas; i++) {
        yk_plan_section_t section = {0};

        if (slot->areas[i].mode == YK_MODE_POOLED) {
            free[i] = board->area_free[i];
        }
        if (slot->areas[i].mode == YK_MODE_CLOSED || slot->plan == NULL ||
            i >= yk_plan_sections(slot->plan)) {
            continue;
        }
        yk_plan_section(slot->plan, &section, i);
        for (uint32_t k = 0; k < section.places; k++) {
            free[i] += section.first + k < board->nplaces &&
                       board->states[section.first + k] == '0';
        }
    }
    if (rv == APR_SUCCESS) {
        *now = board->now_us;
    }
    return rv;
}

static apr_status_t free_read(yk_http_call_t *call, int64_t *free,
                              apr_time_t *now, const yk_slot_t *slot,
                              apr_pool_t *p)
{
    yk_board_ref_t ref;
    apr_status_t rv = yk_http_board_fresh(call, &ref);

    if (rv == APR_ENOSPC) {
        return free_count(call, free, now, slot, p);
    }
    if (rv == APR_SUCCESS) {
        rv = yk_board_free(yk_http_board_boards(), &ref, free, now,
                           slot->nareas);
        rv = rv == APR_NOTFOUND ? APR_TIMEUP : rv;
    }
    return rv;
}

/** Prices and limits are today's: read from the book, once for all who ask. */
static apr_status_t look_make(void *baton, const char **json, apr_size_t *len,
                              apr_pool_t *p)
{
    yk_http_call_t *call = ((const page_t *)baton)->call;
    yk_board_source_t source;
    const yk_slot_t *slot = NULL;
    yk_http_json_t *j = NULL;
    int64_t *free = NULL;
    int64_t sum = 0, places = 0;
    apr_time_t now = 0;
    apr_status_t rv;

    yk_http_board_source(&source, call);
    rv = source.slot(call, &slot, 1);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    free = apr_pcalloc(p, (slot->nareas + 1) * sizeof(*free));
    rv = free_read(call, free, &now, slot, p);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    for (uint32_t i = 0; i < slot->nareas; i++) {
        sum += free[i];
        places += slot->areas[i].max;
    }
    j = yk_http_json_make(4096, p);
    yk_http_slots_members(j, slot, now, sum, places);
    areas_write(j, slot, free);
    prices_write(j, slot);
    limits_write(j, slot);
    *json = yk_http_json_done(j, len);
    return APR_SUCCESS;
}

int yk_http_slots_look(yk_http_call_t *call)
{
    page_t page = {call, NULL};

    return page_send(call, &page,
                     apr_pstrcat(call->r->pool, "slot ", call->slot, NULL),
                     look_make);
}
