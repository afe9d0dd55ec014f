/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YK_LANE_QUEUE_H
#define YK_LANE_QUEUE_H

#include "yoyaku/lane.h"

/**
 * @file lane_queue.h
 * @brief A lane's queue and its records: shared memory and nothing else.
 *
 * Calls with `queue` are under its lock.
 */

/** For tests: called wherever a worker may die; NULL in the product. */
extern void (*yk_lane_step)(void);
void yk_lane_may_die(void);

/** Word of a ticket in a state. */
uint32_t yk_lane_word(uint32_t ticket, yk_lane_word_e state);
yk_lane_word_e yk_lane_word_state(uint32_t word);
uint32_t yk_lane_word_ticket(uint32_t word);
/** @return 1 when the word was `from` and is now in `state`, same ticket */
int yk_lane_word_turn(yk_lane_record_t *record, uint32_t from,
                      yk_lane_word_e state);

/** Take a free record (or one of a dead owner). Its word is WRITING. Not under
 *  a lane's lock.
 *  @return its number, or YK_LANE_NONE */
uint32_t yk_lane_record_take(const yk_lane_host_t *host);
void yk_lane_record_give(const yk_lane_host_t *host, uint32_t number);

/** How long a lane's lock is waited for at most: its owner works for
 *  microseconds, unless it was stopped. */
#define YK_LANE_LOCK_WAIT apr_time_from_msec(1000)

/** Take a lane's lock; links the queue anew when its owner died.
 *  @param wait 0: only try
 *  @return APR_SUCCESS or APR_TIMEUP */
apr_status_t yk_lane_lock(const yk_lane_host_t *host, uint32_t lane,
                          apr_interval_time_t wait);
void yk_lane_unlock(const yk_lane_host_t *host, uint32_t lane);

/** Stand in the queue: its word becomes WAITING. */
void yk_lane_append(const yk_lane_host_t *host, uint32_t lane, uint32_t number);
/** Be unlinked from it. */
void yk_lane_remove(const yk_lane_host_t *host, uint32_t lane, uint32_t number);

/** Step out of the queue unless somebody has taken the record. Not under the
 *  lock, and without it where it cannot be had at once: the record is then its
 *  owner's no more, and freed by whoever meets it in the queue.
 *  @return 1: out, and nobody will do the wish; the record is given back */
int yk_lane_give_up(const yk_lane_host_t *host, uint32_t lane, uint32_t number);

/** Become the leader unless a living one leads.
 *  @return 1: it leads */
int yk_lane_lead(const yk_lane_host_t *host, uint32_t lane, uint32_t number);

/** Take up to YK_LANE_BATCH waiting records, the leader's own among them:
 *  urgent ones first, else by arrival; a quarter is kept for those that are
 *  not, so that nobody waits for ever. Their words become TAKEN. Records of the
 *  dead and of those who gave up are dropped.
 *  @return how many; 0: the leader was stopped for so long that another one
 *          has his wish, and he leads nothing */
uint32_t yk_lane_gather(const yk_lane_host_t *host, uint32_t lane, uint32_t own,
                        uint32_t numbers[YK_LANE_BATCH],
                        uint32_t words[YK_LANE_BATCH]);

/** Put a record that the leader has TAKEN back, before all others. */
void yk_lane_put_off(const yk_lane_host_t *host, uint32_t lane, uint32_t number,
                     uint32_t word);

/** Let somebody who waits lead; by preference one with a connection. */
void yk_lane_hand_on(const yk_lane_host_t *host, uint32_t lane);

#endif
