/* SPDX-License-Identifier: Apache-2.0 */
#include "yoyaku/secret.h"
#include <apr_time.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#if OPENSSL_VERSION_NUMBER >= 0x30000000L
#include <openssl/core_names.h>
#include <openssl/params.h>
#else
#include <openssl/hmac.h>
#endif
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static const char base64url[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* libcrypto fails here only without memory; going on with a hash that was not
 * made would be worse than stopping. */
static void must(int ok)
{
    if (!ok) {
        abort();
    }
}

/* libcrypto 3 looks an algorithm up by its name each time EVP_sha256() is used,
 * which costs more than the hash of a short text: it is looked up once. */
static const EVP_MD *sha256(void)
{
#if OPENSSL_VERSION_NUMBER >= 0x30000000L
    static _Atomic(EVP_MD *) kept;
    EVP_MD *found = atomic_load_explicit(&kept, memory_order_acquire);

    if (found == NULL) {
        EVP_MD *none = NULL, *fetched = EVP_MD_fetch(NULL, "SHA256", NULL);

        must(fetched != NULL);
        if (atomic_compare_exchange_strong(&kept, &none, fetched)) {
            return fetched;
        }
        EVP_MD_free(fetched);
        found = none;
    }
    return found;
#else
    return EVP_sha256();
#endif
}

void yk_secret_hash(yk_hash_t *hash, const void *bytes, apr_size_t len)
{
    must(EVP_Digest(bytes, len, hash->bytes, NULL, sha256(), NULL) == 1);
}

void yk_secret_hash_parts(yk_hash_t *hash, const char *part, ...)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    va_list parts;

    must(context != NULL && EVP_DigestInit_ex(context, sha256(), NULL) == 1);
    va_start(parts, part);
    for (; part != NULL; part = va_arg(parts, const char *)) {
        uint64_t len = strlen(part);
        unsigned char head[8];

        for (int i = 0; i < 8; i++) {
            head[i] = (unsigned char)(len >> (56 - 8 * i));
        }
        must(EVP_DigestUpdate(context, head, sizeof(head)) == 1);
        must(EVP_DigestUpdate(context, part, len) == 1);
    }
    va_end(parts);
    must(EVP_DigestFinal_ex(context, hash->bytes, NULL) == 1);
    EVP_MD_CTX_free(context);
}

#if OPENSSL_VERSION_NUMBER >= 0x30000000L
/* HMAC() looks its two algorithms up each time; this one has them, and what is
 * computed is computed in copies of it. */
static const EVP_MAC_CTX *hmac(void)
{
    static _Atomic(EVP_MAC_CTX *) kept;
    EVP_MAC_CTX *found = atomic_load_explicit(&kept, memory_order_acquire);

    if (found == NULL) {
        char digest[] = "SHA256";
        const OSSL_PARAM params[] = {
            OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
            OSSL_PARAM_construct_end()};
        EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
        EVP_MAC_CTX *none = NULL, *made = EVP_MAC_CTX_new(mac);

        EVP_MAC_free(mac);
        must(made != NULL && EVP_MAC_CTX_set_params(made, params) == 1);
        if (atomic_compare_exchange_strong(&kept, &none, made)) {
            return made;
        }
        EVP_MAC_CTX_free(made);
        found = none;
    }
    return found;
}

void yk_secret_hmac(yk_hash_t *mac, const void *key, apr_size_t key_len,
                    const void *bytes, apr_size_t len)
{
    EVP_MAC_CTX *context = EVP_MAC_CTX_dup(hmac());
    apr_size_t out;

    must(context != NULL && EVP_MAC_init(context, key, key_len, NULL) == 1 &&
         EVP_MAC_update(context, bytes, len) == 1 &&
         EVP_MAC_final(context, mac->bytes, &out, sizeof(mac->bytes)) == 1);
    EVP_MAC_CTX_free(context);
}
#else
void yk_secret_hmac(yk_hash_t *mac, const void *key, apr_size_t key_len,
                    const void *bytes, apr_size_t len)
{
    must(HMAC(EVP_sha256(), key, (int)key_len, bytes, len, mac->bytes, NULL) !=
         NULL);
}
#endif

int yk_secret_equal(const void *a, const void *b, apr_size_t len)
{
    return CRYPTO_memcmp(a, b, len) == 0;
}

void yk_secret_random(void *bytes, apr_size_t len)
{
    unsigned char *at = bytes;

    while (len > 0) {
        ssize_t n = getrandom(at, len, 0);

        if (n < 0) {
            must(errno == EINTR);
            continue;
        }
        at += n;
        len -= (apr_size_t)n;
    }
}

/* Six groups of 3 bytes as 4 characters, then 2 bytes as 3. */
static char *token_write(const unsigned char bytes[YK_TOKEN_BYTES],
                         apr_pool_t *p)
{
    char *token = apr_palloc(p, YK_TOKEN_CHARS + 1);
    unsigned bits = 0, nbits = 0, at = 0;

    for (int i = 0; i < YK_TOKEN_BYTES; i++) {
        bits = bits << 8 | bytes[i];
        nbits += 8;
        while (nbits >= 6) {
            nbits -= 6;
            token[at++] = base64url[bits >> nbits & 63];
        }
    }
    token[at++] = base64url[bits << (6 - nbits) & 63];
    token[at] = '\0';
    return token;
}

static void put_second(unsigned char bytes[YK_TOKEN_SECOND_BYTES])
{
    apr_int64_t second = apr_time_sec(apr_time_now());

    for (int i = YK_TOKEN_SECOND_BYTES; i-- > 0; second >>= 8) {
        bytes[i] = (unsigned char)(second & 0xff);
    }
}

char *yk_token_make(apr_pool_t *p)
{
    unsigned char bytes[YK_TOKEN_BYTES];

    put_second(bytes);
    yk_secret_random(bytes + YK_TOKEN_SECOND_BYTES, YK_TOKEN_SECRET_BYTES);
    return token_write(bytes, p);
}

void yk_token_salt(unsigned char salt[YK_SALT_BYTES])
{
    yk_secret_random(salt, YK_SALT_BYTES);
    put_second(salt);
}

char *yk_token_derive(const char *key, const unsigned char salt[YK_SALT_BYTES],
                      apr_pool_t *p)
{
    unsigned char bytes[YK_TOKEN_BYTES];
    yk_hash_t mac;

    yk_secret_hmac(&mac, key, strlen(key), salt, YK_SALT_BYTES);
    memcpy(bytes, salt, YK_TOKEN_SECOND_BYTES);
    memcpy(bytes + YK_TOKEN_SECOND_BYTES, mac.bytes, YK_TOKEN_SECRET_BYTES);
    return token_write(bytes, p);
}

/* The first bytes a token was written from. */
static void token_read(unsigned char *bytes, int n, const char *token)
{
    unsigned bits = 0, nbits = 0;

    for (int i = 0; i < n; token++) {
        bits = bits << 6 | (unsigned)(strchr(base64url, *token) - base64url);
        nbits += 6;
        if (nbits >= 8) {
            nbits -= 8;
            bytes[i++] = (unsigned char)(bits >> nbits & 0xff);
        }
    }
}

apr_status_t yk_token_hash(yk_hash_t *hash, const char *token)
{
    if (token == NULL || strlen(token) != YK_TOKEN_CHARS ||
        strspn(token, base64url) != YK_TOKEN_CHARS) {
        return APR_EINVAL;
    }
    yk_secret_hash(hash, token, YK_TOKEN_CHARS);
    token_read(hash->bytes, YK_TOKEN_SECOND_BYTES, token);
    return APR_SUCCESS;
}
