/* SPDX-License-Identifier: Apache-2.0 */
#include "yoyaku/template.h"

#include <apr_strings.h>
#include <apr_tables.h>
#include <string.h>

#define DEPTH 8 /* of sections in sections */

typedef struct fill_t {
    apr_array_header_t *out; /* of char */
    const json_t *around[DEPTH + 1];
    int depth;
    apr_pool_t *p;
} fill_t;

static void put(fill_t *f, const char *bytes, apr_size_t len)
{
    for (apr_size_t i = 0; i < len; i++) {
        APR_ARRAY_PUSH(f->out, char) = bytes[i];
    }
}

static void put_escaped(fill_t *f, const char *text)
{
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '&':
            put(f, "&amp;", 5);
            break;
        case '<':
            put(f, "&lt;", 4);
            break;
        case '>':
            put(f, "&gt;", 4);
            break;
        case '"':
            put(f, "&quot;", 6);
            break;
        case '\'':
            put(f, "&#39;", 5);
            break;
        default:
            put(f, text, 1);
        }
    }
}

/* "a.b" in the innermost object that has "a". */
static const json_t *value_of(const fill_t *f, const char *name, apr_size_t len)
{
    char *path = apr_pstrmemdup(f->p, name, len), *rest;
    const json_t *found = NULL;
    char *word;

    if (strcmp(path, ".") == 0) {
        return f->around[f->depth];
    }
    word = apr_strtok(path, ".", &rest);
    for (int i = f->depth; word != NULL && i >= 0 && found == NULL; i--) {
        found = json_object_get(f->around[i], word);
    }
    while (found != NULL &&
           (word = apr_strtok(NULL, ".", &rest), word != NULL)) {
        found = json_object_get(found, word);
    }
    return found;
}

static void put_value(fill_t *f, const json_t *value)
{
    if (json_is_string(value)) {
        put_escaped(f, json_string_value(value));
    }
    else if (json_is_integer(value)) {
        put_escaped(f, apr_psprintf(f->p, "%" APR_INT64_T_FMT,
                                    (apr_int64_t)json_integer_value(value)));
    }
    else if (json_is_real(value)) {
        put_escaped(f, apr_psprintf(f->p, "%.3g", json_real_value(value)));
    }
    else if (json_is_true(value)) {
        put_escaped(f, "yes");
    }
}

static int is_there(const json_t *value)
{
    if (json_is_array(value)) {
        return json_array_size(value) > 0;
    }
    if (json_is_string(value)) {
        return *json_string_value(value) != '\0';
    }
    if (json_is_integer(value)) {
        return json_integer_value(value) != 0;
    }
    return value != NULL && !json_is_false(value) && !json_is_null(value);
}

/* Where the section that begins at `at` ends: sections of the same name may
 * stand in it. Sets `after` behind its end mark. */
static const char *section_end(const char *at, const char *end,
                               const char *name, apr_size_t len,
                               const char **after)
{
    int open = 1;

    while (at < end) {
        const char *mark = strstr(at, "{{");

        if (mark == NULL || mark >= end) {
            break;
        }
        at = mark + 2;
        if (strncmp(at + 1, name, len) != 0 ||
            strncmp(at + 1 + len, "}}", 2) != 0) {
            continue;
        }
        open += *at == '#' || *at == '^' ? 1 : *at == '/' ? -1 : 0;
        if (open == 0) {
            *after = at + 1 + len + 2;
            return mark;
        }
    }
    *after = end;
    return end;
}

static void fill(fill_t *f, const char *at, const char *end);

static void section(fill_t *f, const json_t *value, int inverse, const char *at,
                    const char *end)
{
    if (inverse || !is_there(value) || f->depth == DEPTH) {
        if (inverse && !is_there(value)) {
            fill(f, at, end);
        }
        return;
    }
    f->depth++;
    if (json_is_array(value)) {
        for (size_t i = 0; i < json_array_size(value); i++) {
            f->around[f->depth] = json_array_get(value, i);
            fill(f, at, end);
        }
    }
    else {
        f->around[f->depth] = value;
        fill(f, at, end);
    }
    f->depth--;
}

static void fill(fill_t *f, const char *at, const char *end)
{
    while (at < end) {
        const char *mark = strstr(at, "{{"), *close, *after, *stop;
        apr_size_t len;

        if (mark == NULL || mark >= end) {
            break;
        }
        close = strstr(mark, "}}");
        if (close == NULL || close >= end) {
            break;
        }
        put(f, at, (apr_size_t)(mark - at));
        mark += 2;
        at = close + 2;
        if (*mark == '#' || *mark == '^') {
            len = (apr_size_t)(close - mark - 1);
            stop = section_end(at, end, mark + 1, len, &after);
            section(f, value_of(f, mark + 1, len), *mark == '^', at, stop);
            at = after;
        }
        else if (*mark != '/') {
            put_value(f, value_of(f, mark, (apr_size_t)(close - mark)));
        }
    }
    put(f, at, (apr_size_t)(end - at));
}

const char *yk_template_fill(apr_size_t *len, const char *text,
                             const json_t *values, apr_pool_t *p)
{
    fill_t f = {apr_array_make(p, 4096, sizeof(char)), {values}, 0, p};

    fill(&f, text, text + strlen(text));
    *len = (apr_size_t)f.out->nelts;
    APR_ARRAY_PUSH(f.out, char) = '\0';
    return f.out->elts;
}
