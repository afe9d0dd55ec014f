/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include "call.h"

#define HEADER "Idempotency-Key"
#define KEY_MAX 255
#define KEY_MIN_ALONE 22 /**< 128 bits in base64url, where nobody signs */

/*
 * The scope of a key: who may hit on the same one and mean the same request.
 * A token sent along with a hold is in neither hash, so that a hold repeated
 * after its cookie arrived is still the same hold.
 */
apr_status_t yk_http_once_check(yk_http_call_t *call, int names_order)
{
    const char *key = apr_table_get(call->r->headers_in, HEADER);
    const char *who = call->terms.booker;
    const char *order = "";
    apr_size_t len;

    if (key == NULL) {
        return APR_SUCCESS;
    }
    if (call->shop && call->r->user != NULL) {
        who = call->r->user;
    }
    len = strlen(key);
    for (apr_size_t i = 0; i < len; i++) {
        if (key[i] < '!' || key[i] > '~') {
            len = 0;
        }
    }
    if (len < 1 || len > KEY_MAX) {
        return yk_http_call_fault(call, YK_ANSWER_INVALID, HEADER,
                                  "1 to 255 visible ASCII characters",
                                  "The key cannot be one.");
    }
    if (*who == '\0' && len < KEY_MIN_ALONE) {
        return yk_http_call_fault(call, YK_ANSWER_INVALID, HEADER,
                                  "22 to 255 visible ASCII characters",
                                  "Where nobody is named, a key has to be "
                                  "long enough not to be guessed.");
    }
    if (names_order && call->token != NULL) {
        order =
            yk_text_hex(call->token_hash.bytes, YK_HASH_BYTES, call->r->pool);
    }
    call->once_room.key = key;
    yk_secret_hash_parts(&call->once_room.scope,
                         yk_http_desk_config_tenant(call->conf), call->method,
                         call->r->uri, call->shop ? "shop" : "booker", who,
                         order, key, NULL);
    yk_secret_hash(&call->once_room.request,
                   call->bytes != NULL ? call->bytes : "", call->len);
    call->once = &call->once_room;
    return APR_SUCCESS;
}
