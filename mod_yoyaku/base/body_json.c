/* SPDX-License-Identifier: Apache-2.0 */
#include "body_tree.h"

#include <apr_strings.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "yoyaku/text.h"

/*
 * jansson reads, and its tree is copied into the pool at once and freed. It
 * must not wait for a pool's cleanup: httpd runs those inside signal handlers,
 * where free() may meet its own lock.
 */

/* How many bytes a number has at `at`. */
static apr_size_t number_bytes(const char *at, apr_size_t left)
{
    apr_size_t n = 0;

    while (n < left && at[n] != '\0' &&
           strchr("0123456789+-.eE", at[n]) != NULL) {
        n++;
    }
    return n;
}

/*
 * A number beyond a double would be refused by jansson as a whole body that
 * cannot be read. Written as 9e99 it stays a number that is out of every
 * range, and the refusal can name the field.
 */
static void tame(char *at, apr_size_t n, apr_pool_t *ptemp)
{
    char *end, *number;

    if (n < 5) {
        return;
    }
    number = apr_pstrmemdup(ptemp, at, n);
    if (isinf(strtod(number, &end)) && *end == '\0') {
        memset(at, ' ', n);
        memcpy(at, "9e99", 4);
    }
}

/* One walk over the bytes outside of texts: depth, and huge numbers. */
static int is_too_deep(char *bytes, apr_size_t len, apr_pool_t *ptemp)
{
    int depth = 0, in_text = 0;

    for (apr_size_t i = 0; i < len; i++) {
        char c = bytes[i];

        if (in_text) {
            i += c == '\\';
            in_text = c != '"';
        }
        else if (c == '"') {
            in_text = 1;
        }
        else if (c == '{' || c == '[') {
            if (++depth > YK_BODY_DEPTH) {
                return 1;
            }
        }
        else if (c == '}' || c == ']') {
            depth--;
        }
        else if (c == '-' || (c >= '0' && c <= '9')) {
            apr_size_t n = number_bytes(bytes + i, len - i);

            tame(bytes + i, n, ptemp);
            i += n - 1;
        }
    }
    return 0;
}

static void copy_values(yk_body_t *to, const json_t *from);

static void copy_value(yk_body_t *parent, const char *name, const json_t *from)
{
    apr_pool_t *p = parent->top->p;
    yk_body_t *value = yk_body_add(
        parent, name != NULL ? apr_pstrdup(p, name) : NULL, YK_BODY_NULL);

    switch (json_typeof(from)) {
    case JSON_OBJECT:
        value->kind = YK_BODY_OBJECT;
        copy_values(value, from);
        break;
    case JSON_ARRAY:
        value->kind = YK_BODY_LIST;
        copy_values(value, from);
        break;
    case JSON_STRING:
        value->kind = YK_BODY_TEXT;
        value->text = apr_pstrmemdup(p, json_string_value(from),
                                     json_string_length(from));
        break;
    case JSON_INTEGER:
    case JSON_REAL:
        value->kind = YK_BODY_NUMBER;
        value->number = json_number_value(from);
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        value->kind = YK_BODY_FLAG;
        value->number = json_is_true(from);
        break;
    case JSON_NULL:
        break;
    }
}

/* As deep as is_too_deep() let through. */
static void copy_values(yk_body_t *to, const json_t *from)
{
    if (json_is_object(from)) {
        const char *name;
        json_t *its;

        json_object_foreach((json_t *)from, name, its)
        {
            copy_value(to, name, its);
        }
    }
    else {
        size_t i;
        json_t *its;

        json_array_foreach(from, i, its)
        {
            copy_value(to, NULL, its);
        }
    }
}

/* jansson shows a piece of the body; only if it did not cut a character. */
static const char *where(const json_error_t *error, apr_pool_t *p)
{
    const char *what = yk_text_is_utf8(error->text, strlen(error->text))
                           ? error->text
                           : "not UTF-8";

    return apr_psprintf(p, "The body is not JSON at line %d, column %d: %s.",
                        error->line, error->column, what);
}

apr_status_t yk_body_parse_json(yk_body_t **body, yk_fault_t *fault,
                                const char *bytes, apr_size_t len,
                                apr_pool_t *p)
{
    char *copy;
    json_error_t error;
    json_t *json;

    if (len > YK_BODY_BYTES) {
        return yk_body_unreadable(
            fault, YK_ANSWER_TOO_LARGE,
            apr_psprintf(p, "A body has at most %d bytes.", YK_BODY_BYTES));
    }
    copy = apr_pmemdup(p, bytes, len);
    if (is_too_deep(copy, len, p)) {
        return yk_body_unreadable(
            fault, YK_ANSWER_UNREADABLE,
            apr_psprintf(p, "The body is nested deeper than %d.",
                         YK_BODY_DEPTH));
    }
    json = json_loadb(copy, len,
                      JSON_REJECT_DUPLICATES | JSON_DECODE_ANY |
                          JSON_DECODE_INT_AS_REAL,
                      &error);
    if (json == NULL) {
        return yk_body_unreadable(fault, YK_ANSWER_UNREADABLE,
                                  where(&error, p));
    }
    if (!json_is_object(json)) {
        json_decref(json);
        return yk_body_unreadable(fault, YK_ANSWER_UNREADABLE,
                                  "The body is not a JSON object.");
    }
    *body = yk_body_make(p);
    copy_values(*body, json);
    json_decref(json);
    return APR_SUCCESS;
}
