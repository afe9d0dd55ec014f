/* SPDX-License-Identifier: Apache-2.0 */
#include "call.h"

/** X(ANSWER, HTTP code): the one place where codes are chosen. A hold that
 *  began an order is 201 (reply.c). */
#define STATUSES(X)                                                            \
    X(OK, 200)                                                                 \
    X(HELD, 200)                                                               \
    X(TAKEN, 409)                                                              \
    X(SOLD_OUT, 409)                                                           \
    X(LIMIT, 409)                                                              \
    X(NOT_ON_SALE, 409)                                                        \
    X(NOT_TOGETHER, 409)                                                       \
    X(STATE, 409)                                                              \
    X(ATTEMPT, 409)                                                            \
    X(AMOUNT, 409)                                                             \
    X(REFUND_DUE, 409)                                                         \
    X(IN_PROGRESS, 409)                                                        \
    X(EXPIRED, 410)                                                            \
    X(UNKNOWN, 404)                                                            \
    X(UNKNOWN_PLACE, 422)                                                      \
    X(UNKNOWN_AREA, 422)                                                       \
    X(TARIFF_NOT_OFFERED, 422)                                                 \
    X(INVALID, 422)                                                            \
    X(KEY_REUSED, 422)                                                         \
    X(UNREADABLE, 400)                                                         \
    X(TOO_LARGE, 413)                                                          \
    X(UNSUPPORTED, 415)                                                        \
    X(METHOD, 405)                                                             \
    X(NOT_ACCEPTABLE, 406)                                                     \
    X(FORBIDDEN, 403)                                                          \
    X(BUSY, 503)                                                               \
    X(UNRESOLVED, 503)                                                         \
    X(THROTTLED, 503)                                                          \
    X(QUEUE, 503)                                                              \
    X(AWAY, 503)

#define STATUS_ONE(answer, status) +1
_Static_assert(0 STATUSES(STATUS_ONE) == YK_ANSWER_COUNT,
               "every answer has a status");
#undef STATUS_ONE

int yk_http_status(yk_answer_e answer)
{
    static const short statuses[] = {
#define STATUS_ENTRY(answer, status) [YK_ANSWER_##answer] = status,
        STATUSES(STATUS_ENTRY)
#undef STATUS_ENTRY
    };

    return statuses[answer];
}

yk_answer_e yk_http_status_answer(apr_status_t rv)
{
    switch (rv) {
    case APR_SUCCESS:
        return YK_ANSWER_OK;
    case APR_TIMEUP:
    case APR_EBUSY:
    case APR_EEXIST:
        return YK_ANSWER_BUSY;
    case APR_INCOMPLETE:
        return YK_ANSWER_UNRESOLVED;
    default:
        return YK_ANSWER_AWAY;
    }
}
