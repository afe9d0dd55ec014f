/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_strings.h>
#include <apr_tables.h>
#include <ctype.h>
#include <string.h>
#include "ctl.h"

/*
 * Flags are looked up in the synopsis, so that help and parser cannot
 * disagree. "--key KEY" takes a value, "[--json]" does not.
 */

/** Where `--name` stands in a synopsis, behind it; NULL when it does not. */
static const char *find(const char *synopsis, const char *name)
{
    apr_size_t len = strlen(name);

    for (const char *at = synopsis; (at = strstr(at, "--")) != NULL;) {
        at += 2;
        if (strncmp(at, name, len) == 0 && !isalpha((unsigned char)at[len]) &&
            at[len] != '-') {
            return at + len;
        }
    }
    return NULL;
}

static int takes_value(const char *behind)
{
    return *behind == ' ' && strchr("[(-|", behind[1]) == NULL;
}

/** "]..." behind the flag's value */
static int may_repeat(const char *behind)
{
    const char *end = strchr(behind, ']');

    return end != NULL && strncmp(end, "]...", 4) == 0 &&
           memchr(behind, '[', (apr_size_t)(end - behind)) == NULL;
}

/** One flag, and its value from `next` when it takes one and has no "=".
 *  @param used set to 1 when `next` was its value */
static apr_status_t flag_parse(yk_ctl_args_t *args, const char **why, int *used,
                               const char *synopsis, const char *word,
                               const char *next, apr_pool_t *p)
{
    const char *equals = strchr(word, '=');
    const char *name =
        equals != NULL
            ? apr_pstrmemdup(p, word + 2, (apr_size_t)(equals - word - 2))
            : word + 2;
    const char *behind = find(synopsis, name);
    yk_ctl_flag_t *flag;

    *used = 0;
    if (behind == NULL) {
        behind = find(YK_CTL_EVERYWHERE, name);
    }
    if (behind == NULL || *name == '\0') {
        *why = apr_psprintf(p, "there is no --%s here", name);
        return APR_EINVAL;
    }
    if (yk_ctl_args_get(args, name) != NULL && !may_repeat(behind)) {
        *why = apr_psprintf(p, "--%s was given twice", name);
        return APR_EINVAL;
    }
    flag = &args->flags[args->nflags++];
    flag->name = name;
    flag->value = equals != NULL ? equals + 1 : "";
    if (!takes_value(behind)) {
        if (equals != NULL) {
            *why = apr_psprintf(p, "--%s takes no value", name);
            return APR_EINVAL;
        }
    }
    else if (equals == NULL) {
        if (next == NULL) {
            *why = apr_psprintf(p, "--%s needs a value", name);
            return APR_EINVAL;
        }
        flag->value = next;
        *used = 1;
    }
    return APR_SUCCESS;
}

apr_status_t yk_ctl_args_parse(yk_ctl_args_t **pargs, const char **why,
                               const char *synopsis, int argc,
                               const char *const *argv, apr_pool_t *p)
{
    apr_size_t n = (apr_size_t)argc + 1;
    yk_ctl_args_t *args = apr_pcalloc(p, sizeof(*args));
    const char **words = apr_pcalloc(p, n * sizeof(*words));
    int only_words = 0;

    args->words = words;
    args->flags = apr_pcalloc(p, n * sizeof(*args->flags));
    *pargs = args;
    for (int i = 0; i < argc; i++) {
        int used;
        apr_status_t rv;

        if (!only_words && strcmp(argv[i], "--") == 0) {
            only_words = 1;
            continue;
        }
        if (only_words || strncmp(argv[i], "--", 2) != 0) {
            words[args->nwords++] = argv[i];
            continue;
        }
        rv = flag_parse(args, why, &used, synopsis, argv[i],
                        i + 1 < argc ? argv[i + 1] : NULL, p);
        if (rv != APR_SUCCESS) {
            return rv;
        }
        i += used;
    }
    return APR_SUCCESS;
}

const char *yk_ctl_args_get(const yk_ctl_args_t *args, const char *name)
{
    for (int i = 0; i < args->nflags; i++) {
        if (strcmp(args->flags[i].name, name) == 0) {
            return args->flags[i].value;
        }
    }
    return NULL;
}
