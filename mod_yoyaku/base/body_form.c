/* SPDX-License-Identifier: Apache-2.0 */
#include "body_tree.h"

#include <apr_strings.h>
#include <string.h>
#include "yoyaku/text.h"

#define FIELDS_MAX 2048 /* three a line, and some; looked up one by one */

/* The members of this object have free names, which may hold any character:
 * its path ends with the rest of the name. */
#define FREE_NAMES "tariffs"

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* @return the text, or NULL with the reason in *why */
static char *decode(const char *from, apr_size_t len, const char **why,
                    apr_pool_t *p)
{
    char *text = apr_palloc(p, len + 1), *to = text;

    for (apr_size_t i = 0; i < len; i++) {
        char c = from[i] == '+' ? ' ' : from[i];

        if (c == '%') {
            int high = len - i > 2 ? hex(from[i + 1]) : -1;
            int low = len - i > 2 ? hex(from[i + 2]) : -1;

            if (high < 0 || low < 0) {
                *why = "has a % that two hex digits do not follow";
                return NULL;
            }
            c = (char)(high << 4 | low);
            i += 2;
        }
        *to++ = c;
    }
    *to = '\0';
    if (!yk_text_is_utf8(text, (apr_size_t)(to - text))) {
        *why = "is not UTF-8 without NUL";
        return NULL;
    }
    return text;
}

/* Turn what a repeated field left into a list, in the order sent. */
static yk_body_t *list_of(yk_body_t *value)
{
    if (value->kind == YK_BODY_TEXT) {
        value->kind = YK_BODY_LIST;
        yk_body_add(value, NULL, YK_BODY_TEXT)->text = value->text;
        value->text = NULL;
    }
    return value;
}

/* One step of a path: the value for `name` (or item `no`) in `in`, made when
 * it is not there. NULL: the field was sent in two shapes. */
static yk_body_t *step(yk_body_t *in, const char *name, uint32_t no,
                       yk_body_kind_e kind)
{
    yk_body_t *value;

    if (name != NULL) {
        value = yk_body_find(in, name);
    }
    else {
        if (no > in->nvalues) {
            return NULL;
        }
        value = no < in->nvalues ? in->values[no] : NULL;
    }
    if (value == NULL) {
        return yk_body_add(in, name, kind);
    }
    if (kind == YK_BODY_TEXT) {
        if (value->kind != YK_BODY_TEXT && value->kind != YK_BODY_LIST) {
            return NULL;
        }
        return yk_body_add(list_of(value), NULL, YK_BODY_TEXT);
    }
    return value->kind == kind ? value : NULL;
}

/* "[12]" at *at: 0 .. 9999, behind it afterwards; -1 when it is not that. */
static int index_at(char **at)
{
    char *c = *at + 1;
    int no = 0, n = 0;

    for (; *c >= '0' && *c <= '9' && n < 4; c++, n++) {
        no = no * 10 + (*c - '0');
    }
    if (n == 0 || *c != ']') {
        return -1;
    }
    *at = c + 1;
    return no;
}

/* What the rest of a path makes of the value before it. */
static yk_body_kind_e kind_before(const char *rest)
{
    return *rest == '['   ? YK_BODY_LIST
           : *rest == '.' ? YK_BODY_OBJECT
                          : YK_BODY_TEXT;
}

/* Walk a path such as lines[2].place from the outermost object, making what
 * is missing. @return where its text belongs; NULL: not a path */
static yk_body_t *walk(yk_body_t *body, char *path)
{
    yk_body_t *value = body;
    char *at = path;

    for (int depth = 0; depth < YK_BODY_DEPTH; depth++) {
        char *name = NULL;
        int no = 0;

        if (*at == '[') {
            no = index_at(&at);
        }
        else {
            int is_free =
                value->name != NULL && strcmp(value->name, FREE_NAMES) == 0;

            at += *at == '.';
            name = at;
            at += is_free ? strlen(at) : strcspn(at, ".[");
            no = at > name ? 0 : -1;
            name = apr_pstrmemdup(body->top->p, name, (apr_size_t)(at - name));
        }
        if (no < 0 || (*at != '\0' && *at != '[' && *at != '.')) {
            return NULL;
        }
        value = step(value, name, (uint32_t)no, kind_before(at));
        if (value == NULL || *at == '\0') {
            return value;
        }
    }
    return NULL;
}

/* One "name=value". @return NULL, or why not */
static const char *field(yk_body_t *body, const char *from, apr_size_t len)
{
    apr_pool_t *p = body->top->p;
    const char *sign = memchr(from, '=', len), *why = NULL;
    apr_size_t name_len = sign != NULL ? (apr_size_t)(sign - from) : len;
    char *name = decode(from, name_len, &why, p), *text = "";
    yk_body_t *value;

    if (name != NULL && sign != NULL) {
        text = decode(sign + 1, len - name_len - 1, &why, p);
    }
    if (name == NULL || text == NULL) {
        return why;
    }
    if (*name == '[' || *name == '.') {
        return "begins with what only stands inside a name";
    }
    value = walk(body, name);
    if (value == NULL) {
        return "has a name that is no path, skips an item, or says twice what "
               "can be said once";
    }
    value->text = text;
    return NULL;
}

apr_status_t yk_body_parse_form(yk_body_t **pbody, yk_fault_t *fault,
                                const char *bytes, apr_size_t len,
                                apr_pool_t *p)
{
    yk_body_t *body = yk_body_make(p);
    apr_size_t at = 0;
    int nfields = 0;

    body->top->is_form = 1;
    if (len > YK_BODY_BYTES) {
        return yk_body_unreadable(
            fault, YK_ANSWER_TOO_LARGE,
            apr_psprintf(p, "A body has at most %d bytes.", YK_BODY_BYTES));
    }
    while (at < len) {
        const char *end = memchr(bytes + at, '&', len - at);
        apr_size_t n = end != NULL ? (apr_size_t)(end - bytes) - at : len - at;
        const char *why = NULL;

        if (n > 0) {
            why = ++nfields > FIELDS_MAX ? "is one too many"
                                         : field(body, bytes + at, n);
        }
        if (why != NULL) {
            return yk_body_unreadable(
                fault,
                nfields > FIELDS_MAX ? YK_ANSWER_TOO_LARGE
                                     : YK_ANSWER_UNREADABLE,
                apr_psprintf(p, "Field %d of the form %s.", nfields, why));
        }
        at += n + 1;
    }
    *pbody = body;
    return APR_SUCCESS;
}
