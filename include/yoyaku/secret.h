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
#define YK_SALT_BYTES 16
/** The second it was made in, big endian, and the secret. */
#define YK_TOKEN_SECOND_BYTES 4
#define YK_TOKEN_SECRET_BYTES 16
#define YK_TOKEN_BYTES (YK_TOKEN_SECOND_BYTES + YK_TOKEN_SECRET_BYTES)
#define YK_TOKEN_CHARS 27 /**< of base64url without padding */

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

/**
 * A fresh token, YK_TOKEN_CHARS long: 128 random bits, and before them the
 * second. So what the book keeps of the tokens of one time lies together in its
 * index, and a hold changes a page of now instead of any page of years.
 */
char *yk_token_make(apr_pool_t *p);

/** What makes the token of an order begun under a key: the second, and random
 *  bytes. */
void yk_token_salt(unsigned char salt[YK_SALT_BYTES]);

/** That token: the salt's second, and the first 128 bits of
 *  HMAC-SHA-256(key as sent, salt). */
char *yk_token_derive(const char *key, const unsigned char salt[YK_SALT_BYTES],
                      apr_pool_t *p);

/** What the book keeps of a token: its second, then all but the first bytes of
 *  its SHA-256.
 *  @return APR_SUCCESS or APR_EINVAL: not of a token's form */
apr_status_t yk_token_hash(yk_hash_t *hash, const char *token);

#endif
