/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YOYAKU_SECRET_H
#define YOYAKU_SECRET_H

#include <apr_errno.h>
#include <apr_pools.h>
#include <stdint.h>

/**
 * @file secret.h
 * @brief Hashes, tokens, randomness. All of it from libcrypto and getrandom(2).
 */

#define YK_HASH_BYTES 32
#define YK_TOKEN_BYTES 16
#define YK_TOKEN_CHARS 22 /**< 128 bits in base64url without padding */

typedef struct yk_hash_t {
    unsigned char bytes[YK_HASH_BYTES];
} yk_hash_t;

/** SHA-256 of the bytes. */
void yk_secret_hash(yk_hash_t *hash, const void *bytes, apr_size_t len);

/** SHA-256 over several parts, each preceded by its length (8 bytes, big
 *  endian), so that no two different lists meet. Ends with a NULL part. */
void yk_secret_hash_parts(yk_hash_t *hash, const char *part, ...);

/** HMAC-SHA-256. */
void yk_secret_hmac(yk_hash_t *mac, const void *key, apr_size_t key_len,
                    const void *bytes, apr_size_t len);

/** @return 1 when equal, in time that does not depend on where they differ. */
int yk_secret_equal(const void *a, const void *b, apr_size_t len);

/** Fill with the system's random bytes. Never fails: it waits or aborts. */
void yk_secret_random(void *bytes, apr_size_t len);

/** A fresh token, YK_TOKEN_CHARS long. */
char *yk_token_make(apr_pool_t *p);

/** The token of an order begun under a key: the first 128 bits of
 *  HMAC-SHA-256(key as sent, salt). */
char *yk_token_derive(const char *key, const unsigned char salt[16],
                      apr_pool_t *p);

/** What the book keeps of a token.
 *  @return APR_SUCCESS or APR_EINVAL: not of a token's form */
apr_status_t yk_token_hash(yk_hash_t *hash, const char *token);

#endif
