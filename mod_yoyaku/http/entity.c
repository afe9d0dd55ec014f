/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_buckets.h>
#include <apr_lib.h>
#include <apr_strings.h>
#include <string.h>
#include "call.h"

#define JSON_TYPE "application/json"
#define FORM_TYPE "application/x-www-form-urlencoded"

typedef enum kind_e { KIND_NONE, KIND_JSON, KIND_FORM } kind_e;

/** What Content-Type says; another charset than UTF-8 is no kind of ours. */
static kind_e kind_of(const request_rec *r)
{
    const char *type = apr_table_get(r->headers_in, "Content-Type");
    const char *rest = type;
    const char *name = NULL;
    char *params = NULL;
    char *charset = NULL;

    if (type == NULL ||
        apr_table_get(r->headers_in, "Content-Encoding") != NULL) {
        return KIND_NONE;
    }
    name = ap_getword(r->pool, &rest, ';');
    params = apr_pstrdup(r->pool, rest);
    ap_str_tolower(params);
    charset = strstr(params, "charset=");
    if (charset != NULL) {
        charset += 8 + (charset[8] == '"');
        if (strncmp(charset, "utf-8", 5) != 0 || apr_isalnum(charset[5])) {
            return KIND_NONE;
        }
    }
    apr_collapse_spaces((char *)name, name);
    if (ap_cstr_casecmp(name, JSON_TYPE) == 0) {
        return KIND_JSON;
    }
    return ap_cstr_casecmp(name, FORM_TYPE) == 0 ? KIND_FORM : KIND_NONE;
}

static apr_status_t too_large(yk_http_call_t *call)
{
    return yk_http_call_fault(call, YK_ANSWER_TOO_LARGE, NULL,
                              "at most 65536 bytes",
                              "The body is longer than 64 KiB.");
}

/** Read what comes into `buffer` until the end or until it is too much. */
static apr_status_t bytes_read(yk_http_call_t *call, char *buffer,
                               apr_size_t most)
{
    request_rec *r = call->r;
    apr_bucket_brigade *bb =
        apr_brigade_create(r->pool, r->connection->bucket_alloc);
    int at_end = 0;

    while (!at_end) {
        apr_size_t n = most - call->len;
        apr_status_t rv =
            ap_get_brigade(r->input_filters, bb, AP_MODE_READBYTES,
                           APR_BLOCK_READ, (apr_off_t)n);

        if (rv == APR_SUCCESS) {
            at_end = !APR_BRIGADE_EMPTY(bb) &&
                     APR_BUCKET_IS_EOS(APR_BRIGADE_LAST(bb));
            rv = apr_brigade_flatten(bb, buffer + call->len, &n);
        }
        apr_brigade_cleanup(bb);
        if (rv != APR_SUCCESS) {
            if (rv == AP_FILTER_ERROR) {
                call->gone = AP_FILTER_ERROR; /* httpd has answered */
            }
            if (ap_map_http_request_error(rv, HTTP_BAD_REQUEST) ==
                HTTP_REQUEST_ENTITY_TOO_LARGE) {
                return too_large(call);
            }
            return yk_http_call_fault(call, YK_ANSWER_UNREADABLE, NULL, NULL,
                                      "The body did not come whole.");
        }
        call->len += n;
        if (call->len > YK_BODY_BYTES) {
            return too_large(call);
        }
    }
    call->read = 1;
    return APR_SUCCESS;
}

static apr_status_t bytes_parse(yk_http_call_t *call, kind_e kind)
{
    apr_pool_t *p = call->r->pool;

    if (kind == KIND_FORM) {
        return yk_body_parse_form(&call->body, &call->fault, call->bytes,
                                  call->len, p);
    }
    return yk_body_parse_json(&call->body, &call->fault, call->bytes, call->len,
                              p);
}

apr_status_t yk_http_entity_read(yk_http_call_t *call, int is_needed)
{
    request_rec *r = call->r;
    const char *length = apr_table_get(r->headers_in, "Content-Length");
    int is_chunked = apr_table_get(r->headers_in, "Transfer-Encoding") != NULL;
    kind_e kind = kind_of(r);
    char *buffer = NULL;
    apr_off_t said = 0;
    apr_size_t most;
    apr_status_t rv;

    call->body = yk_body_make(r->pool);
    if (length != NULL && apr_strtoff(&said, length, NULL, 10) != APR_SUCCESS) {
        said = YK_BODY_BYTES + 1;
    }
    if (said > YK_BODY_BYTES) {
        return too_large(call);
    }
    if (kind != KIND_NONE || (said == 0 && !is_chunked)) {
        /* one more than may come, to see that more comes; and the NUL */
        most = (said > 0 ? (apr_size_t)said : YK_BODY_BYTES) + 1;
        buffer = apr_palloc(r->pool, most + 1);
        rv = bytes_read(call, buffer, most);
        if (rv != APR_SUCCESS) {
            return rv;
        }
        call->form = kind == KIND_FORM; /* one without a box is empty */
        if (call->len == 0) {
            return is_needed
                       ? yk_http_call_fault(call, YK_ANSWER_UNREADABLE, NULL,
                                            NULL, "The request has no body.")
                       : APR_SUCCESS;
        }
    }
    if (kind == KIND_NONE) {
        return yk_http_call_fault(
            call, YK_ANSWER_UNSUPPORTED, "Content-Type",
            JSON_TYPE ", " FORM_TYPE,
            "A body is read as JSON or as a form, in UTF-8 and as it is.");
    }
    buffer[call->len] = '\0';
    call->bytes = buffer;
    return bytes_parse(call, kind);
}
