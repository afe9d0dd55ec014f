/* SPDX-License-Identifier: Apache-2.0 */
#include "board.h"
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

/*
 * What everybody may see of a slot: who holds what is in none of it. Answered
 * from the board in shared memory; one request in half a second reads what
 * was journalled for all the others.
 */

#define STALE 2 /* stale-while-revalidate, in times of YoyakuBoardAge */

int yk_http_board_refuse(yk_http_call_t *call, apr_status_t rv)
{
    if (rv != APR_NOTFOUND) {
        return yk_http_reply_status(call, rv);
    }
    yk_http_call_fault(call, YK_ANSWER_UNKNOWN, "slot", NULL,
                       "There is no such slot.");
    return yk_http_reply_fault(call);
}

/* ---- how a board is read ---- */

static apr_status_t source_open(void *baton, yk_store_t **store)
{
    yk_http_call_t *call = baton;
    apr_status_t rv =
        call->store == NULL ? yk_http_call_open(call) : APR_SUCCESS;

    *store = call->store;
    return rv;
}

static apr_status_t source_slot(void *baton, const yk_slot_t **slot, int fresh)
{
    yk_http_call_t *call = baton;
    yk_store_t *store;
    apr_status_t rv = source_open(call, &store);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    return yk_catalogue_slot(call->catalogue, slot, NULL, store,
                             call->terms.tenant_id, call->slot, fresh,
                             call->r->pool);
}

void yk_http_board_source(yk_board_source_t *source, yk_http_call_t *call)
{
    source->baton = call;
    source->open = source_open;
    source->slot = source_slot;
}

uint64_t yk_http_board_id(const yk_http_call_t *call, const char *name)
{
    const yk_http_database_t *database =
        yk_http_desk_scan_database(call->r->server);

    return yk_board_id(database != NULL ? database->name : "",
                       yk_http_desk_config_tenant(call->conf), name);
}

apr_status_t yk_http_board_fresh(yk_http_call_t *call, yk_board_ref_t *ref)
{
    yk_boards_t *boards = yk_http_board_boards();
    yk_board_source_t source;
    int old = 0;
    apr_status_t rv;

    if (boards == NULL) {
        return APR_ECONNRESET;
    }
    yk_http_board_source(&source, call);
    rv = yk_board_fresh(boards, ref, &old, yk_http_board_id(call, call->slot),
                        &source, call->r->pool);
    if (old) {
        yk_http_reply_note(call, "yoyaku-old", "1");
    }
    return rv;
}

/* ---- what is asked ---- */

typedef struct since_t {
    int is_said;
    uint64_t epoch, generation;
} since_t;

/** ?since=EPOCH.GENERATION */
static apr_status_t since_read(yk_http_call_t *call, since_t *since)
{
    yk_body_t *query = NULL;
    const char *text, *dot;
    apr_status_t rv;

    memset(since, 0, sizeof(*since));
    if (call->r->args == NULL) {
        return APR_SUCCESS;
    }
    rv = yk_body_parse_form(&query, &call->fault, call->r->args,
                            strlen(call->r->args), call->r->pool);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    text = yk_body_text(query, "since", 0, YK_TEXT_KEY);
    if (text != NULL && *text != '\0') {
        dot = strchr(text, '.');
        if (dot == NULL || dot == text || dot - text > 16 ||
            strspn(text, "0123456789abcdef") != (apr_size_t)(dot - text) ||
            dot[1] == '\0' || strlen(dot + 1) > 19 ||
            strspn(dot + 1, "0123456789") != strlen(dot + 1)) {
            yk_body_refuse(query, "since", "EPOCH.GENERATION of a board",
                           "No board is called so.");
        }
        else {
            since->is_said = 1;
            since->epoch = strtoull(text, NULL, 16);
            since->generation = strtoull(dot + 1, NULL, 10);
        }
    }
    return yk_body_check(query, &call->fault);
}

/* ---- what is sent ---- */

const char *yk_http_board_cache(const request_rec *r, apr_interval_time_t left)
{
    apr_interval_time_t age = yk_http_board_age(r);
    apr_interval_time_t stale = STALE * age;

    if (left >= 0 && left < age + stale) {
        /* nothing from before the opening is shown after it */
        age = left < age ? left : age;
        stale = 0;
    }
    if (age == APR_USEC_PER_SEC && stale == STALE * APR_USEC_PER_SEC) {
        return "max-age=0, s-maxage=1, stale-while-revalidate=2";
    }
    return apr_psprintf(r->pool,
                        stale > 0 ? "max-age=0, s-maxage=%" APR_INT64_T_FMT
                                    ", stale-while-revalidate=%" APR_INT64_T_FMT
                                  : "max-age=0, s-maxage=%" APR_INT64_T_FMT,
                        apr_time_sec(age), apr_time_sec(stale));
}

static const char *tag_of(uint64_t hash, const char *suffix, apr_pool_t *p)
{
    unsigned char bytes[8];
    const char *hex;

    for (int i = 0; i < 8; i++) {
        bytes[i] = (unsigned char)(hash >> (56 - 8 * i));
    }
    hex = yk_text_hex(bytes, sizeof(bytes), p);
    return *suffix != '\0' ? apr_pstrcat(p, hex, suffix, NULL) : hex;
}

/** The headers, and 304 when it is known. @return OK when that was sent */
static int head_send(yk_http_call_t *call, uint64_t hash, const char *suffix,
                     const char *cache, int is_gzip)
{
    request_rec *r = call->r;
    const char *tag = tag_of(hash, suffix, r->pool);
    int known;

    apr_table_setn(r->subprocess_env, "no-gzip", "1");
    apr_table_setn(r->subprocess_env, "no-brotli", "1");
    known = yk_http_reply_public(call, tag, cache);
    if (is_gzip) {
        apr_table_setn(r->headers_out, "ETag",
                       apr_pstrcat(r->pool, "\"", tag, "-gz\"", NULL));
    }
    return known;
}

int yk_http_board_send(yk_http_call_t *call, uint64_t hash, const char *suffix,
                       const char *cache, const char *bytes, apr_size_t len,
                       int is_gzip)
{
    if (head_send(call, hash, suffix, cache, is_gzip) == OK) {
        return OK;
    }
    if (is_gzip) {
        apr_table_setn(call->r->headers_out, "Content-Encoding", "gzip");
    }
    return yk_http_reply_bytes(call, HTTP_OK, "application/json", bytes, len);
}

/** Until the slot opens; -1: it has, or says nothing of it. */
static apr_interval_time_t left_of(const yk_board_answer_t *answer)
{
    return answer->opens_us > answer->now_us && answer->now_us > 0
               ? answer->opens_us - answer->now_us
               : -1;
}

static int answer_known(yk_http_call_t *call, const yk_board_answer_t *answer,
                        int is_gzip)
{
    return head_send(call, answer->hash, "",
                     yk_http_board_cache(call->r, left_of(answer)), is_gzip);
}

static int answer_send(yk_http_call_t *call, const yk_board_answer_t *answer,
                       const since_t *since, int is_gzip)
{
    const char *suffix = "";

    if (answer->is_delta) {
        suffix = apr_psprintf(
            call->r->pool, "-d%" APR_UINT64_T_HEX_FMT "-%" APR_UINT64_T_HEX_FMT,
            (apr_uint64_t)since->generation, (apr_uint64_t)answer->generation);
    }
    return yk_http_board_send(call, answer->hash, suffix,
                              yk_http_board_cache(call->r, left_of(answer)),
                              answer->bytes, answer->len, is_gzip);
}

/** The board as asked for; APR_TIMEUP when its lives end faster than it can
 *  be read. */
static apr_status_t answer_get(yk_http_call_t *call, yk_board_answer_t *answer,
                               const since_t *since, yk_board_form_e form)
{
    yk_boards_t *boards = yk_http_board_boards();
    apr_pool_t *p = call->r->pool;
    yk_board_ref_t ref;

    for (int lives = 0; lives < 4; lives++) {
        apr_status_t rv = yk_http_board_fresh(call, &ref);

        if (rv != APR_SUCCESS) {
            return rv;
        }
        rv = since->is_said ? yk_board_since(boards, &ref, answer, since->epoch,
                                             since->generation, p)
                            : yk_board_get(boards, &ref, answer, form, p);
        if (rv != APR_NOTFOUND) {
            return rv;
        }
    }
    return APR_TIMEUP;
}

/** 304 needs the tag only: nothing is copied for whoever has it.
 *  @return OK when it was sent */
static int known_send(yk_http_call_t *call, const since_t *since, int is_gzip)
{
    apr_table_t *out = call->r->headers_out;
    const char *vary = apr_table_get(out, "Vary");
    yk_board_answer_t answer;

    if (since->is_said ||
        apr_table_get(call->r->headers_in, "If-None-Match") == NULL ||
        answer_get(call, &answer, since, YK_BOARD_HEAD) != APR_SUCCESS) {
        return DECLINED;
    }
    if (answer_known(call, &answer, is_gzip) == OK) {
        return OK;
    }
    /* the answer that follows adds to it once more */
    apr_table_unset(out, "Vary");
    if (vary != NULL) {
        apr_table_setn(out, "Vary", vary);
    }
    return DECLINED;
}

int yk_http_board_availability(yk_http_call_t *call)
{
    yk_board_answer_t answer;
    yk_board_source_t source;
    since_t since = {0, 0, 0};
    int is_gzip;
    apr_status_t rv = since_read(call, &since);

    if (rv != APR_SUCCESS) {
        return yk_http_reply_fault(call);
    }
    is_gzip = !since.is_said && yk_http_accept_gzip(call->r);
    if (known_send(call, &since, is_gzip) == OK) {
        return OK;
    }
    rv = answer_get(call, &answer, &since,
                    is_gzip ? YK_BOARD_GZIP : YK_BOARD_JSON);
    if (rv == APR_SUCCESS && is_gzip && answer.len == 0) {
        is_gzip = 0; /* it could not be compressed */
        rv = answer_get(call, &answer, &since, YK_BOARD_JSON);
    }
    if (rv == APR_ENOSPC) {
        is_gzip = yk_http_accept_gzip(call->r);
        yk_http_board_source(&source, call);
        rv = yk_board_overflow(yk_http_board_boards(), &answer,
                               is_gzip ? YK_BOARD_GZIP : YK_BOARD_JSON, &source,
                               call->r->pool);
    }
    if (rv != APR_SUCCESS) {
        return yk_http_board_refuse(call, rv);
    }
    return answer_send(call, &answer, &since, is_gzip);
}
