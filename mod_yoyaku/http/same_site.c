/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_strings.h>
#include <string.h>
#include "call.h"

/*
 * A change must come from a page of this site, from an origin that is allowed
 * by name, or from something that is no browser. Cookies count only for pages
 * of this site.
 */

#define METHODS_IN "GET, HEAD, POST, PATCH, DELETE"
#define HEADERS_IN                                                             \
    "Content-Type, Idempotency-Key, If-None-Match, Yoyaku-Order, Yoyaku-Room"
#define HEADERS_OUT "ETag, Location, Retry-After"
#define PREFLIGHT_AGE "600"

/** @return 1 when an Origin's host and port are those of Host; a port that
 *  stands for its scheme may be missing on either side */
static int is_host(const char *origin, const char *host)
{
    const char *port = NULL;
    apr_size_t len, host_len;

    if (strncmp(origin, "https://", 8) == 0) {
        origin += 8;
        port = ":443";
    }
    else if (strncmp(origin, "http://", 7) == 0) {
        origin += 7;
        port = ":80";
    }
    if (port == NULL || host == NULL || *origin == '\0') {
        return 0;
    }
    len = strlen(origin);
    host_len = strlen(host);
    if (len > strlen(port) && strcmp(origin + len - strlen(port), port) == 0) {
        len -= strlen(port);
    }
    if (host_len > strlen(port) &&
        strcmp(host + host_len - strlen(port), port) == 0) {
        host_len -= strlen(port);
    }
    return len == host_len && ap_cstr_casecmpn(origin, host, len) == 0;
}

static int is_allowed(const yk_http_call_t *call, const char *origin)
{
    const apr_array_header_t *origins = call->conf->origins;

    for (int i = 0; origins != NULL && i < origins->nelts; i++) {
        if (strcmp(APR_ARRAY_IDX(origins, i, const char *), origin) == 0) {
            return 1;
        }
    }
    return 0;
}

apr_status_t yk_http_same_site_check(yk_http_call_t *call, int is_change)
{
    const apr_table_t *in = call->r->headers_in;
    const char *site = apr_table_get(in, "Sec-Fetch-Site");
    const char *origin = apr_table_get(in, "Origin");
    int is_same;

    if (site != NULL) {
        is_same = strcmp(site, "same-origin") == 0 || strcmp(site, "none") == 0;
    }
    else {
        is_same = origin == NULL || is_host(origin, apr_table_get(in, "Host"));
    }
    if (is_same) {
        return APR_SUCCESS;
    }
    call->foreign = 1;
    if (origin != NULL && is_allowed(call, origin)) {
        call->origin = origin;
        return APR_SUCCESS;
    }
    if (!is_change) {
        return APR_SUCCESS;
    }
    return yk_http_call_fault(call, YK_ANSWER_FORBIDDEN,
                              origin != NULL ? "Origin" : "Sec-Fetch-Site",
                              NULL, "A page of another site asked for this.");
}

void yk_http_same_site_headers(yk_http_call_t *call)
{
    apr_table_t *out = call->r->headers_out;
    const apr_array_header_t *origins = call->conf->origins;

    if (origins == NULL || origins->nelts == 0) {
        return;
    }
    apr_table_mergen(out, "Vary", "Origin");
    if (call->origin != NULL) {
        apr_table_setn(out, "Access-Control-Allow-Origin", call->origin);
        apr_table_setn(out, "Access-Control-Expose-Headers", HEADERS_OUT);
    }
}

int yk_http_same_site_options(yk_http_call_t *call, const char *allow)
{
    request_rec *r = call->r;

    apr_table_setn(r->headers_out, "Allow", allow);
    if (call->origin != NULL &&
        apr_table_get(r->headers_in, "Access-Control-Request-Method")) {
        apr_table_setn(r->headers_out, "Access-Control-Allow-Methods",
                       METHODS_IN);
        apr_table_setn(r->headers_out, "Access-Control-Allow-Headers",
                       HEADERS_IN);
        apr_table_setn(r->headers_out, "Access-Control-Max-Age", PREFLIGHT_AGE);
    }
    apr_table_setn(r->headers_out, "Cache-Control", "no-store");
    yk_http_reply_unread(call);
    r->status = HTTP_NO_CONTENT;
    return OK;
}
