/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_strings.h>
#include <string.h>
#include "ctl.h"

/** The number of a word in a list, as the enum beside it counts; -1: none. */
static int one_of(const char *word, const char *const *list)
{
    for (int i = 0; list[i] != NULL; i++) {
        if (strcmp(word, list[i]) == 0) {
            return i;
        }
    }
    return -1;
}

/* in the order of yk_per_e, yk_over_e and yk_counted_e */
static const char *const pers[] = {"order", "booker", NULL};
static const char *const overs[] = {"slot", "resource", "series", "all", NULL};
static const char *const counts[] = {"places", "slots", "resources", NULL};

/** Which limit a command is about. */
typedef struct named_t {
    yk_per_e per;
    yk_over_e over;
    const char *key;
    yk_counted_e count;
} named_t;

/** "slot:KEY", "all": what a limit reaches over. */
static int over_parse(yk_ctl_t *ctl, yk_over_e *over, const char **key,
                      const char *text)
{
    const char *colon = strchr(text, ':');
    int found = one_of(
        colon != NULL ? apr_pstrmemdup(ctl->p, text, (apr_size_t)(colon - text))
                      : text,
        overs);

    *key = colon != NULL ? colon + 1 : "";
    if (found < 0 || (found == YK_OVER_ALL) != (**key == '\0')) {
        return yk_ctl_usage(ctl,
                            "--over is slot:KEY, resource:KEY, "
                            "series:KEY or all, not \"%s\"",
                            text);
    }
    *over = (yk_over_e)found;
    return YK_CTL_DONE;
}

static int named_parse(yk_ctl_t *ctl, named_t *named)
{
    const char *per = yk_ctl_need(ctl, "per");
    const char *over = per != NULL ? yk_ctl_need(ctl, "over") : NULL;
    const char *count = over != NULL ? yk_ctl_need(ctl, "count") : NULL;

    if (count == NULL) {
        return YK_CTL_USAGE;
    }
    if (one_of(per, pers) < 0) {
        return yk_ctl_usage(ctl, "--per is order or booker");
    }
    if (one_of(count, counts) < 0) {
        return yk_ctl_usage(ctl, "--count is places, slots or resources");
    }
    named->per = (yk_per_e)one_of(per, pers);
    named->count = (yk_counted_e)one_of(count, counts);
    return over_parse(ctl, &named->over, &named->key, over);
}

int yk_ctl_limit_add(yk_ctl_t *ctl)
{
    const char *say = NULL;
    named_t named;
    int64_t max = 0;
    apr_status_t rv;
    int status = named_parse(ctl, &named);

    if (status == YK_CTL_DONE && yk_ctl_need(ctl, "max") == NULL) {
        status = YK_CTL_USAGE;
    }
    if (status == YK_CTL_DONE) {
        status = yk_ctl_number(ctl, &max, "max", 0, 0);
    }
    if (status == YK_CTL_DONE) {
        status = yk_ctl_open_tenant(ctl);
    }
    if (status != YK_CTL_DONE) {
        return status;
    }
    rv = yk_setup_limit(ctl->store, &say, ctl->tenant_id, named.per, named.over,
                        named.key, named.count, max, ctl->p);
    return rv == APR_SUCCESS ? yk_ctl_done(ctl, say, NULL)
                             : yk_ctl_status(ctl, rv, say);
}

int yk_ctl_limit_remove(yk_ctl_t *ctl)
{
    const char *say = NULL;
    named_t named;
    apr_status_t rv;
    int status = named_parse(ctl, &named);

    if (status == YK_CTL_DONE) {
        status = yk_ctl_open_tenant(ctl);
    }
    if (status != YK_CTL_DONE) {
        return status;
    }
    rv = yk_setup_limit_remove(ctl->store, &say, ctl->tenant_id, named.per,
                               named.over, named.key, named.count, ctl->p);
    return rv == APR_SUCCESS ? yk_ctl_done(ctl, say, NULL)
                             : yk_ctl_status(ctl, rv, say);
}

int yk_ctl_limit_list(yk_ctl_t *ctl)
{
    json_t *listed;
    const char *text = "";
    yk_limit_t *limits;
    uint32_t n;
    apr_status_t rv;
    int status = yk_ctl_open_tenant(ctl);

    if (status != YK_CTL_DONE) {
        return status;
    }
    rv = yk_setup_limits(ctl->store, &limits, &n, ctl->tenant_id, ctl->p);
    if (rv != APR_SUCCESS) {
        return yk_ctl_status(ctl, rv, NULL);
    }
    listed = json_array();
    for (uint32_t i = 0; i < n; i++) {
        const yk_limit_t *limit = &limits[i];
        const char *over = limit->over == YK_OVER_ALL
                               ? overs[limit->over]
                               : apr_pstrcat(ctl->p, overs[limit->over], ":",
                                             limit->key, NULL);

        json_array_append_new(
            listed,
            json_pack("{s:s, s:s, s:s, s:I, s:b}", "per", pers[limit->per],
                      "over", over, "count", counts[limit->count], "max",
                      (json_int_t)limit->max, "in_force", limit->in_force));
        /* in the words that add or remove it */
        text = apr_psprintf(ctl->p,
                            "%s--per %s --over %s --count %s --max "
                            "%" APR_INT64_T_FMT "%s\n",
                            text, pers[limit->per], over, counts[limit->count],
                            (apr_int64_t)limit->max,
                            limit->in_force ? "" : "  (not in force yet)");
    }
    return yk_ctl_done(ctl,
                       n > 0 ? apr_pstrmemdup(ctl->p, text, strlen(text) - 1)
                             : "There is no limit yet.",
                       json_pack("{s:o}", "limits", listed));
}
