/* SPDX-License-Identifier: Apache-2.0 */
#include "yoyaku/room.h"

#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>
#include "yoyaku/text.h"

#define MAC_BYTES 16

/* What is signed: kind, room, number, time. A name holds no space. */
static void sign(yk_hash_t *mac, char kind, const char *room, uint64_t number,
                 apr_time_t issued, const yk_hash_t *key)
{
    char text[160];
    int n = apr_snprintf(
        text, sizeof(text),
        "yoyaku %c %s %" APR_UINT64_T_HEX_FMT " %" APR_UINT64_T_HEX_FMT, kind,
        room, (apr_uint64_t)number, (apr_uint64_t)issued);

    yk_secret_hmac(mac, key->bytes, sizeof(key->bytes), text, (apr_size_t)n);
}

char *yk_room_cookie_write(char kind, const char *room, uint64_t number,
                           apr_time_t issued, const yk_hash_t *key,
                           apr_pool_t *p)
{
    yk_hash_t mac;

    sign(&mac, kind, room, number, issued, key);
    return apr_psprintf(
        p, "%c.%" APR_UINT64_T_HEX_FMT ".%" APR_UINT64_T_HEX_FMT ".%s", kind,
        (apr_uint64_t)number, (apr_uint64_t)issued,
        yk_text_hex(mac.bytes, MAC_BYTES, p));
}

/* Hexadecimal up to a dot; 0 when it is not. */
static uint64_t part(const char **at)
{
    char *end;
    uint64_t n;

    if (strspn(*at, "0123456789abcdef") == 0) {
        return 0;
    }
    n = strtoull(*at, &end, 16);
    if (*end != '.' || end - *at > 16) {
        return 0;
    }
    *at = end + 1;
    return n;
}

static int is_signed(const char *hex, char kind, const char *room,
                     uint64_t number, apr_time_t issued, const yk_hash_t *key)
{
    static const char digits[] = "0123456789abcdef";
    char right[2 * MAC_BYTES];
    yk_hash_t mac;

    sign(&mac, kind, room, number, issued, key);
    for (int i = 0; i < MAC_BYTES; i++) {
        right[2 * i] = digits[mac.bytes[i] >> 4];
        right[2 * i + 1] = digits[mac.bytes[i] & 15];
    }
    return strlen(hex) == sizeof(right) &&
           yk_secret_equal(hex, right, sizeof(right));
}

apr_status_t yk_room_cookie_read(uint64_t *number, apr_time_t *issued,
                                 const char *text, char kind, const char *room,
                                 const yk_hash_t *keys, int nkeys)
{
    if (text[0] != kind || text[1] != '.') {
        return APR_EINVAL;
    }
    text += 2;
    *number = part(&text);
    *issued = (apr_time_t)part(&text);
    if (*number == 0 || *issued <= 0) {
        return APR_EINVAL;
    }
    for (int i = 0; i < nkeys; i++) {
        if (is_signed(text, kind, room, *number, *issued, &keys[i])) {
            return APR_SUCCESS;
        }
    }
    return APR_EINVAL;
}

void yk_room_seed(yk_hash_t *seed, const char *room, apr_time_t opens,
                  const yk_hash_t *key)
{
    char text[160];
    int n = apr_snprintf(text, sizeof(text), "yoyaku draw %s %" APR_TIME_T_FMT,
                         room, opens);

    yk_secret_hmac(seed, key->bytes, sizeof(key->bytes), text, (apr_size_t)n);
}
