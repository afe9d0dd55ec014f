/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_strings.h>
#include <stdatomic.h>
#include <string.h>
#include "call.h"
#include "room.h"
#include "lane.h"

apr_status_t yk_http_call_fault(yk_http_call_t *call, yk_answer_e answer,
                                const char *field, const char *allowed,
                                const char *detail)
{
    call->fault.answer = answer;
    call->fault.field = field;
    call->fault.allowed = allowed;
    call->fault.detail = detail;
    return APR_EINVAL;
}

apr_status_t yk_http_call_booker(yk_http_call_t *call, int is_hold)
{
    const char *error = NULL;
    const char *booker = "";

    if (call->shop) {
        return APR_SUCCESS; /* the shop says for whom, in its body */
    }
    if (call->conf->booker != NULL) {
        booker = ap_expr_str_exec(call->r, call->conf->booker, &error);
    }
    if (error != NULL) {
        ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, call->r,
                      "YK0408: desk: YoyakuBooker cannot be evaluated: %s",
                      error);
        return yk_http_call_fault(call, YK_ANSWER_AWAY, NULL, NULL,
                                  "It cannot be said who is asking.");
    }
    if (booker == NULL) {
        booker = "";
    }
    if (strlen(booker) > YK_TEXT_NAME ||
        !yk_text_is_utf8(booker, strlen(booker))) {
        return yk_http_call_fault(call, YK_ANSWER_INVALID, "booker",
                                  "at most 250 bytes of UTF-8",
                                  "The name of who is asking is unfit.");
    }
    if (is_hold && call->terms.booker_required && *booker == '\0') {
        return yk_http_call_fault(call, YK_ANSWER_FORBIDDEN, "booker", NULL,
                                  "Only those who say who they are may hold.");
    }
    call->terms.booker = booker;
    call->terms.who = *booker != '\0' ? booker : "booker";
    return APR_SUCCESS;
}

/** A tenant that the book does not know is the operator's to mend: said once
 *  a minute and process. */
static void tell_tenant(yk_http_call_t *call, const char *tenant)
{
    static _Atomic apr_int64_t told_until;
    apr_int64_t now = yk_state_now();
    apr_int64_t until = told_until;

    if (now >= until && atomic_compare_exchange_strong(
                            &told_until, &until, now + apr_time_from_sec(60))) {
        ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, call->r,
                      "YK0409: desk: the book has no tenant '%s'; make it "
                      "with: yoyakuctl setup --tenant %s",
                      tenant, tenant);
    }
}

apr_status_t yk_http_call_open(yk_http_call_t *call)
{
    const char *tenant = yk_http_desk_config_tenant(call->conf);
    request_rec *r = call->r;
    apr_status_t rv;

    call->catalogue = yk_http_desk_catalogue(r->server);
    if (call->catalogue == NULL) {
        return APR_ECONNRESET;
    }
    rv = call->store != NULL ? APR_SUCCESS
                             : yk_http_desk_dbd_attach(&call->store, &call->dbd,
                                                       r->server, r->pool);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    rv = yk_catalogue_tenant(call->catalogue, &call->terms.tenant_id,
                             call->store, tenant);
    if (APR_STATUS_IS_ENOENT(rv) || rv == APR_NOTFOUND) {
        tell_tenant(call, tenant);
        return APR_EGENERAL;
    }
    return rv;
}

apr_status_t yk_http_call_desk(yk_http_call_t *call, yk_desk_t **desk)
{
    request_rec *r = call->r;
    yk_http_dbd_t *dbd = NULL;
    yk_store_t *store = NULL;
    apr_status_t rv = yk_http_desk_dbd_attach(&store, &dbd, r->server, r->pool);

    /* with a store of its own: a probe leaves nothing behind in ours */
    if (rv == APR_SUCCESS) {
        rv = yk_http_desk_probe_check(store, r->server, r->pool);
        yk_store_rest(store);
    }
    if (rv == APR_SUCCESS) {
        rv = yk_http_call_open(call);
    }
    if (rv == APR_SUCCESS) {
        /* Whoever waits in a lane has no line in hand meanwhile. */
        yk_store_rest(call->store);
        call->terms.pass = yk_http_room_pass(r);
        *desk =
            yk_desk_make(call->store, call->catalogue, &call->terms, r->pool);
        yk_http_lane_bind(r, *desk,
                          yk_http_desk_scan_database(r->server)->name);
    }
    return rv;
}

apr_status_t yk_http_call_change(yk_http_call_t *call, yk_reply_t *reply,
                                 yk_http_change_fn *change, const void *what)
{
    yk_desk_t *desk = NULL;
    apr_status_t rv = yk_http_call_desk(call, &desk);

    return rv == APR_SUCCESS ? change(desk, reply, call, what) : rv;
}

int yk_http_call_answer(yk_http_call_t *call, apr_status_t read,
                        yk_http_change_fn *change, const void *what)
{
    yk_reply_t reply = {0};
    apr_status_t rv;

    if (read != APR_SUCCESS) {
        return yk_http_reply_fault(call);
    }
    rv = yk_http_call_change(call, &reply, change, what);
    return yk_http_reply_desk(call, rv, &reply);
}

void yk_http_call_rest(yk_http_call_t *call)
{
    if (call->store != NULL) {
        yk_store_rest(call->store);
        yk_http_reply_note(
            call, "yoyaku-store-ms",
            apr_psprintf(call->r->pool, "%.3f",
                         (double)yk_http_desk_dbd_used(call->dbd) / 1000));
    }
}
