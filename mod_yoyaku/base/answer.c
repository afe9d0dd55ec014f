/* SPDX-License-Identifier: Apache-2.0 */
#include "yoyaku/answer.h"

static const struct {
    const char *reason, *text;
} answers[] = {
#define ANSWER_WORDS(name, reason, text) {reason, text},
    YK_ANSWERS(ANSWER_WORDS)
#undef ANSWER_WORDS
};

static int is_answer(yk_answer_e answer)
{
    return (unsigned)answer < YK_ANSWER_COUNT;
}

const char *yk_answer_reason(yk_answer_e answer)
{
    return is_answer(answer) ? answers[answer].reason : "unheard_of";
}

const char *yk_answer_text(yk_answer_e answer)
{
    return is_answer(answer) ? answers[answer].text : "Unheard of.";
}
