/* SPDX-License-Identifier: Apache-2.0 */
#include "board.h"
#include <string.h>

/** The shop says for whom it holds; "" is nobody in particular. */
static apr_status_t booker_read(yk_http_call_t *call)
{
    const char *booker = NULL;

    if (!call->shop) {
        return APR_SUCCESS;
    }
    yk_body_need(call->body, "booker", "a text of at most 250 bytes");
    booker = yk_body_text(call->body, "booker", 0, YK_TEXT_NAME);
    if (booker != NULL) {
        call->terms.booker = booker;
    }
    if (booker != NULL && *booker == '\0' && call->terms.booker_required) {
        return yk_http_call_fault(call, YK_ANSWER_FORBIDDEN, "booker", NULL,
                                  "A hold needs a booker here.");
    }
    return APR_SUCCESS;
}

/* Who is refused is seldom the only one: the slot's board is brought up to
 * date, twice a second at most, and refuses the next without a transaction. */
static void board_learn(yk_http_call_t *call, const yk_reply_t *reply)
{
    yk_board_ref_t ref;

    if (reply->answer == YK_ANSWER_TAKEN && call->slot != NULL) {
        yk_http_board_fresh(call, &ref);
    }
}

int yk_http_hold_make(yk_http_call_t *call)
{
    apr_pool_t *p = call->r->pool;
    yk_reply_t reply = {0};
    yk_wish_t *wish = NULL;
    yk_desk_t *desk = NULL;
    apr_status_t rv = booker_read(call);

    if (rv == APR_SUCCESS) {
        rv = yk_request_wish(&wish, &call->fault, call->body, call->slot, p);
    }
    if (rv != APR_SUCCESS) {
        return yk_http_reply_fault(call);
    }
    yk_http_reply_note(call, "yoyaku-slot", wish->lines[0].slot);
    if (yk_http_board_refuses(call, &reply, wish)) {
        return yk_http_reply_desk(call, APR_SUCCESS, &reply);
    }
    memset(&reply, 0, sizeof(reply));
    rv = yk_http_call_desk(call, &desk);
    if (rv == APR_SUCCESS) {
        rv = yk_desk_hold(desk, &reply, wish, call->claim, call->once, p);
    }
    if (rv == APR_SUCCESS) {
        board_learn(call, &reply);
    }
    return yk_http_reply_desk(call, rv, &reply);
}
