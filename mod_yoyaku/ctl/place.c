/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_strings.h>
#include "ctl.h"

/* One place after the other; the first that cannot be ends it, and what was
 * done before it stays done and was said. */
static int sale_set(yk_ctl_t *ctl, int for_sale)
{
    const char *slot = yk_ctl_need(ctl, "slot");
    json_t *done;
    const char *text = "";
    int status;

    if (slot == NULL) {
        return YK_CTL_USAGE;
    }
    status = yk_ctl_open_tenant(ctl);
    if (status != YK_CTL_DONE) {
        return status;
    }
    done = json_array();
    for (int i = 0; i < ctl->args->nwords && status == YK_CTL_DONE; i++) {
        const char *place = ctl->args->words[i], *say = NULL;
        apr_status_t rv = yk_setup_place(ctl->store, &say, ctl->tenant_id, slot,
                                         place, for_sale, ctl->p);

        if (rv != APR_SUCCESS) {
            status = yk_ctl_status(ctl, rv, say);
            break;
        }
        json_array_append_new(done, json_string(place));
        text = apr_pstrcat(ctl->p, text, i > 0 ? "\n" : "", say, NULL);
    }
    if (status == YK_CTL_DONE || json_array_size(done) > 0) {
        yk_ctl_done(ctl, text,
                    json_pack("{s:s, s:o, s:b}", "slot", slot, "places", done,
                              "for_sale", for_sale));
    }
    else {
        json_decref(done);
    }
    return status;
}

int yk_ctl_place_close(yk_ctl_t *ctl)
{
    return sale_set(ctl, 0);
}

int yk_ctl_place_open(yk_ctl_t *ctl)
{
    return sale_set(ctl, 1);
}
