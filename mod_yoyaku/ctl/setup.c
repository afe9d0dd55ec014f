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
