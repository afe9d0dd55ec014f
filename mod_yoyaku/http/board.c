/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_lib.h>
#include <apr_strings.h>
#include <string.h>
#include <zlib.h>
#include "call.h"

/*
 * What everybody may see of a slot: who holds what is in none of it. The tag of
 * an availability is a sum over its places and counts, so that it can be kept
 * as single ones change and is the same on every host.
 */

#define BOARD_CACHE "max-age=1"
#define PLAN_CACHE "max-age=31536000, immutable"
#define GZIP_BITS 31 /**< zlib's largest window, with a gzip frame */

apr_status_t yk_http_board_read(yk_http_call_t *call, const yk_slot_t **slot,
                                yk_board_t **board, int fresh)
{
    apr_pool_t *p = call->r->pool;
    apr_status_t rv = yk_http_call_open(call);

    if (rv == APR_SUCCESS) {
        rv = yk_catalogue_slot(call->catalogue, slot, NULL, call->store,
                               call->terms.tenant_id, call->slot, fresh, p);
    }
    if (rv == APR_SUCCESS && board != NULL) {
        rv = yk_store_board(call->store, board, *slot, p);
    }
    return rv;
}

int yk_http_board_refuse(yk_http_call_t *call, apr_status_t rv)
{
    if (rv != APR_NOTFOUND) {
        return yk_http_reply_status(call, rv);
    }
    yk_http_call_fault(call, YK_ANSWER_UNKNOWN, "slot", NULL,
                       "There is no such slot.");
    return yk_http_reply_fault(call);
}

int64_t *yk_http_board_free(const yk_slot_t *slot, const yk_board_t *board,
                            apr_pool_t *p)
{
    int64_t *free = apr_pcalloc(p, (slot->nareas + 1) * sizeof(*free));

    for (uint32_t i = 0; i < slot->nareas; i++) {
        yk_plan_section_t section = {0};

        if (slot->areas[i].mode == YK_MODE_CLOSED) {
            continue;
        }
        if (i < board->nareas && board->area_free[i] >= 0) {
            free[i] = board->area_free[i];
            continue;
        }
        if (slot->plan == NULL) {
            continue;
        }
        yk_plan_section(slot->plan, &section, i);
        for (uint32_t k = 0; k < section.places; k++) {
            free[i] += section.first + k < board->nplaces &&
                       board->states[section.first + k] == '0';
        }
    }
    return free;
}

/** Spread a number over 64 bits (splitmix64's last step). */
static uint64_t spread(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/** The tag of a board's content. */
static const char *tag_of(const yk_slot_t *slot, const yk_board_t *board,
                          const int64_t *free, apr_pool_t *p)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < board->nplaces; i++) {
        sum += spread((uint64_t)i << 8 | board->states[i]);
    }
    for (uint32_t i = 0; i < slot->nareas; i++) {
        if (slot->areas[i].mode == YK_MODE_POOLED) {
            sum += spread(UINT64_C(1) << 63 | (uint64_t)i << 40 |
                          (uint64_t)free[i]);
        }
    }
    return apr_psprintf(p, "%016" APR_UINT64_T_HEX_FMT, sum);
}

static const char *plan_hash(const yk_slot_t *slot, apr_pool_t *p)
{
    return slot->plan != NULL ? yk_text_hex(yk_plan_digest(slot->plan)->bytes,
                                            YK_HASH_BYTES, p)
                              : NULL;
}

static yk_http_json_t *board_write(const yk_slot_t *slot,
                                   const yk_board_t *board, const int64_t *free,
                                   apr_pool_t *p)
{
    yk_http_json_t *j =
        yk_http_json_make(1024 + board->nplaces + slot->nareas * 128, p);
    int64_t sum = 0;

    for (uint32_t i = 0; i < slot->nareas; i++) {
        sum += free[i];
    }
    yk_http_json_text(j, "slot", slot->key);
    yk_http_json_text(j, "plan", plan_hash(slot, p));
    yk_http_json_text(j, "epoch", yk_http_desk_epoch());
    yk_http_json_number(j, "generation", board->now_us);
    yk_http_json_number(j, "free", sum);
    yk_http_json_array(j, "sections");
    for (uint32_t i = 0; i < slot->nareas; i++) {
        yk_plan_section_t section = {0};

        yk_http_json_object(j, NULL);
        yk_http_json_text(j, "section", slot->areas[i].name);
        yk_http_json_text(j, "mode", yk_mode_name(slot->areas[i].mode));
        yk_http_json_number(j, "free", free[i]);
        if (slot->plan != NULL && i < yk_plan_sections(slot->plan)) {
            yk_plan_section(slot->plan, &section, i);
            if (section.first + section.places <= board->nplaces) {
                yk_http_json_plain(j, "places",
                                   (const char *)board->states + section.first,
                                   section.places);
            }
        }
        yk_http_json_end(j);
    }
    return j;
}

/** @return the bytes in a gzip frame, or NULL */
static const char *gzip_make(apr_size_t *len, const char *bytes, apr_size_t n,
                             apr_pool_t *p)
{
    z_stream z;
    char *out = NULL;
    uLong space;
    int done;

    memset(&z, 0, sizeof(z));
    if (deflateInit2(&z, Z_BEST_SPEED, Z_DEFLATED, GZIP_BITS, 8,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
        return NULL;
    }
    space = deflateBound(&z, n);
    out = apr_palloc(p, space);
    z.next_in = (Bytef *)bytes;
    z.avail_in = (uInt)n;
    z.next_out = (Bytef *)out;
    z.avail_out = (uInt)space;
    done = deflate(&z, Z_FINISH) == Z_STREAM_END;
    *len = z.total_out;
    deflateEnd(&z);
    return done ? out : NULL;
}

/** Compressed here or not at all: a filter behind us would change the tag. */
static int board_send(yk_http_call_t *call, yk_http_json_t *j, const char *tag)
{
    request_rec *r = call->r;
    apr_size_t len = 0, packed_len = 0;
    const char *bytes = yk_http_json_done(j, &len);
    const char *packed = yk_http_accept_gzip(r)
                             ? gzip_make(&packed_len, bytes, len, r->pool)
                             : NULL;

    if (packed != NULL && packed_len < len) {
        bytes = packed;
        len = packed_len;
        apr_table_setn(r->headers_out, "Content-Encoding", "gzip");
        apr_table_setn(r->headers_out, "ETag",
                       apr_pstrcat(r->pool, "\"", tag, "-gz\"", NULL));
    }
    return yk_http_reply_bytes(call, HTTP_OK, "application/json", bytes, len);
}

/** ?since=EPOCH.GENERATION: checked; a board that keeps no past answers whole,
 *  which every reader must understand. */
static apr_status_t since_check(yk_http_call_t *call)
{
    const char *args = call->r->args != NULL ? call->r->args : "";
    const char *since = NULL;
    const char *dot = NULL;
    yk_body_t *query = NULL;
    apr_status_t rv = yk_body_parse_form(&query, &call->fault, args,
                                         strlen(args), call->r->pool);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    since = yk_body_text(query, "since", 0, YK_TEXT_KEY);
    if (since != NULL && *since != '\0') {
        dot = strchr(since, '.');
        if (dot == NULL ||
            strspn(since, "0123456789abcdef") != (apr_size_t)(dot - since) ||
            dot == since || dot[1] == '\0' ||
            strspn(dot + 1, "0123456789") != strlen(dot + 1)) {
            yk_body_refuse(query, "since", "EPOCH.GENERATION of a board",
                           "No board is called so.");
        }
    }
    return yk_body_check(query, &call->fault);
}

int yk_http_board_availability(yk_http_call_t *call)
{
    request_rec *r = call->r;
    const yk_slot_t *slot = NULL;
    yk_board_t *board = NULL;
    int64_t *free = NULL;
    const char *tag = NULL;
    apr_status_t rv = since_check(call);

    if (rv != APR_SUCCESS) {
        return yk_http_reply_fault(call);
    }
    rv = yk_http_board_read(call, &slot, &board, 0);
    if (rv != APR_SUCCESS) {
        return yk_http_board_refuse(call, rv);
    }
    free = yk_http_board_free(slot, board, r->pool);
    tag = tag_of(slot, board, free, r->pool);
    apr_table_setn(r->subprocess_env, "no-gzip", "1");
    apr_table_setn(r->subprocess_env, "no-brotli", "1");
    if (yk_http_reply_public(call, tag, BOARD_CACHE) == OK) {
        return OK;
    }
    return board_send(call, board_write(slot, board, free, r->pool), tag);
}

/* ---- the drawing ---- */

int yk_http_board_plan(yk_http_call_t *call)
{
    apr_pool_t *p = call->r->pool;
    const yk_slot_t *slot = NULL;
    const char *json = NULL;
    apr_size_t len = 0;
    apr_status_t rv = yk_http_board_read(call, &slot, NULL, 0);

    if (rv != APR_SUCCESS) {
        return yk_http_board_refuse(call, rv);
    }
    if (slot->plan == NULL) {
        yk_http_call_fault(call, YK_ANSWER_UNKNOWN, NULL, NULL,
                           "This slot has no hall, only pools.");
        return yk_http_reply_fault(call);
    }
    if (yk_http_reply_public(call, plan_hash(slot, p), PLAN_CACHE) == OK) {
        return OK;
    }
    yk_http_call_rest(call);
    yk_plan_document(slot->plan, &json, &len, YK_PLAN_NONE, p);
    return yk_http_reply_bytes(call, HTTP_OK, "application/json", json, len);
}
