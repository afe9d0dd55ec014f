/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_file_info.h>
#include <apr_strings.h>
#include <string.h>
#include <unistd.h>
#include "ctl.h"

/** The folder this program lies in; NULL when the system does not say. */
static const char *own_folder(apr_pool_t *p)
{
    char path[APR_PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);

    if (len <= 0) {
        return NULL;
    }
    path[len] = '\0';
    *strrchr(path, '/') = '\0';
    return apr_pstrdup(p, path);
}

/** Where the numbered files are: as said; beside the tool, as built; as
 *  installed with it, wherever that was moved to. */
static const char *folder_find(yk_ctl_t *ctl)
{
    const char *said = yk_ctl_args_get(ctl->args, "folder");
    const char *own = own_folder(ctl->p);
    static const char *const beside[] = {"/schema", "/../share/yoyaku/schema",
                                         NULL};

    if (said != NULL) {
        return said;
    }
    for (int i = 0; own != NULL && beside[i] != NULL; i++) {
        const char *folder = apr_pstrcat(ctl->p, own, beside[i], NULL);
        apr_finfo_t info;

        if (apr_stat(&info, folder, APR_FINFO_TYPE, ctl->p) == APR_SUCCESS) {
            return folder;
        }
    }
    return YK_SCHEMA_INSTALLED;
}

int yk_ctl_schema(yk_ctl_t *ctl)
{
    const char *say = NULL;
    apr_status_t rv;
    int status = yk_ctl_open(ctl);

    if (status != YK_CTL_DONE) {
        return status;
    }
    rv = yk_setup_schema(ctl->store, &say, folder_find(ctl), ctl->p);
    return rv == APR_SUCCESS ? yk_ctl_done(ctl, say, NULL)
                             : yk_ctl_status(ctl, rv, say);
}

int yk_ctl_setup(yk_ctl_t *ctl)
{
    const char *schema = NULL, *say = NULL;
    apr_status_t rv;
    int status = yk_ctl_open(ctl);

    if (status != YK_CTL_DONE) {
        return status;
    }
    rv = yk_setup_schema(ctl->store, &schema, folder_find(ctl), ctl->p);
    if (rv != APR_SUCCESS) {
        return yk_ctl_status(ctl, rv, schema);
    }
    rv =
        yk_setup_tenant(ctl->store, &say, &ctl->tenant_id, ctl->tenant, ctl->p);
    if (rv != APR_SUCCESS) {
        return yk_ctl_status(ctl, rv, say);
    }
    return yk_ctl_done(ctl, apr_psprintf(ctl->p, "%s\n%s", schema, say),
                       json_pack("{s:s, s:s, s:s}", "tenant", ctl->tenant,
                                 "schema", schema, "said", say));
}

int yk_ctl_doctor(yk_ctl_t *ctl)
{
    const char *why = NULL;
    apr_status_t rv;
    int status = yk_ctl_open(ctl);

    if (status != YK_CTL_DONE) {
        return status;
    }
    rv = yk_store_probe(ctl->store, &why, ctl->p);
    if (rv == APR_SUCCESS) {
        return yk_ctl_done(ctl, "The database is fit to sell from.",
                           json_pack("{s:b}", "fit", 1));
    }
    if (rv == APR_ENOTIMPL && ctl->json) {
        yk_ctl_done(ctl, "", json_pack("{s:b, s:s}", "fit", 0, "why", why));
    }
    return yk_ctl_status(ctl, rv, why);
}

/* ---- prices and limits ---- */

int yk_ctl_price_set(yk_ctl_t *ctl)
{
    const char *slot = yk_ctl_need(ctl, "slot");
    const char *tariff = slot != NULL ? yk_ctl_need(ctl, "tariff") : NULL;
    const char *amount_text = ctl->args->words[0];
    const char *currency = ctl->args->words[1];
    const char *say = NULL;
    int64_t amount, quota;
    apr_status_t rv;
    int status;

    if (tariff == NULL) {
        return YK_CTL_USAGE;
    }
    if (!yk_money_is_currency(currency)) {
        return yk_ctl_usage(ctl,
                            "a currency is three capital letters, as "
                            "EUR, not \"%s\"",
                            currency);
    }
    if (yk_money_parse(&amount, amount_text, currency) != APR_SUCCESS) {
        return yk_ctl_usage(ctl, "\"%s\" is not an amount of %s, as 45.00",
                            amount_text, currency);
    }
    status = yk_ctl_number(ctl, &quota, "quota", 0, -1);
    if (status == YK_CTL_DONE) {
        status = yk_ctl_open_tenant(ctl);
    }
    if (status != YK_CTL_DONE) {
        return status;
    }
    rv = yk_setup_price(ctl->store, &say, ctl->tenant_id, slot,
                        yk_ctl_args_get(ctl->args, "grade"),
                        yk_ctl_args_get(ctl->args, "area"), tariff, amount,
                        currency, quota, ctl->p);
    return rv == APR_SUCCESS ? yk_ctl_done(ctl, say, NULL)
                             : yk_ctl_status(ctl, rv, say);
}

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

/** "slot:KEY", "all": what a limit reaches over. */
static int over_parse(yk_ctl_t *ctl, yk_over_e *over, const char **key,
                      const char *text)
{
    /* in the order of yk_over_e */
    static const char *const names[] = {"slot", "resource", "series", "all",
                                        NULL};
    const char *colon = strchr(text, ':');
    int found = one_of(
        colon != NULL ? apr_pstrmemdup(ctl->p, text, (apr_size_t)(colon - text))
                      : text,
        names);

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

int yk_ctl_limit_add(yk_ctl_t *ctl)
{
    /* in the order of yk_per_e and yk_counted_e */
    static const char *const pers[] = {"order", "booker", NULL};
    static const char *const counts[] = {"places", "slots", "resources", NULL};
    const char *per = yk_ctl_need(ctl, "per");
    const char *over_text = per != NULL ? yk_ctl_need(ctl, "over") : NULL;
    const char *count = over_text != NULL ? yk_ctl_need(ctl, "count") : NULL;
    const char *max_text = count != NULL ? yk_ctl_need(ctl, "max") : NULL;
    const char *key = "", *say = NULL;
    yk_over_e over = YK_OVER_ALL;
    int64_t max = 0;
    apr_status_t rv;
    int status;

    if (max_text == NULL) {
        return YK_CTL_USAGE;
    }
    if (one_of(per, pers) < 0) {
        return yk_ctl_usage(ctl, "--per is order or booker");
    }
    if (one_of(count, counts) < 0) {
        return yk_ctl_usage(ctl, "--count is places, slots or resources");
    }
    status = over_parse(ctl, &over, &key, over_text);
    if (status == YK_CTL_DONE) {
        status = yk_ctl_number(ctl, &max, "max", 0, 0);
    }
    if (status == YK_CTL_DONE) {
        status = yk_ctl_open_tenant(ctl);
    }
    if (status != YK_CTL_DONE) {
        return status;
    }
    rv = yk_setup_limit(ctl->store, &say, ctl->tenant_id,
                        (yk_per_e)one_of(per, pers), over, key,
                        (yk_counted_e)one_of(count, counts), max, ctl->p);
    return rv == APR_SUCCESS ? yk_ctl_done(ctl, say, NULL)
                             : yk_ctl_status(ctl, rv, say);
}
