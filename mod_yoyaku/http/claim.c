/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_lib.h>
#include <apr_strings.h>
#include <http_ssl.h>
#include <string.h>
#include "call.h"

#define HEADER "Yoyaku-Order"
#define COOKIE "yoyaku_order"

/** @return the first value of our cookie that has a token's form */
static const char *cookie_token(yk_hash_t *hash, const request_rec *r)
{
    const char *header = apr_table_get(r->headers_in, "Cookie");
    char *last = NULL;

    if (header == NULL) {
        return NULL;
    }
    for (char *pair = apr_strtok(apr_pstrdup(r->pool, header), ";,", &last);
         pair != NULL; pair = apr_strtok(NULL, ";,", &last)) {
        char *end = pair + strlen(pair);

        while (apr_isspace(*pair)) {
            pair++;
        }
        while (end > pair && apr_isspace(end[-1])) {
            *--end = '\0';
        }
        if (strncmp(pair, COOKIE "=", sizeof(COOKIE)) == 0 &&
            yk_token_hash(hash, pair + sizeof(COOKIE)) == APR_SUCCESS) {
            return pair + sizeof(COOKIE);
        }
    }
    return NULL;
}

void yk_http_claim_read(yk_http_call_t *call)
{
    const char *header = apr_table_get(call->r->headers_in, HEADER);

    if (header != NULL) {
        if (yk_token_hash(&call->token_hash, header) != APR_SUCCESS) {
            call->claim_is_bad = 1;
            return;
        }
        call->token = header;
    }
    else if (!call->shop && !call->foreign) {
        call->token = cookie_token(&call->token_hash, call->r);
        call->claim_room.weak = call->token != NULL;
    }
    if (call->token != NULL) {
        call->claim_room.token = &call->token_hash;
        call->claim = &call->claim_room;
    }
}

void yk_http_claim_number(yk_http_call_t *call)
{
    call->claim_room.order_id = call->order_id;
    call->claim = &call->claim_room;
}

apr_status_t yk_http_claim_need(yk_http_call_t *call)
{
    if (call->claim != NULL) {
        return APR_SUCCESS;
    }
    return yk_http_call_fault(
        call, YK_ANSWER_UNKNOWN, HEADER, "the token that the hold answered",
        call->claim_is_bad ? "The header is no token of an order."
                           : "The request names no order.");
}

static int is_tls(const request_rec *r)
{
    conn_rec *c = r->connection;

    return ap_ssl_conn_is_ssl(c->master != NULL ? c->master : c) ||
           strcmp(ap_http_scheme((request_rec *)r), "https") == 0;
}

void yk_http_claim_cookie(yk_http_call_t *call, const char *token)
{
    if (call->shop || call->foreign) {
        return;
    }
    apr_table_addn(call->r->headers_out, "Set-Cookie",
                   apr_pstrcat(call->r->pool, COOKIE "=", token, "; Path=",
                               *call->base != '\0' ? call->base : "/",
                               "; HttpOnly; SameSite=Lax",
                               is_tls(call->r) ? "; Secure" : "", NULL));
}
