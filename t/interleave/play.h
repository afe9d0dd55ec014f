/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INTERLEAVE_PLAY_H
#define INTERLEAVE_PLAY_H

#include "cast.h"
#include "world.h"
#include <yoyaku/lane.h>

/**
 * @file play.h
 * @brief A player does the acts of one role at a desk of its own: its own
 *        store, catalogue and connection, as a worker process has them.
 *
 * A player belongs to one thread.
 */

typedef struct result_t {
    const act_t *act;
    const char *word; /**< the answer's reason; busy, away, unresolved,
                           error; NULL: not done yet */
    apr_status_t rv;
    const yk_reply_t *reply;
} result_t;

/** How a line breaks. */
typedef enum loss_e {
    LOSS_NONE,
    LOSS_BEFORE, /**< the packet cannot be sent; the transaction is gone */
    LOSS_NEVER,  /**< sent as it seems, but it did not arrive */
    LOSS_DONE,   /**< done by the database, the answer was lost */
    LOSS_LATE    /**< the packet arrives whenever the stage lets it */
} loss_e;

/** What a packet is. READ: no lock; LOCK: opens and locks; WRITE: commits;
 *  ROLL: ROLLBACK; OTHER: what holds send (settings, operators' commands) */
typedef enum packet_e {
    PACKET_READ,
    PACKET_LOCK,
    PACKET_WRITE,
    PACKET_ROLL,
    PACKET_OTHER
} packet_e;
packet_e packet_of(const char *sql);
const char *packet_name(packet_e kind);

typedef struct player_t {
    world_t *world;
    const script_t *script;
    cast_t *cast;
    const role_t *role;
    apr_pool_t *p;
    yk_store_t *store;
    yk_catalogue_t *catalogue;
    MYSQL *line;           /**< the one in use, or NULL */
    MYSQL *foreign;        /**< of lock .. unlock */
    unsigned long line_id; /**< its number at the server; 0: none */
    apr_time_t shift;
    int dead;                 /**< the worker: no line is to be had any more */
    void (*die)(void *baton); /**< then called instead, with the watch's baton,
                               and does not return; NULL: none */
    int open_lines;           /**< defects: lines given back in a transaction */
    long counted;             /**< live lines when it looked; -1: it did not */
    result_t *results;
    int now;          /**< index of the act being done */
    const char *lose; /**< the act's lose= or dies=, until it happened */
    const yk_lane_host_t *lane; /**< its wishes go through lanes; NULL: not */
    yk_store_watch_fn *watch; /**< the gate, also of foreign acts; NULL: none */
    void *baton;
} player_t;

/** @param folder where its catalogue puts plans */
player_t *player_make(world_t *world, const script_t *script, cast_t *cast,
                      const role_t *role, apr_pool_t *p);
/** Get to know every slot of the script, so that a hold is two packets. */
void player_warm(player_t *player);
void player_watch(player_t *player, yk_store_watch_fn *watch, void *baton);
/** All acts, one after another. */
void player_perform(player_t *player);
/** Give lines back. */
void player_leave(player_t *player);

#endif
