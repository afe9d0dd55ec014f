/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include "call.h"

/*
 * What only the application behind the server may do. `Require` has seen to it
 * that nobody else comes here.
 */

static apr_status_t confirm(yk_desk_t *desk, yk_reply_t *reply,
                            yk_http_call_t *call, const void *what)
{
    return yk_desk_confirm(desk, reply, what, call->claim, call->once,
                           call->r->pool);
}

int yk_http_shop_confirm(yk_http_call_t *call)
{
    yk_payment_t *payment = NULL;
    apr_status_t read =
        yk_request_payment(&payment, &call->fault, call->body, call->r->pool);

    return yk_http_call_answer(call, read, confirm, payment);
}

static apr_status_t cancel(yk_desk_t *desk, yk_reply_t *reply,
                           yk_http_call_t *call, const void *what)
{
    return yk_desk_cancel(desk, reply, what, call->claim, call->once,
                          call->r->pool);
}

static apr_status_t release(yk_desk_t *desk, yk_reply_t *reply,
                            yk_http_call_t *call, const void *what)
{
    return yk_desk_release(desk, reply, what, call->claim, call->once,
                           call->r->pool);
}

/** A change whose body is a reason, or nothing. */
static int for_a_reason(yk_http_call_t *call, yk_http_change_fn *change)
{
    const char *reason = "";
    apr_status_t read =
        yk_request_reason(&reason, &call->fault, call->body, call->r->pool);

    return yk_http_call_answer(call, read, change, reason);
}

int yk_http_shop_cancel(yk_http_call_t *call)
{
    return for_a_reason(call, cancel);
}

int yk_http_shop_release(yk_http_call_t *call)
{
    return for_a_reason(call, release);
}

/** The query's filters; a member sent empty counts as not sent. */
static apr_status_t filters_read(yk_http_call_t *call, const char *filters[3])
{
    static const char *const names[3] = {"reference", "booker", "contact"};
    const char *args = call->r->args != NULL ? call->r->args : "";
    yk_body_t *query = NULL;
    apr_status_t rv = yk_body_parse_form(&query, &call->fault, args,
                                         strlen(args), call->r->pool);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    for (int i = 0; i < 3; i++) {
        const char *text = yk_body_text(query, names[i], 0, YK_TEXT_NAME);

        filters[i] = text != NULL && *text != '\0' ? text : NULL;
    }
    return yk_body_check(query, &call->fault);
}

int yk_http_shop_search(yk_http_call_t *call)
{
    apr_pool_t *p = call->r->pool;
    const char *filters[3] = {NULL, NULL, NULL};
    yk_order_t **orders = NULL;
    yk_http_json_t *j = NULL;
    apr_time_t now = 0;
    uint32_t n = 0;
    apr_status_t rv = filters_read(call, filters);

    if (rv != APR_SUCCESS) {
        return yk_http_reply_fault(call);
    }
    rv = yk_http_call_open(call);
    if (rv == APR_SUCCESS) {
        rv = yk_store_orders(call->store, &orders, &n, &now,
                             call->terms.tenant_id, filters[0], filters[1],
                             filters[2], p);
    }
    if (rv != APR_SUCCESS) {
        return yk_http_reply_status(call, rv);
    }
    j = yk_http_json_make(1024 * (n + 1), p);
    yk_http_json_array(j, "orders");
    for (uint32_t i = 0; i < n; i++) {
        yk_http_json_object(j, NULL);
        yk_http_json_text(j, "number", yk_number_write(orders[i]->order_id, p));
        yk_http_document_order(call, j, orders[i], now);
        yk_http_json_end(j);
    }
    yk_http_reply_note(call, "yoyaku-outcome", "ok");
    apr_table_setn(call->r->headers_out, "Cache-Control", "no-store");
    return yk_http_reply_json(call, HTTP_OK, j);
}
