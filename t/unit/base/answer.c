/* SPDX-License-Identifier: Apache-2.0 */
#include "base.h"

#include <string.h>
#include "yoyaku/answer.h"

START_TEST(every_answer_has_a_reason_and_a_sentence_of_its_own)
{
    for (int i = 0; i < YK_ANSWER_COUNT; i++) {
        const char *text = yk_answer_text(i);

        ck_assert_uint_gt(strlen(yk_answer_reason(i)), 0);
        ck_assert_int_eq(text[strlen(text) - 1], '.');
        for (int j = 0; j < i; j++) {
            ck_assert_str_ne(yk_answer_reason(i), yk_answer_reason(j));
        }
    }
    ck_assert_str_eq(yk_answer_reason(YK_ANSWER_SOLD_OUT), "sold_out");
    ck_assert_str_eq(yk_answer_reason(YK_ANSWER_AWAY), "away");
}
END_TEST

START_TEST(a_number_that_is_no_answer_has_a_harmless_name)
{
    ck_assert_str_eq(yk_answer_reason(YK_ANSWER_COUNT), "unheard_of");
    ck_assert_str_eq(yk_answer_text((yk_answer_e)-1), "Unheard of.");
}
END_TEST

Suite *answer_suite(void)
{
    Suite *suite = suite_create("answer");
    TCase *all = tcase_create("all");

    tcase_add_test(all, every_answer_has_a_reason_and_a_sentence_of_its_own);
    tcase_add_test(all, a_number_that_is_no_answer_has_a_harmless_name);
    suite_add_tcase(suite, all);
    return suite;
}
