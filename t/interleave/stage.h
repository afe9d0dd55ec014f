/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INTERLEAVE_STAGE_H
#define INTERLEAVE_STAGE_H

#include "play.h"

/**
 * @file stage.h
 * @brief One run of a script in one order of steps.
 *
 * Every packet of every session is a step. A session stands at its gate until
 * the stage lets its packet go; then the stage waits until nothing moves: the
 * session is at its next gate, has ended, or waits for a row lock (it goes on
 * by itself when the lock is free, and is then part of the step that freed it).
 * At each such point the invariants are looked at, and the next session is
 * chosen among those at a gate.
 *
 * Two neighbouring steps that cannot notice each other (an unlocked read
 * beside an unlocked read or beside a packet that only locks) are done in one
 * order only.
 */

typedef struct step_t {
    const char *who;
    packet_e kind;
    const char *sql;
    const char *note; /**< "waits", "line breaks: late", or "" */
} step_t;

typedef struct stage_plan_t {
    const int *prefix; /**< the first choices, 0 .. offered-1 */
    int nprefix;
    int drawn; /**< then: 0 the first, 1 any */
    uint32_t seed;
    int blind; /**< do not look at invariants */
} stage_plan_t;

typedef struct stage_run_t {
    const char *failure;                  /**< NULL: all went as it must */
    apr_array_header_t *chosen, *offered; /**< int, one a choice */
    apr_array_header_t *trail;            /**< step_t */
    player_t **players;
    int nplayers;
    cast_t *cast;
    world_t *world;
    const script_t *script;
    long deadlocks, timeouts;
    int waits; /**< sessions seen waiting for a row */
} stage_run_t;

/** @param before what set-up left; @param mutant NULL: the product as it is */
stage_run_t *stage_run(world_t *world, const script_t *script,
                       const cast_t *before, const mutant_t *mutant,
                       const stage_plan_t *plan, apr_pool_t *p);

/** Steps, and with `sql` the text of each. */
char *stage_trail(const stage_run_t *run, int sql, apr_pool_t *p);

/** Every occurrence of find in sql replaced; sql itself when there is none. */
const char *stage_mutate(const char *sql, const mutant_t *mutant,
                         apr_pool_t *p);

/**
 * Break a player's line at this packet. The player's own end of the line
 * becomes one that fails or falls silent; the server's end is closed, gets
 * the packet now, or is kept for later.
 * @param late set for LOSS_LATE: the server's end
 * @return what the player is to send instead
 */
const char *loss_break(player_t *player, int *late, const char *sql, loss_e how,
                       apr_pool_t *p);
/** Send a packet to the server's end, wait until it has been dealt with and
 *  the connection is gone. */
void loss_deliver(int fd, const char *sql);
/** LOSS_NONE unless the act's lose= names this kind of packet. */
loss_e loss_of(const player_t *player, packet_e kind);

#endif
