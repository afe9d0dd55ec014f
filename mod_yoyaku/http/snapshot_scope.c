/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshot.h"
#include <apr_strings.h>
#include <string.h>

/*
 * A file has no access control: what a <Location> keeps from anybody is not
 * written to one. Known from the configuration as read: a container by path or
 * pattern in which anything but "Require all granted" is asked for. Such things
 * in a <Directory> or an <If> are not seen; a slot under them is public here.
 */

typedef struct guard_t {
    const char *path;    /* NULL: a pattern */
    ap_regex_t *pattern; /* NULL: nothing is known of it: guards all */
} guard_t;

static apr_array_header_t *guards;

static int is_granted(const char *args)
{
    return ap_cstr_casecmp(args, "all granted") == 0;
}

static int asks(const ap_directive_t *node)
{
    static const char *const words[] = {"AuthType", "Deny", "Order", "Satisfy"};

    for (; node != NULL; node = node->next) {
        if (ap_cstr_casecmp(node->directive, "Require") == 0 &&
            !is_granted(node->args)) {
            return 1;
        }
        for (int i = 0; i < 4; i++) {
            if (ap_cstr_casecmp(node->directive, words[i]) == 0) {
                return 1;
            }
        }
        if (node->first_child != NULL && asks(node->first_child)) {
            return 1;
        }
    }
    return 0;
}

static void guard_add(const ap_directive_t *node, apr_pool_t *p)
{
    guard_t *guard = apr_array_push(guards);
    char *args = apr_pstrdup(p, node->args);
    apr_size_t len = strlen(args);
    const char *rest = args;
    char *word;

    if (len > 0 && args[len - 1] == '>') {
        args[len - 1] = '\0';
    }
    word = ap_getword_conf(p, &rest);
    guard->path = NULL;
    guard->pattern = NULL;
    if (ap_cstr_casecmp(node->directive, "<LocationMatch") == 0) {
        guard->pattern = ap_pregcomp(p, word, AP_REG_EXTENDED);
    }
    else if (strcmp(word, "~") == 0) {
        guard->pattern =
            ap_pregcomp(p, ap_getword_conf(p, &rest), AP_REG_EXTENDED);
    }
    else if (strpbrk(word, "*?[") == NULL) {
        for (len = strlen(word); len > 0 && word[len - 1] == '/'; len--) {
            word[len - 1] = '\0';
        }
        guard->path = word;
    }
}

static void walk(const ap_directive_t *node, apr_pool_t *p)
{
    for (; node != NULL; node = node->next) {
        if (ap_cstr_casecmpn(node->directive, "<Location", 9) == 0) {
            if (asks(node->first_child)) {
                guard_add(node, p);
            }
        }
        else if (node->first_child != NULL) {
            walk(node->first_child, p);
        }
    }
}

void yk_http_snapshot_scope_read(apr_pool_t *pconf)
{
    guards = apr_array_make(pconf, 4, sizeof(guard_t));
    walk(ap_conftree, pconf);
}

static int is_guarded(const guard_t *guard, const char *uri)
{
    apr_size_t len;

    if (guard->path == NULL) {
        return guard->pattern == NULL ||
               ap_regexec(guard->pattern, uri, 0, NULL, 0) == 0;
    }
    len = strlen(guard->path);
    return strncmp(guard->path, uri, len) == 0 &&
           (uri[len] == '/' || uri[len] == '\0' || len == 0);
}

int yk_http_snapshot_is_public(const char *uri)
{
    for (int i = 0; guards != NULL && i < guards->nelts; i++) {
        if (is_guarded(&APR_ARRAY_IDX(guards, i, guard_t), uri)) {
            return 0;
        }
    }
    return 1;
}
