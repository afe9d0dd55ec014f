/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_lib.h>
#include <apr_strings.h>
#include <string.h>
#include "call.h"

/** A weight in thousandths: "0.85" is 850. Nonsense is 0. */
static int weight_parse(const char *text)
{
    int weight = 0;
    int scale = 100;

    if (*text != '0' && *text != '1') {
        return 0;
    }
    weight = (*text - '0') * 1000;
    if (text[1] == '.') {
        for (text += 2; apr_isdigit(*text) && scale > 0; text++) {
            weight += (*text - '0') * scale;
            scale /= 10;
        }
    }
    return weight > 1000 ? 1000 : weight;
}

/** The weight among an item's parameters; `params` is cut to pieces. */
static int weight_of(char *params)
{
    char *last = NULL;

    for (char *param = apr_strtok(params, "; \t", &last); param != NULL;
         param = apr_strtok(NULL, "; \t", &last)) {
        if ((param[0] == 'q' || param[0] == 'Q') && param[1] == '=') {
            return weight_parse(param + 2);
        }
    }
    return 1000;
}

/** How closely a range means a type: 3 itself, 2 its family, 1 anything. */
static int closeness(const char *range, const char *type)
{
    const char *slash = strchr(type, '/');
    apr_size_t family = slash != NULL ? (apr_size_t)(slash - type) : 0;

    if (ap_cstr_casecmp(range, type) == 0) {
        return 3;
    }
    if (family > 0 && ap_cstr_casecmpn(range, type, family) == 0 &&
        strcmp(range + family, "/*") == 0) {
        return 2;
    }
    return strcmp(range, "*/*") == 0 || strcmp(range, "*") == 0;
}

/** @return the weight that a header gives a type; -1: it names nothing like
 *  it */
static int weight_in(const char *header, const char *type, apr_pool_t *p)
{
    char *last = NULL;
    int close = 0;
    int weight = -1;
    char *copy = apr_pstrdup(p, header);

    for (char *item = apr_strtok(copy, ",", &last); item != NULL;
         item = apr_strtok(NULL, ",", &last)) {
        char *params = strchr(item, ';');
        char *end = NULL;
        int how;

        if (params != NULL) {
            *params++ = '\0';
        }
        while (apr_isspace(*item)) {
            item++;
        }
        for (end = item + strlen(item); end > item && apr_isspace(end[-1]);) {
            *--end = '\0';
        }
        how = closeness(item, type);
        if (how > close) {
            close = how;
            weight = params != NULL ? weight_of(params) : 1000;
        }
    }
    return weight;
}

yk_http_accept_e yk_http_accept(const request_rec *r)
{
    const char *header = apr_table_get(r->headers_in, "Accept");
    int json, html;

    if (header == NULL || *header == '\0' || strcmp(header, "*/*") == 0 ||
        strcmp(header, "application/json") == 0) {
        return YK_HTTP_ACCEPT_JSON; /* what most who poll say, word for word */
    }
    json = weight_in(header, "application/json", r->pool);
    html = weight_in(header, "text/html", r->pool);
    if (json <= 0 && html <= 0) {
        /* a client that only knows problems by their name */
        json = weight_in(header, "application/problem+json", r->pool);
    }
    if (json <= 0 && html <= 0) {
        return YK_HTTP_ACCEPT_NOTHING;
    }
    if (json >= html) {
        return YK_HTTP_ACCEPT_JSON;
    }
    return json > 0 ? YK_HTTP_ACCEPT_HTML_JSON : YK_HTTP_ACCEPT_HTML;
}

int yk_http_accept_prefers_json(const request_rec *r)
{
    const char *header = apr_table_get(r->headers_in, "Accept");

    return header != NULL && weight_in(header, "application/json", r->pool) >
                                 weight_in(header, "text/html", r->pool);
}

int yk_http_accept_gzip(const request_rec *r)
{
    const char *header = apr_table_get(r->headers_in, "Accept-Encoding");

    return header != NULL && (strcmp(header, "gzip") == 0 ||
                              weight_in(header, "gzip", r->pool) > 0);
}
