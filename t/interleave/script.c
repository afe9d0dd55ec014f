/* SPDX-License-Identifier: Apache-2.0 */
#include "script.h"
#include <apr_strings.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void script_wrong(const char *what, const char *detail)
{
    fprintf(stderr, "interleave: %s: %s\n", what, detail);
    exit(99);
}

apr_time_t script_time(const char *text)
{
    char *unit;
    apr_time_t n = strtoll(text, &unit, 10);
    if (unit == text) {
        script_wrong("not a time", text);
    }
    if (strcmp(unit, "ms") == 0) {
        return n * 1000;
    }
    if (strcmp(unit, "s") == 0 || *unit == '\0') {
        return n * APR_USEC_PER_SEC;
    }
    if (strcmp(unit, "min") == 0) {
        return n * 60 * APR_USEC_PER_SEC;
    }
    script_wrong("not a time", text);
}

/* The next word of *at, or NULL; quotes keep blanks and give empty words. */
static const char *word(const char **at, apr_pool_t *p)
{
    const char *begin;
    while (**at == ' ' || **at == '\t') {
        (*at)++;
    }
    begin = *at;
    if (*begin == '\0') {
        return NULL;
    }
    if (*begin == '"') {
        const char *end = strchr(begin + 1, '"');
        if (!end) {
            script_wrong("a quote without end", begin);
        }
        *at = end + 1;
        return apr_pstrndup(p, begin + 1, (apr_size_t)(end - begin - 1));
    }
    while (**at && **at != ' ' && **at != '\t') {
        (*at)++;
    }
    return apr_pstrndup(p, begin, (apr_size_t)(*at - begin));
}

static apr_array_header_t *words(const char *text, apr_pool_t *p)
{
    apr_array_header_t *list = apr_array_make(p, 8, sizeof(char *));
    const char *one;
    for (one = word(&text, p); one; one = word(&text, p)) {
        APR_ARRAY_PUSH(list, const char *) = one;
    }
    return list;
}

/* "key=value" goes to options, anything else to items. `Floor=5` of a slot is
 * an item: only lower-case keys are options. */
static void sort_word(const char *one, apr_array_header_t *items,
                      apr_table_t *options, apr_pool_t *p)
{
    const char *equals = strchr(one, '=');
    if (equals && islower((unsigned char)*one)) {
        apr_table_setn(options,
                       apr_pstrndup(p, one, (apr_size_t)(equals - one)),
                       equals + 1);
        return;
    }
    APR_ARRAY_PUSH(items, const char *) = one;
}

static act_t *act_make(const char *verb, apr_pool_t *p)
{
    act_t *act = apr_pcalloc(p, sizeof(*act));
    act->verb = verb;
    act->text = verb;
    act->items = apr_array_make(p, 4, sizeof(char *));
    act->options = apr_table_make(p, 4);
    return act;
}

/* NAME [option=..].. VERB .. then VERB .. */
static role_t *read_role(const apr_array_header_t *list, apr_pool_t *p)
{
    role_t *role = apr_pcalloc(p, sizeof(*role));
    act_t *act = NULL;
    int i;
    if (list->nelts < 3) {
        script_wrong("a session needs a name and an act",
                     ITEM(list, 0, char *));
    }
    role->name = ITEM(list, 1, const char *);
    role->options = apr_table_make(p, 2);
    role->acts = apr_array_make(p, 4, sizeof(act_t *));
    for (i = 2; i < list->nelts; i++) {
        const char *one = ITEM(list, i, const char *);
        if (strcmp(one, "then") == 0) {
            act = NULL;
        }
        else if (act == NULL && strchr(one, '=') && role->acts->nelts == 0) {
            sort_word(one, NULL, role->options, p);
        }
        else if (act == NULL) {
            act = act_make(one, p);
            APR_ARRAY_PUSH(role->acts, act_t *) = act;
        }
        else {
            act->text = apr_pstrcat(p, act->text, " ", one, NULL);
            if (*one == '@') {
                act->order = one + 1;
            }
            else {
                sort_word(one, act->items, act->options, p);
            }
        }
    }
    return role;
}

static line_t *read_setup(const apr_array_header_t *list, apr_pool_t *p)
{
    line_t *line = apr_pcalloc(p, sizeof(*line));
    int i;
    line->keyword = ITEM(list, 0, const char *);
    line->items = apr_array_make(p, 8, sizeof(char *));
    line->options = apr_table_make(p, 4);
    for (i = 1; i < list->nelts; i++) {
        sort_word(ITEM(list, i, const char *), line->items, line->options, p);
    }
    return line;
}

static void read_never(script_t *script, const apr_array_header_t *list)
{
    const char *number = ITEM(list, list->nelts - 1, const char *);
    if (strcmp(number, "wait") == 0) {
        script->never_wait = 1;
    }
    else if (strcmp(number, "1213") == 0) {
        script->never_1213 = 1;
    }
    else if (strcmp(number, "1205") == 0) {
        script->never_1205 = 1;
    }
    else {
        script_wrong(script->name, "never errno 1213 | errno 1205 | wait");
    }
}

/* mutant NAME replace A B [replace C D].. finds TEXT */
static void read_mutant(script_t *script, const apr_array_header_t *list,
                        apr_pool_t *p)
{
    mutant_t *mutant = apr_pcalloc(p, sizeof(*mutant));
    int i, n = 0;
    mutant->name = list->nelts > 1 ? ITEM(list, 1, const char *) : "";
    for (i = 2; i + 2 < list->nelts && n < 3 &&
                strcmp(ITEM(list, i, char *), "replace") == 0;
         i += 3) {
        mutant->find[n] = ITEM(list, i + 1, const char *);
        mutant->put[n++] = ITEM(list, i + 2, const char *);
    }
    if (n == 0 || i + 2 != list->nelts ||
        strcmp(ITEM(list, i, char *), "finds") != 0) {
        script_wrong(script->name, "mutant NAME replace A B finds TEXT");
    }
    mutant->finds = ITEM(list, i + 1, const char *);
    APR_ARRAY_PUSH(script->mutants, mutant_t *) = mutant;
}

static void read_always(script_t *script, const apr_array_header_t *list)
{
    int i;
    for (i = 1; i < list->nelts; i++) {
        const char *one = ITEM(list, i, const char *);
        if (strcmp(one, "at-most-one-owner") != 0 &&
            strcmp(one, "agree") != 0) {
            script_wrong(script->name, one);
        }
    }
}

static void read_line(script_t *script, const char *text, apr_pool_t *p)
{
    apr_array_header_t *list = words(text, p);
    const char *rest = text, *keyword = word(&rest, p);
    while (*rest == ' ' || *rest == '\t') {
        rest++;
    }
    if (strcmp(keyword, "before") == 0) {
        APR_ARRAY_PUSH(script->befores, role_t *) = read_role(list, p);
    }
    else if (strcmp(keyword, "session") == 0) {
        APR_ARRAY_PUSH(script->sessions, role_t *) = read_role(list, p);
    }
    else if (strcmp(keyword, "finally") == 0) {
        APR_ARRAY_PUSH(script->finals, const char *) = rest;
    }
    else if (strcmp(keyword, "reach") == 0) {
        APR_ARRAY_PUSH(script->reaches, const char *) = rest;
    }
    else if (strcmp(keyword, "never") == 0) {
        read_never(script, list);
    }
    else if (strcmp(keyword, "mutant") == 0) {
        read_mutant(script, list, p);
    }
    else if (strcmp(keyword, "always") == 0) {
        read_always(script, list);
    }
    else if (strcmp(keyword, "orders") == 0) {
        script->orders_most =
            strcmp(rest, "all") == 0 ? SCRIPT_ORDERS_MOST : atoi(rest);
    }
    else if (strcmp(keyword, "fresh") == 0) {
        script->fresh = 1;
    }
    else if (strstr(" hall slot pool price limit terms ",
                    apr_pstrcat(p, " ", keyword, " ", NULL))) {
        APR_ARRAY_PUSH(script->setup, line_t *) = read_setup(list, p);
    }
    else {
        script_wrong(script->name, text);
    }
}

script_t *script_parse(const char *name, const char *text, apr_pool_t *p)
{
    script_t *script = apr_pcalloc(p, sizeof(*script));
    char *copy = apr_pstrdup(p, text), *line, *rest;
    script->name = name;
    script->path = name;
    script->text = apr_pstrdup(p, text);
    script->title = name;
    script->orders_most = SCRIPT_ORDERS_MOST;
    script->setup = apr_array_make(p, 8, sizeof(line_t *));
    script->befores = apr_array_make(p, 4, sizeof(role_t *));
    script->sessions = apr_array_make(p, 4, sizeof(role_t *));
    script->finals = apr_array_make(p, 4, sizeof(char *));
    script->reaches = apr_array_make(p, 4, sizeof(char *));
    script->mutants = apr_array_make(p, 4, sizeof(mutant_t *));
    for (line = apr_strtok(copy, "\n", &rest); line;
         line = apr_strtok(NULL, "\n", &rest)) {
        if (*line != '#' && line[strspn(line, " \t")] != '\0') {
            read_line(script, line, p);
        }
    }
    if (script->sessions->nelts == 0) {
        script_wrong(name, "no session");
    }
    return script;
}

script_t *script_read(const char *path, apr_pool_t *p)
{
    char *text = apr_pcalloc(p, 65536);
    FILE *file = fopen(path, "r");
    script_t *script;
    size_t len;
    if (!file) {
        script_wrong("cannot open", path);
    }
    len = fread(text, 1, 65535, file);
    text[len] = '\0';
    fclose(file);
    script = script_parse(apr_pstrdup(p, strrchr(path, '/') + 1), text, p);
    script->path = apr_pstrdup(p, path);
    if (strncmp(text, "# ", 2) == 0) {
        script->title = apr_pstrndup(p, text + 2, strcspn(text + 2, "\n"));
    }
    return script;
}
