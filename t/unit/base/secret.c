/* SPDX-License-Identifier: Apache-2.0 */
#include "base.h"

#include <string.h>
#include "yoyaku/secret.h"
#include "yoyaku/text.h"

static apr_pool_t *p;

static void setup(void)
{
    apr_pool_create(&p, NULL);
}

static void teardown(void)
{
    apr_pool_destroy(p);
}

static const char *hex_of(const yk_hash_t *hash)
{
    return yk_text_hex(hash->bytes, sizeof(hash->bytes), p);
}

START_TEST(hashing_agrees_with_the_standard)
{
    yk_hash_t hash;

    yk_secret_hash(&hash, "abc", 3); /* FIPS 180-2, B.1 */
    ck_assert_str_eq(
        hex_of(&hash),
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    /* RFC 4231, case 2 */
    yk_secret_hmac(&hash, "Jefe", 4, "what do ya want for nothing?", 28);
    ck_assert_str_eq(
        hex_of(&hash),
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}
END_TEST

START_TEST(two_lists_of_parts_never_meet)
{
    yk_hash_t a, b, c;

    yk_secret_hash_parts(&a, "ab", "c", NULL);
    yk_secret_hash_parts(&b, "a", "bc", NULL);
    yk_secret_hash_parts(&c, "ab", "c", "", NULL);
    ck_assert(memcmp(&a, &b, sizeof(a)) != 0);
    ck_assert(memcmp(&a, &c, sizeof(a)) != 0);
    yk_secret_hash_parts(&b, "ab", "c", NULL);
    ck_assert(memcmp(&a, &b, sizeof(a)) == 0);
}
END_TEST

START_TEST(parts_are_hashed_behind_their_lengths)
{
    static const char parts[] = "\0\0\0\0\0\0\0\2ab";
    yk_hash_t a, b;

    yk_secret_hash_parts(&a, "ab", NULL);
    yk_secret_hash(&b, parts, 10);
    ck_assert(memcmp(&a, &b, sizeof(a)) == 0);
}
END_TEST

START_TEST(tokens_differ_and_have_their_form)
{
    char *one = yk_token_make(p), *two = yk_token_make(p);
    yk_hash_t hash;

    ck_assert_str_ne(one, two);
    ck_assert_uint_eq(strlen(one), YK_TOKEN_CHARS);
    ck_assert_int_eq(yk_token_hash(&hash, one), APR_SUCCESS);
}
END_TEST

static apr_int64_t second_of(const unsigned char *bytes)
{
    return (apr_int64_t)bytes[0] << 24 | bytes[1] << 16 | bytes[2] << 8 |
           bytes[3];
}

START_TEST(what_is_kept_of_a_token_begins_with_its_second)
{
    apr_int64_t before = apr_time_sec(apr_time_now()), after;
    unsigned char salt[YK_SALT_BYTES], other[YK_SALT_BYTES];
    char *token = yk_token_make(p), *derived;
    yk_hash_t hash, kept;

    yk_token_salt(salt);
    yk_token_salt(other);
    derived = yk_token_derive("key", salt, p);
    after = apr_time_sec(apr_time_now());
    ck_assert_int_eq(yk_token_hash(&kept, token), APR_SUCCESS);
    ck_assert_int_ge(second_of(kept.bytes), before);
    ck_assert_int_le(second_of(kept.bytes), after);
    yk_secret_hash(&hash, token, strlen(token));
    ck_assert(memcmp(hash.bytes + 4, kept.bytes + 4, YK_HASH_BYTES - 4) == 0);
    ck_assert_int_eq(yk_token_hash(&kept, derived), APR_SUCCESS);
    ck_assert_int_ge(second_of(kept.bytes), before);
    ck_assert_int_le(second_of(kept.bytes), after);
    ck_assert(memcmp(salt + 4, other + 4, YK_SALT_BYTES - 4) != 0);
}
END_TEST

START_TEST(the_token_of_a_key_is_its_mac_in_base64url)
{
    /* "0123" and the first 16 bytes of HMAC-SHA-256("key", salt), worked out
     * with openssl; so is what is kept of it */
    static const unsigned char salt[YK_SALT_BYTES] = "0123456789abcdef";
    static const unsigned char kept[] =
        "0123\xee\xa2\x5e\x97\xcc\xc7\x99\xbc\xa2\x79\x0e\x57\xef\x8d\x27"
        "\xa0\xe5\xac\xce\xf1\x10\xda\xfe\xf3\x01\x85\xa1\x74";
    char *token = yk_token_derive("key", salt, p);
    yk_hash_t hash;

    ck_assert_str_eq(token, "MDEyM7A0mogrpE03AYMOIS4CQBw");
    ck_assert_str_ne(token, yk_token_derive("kez", salt, p));
    ck_assert_int_eq(yk_token_hash(&hash, token), APR_SUCCESS);
    ck_assert(memcmp(hash.bytes, kept, YK_HASH_BYTES) == 0);
}
END_TEST

START_TEST(what_is_no_token_has_no_hash)
{
    yk_hash_t hash;

    ck_assert_int_eq(yk_token_hash(&hash, NULL), APR_EINVAL);
    ck_assert_int_eq(yk_token_hash(&hash, ""), APR_EINVAL);
    ck_assert_int_eq(yk_token_hash(&hash, "AAAAAAAAAAAAAAAAAAAAAAAAAA"),
                     APR_EINVAL);
    ck_assert_int_eq(yk_token_hash(&hash, "AAAAAAAAAAAAAAAAAAAAAAAAAAAA"),
                     APR_EINVAL);
    ck_assert_int_eq(yk_token_hash(&hash, "AAAAAAAAAAAAAAAAAAAAAAAAA'A"),
                     APR_EINVAL);
    ck_assert_int_eq(yk_token_hash(&hash, "AAAAAAAAAAAAAAAAAAAAAAAAAAA"),
                     APR_SUCCESS);
}
END_TEST

START_TEST(equal_means_every_byte)
{
    ck_assert_int_eq(yk_secret_equal("abcd", "abcd", 4), 1);
    ck_assert_int_eq(yk_secret_equal("abcd", "abce", 4), 0);
    ck_assert_int_eq(yk_secret_equal("abcd", "xbcd", 4), 0);
}
END_TEST

Suite *secret_suite(void)
{
    Suite *suite = suite_create("secret");
    TCase *all = tcase_create("all");

    tcase_add_checked_fixture(all, setup, teardown);
    tcase_add_test(all, hashing_agrees_with_the_standard);
    tcase_add_test(all, two_lists_of_parts_never_meet);
    tcase_add_test(all, parts_are_hashed_behind_their_lengths);
    tcase_add_test(all, tokens_differ_and_have_their_form);
    tcase_add_test(all, what_is_kept_of_a_token_begins_with_its_second);
    tcase_add_test(all, the_token_of_a_key_is_its_mac_in_base64url);
    tcase_add_test(all, what_is_no_token_has_no_hash);
    tcase_add_test(all, equal_means_every_byte);
    suite_add_tcase(suite, all);
    return suite;
}
