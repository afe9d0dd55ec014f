/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_strings.h>
#include "ctl.h"
#include "yoyaku/verify.h"

static json_t *verified_json(const yk_verified_t *v)
{
    json_t *findings = json_array();

    for (uint32_t i = 0; i < v->nfindings; i++) {
        json_array_append_new(findings,
                              json_pack("{s:s, s:s, s:s}", "kind",
                                        yk_finding_name(v->findings[i].kind),
                                        "slot", v->findings[i].slot, "text",
                                        v->findings[i].text));
    }
    return json_pack(
        "{s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, "
        "s:o}",
        "agrees", v->faults == 0, "slots", (json_int_t)v->slots, "places",
        (json_int_t)v->places, "free", (json_int_t)v->free, "held",
        (json_int_t)v->held, "booked", (json_int_t)v->booked, "not_for_sale",
        (json_int_t)v->not_for_sale, "pooled", (json_int_t)v->pooled, "lines",
        (json_int_t)v->lines, "journal", (json_int_t)v->journal, "faults",
        (json_int_t)v->faults, "findings", findings);
}

static const char *verified_text(yk_ctl_t *ctl, const yk_verified_t *v)
{
    const char *text = apr_psprintf(
        ctl->p,
        "%" APR_UINT64_T_FMT " slots, %" APR_UINT64_T_FMT
        " places: %" APR_UINT64_T_FMT " free, %" APR_UINT64_T_FMT
        " held, %" APR_UINT64_T_FMT " booked, %" APR_UINT64_T_FMT
        " not for sale; %" APR_UINT64_T_FMT " in pools; %" APR_UINT64_T_FMT
        " lines count, %" APR_UINT64_T_FMT " journal rows replayed.\n",
        v->slots, v->places, v->free, v->held, v->booked, v->not_for_sale,
        v->pooled, v->lines, v->journal);

    if (v->faults == 0) {
        return apr_pstrcat(ctl->p, text,
                           "No place was sold twice; counts, limits and the "
                           "journal agree.",
                           NULL);
    }
    text = apr_psprintf(ctl->p, "%s%" APR_UINT64_T_FMT " faults:", text,
                        v->faults);
    for (uint32_t i = 0; i < v->nfindings; i++) {
        text = apr_psprintf(ctl->p, "%s\n  %s: %s", text,
                            yk_finding_name(v->findings[i].kind),
                            v->findings[i].text);
    }
    return text;
}

/** A book that does not agree with itself is not done: exit status 1. */
int yk_ctl_verify(yk_ctl_t *ctl)
{
    yk_verified_t *verified;
    apr_status_t rv;
    int status = yk_ctl_open_tenant(ctl);

    if (status != YK_CTL_DONE) {
        return status;
    }
    rv = yk_verify(ctl->store, &verified, ctl->tenant_id,
                   yk_ctl_args_get(ctl->args, "slot"), ctl->p);
    if (rv == APR_NOTFOUND) {
        return yk_ctl_fail(ctl, "there is no such slot");
    }
    if (rv != APR_SUCCESS) {
        return yk_ctl_status(ctl, rv, NULL);
    }
    status =
        yk_ctl_done(ctl, verified_text(ctl, verified), verified_json(verified));
    if (status == YK_CTL_DONE && verified->faults > 0) {
        return yk_ctl_fail(ctl, "the book does not agree with itself");
    }
    return status;
}
