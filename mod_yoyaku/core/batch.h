/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YK_BATCH_H
#define YK_BATCH_H

#include "ask.h"

/**
 * @file batch.h
 * @brief Many deeds, one transaction: what the head of a lane takes to the
 *        database for everybody who waits.
 *
 * All plans want their rows in one ledger; one packet locks the union, those
 * that others hold are skipped (places, bookers' anchors); then each deed is
 * decided in order of arrival against the rows and what the deeds before it
 * took; one packet writes and commits. A refused deed leaves no trace.
 *
 * A deed of whose rows one was skipped is put off to the NEXT batch once: most
 * likely the batch before this one is just committing it. What cannot be
 * decided at all here is left ALONE, for its owner to do by itself: a deed
 * whose rows did not come back a second time, whose plan was too old, that
 * meets a bound with due orders under it, whose key is known or stands earlier
 * in the batch, or whose order does. When the database refuses the batch, all
 * that wrote, and all that were decided after them, are ALONE: nothing was
 * written.
 */

typedef enum yk_turn_e {
    YK_TURN_OPEN,      /**< before */
    YK_TURN_DONE,      /**< the reply is final */
    YK_TURN_ALONE,     /**< nothing was written for it: do it alone */
    YK_TURN_NEXT,      /**< nothing was written: first in the next batch */
    YK_TURN_UNRESOLVED /**< the fate of the COMMIT is not known */
} yk_turn_e;

typedef struct yk_turn_t {
    yk_deed_t deed; /**< made by yk_deed_make() */
    yk_reply_t reply;
    yk_turn_e turn;
    int was_next; /**< it was put off before: not again */
} yk_turn_t;

typedef enum yk_batch_at_e {
    YK_BATCH_DECIDED, /**< before packet 2: these orders are about to be begun
                       */
    YK_BATCH_LOST /**< the COMMIT's answer: its fate is asked for, for long */
} yk_batch_at_e;

/**
 * Do them, in this order. Never fails: every turn has its outcome.
 * @param at told how far it is; may be NULL
 */
void yk_batch_run(yk_desk_t *desk, yk_turn_t *turns, uint32_t n,
                  void (*at)(void *baton, yk_batch_at_e at), void *baton,
                  apr_pool_t *p);

#endif
