/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_strings.h>
#include <string.h>
#include "call.h"

int yk_http_order_look(yk_http_call_t *call)
{
    yk_reply_t reply = {0};
    apr_status_t rv = yk_http_call_open(call);

    if (rv == APR_SUCCESS) {
        yk_desk_t *desk = yk_desk_make(call->store, call->catalogue,
                                       &call->terms, call->r->pool);

        rv = yk_desk_look(desk, &reply, call->claim, call->r->pool);
    }
    return yk_http_reply_desk(call, rv, &reply);
}

static apr_status_t patch(yk_desk_t *desk, yk_reply_t *reply,
                          yk_http_call_t *call, const void *what)
{
    return yk_desk_patch(desk, reply, what, call->claim, call->once,
                         call->r->pool);
}

int yk_http_order_patch(yk_http_call_t *call)
{
    yk_patch_t *what = NULL;
    apr_status_t read =
        yk_request_patch(&what, &call->fault, call->body, call->r->pool);

    return yk_http_call_answer(call, read, patch, what);
}

static apr_status_t release(yk_desk_t *desk, yk_reply_t *reply,
                            yk_http_call_t *call, const void *what)
{
    return yk_desk_release(desk, reply, "", call->claim, call->once,
                           call->r->pool);
}

int yk_http_order_release(yk_http_call_t *call)
{
    return yk_http_call_answer(
        call, yk_request_nothing(&call->fault, call->body), release, NULL);
}

/* ---- checkout ---- */

/** Where the booker goes to pay; the shop there looks the order up. */
static const char *checkout_url(const yk_http_call_t *call,
                                const yk_order_t *order)
{
    const char *url = call->conf->checkout_url;

    if (url == NULL || *url == '\0') {
        return NULL;
    }
    return apr_psprintf(call->r->pool, "%s%cnumber=%s&attempt=%u", url,
                        strchr(url, '?') != NULL ? '&' : '?',
                        yk_number_write(order->order_id, call->r->pool),
                        order->attempt);
}

static int checkout_send(yk_http_call_t *call, const yk_reply_t *reply)
{
    const yk_order_t *order = reply->order;
    yk_http_json_t *j = yk_http_json_make(512, call->r->pool);
    const char *number = yk_number_write(order->order_id, j->p);
    const char *url = checkout_url(call, order);

    yk_http_reply_note(call, "yoyaku-outcome", yk_answer_reason(reply->answer));
    yk_http_reply_note(call, "yoyaku-order", number);
    if (call->form) {
        return yk_http_reply_see(
            call, url != NULL ? url : yk_http_route_url(call, "/order"));
    }
    yk_http_json_text(j, "number", number);
    yk_http_json_text(j, "state", yk_order_state_name(order->state));
    yk_http_json_number(j, "attempt", order->attempt);
    yk_http_json_text(
        j, "total",
        yk_money_write(yk_order_total(order), order->currency, j->p));
    yk_http_json_said(j, "currency", order->currency);
    yk_http_json_time(j, "expires", order->until_us);
    if (url != NULL) {
        yk_http_json_text(j, "url", url);
    }
    apr_table_setn(call->r->headers_out, "Cache-Control", "no-store");
    if (reply->replayed) {
        apr_table_setn(call->r->headers_out, "Idempotency-Replayed", "true");
    }
    return yk_http_reply_json(call, yk_http_status(reply->answer), j);
}

static apr_status_t checkout(yk_desk_t *desk, yk_reply_t *reply,
                             yk_http_call_t *call, const void *what)
{
    return yk_desk_checkout(desk, reply, call->claim, call->once,
                            call->r->pool);
}

int yk_http_order_checkout(yk_http_call_t *call)
{
    yk_reply_t reply = {0};
    apr_status_t rv = yk_request_nothing(&call->fault, call->body);

    if (rv != APR_SUCCESS) {
        return yk_http_reply_fault(call);
    }
    rv = yk_http_call_change(call, &reply, checkout, NULL);
    if (rv == APR_SUCCESS && reply.answer == YK_ANSWER_OK) {
        return checkout_send(call, &reply);
    }
    return yk_http_reply_desk(call, rv, &reply);
}

static apr_status_t reopen(yk_desk_t *desk, yk_reply_t *reply,
                           yk_http_call_t *call, const void *what)
{
    return yk_desk_reopen(desk, reply, call->claim, call->once, call->r->pool);
}

int yk_http_order_reopen(yk_http_call_t *call)
{
    return yk_http_call_answer(
        call, yk_request_nothing(&call->fault, call->body), reopen, NULL);
}

static apr_status_t confirm(yk_desk_t *desk, yk_reply_t *reply,
                            yk_http_call_t *call, const void *what)
{
    return yk_desk_confirm(desk, reply, NULL, call->claim, call->once,
                           call->r->pool);
}

int yk_http_order_confirm(yk_http_call_t *call)
{
    return yk_http_call_answer(
        call, yk_request_nothing(&call->fault, call->body), confirm, NULL);
}

static apr_status_t exchange(yk_desk_t *desk, yk_reply_t *reply,
                             yk_http_call_t *call, const void *what)
{
    const yk_exchange_t *e = what;

    return yk_desk_exchange(desk, reply, e->give, e->ngive, e->take, e->amount,
                            e->currency, e->reason, call->claim, call->once,
                            call->r->pool);
}

int yk_http_order_exchange(yk_http_call_t *call)
{
    yk_exchange_t *what = NULL;
    apr_status_t read =
        yk_request_exchange(&what, &call->fault, call->body, call->r->pool);

    call->names_difference = call->shop;
    return yk_http_call_answer(call, read, exchange, what);
}

static apr_status_t remove_line(yk_desk_t *desk, yk_reply_t *reply,
                                yk_http_call_t *call, const void *what)
{
    return yk_desk_remove(desk, reply, call->line, call->claim, call->once,
                          call->r->pool);
}

int yk_http_order_remove(yk_http_call_t *call)
{
    return yk_http_call_answer(
        call, yk_request_nothing(&call->fault, call->body), remove_line, NULL);
}
