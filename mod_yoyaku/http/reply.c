/* SPDX-License-Identifier: Apache-2.0 */
#include "call.h"
#include "room.h"
#include <apr_strings.h>
#include <string.h>

#define JSON "application/json"
#define PROBLEM "application/problem+json"

void yk_http_reply_note(yk_http_call_t *call, const char *name,
                        const char *value)
{
    apr_table_setn(call->r->notes, name, value);
}

static void no_store(yk_http_call_t *call)
{
    apr_table_setn(call->r->headers_out, "Cache-Control", "no-store");
}

void yk_http_reply_unread(yk_http_call_t *call)
{
    request_rec *r = call->r;
    const char *length = apr_table_get(r->headers_in, "Content-Length");

    if (!call->read &&
        (apr_table_get(r->headers_in, "Transfer-Encoding") != NULL ||
         (length != NULL && strcmp(length, "0") != 0))) {
        r->connection->keepalive = AP_CONN_CLOSE;
    }
}

int yk_http_reply_bytes(yk_http_call_t *call, int status, const char *type,
                        const char *bytes, apr_size_t len)
{
    request_rec *r = call->r;

    yk_http_call_rest(call);
    yk_http_reply_unread(call);
    r->status = status;
    ap_set_content_type(r, type);
    ap_set_content_length(r, (apr_off_t)len);
    apr_table_setn(r->headers_out, "X-Content-Type-Options", "nosniff");
    if (!r->header_only) {
        ap_rwrite(bytes, (int)len, r);
    }
    return OK;
}

int yk_http_reply_json(yk_http_call_t *call, int status, yk_http_json_t *j)
{
    apr_size_t len = 0;
    const char *bytes = yk_http_json_done(j, &len);

    return yk_http_reply_bytes(call, status, JSON, bytes, len);
}

int yk_http_reply_see(yk_http_call_t *call, const char *url)
{
    apr_table_setn(call->r->headers_out, "Location", url);
    no_store(call);
    return yk_http_reply_bytes(call, HTTP_SEE_OTHER, JSON, "{}\n", 3);
}

/* ---- problems ---- */

/** Seconds until it makes sense to ask again; not the same for everybody, or
 *  everybody would be back at once. */
static int retry_after(yk_answer_e answer)
{
    unsigned char random;
    int base = answer == YK_ANSWER_AWAY ? 3 : 1;
    int spread = answer == YK_ANSWER_AWAY ? 8 : 4;

    yk_secret_random(&random, 1);
    return base + random % spread;
}

/** @param detail NULL: the title says it */
static yk_http_json_t *problem_make(yk_http_call_t *call, yk_answer_e answer,
                                    const char *detail)
{
    yk_http_json_t *j = yk_http_json_make(512, call->r->pool);
    int status = yk_http_status(answer);

    yk_http_reply_note(call, "yoyaku-outcome", yk_answer_reason(answer));
    yk_http_json_text(j, "reason", yk_answer_reason(answer));
    yk_http_json_text(j, "title", yk_answer_text(answer));
    yk_http_json_number(j, "status", status);
    if (detail != NULL) {
        yk_http_json_text(j, "detail", detail);
    }
    if (status == HTTP_SERVICE_UNAVAILABLE) {
        int seconds = retry_after(answer);

        apr_table_setn(call->r->err_headers_out, "Retry-After",
                       apr_itoa(call->r->pool, seconds));
        yk_http_json_number(j, "retry_after", seconds);
    }
    no_store(call);
    return j;
}

static int problem_send(yk_http_call_t *call, yk_answer_e answer,
                        yk_http_json_t *j)
{
    apr_size_t len = 0;
    const char *bytes = yk_http_json_done(j, &len);

    return yk_http_reply_bytes(call, yk_http_status(answer), PROBLEM, bytes,
                               len);
}

int yk_http_reply_fault(yk_http_call_t *call)
{
    const yk_fault_t *fault = &call->fault;
    yk_http_json_t *j = NULL;

    if (call->gone != OK) {
        return call->gone;
    }
    j = problem_make(call, fault->answer, fault->detail);
    if (fault->field != NULL) {
        yk_http_json_text(j, "field", fault->field);
    }
    if (fault->allowed != NULL) {
        yk_http_json_text(j, "allowed", fault->allowed);
    }
    ap_log_rerror(APLOG_MARK, APLOG_DEBUG, 0, call->r,
                  "YK0430: desk: refused: %s, field %s",
                  yk_answer_reason(fault->answer),
                  fault->field != NULL ? fault->field : "-");
    return problem_send(call, fault->answer, j);
}

int yk_http_reply_status(yk_http_call_t *call, apr_status_t rv)
{
    yk_answer_e answer = yk_http_status_answer(rv);

    /* a fit database said what only an unfit one does: look again */
    if (rv == APR_ENOTIMPL && !yk_http_desk_probe_is_unfit()) {
        yk_http_desk_probe_lost(call->r->server);
    }
    return problem_send(call, answer, problem_make(call, answer, NULL));
}

/** Members that say what it is now. */
static void refusal_now(yk_http_json_t *j, const yk_reply_t *reply)
{
    if (reply->state != NULL) {
        yk_http_json_text(j, "state", reply->state);
    }
    if (reply->answer == YK_ANSWER_NOT_ON_SALE) {
        yk_http_json_time(j, "opens", reply->opens);
        yk_http_json_time(j, "closes", reply->closes);
    }
    if (reply->answer == YK_ANSWER_ATTEMPT) {
        yk_http_json_number(j, "attempt", reply->attempt);
    }
    if (reply->answer == YK_ANSWER_AMOUNT) {
        const char *currency = reply->currency != NULL ? reply->currency : "";

        yk_http_json_text(j, "amount",
                          yk_money_write(reply->total, currency, j->p));
        yk_http_json_said(j, "currency", currency);
    }
    if (reply->answer == YK_ANSWER_LIMIT) {
        yk_http_json_text(j, "limit", reply->limit);
        yk_http_json_text(j, "scope", reply->scope);
        yk_http_json_number(j, "max", reply->max);
        yk_http_json_number(j, "have", reply->have);
        yk_http_json_number(j, "asked", reply->asked);
    }
}

static void refusal_places(yk_http_json_t *j, const yk_reply_t *reply)
{
    yk_http_json_array(j, "places");
    for (uint32_t i = 0; i < reply->nplaces; i++) {
        yk_http_json_object(j, NULL);
        yk_http_json_text(j, "slot", reply->places[i].slot);
        yk_http_json_text(j, "place", reply->places[i].place);
        yk_http_json_end(j);
    }
    yk_http_json_end(j);
    yk_http_json_flag(j, "complete", reply->complete);
}

static int refusal_send(yk_http_call_t *call, const yk_reply_t *reply)
{
    yk_http_json_t *j = problem_make(call, reply->answer, NULL);

    if (reply->order != NULL) {
        const char *number = yk_number_write(reply->order->order_id, j->p);

        yk_http_reply_note(call, "yoyaku-order", number);
        yk_http_json_text(j, "number", number);
    }
    if (reply->field != NULL) {
        yk_http_json_text(j, "field", reply->field);
    }
    if (reply->allowed != NULL) {
        yk_http_json_text(j, "allowed", reply->allowed);
    }
    if (reply->slot != NULL) {
        yk_http_json_text(j, "slot", reply->slot);
        yk_http_reply_note(call, "yoyaku-slot", reply->slot);
    }
    if (reply->area != NULL) {
        yk_http_json_text(j, "area", reply->area);
    }
    if (reply->tariff != NULL) {
        yk_http_json_text(j, "tariff", reply->tariff);
    }
    if (reply->answer == YK_ANSWER_SOLD_OUT ||
        reply->answer == YK_ANSWER_NOT_TOGETHER) {
        yk_http_json_number(j, "free", reply->free);
    }
    if (reply->answer == YK_ANSWER_TAKEN) {
        refusal_places(j, reply);
    }
    refusal_now(j, reply);
    return problem_send(call, reply->answer, j);
}

/** Nobody knows yet; whoever asks again with the number will. */
static int unresolved_send(yk_http_call_t *call, const yk_reply_t *reply)
{
    yk_http_json_t *j = problem_make(call, YK_ANSWER_UNRESOLVED, NULL);

    if (reply->order != NULL) {
        yk_http_json_text(j, "number",
                          yk_number_write(reply->order->order_id, j->p));
    }
    if (reply->token != NULL) {
        yk_http_json_text(j, "token", reply->token);
        yk_http_claim_cookie(call, reply->token);
    }
    return problem_send(call, YK_ANSWER_UNRESOLVED, j);
}

/* ---- an order ---- */

static int order_send(yk_http_call_t *call, const yk_reply_t *reply)
{
    yk_http_json_t *j = yk_http_json_make(2048, call->r->pool);
    const char *number = yk_number_write(reply->order->order_id, j->p);
    const char *at =
        call->shop ? apr_pstrcat(j->p, "/orders/", number, NULL) : "/order";

    yk_http_reply_note(call, "yoyaku-outcome", yk_answer_reason(reply->answer));
    yk_http_reply_note(call, "yoyaku-order", number);
    no_store(call);
    if (reply->token != NULL) {
        yk_http_claim_cookie(call, reply->token);
    }
    if (call->form) {
        return yk_http_reply_see(call, yk_http_route_url(call, at));
    }
    yk_http_json_text(j, "number", number);
    if (reply->token != NULL) {
        yk_http_json_text(j, "token", reply->token);
    }
    yk_http_document_order(call, j, reply->order, reply->now_us);
    if (reply->seating != YK_SEATING_NONE) {
        yk_http_json_flag(j, "together", reply->seating == YK_SEATING_TOGETHER);
    }
    if (reply->late) {
        yk_http_json_flag(j, "late", 1);
    }
    if (call->names_difference) {
        yk_http_json_text(
            j, "difference",
            yk_money_write(reply->difference, reply->order->currency, j->p));
    }
    if (reply->replayed) {
        apr_table_setn(call->r->headers_out, "Idempotency-Replayed", "true");
    }
    if (reply->created) {
        apr_table_setn(call->r->headers_out, "Location",
                       yk_http_route_url(call, at));
    }
    return yk_http_reply_json(
        call, reply->created ? HTTP_CREATED : yk_http_status(reply->answer), j);
}

/** A waiting room's pass lives as long as the order begun under it is held, and
 *  ends with its confirmation, whoever confirms. */
static void room_tell(const yk_reply_t *reply)
{
    const yk_order_t *order = reply->order;

    if (order == NULL || order->pass == 0 || reply->replayed) {
        return;
    }
    switch (yk_order_state_at(order, reply->now_us)) {
    case YK_ORDER_HELD:
    case YK_ORDER_LOCKED:
        yk_http_room_held(order->pass, order->order_id,
                          order->until_us - reply->now_us);
        break;
    case YK_ORDER_CONFIRMED:
        /* just now, not when it is looked at or confirmed once more */
        if (order->confirmed_us == reply->now_us) {
            yk_http_room_confirmed(order->pass, order->order_id);
        }
        break;
    default:
        yk_http_room_released(order->pass, order->order_id);
    }
}

int yk_http_reply_desk(yk_http_call_t *call, apr_status_t rv,
                       const yk_reply_t *reply)
{
    if (reply->lane_us > 0) {
        yk_http_reply_note(
            call, "yoyaku-lane-ms",
            apr_psprintf(call->r->pool, "%.3f", (double)reply->lane_us / 1000));
    }
    if (rv == APR_INCOMPLETE) {
        return unresolved_send(call, reply);
    }
    if (rv != APR_SUCCESS) {
        return yk_http_reply_status(call, rv);
    }
    if (reply->answer != YK_ANSWER_OK && reply->answer != YK_ANSWER_HELD) {
        return refusal_send(call, reply);
    }
    room_tell(reply);
    return order_send(call, reply);
}

/* ---- what everybody may see ---- */

/** @return 1 when If-None-Match knows this content, in whatever coding: what
 *  mod_deflate and others append is not content */
static int is_known(const request_rec *r, const char *etag)
{
    const char *header = apr_table_get(r->headers_in, "If-None-Match");
    apr_size_t len = strlen(etag);
    char *last = NULL;

    if (header == NULL) {
        return 0;
    }
    if (strcmp(header, "*") == 0) {
        return 1;
    }
    for (char *tag = apr_strtok(apr_pstrdup(r->pool, header), ", \t", &last);
         tag != NULL; tag = apr_strtok(NULL, ", \t", &last)) {
        static const char *const endings[] = {"\"", "-gz\"", "-gzip\"",
                                              "-br\""};

        if (strncmp(tag, "W/", 2) == 0) {
            tag += 2;
        }
        if (*tag != '"' || strncmp(tag + 1, etag, len) != 0) {
            continue;
        }
        for (int i = 0; i < 4; i++) {
            if (strcmp(tag + 1 + len, endings[i]) == 0) {
                return 1;
            }
        }
    }
    return 0;
}

int yk_http_reply_public(yk_http_call_t *call, const char *etag,
                         const char *cache)
{
    request_rec *r = call->r;
    /* behind a password it is public for those inside only */
    int is_guarded = r->ap_auth_type != NULL ||
                     apr_table_get(r->headers_in, "Authorization") != NULL;

    apr_table_setn(r->headers_out, "ETag",
                   apr_pstrcat(r->pool, "\"", etag, "\"", NULL));
    apr_table_setn(r->headers_out, "Cache-Control",
                   apr_pstrcat(r->pool, is_guarded ? "private, " : "public, ",
                               cache, NULL));
    apr_table_mergen(r->headers_out, "Vary", "Accept, Accept-Encoding");
    yk_http_reply_note(call, "yoyaku-outcome", "ok");
    if (!is_known(r, etag)) {
        return DECLINED;
    }
    yk_http_call_rest(call);
    yk_http_reply_unread(call);
    r->status = HTTP_NOT_MODIFIED;
    return OK;
}
