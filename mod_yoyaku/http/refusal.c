/* SPDX-License-Identifier: Apache-2.0 */
#include "refusal.h"

#include <apr_strings.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <mod_core.h>
#include <unistd.h>
#include <yoyaku/template.h>
#include "call.h"

int yk_http_refusal_is_page(request_rec *r)
{
    const char *accept = apr_table_get(r->headers_in, "Accept");
    int ours = r->handler != NULL && strncmp(r->handler, "yoyaku", 6) == 0;

    if (accept == NULL || *accept == '\0') {
        return !ours;
    }
    switch (yk_http_accept(r)) {
    case YK_HTTP_ACCEPT_HTML:
    case YK_HTTP_ACCEPT_HTML_JSON:
        return 1;
    case YK_HTTP_ACCEPT_JSON:
        /* preferred, or equal to the page */
        return !ours && !yk_http_accept_prefers_json(r);
    default:
        return 0;
    }
}

/* Only so that not all come back in the same second: nobody's secret, and asked
 * for a thousand times a second. */
int yk_http_refusal_retry(int least)
{
    static _Atomic uint64_t count;
    uint64_t x = (uint64_t)apr_time_now() ^ ((uint64_t)getpid() << 40) ^
                 (atomic_fetch_add(&count, 1) << 24);

    x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 31;
    x *= UINT64_C(0x94d049bb133111eb);
    return least + (int)((x >> 33) % (uint64_t)(least + 1));
}

int yk_http_refusal_bytes(request_rec *r, int status, const char *type,
                          const char *bytes, apr_size_t len)
{
    r->status = status;
    ap_set_content_type(r, type);
    ap_set_content_length(r, (apr_off_t)len);
    apr_table_setn(r->err_headers_out, "Cache-Control", "no-store");
    if (!r->header_only) {
        ap_rwrite(bytes, (int)len, r);
    }
    return OK;
}

static int problem(request_rec *r, const json_t *values)
{
    char *text = json_dumps(values, JSON_COMPACT);
    int rv =
        yk_http_refusal_bytes(r, HTTP_SERVICE_UNAVAILABLE,
                              "application/problem+json", text, strlen(text));

    free(text);
    return rv;
}

int yk_http_refusal_send(request_rec *r, yk_answer_e answer, int retry_after,
                         json_t *values, const char *page)
{
    json_t *all = values != NULL ? values : json_object();
    const char *reason = yk_answer_reason(answer), *text;
    apr_size_t len;
    int rv;

    apr_table_setn(r->err_headers_out, "Retry-After",
                   apr_itoa(r->pool, retry_after));
    apr_table_setn(r->notes, "yoyaku-outcome", reason);
    json_object_set_new(all, "type", json_string("about:blank"));
    json_object_set_new(all, "title", json_string(yk_answer_text(answer)));
    json_object_set_new(all, "status", json_integer(HTTP_SERVICE_UNAVAILABLE));
    json_object_set_new(all, "reason", json_string(reason));
    json_object_set_new(all, "retry_after", json_integer(retry_after));
    if (ap_response_code_string(
            r, ap_index_of_response(HTTP_SERVICE_UNAVAILABLE)) != NULL) {
        apr_table_setn(r->err_headers_out, "Cache-Control", "no-store");
        rv = HTTP_SERVICE_UNAVAILABLE;
    }
    else if (!yk_http_refusal_is_page(r)) {
        rv = problem(r, all);
    }
    else {
        text = yk_page_find(&len, page);
        text = yk_template_fill(&len, text != NULL ? text : page, all, r->pool);
        rv = yk_http_refusal_bytes(r, HTTP_SERVICE_UNAVAILABLE,
                                   "text/html; charset=utf-8", text, len);
    }
    json_decref(all);
    return rv;
}
