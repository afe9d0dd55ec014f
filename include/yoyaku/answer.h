/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YOYAKU_ANSWER_H
#define YOYAKU_ANSWER_H

#include <apr_errno.h>

/**
 * @file answer.h
 * @brief What the house says to a wish. One list; names, texts and HTTP codes
 *        are made from it.
 *
 * Two channels run through the whole library. An apr_status_t says whether a
 * question could be dealt with at all (the database is away, others held the
 * rows too long). A yk_answer_e says what came of it. A refusal is an answer.
 *
 * Statuses that every call below http/ may return, and what they mean:
 *   APR_SUCCESS     dealt with; the answer counts
 *   APR_TIMEUP      others held the rows too long, or deadlocks did not end;
 *                   nothing was written: ask again            (HTTP: busy)
 *   APR_ECONNRESET  the database is out of reach; nothing was written (away)
 *   APR_INCOMPLETE  the fate of a COMMIT is unknown           (unresolved)
 *   APR_ENOTIMPL    the database is not fit (probe failed)     (away)
 *   APR_EGENERAL    a statement failed that must not; logged   (away)
 */

/** X(CONSTANT, "reason", what it says to a person) */
#define YK_ANSWERS(X)                                                         \
    X(OK, "ok", "Done.")                                                      \
    X(HELD, "held", "The places are held.")                                   \
    X(TAKEN, "taken", "Somebody else has taken some of these places.")        \
    X(SOLD_OUT, "sold_out", "There are not enough places left.")              \
    X(LIMIT, "limit", "That is more than one order or booker may have.")      \
    X(NOT_ON_SALE, "not_on_sale", "This is not on sale now.")                 \
    X(NOT_TOGETHER, "not_together", "No seats side by side are left.")        \
    X(STATE, "state", "The order's state does not allow this.")               \
    X(ATTEMPT, "attempt", "The order was checked out anew since.")            \
    X(AMOUNT, "amount", "The amount is not the order's total.")               \
    X(REFUND_DUE, "refund_due", "Paid, but the places are gone: pay back.")   \
    X(IN_PROGRESS, "in_progress", "The first such request is still going on.") \
    X(EXPIRED, "expired", "The order's time has run out.")                    \
    X(UNKNOWN, "unknown", "There is no such slot or order.")                  \
    X(UNKNOWN_PLACE, "unknown_place", "There is no such place.")              \
    X(UNKNOWN_AREA, "unknown_area", "There is no such area.")                 \
    X(TARIFF_NOT_OFFERED, "tariff_not_offered", "That tariff is not offered.") \
    X(INVALID, "invalid", "The request does not make sense.")                 \
    X(KEY_REUSED, "key_reused", "This key was used for another request.")     \
    X(UNREADABLE, "unreadable", "The request could not be read.")             \
    X(TOO_LARGE, "too_large", "The request is too large.")                    \
    X(UNSUPPORTED, "unsupported", "This kind of body is not read here.")      \
    X(METHOD, "method", "This method does not work here.")                    \
    X(NOT_ACCEPTABLE, "not_acceptable", "No representation suits Accept.")    \
    X(FORBIDDEN, "forbidden", "That is not allowed.")                         \
    X(BUSY, "busy", "Too much at once; nothing was changed. Try again.")      \
    X(UNRESOLVED, "unresolved", "It is not known yet whether it worked.")     \
    X(THROTTLED, "throttled", "Too many requests at once. Try again.")        \
    X(QUEUE, "queue", "Please wait for your turn.")                           \
    X(AWAY, "away", "Bookings cannot be taken just now. Try again.")

typedef enum yk_answer_e {
#define YK_ANSWER_ENUM(name, reason, text) YK_ANSWER_##name,
    YK_ANSWERS(YK_ANSWER_ENUM)
#undef YK_ANSWER_ENUM
        YK_ANSWER_COUNT
} yk_answer_e;

/** The reason as it stands in a body, a note and a counter: "sold_out". */
const char *yk_answer_reason(yk_answer_e answer);

/** One English sentence for a person. */
const char *yk_answer_text(yk_answer_e answer);

#endif
