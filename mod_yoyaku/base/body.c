/* SPDX-License-Identifier: Apache-2.0 */
#include "body_tree.h"

#include <apr_strings.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include "yoyaku/text.h"

#define NAME_SHOWN 64 /* bytes of a foreign name in a path */

/* ---- the tree ---- */

yk_body_t *yk_body_make(apr_pool_t *p)
{
    yk_body_t *body = apr_pcalloc(p, sizeof(*body));

    body->top = apr_pcalloc(p, sizeof(*body->top));
    body->top->p = p;
    body->kind = YK_BODY_OBJECT;
    body->known = 1;
    return body;
}

yk_body_t *yk_body_add(yk_body_t *parent, const char *name, yk_body_kind_e kind)
{
    yk_body_t *value = apr_pcalloc(parent->top->p, sizeof(*value));

    value->kind = kind;
    value->top = parent->top;
    value->parent = parent;
    value->name = name;
    value->no = parent->nvalues;
    if (parent->nvalues == parent->space) {
        yk_body_t **old = parent->values;

        parent->space = parent->space == 0 ? 4 : 2 * parent->space;
        parent->values =
            apr_palloc(parent->top->p, parent->space * sizeof(*old));
        if (parent->nvalues > 0) {
            memcpy(parent->values, old, parent->nvalues * sizeof(*old));
        }
    }
    parent->values[parent->nvalues++] = value;
    return value;
}

yk_body_t *yk_body_find(const yk_body_t *object, const char *name)
{
    for (uint32_t i = 0; i < object->nvalues; i++) {
        const char *its = object->values[i]->name;

        if (its != NULL && strcmp(its, name) == 0) {
            return object->values[i];
        }
    }
    return NULL;
}

apr_status_t yk_body_unreadable(yk_fault_t *fault, yk_answer_e answer,
                                const char *detail)
{
    memset(fault, 0, sizeof(*fault));
    fault->answer = answer;
    fault->detail = detail;
    return APR_EINVAL;
}

/* ---- paths and refusals ---- */

/* A foreign name, shortened between two characters. */
static const char *name_shown(const char *name, apr_pool_t *p)
{
    apr_size_t len = strlen(name);

    if (len <= NAME_SHOWN) {
        return name;
    }
    len = NAME_SHOWN;
    while (len > 0 && ((unsigned char)name[len] & 0xc0) == 0x80) {
        len--;
    }
    return apr_pstrcat(p, apr_pstrmemdup(p, name, len), "...", NULL);
}

static const char *join(const char *path, const char *name, apr_pool_t *p)
{
    const char *shown = name_shown(name, p);

    return *path == '\0' ? shown : apr_pstrcat(p, path, ".", shown, NULL);
}

const char *yk_body_path(const yk_body_t *body, const char *member)
{
    apr_pool_t *p = body->top->p;
    const char *path = "";

    if (body->parent != NULL) {
        path = yk_body_path(body->parent, NULL);
        path = body->name != NULL ? join(path, body->name, p)
                                  : apr_psprintf(p, "%s[%u]", path, body->no);
    }
    return member != NULL ? join(path, member, p) : path;
}

static void refuse(yk_body_t *body, const char *member, const char *allowed,
                   const char *detail)
{
    yk_body_top_t *top = body->top;

    if (top->is_bad) {
        return;
    }
    top->is_bad = 1;
    top->fault.answer = YK_ANSWER_INVALID;
    top->fault.field = yk_body_path(body, member);
    top->fault.allowed = allowed;
    top->fault.detail = detail;
}

void yk_body_refuse(yk_body_t *body, const char *member, const char *allowed,
                    const char *detail, ...)
{
    va_list args;

    va_start(args, detail);
    refuse(body, member, allowed, apr_pvsprintf(body->top->p, detail, args));
    va_end(args);
}

/* The usual sentence: it must be what is allowed. */
static void refuse_value(yk_body_t *value, const char *allowed)
{
    apr_pool_t *p = value->top->p;

    refuse(
        value, NULL, allowed,
        apr_psprintf(p, "%s must be %s.", yk_body_path(value, NULL), allowed));
}

void yk_body_need(yk_body_t *body, const char *member, const char *allowed)
{
    if (!yk_body_has(body, member)) {
        yk_body_refuse(body, member, allowed, "%s is missing.",
                       yk_body_path(body, member));
    }
}

/* ---- getters ---- */

/* The value asked for, now known; NULL when not sent or all is over. */
static yk_body_t *value_of(yk_body_t *body, const char *member)
{
    yk_body_t *value = member != NULL ? yk_body_find(body, member) : body;

    if (value != NULL) {
        value->known = 1;
    }
    return body->top->is_bad ? NULL : value;
}

int yk_body_is_form(const yk_body_t *body)
{
    return body->top->is_form;
}

int yk_body_is_bad(const yk_body_t *body)
{
    return body->top->is_bad;
}

/* A browser sends empty boxes too. */
static int is_empty_box(const yk_body_t *value)
{
    return value->top->is_form && value->kind == YK_BODY_TEXT &&
           value->text[0] == '\0';
}

int yk_body_has(const yk_body_t *body, const char *member)
{
    const yk_body_t *value = member != NULL ? yk_body_find(body, member) : body;

    return value != NULL && !is_empty_box(value);
}

int yk_body_is_null(yk_body_t *body, const char *member)
{
    yk_body_t *value = member != NULL ? yk_body_find(body, member) : body;

    if (value == NULL || value->kind != YK_BODY_NULL) {
        return 0;
    }
    value->known = 1;
    return 1;
}

const char *yk_body_text(yk_body_t *body, const char *member, apr_size_t min,
                         apr_size_t max)
{
    yk_body_t *value = value_of(body, member);
    apr_size_t len;

    if (value == NULL || (min > 0 && is_empty_box(value))) {
        return NULL;
    }
    len = value->kind == YK_BODY_TEXT ? strlen(value->text) : 0;
    if (value->kind != YK_BODY_TEXT || len < min || len > max) {
        refuse_value(value, apr_psprintf(body->top->p,
                                         "a text of %" APR_SIZE_T_FMT
                                         " to %" APR_SIZE_T_FMT " bytes",
                                         min, max));
        return NULL;
    }
    return value->text;
}

const char *yk_body_key(yk_body_t *body, const char *member)
{
    yk_body_t *value = value_of(body, member);

    if (value == NULL || is_empty_box(value)) {
        return NULL;
    }
    if (value->kind != YK_BODY_TEXT || !yk_text_is_key(value->text)) {
        refuse_value(value, "1 to 64 of A-Z, a-z, 0-9, '.', '_' and '-'");
        return NULL;
    }
    return value->text;
}

/* "-12" of a form; 0 when it is not a whole number. */
static int form_number(double *number, const char *text)
{
    const char *digits = text + (*text == '-');
    apr_size_t len = strlen(digits);

    if (len == 0 || strspn(digits, "0123456789") != len) {
        return 0;
    }
    /* Past 2^53 a double is not exact, but then it is also out of range. */
    *number = len > 18 ? HUGE_VAL : (double)apr_atoi64(text);
    return 1;
}

int64_t yk_body_number(yk_body_t *body, const char *member, int64_t min,
                       int64_t max, int64_t absent)
{
    yk_body_t *value = value_of(body, member);
    double number = 0;
    int is_number;

    if (value == NULL || is_empty_box(value)) {
        return absent;
    }
    number = value->number;
    is_number = value->kind == YK_BODY_NUMBER ||
                (value->top->is_form && value->kind == YK_BODY_TEXT &&
                 form_number(&number, value->text));
    if (!is_number || number != floor(number) || number < (double)min ||
        number > (double)max) {
        refuse_value(value, apr_psprintf(body->top->p,
                                         "a whole number from %" APR_INT64_T_FMT
                                         " to %" APR_INT64_T_FMT,
                                         min, max));
        return absent;
    }
    return (int64_t)number;
}

/* 1, 0, or -1: not a flag */
static int form_flag(const char *text)
{
    static const char *const yes[] = {"1", "on", "true"};
    static const char *const no[] = {"0", "off", "false"};

    for (int i = 0; i < 3; i++) {
        if (strcmp(text, yes[i]) == 0) {
            return 1;
        }
        if (strcmp(text, no[i]) == 0) {
            return 0;
        }
    }
    return -1;
}

int yk_body_flag(yk_body_t *body, const char *member, int absent)
{
    yk_body_t *value = value_of(body, member);
    int flag = -1;

    if (value == NULL || is_empty_box(value)) {
        return absent;
    }
    if (value->kind == YK_BODY_FLAG) {
        flag = value->number != 0;
    }
    else if (value->top->is_form && value->kind == YK_BODY_TEXT) {
        flag = form_flag(value->text);
    }
    if (flag < 0) {
        refuse_value(value, "true or false");
        return absent;
    }
    return flag;
}

yk_body_t *yk_body_object(yk_body_t *body, const char *member)
{
    yk_body_t *value = value_of(body, member);

    if (value == NULL) {
        return NULL;
    }
    if (value->kind != YK_BODY_OBJECT) {
        refuse_value(value, "an object");
        return NULL;
    }
    return value;
}

uint32_t yk_body_list(yk_body_t ***items, yk_body_t *body, const char *member,
                      uint32_t max)
{
    yk_body_t *value = value_of(body, member);

    if (value == NULL || is_empty_box(value)) {
        return 0;
    }
    if (value->top->is_form && value->kind == YK_BODY_TEXT) {
        *items = apr_palloc(body->top->p, sizeof(**items));
        **items = value;
        return 1;
    }
    if (value->kind != YK_BODY_LIST || value->nvalues < 1 ||
        value->nvalues > max) {
        refuse_value(
            value, apr_psprintf(body->top->p, "a list of 1 to %u values", max));
        return 0;
    }
    for (uint32_t i = 0; i < value->nvalues; i++) {
        value->values[i]->known = 1;
    }
    *items = value->values;
    return value->nvalues;
}

uint32_t yk_body_names(const char ***names, yk_body_t *object, uint32_t max)
{
    if (object->top->is_bad) {
        return 0;
    }
    if (object->nvalues < 1 || object->nvalues > max) {
        refuse_value(object, apr_psprintf(object->top->p,
                                          "an object of 1 to %u members", max));
        return 0;
    }
    *names = apr_palloc(object->top->p, object->nvalues * sizeof(**names));
    for (uint32_t i = 0; i < object->nvalues; i++) {
        (*names)[i] = object->values[i]->name;
    }
    return object->nvalues;
}

/* ---- the end ---- */

static void refuse_unknown(yk_body_t *value)
{
    for (uint32_t i = 0; i < value->nvalues; i++) {
        yk_body_t *its = value->values[i];

        if (!its->known) {
            yk_body_refuse(its, NULL, NULL, "%s means nothing here.",
                           yk_body_path(its, NULL));
        }
        refuse_unknown(its);
    }
}

apr_status_t yk_body_check(yk_body_t *body, yk_fault_t *fault)
{
    if (!body->top->is_bad) {
        refuse_unknown(body);
    }
    if (body->top->is_bad) {
        *fault = body->top->fault;
        return APR_EINVAL;
    }
    return APR_SUCCESS;
}
