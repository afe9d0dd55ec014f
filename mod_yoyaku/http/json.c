/* SPDX-License-Identifier: Apache-2.0 */
#include "json.h"
#include <apr_strings.h>
#include <string.h>
#include <yoyaku/text.h>

/** Room for so many bytes more. */
static char *room(yk_http_json_t *j, apr_size_t n)
{
    if (j->len + n + 1 > j->space) {
        apr_size_t space = (j->len + n + 1) * 2;
        char *bytes = apr_palloc(j->p, space);

        memcpy(bytes, j->bytes, j->len);
        j->bytes = bytes;
        j->space = space;
    }
    return j->bytes + j->len;
}

static void put(yk_http_json_t *j, const char *bytes, apr_size_t n)
{
    memcpy(room(j, n), bytes, n);
    j->len += n;
}

/** One character of JSON text, which is at most six bytes. */
static apr_size_t escape(char *out, unsigned char c)
{
    static const char hex[] = "0123456789abcdef";

    if (c == '"' || c == '\\') {
        out[0] = '\\';
        out[1] = (char)c;
        return 2;
    }
    if (c < 0x20 || c == 0x7f) {
        memcpy(out, "\\u00", 4);
        out[4] = hex[c >> 4];
        out[5] = hex[c & 15];
        return 6;
    }
    out[0] = (char)c;
    return 1;
}

static void put_text(yk_http_json_t *j, const char *text)
{
    apr_size_t n = strlen(text);
    int is_utf8 = yk_text_is_utf8(text, n);
    char *out = room(j, n * 6 + 2);
    char *start = out;

    *out++ = '"';
    for (apr_size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];

        if (c >= 0x80 && !is_utf8) {
            memcpy(out, "\xef\xbf\xbd", 3);
            out += 3;
        }
        else {
            out += escape(out, c);
        }
    }
    *out++ = '"';
    j->len += (apr_size_t)(out - start);
}

static void begin(yk_http_json_t *j, const char *name)
{
    if (j->comma) {
        put(j, ",", 1);
    }
    j->comma = 1;
    if (name != NULL) {
        put_text(j, name);
        put(j, ":", 1);
    }
}

static void open(yk_http_json_t *j, char opener, char closer)
{
    put(j, &opener, 1);
    j->closers[j->depth++] = closer;
    j->comma = 0;
}

yk_http_json_t *yk_http_json_make(apr_size_t space, apr_pool_t *p)
{
    yk_http_json_t *j = apr_pcalloc(p, sizeof(*j));

    j->p = p;
    j->space = space < 512 ? 512 : space;
    j->bytes = apr_palloc(p, j->space);
    open(j, '{', '}');
    return j;
}

void yk_http_json_object(yk_http_json_t *j, const char *name)
{
    begin(j, name);
    open(j, '{', '}');
}

void yk_http_json_array(yk_http_json_t *j, const char *name)
{
    begin(j, name);
    open(j, '[', ']');
}

void yk_http_json_end(yk_http_json_t *j)
{
    put(j, &j->closers[--j->depth], 1);
    j->comma = 1;
}

void yk_http_json_text(yk_http_json_t *j, const char *name, const char *text)
{
    begin(j, name);
    if (text == NULL) {
        put(j, "null", 4);
    }
    else {
        put_text(j, text);
    }
}

void yk_http_json_said(yk_http_json_t *j, const char *name, const char *text)
{
    yk_http_json_text(j, name, text != NULL && *text != '\0' ? text : NULL);
}

void yk_http_json_number(yk_http_json_t *j, const char *name, int64_t n)
{
    char text[24];
    int len = apr_snprintf(text, sizeof(text), "%" APR_INT64_T_FMT, n);

    begin(j, name);
    put(j, text, (apr_size_t)len);
}

void yk_http_json_flag(yk_http_json_t *j, const char *name, int on)
{
    begin(j, name);
    put(j, on ? "true" : "false", on ? 4 : 5);
}

void yk_http_json_time(yk_http_json_t *j, const char *name, apr_time_t when)
{
    yk_http_json_text(j, name, when != 0 ? yk_time_write(when, j->p) : NULL);
}

const char *yk_http_json_done(yk_http_json_t *j, apr_size_t *len)
{
    while (j->depth > 0) {
        yk_http_json_end(j);
    }
    *len = j->len;
    *room(j, 0) = '\0';
    return j->bytes;
}
