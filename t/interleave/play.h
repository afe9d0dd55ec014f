/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INTERLEAVE_PLAY_H
#define INTERLEAVE_PLAY_H

#include "world.h"

/**
 * @file play.h
 * @brief A player does the acts of one role at a desk of its own: its own
 *        store, catalogue and connection, as a worker process has them.
 *
 * A player belongs to one thread. The names of orders are shared by all
 * players of a run and guarded by the cast's mutex.
 */

typedef struct named_t {
    const char *name;
    uint64_t order_id;
    const char *token; /**< NULL: not known */
    int64_t total;
    const char *currency;
    uint32_t attempt;
} named_t;

/** What somebody was told: it must be in the book. */
typedef struct told_t {
    uint64_t order_id;
    yk_order_state_e state;
    const char *by; /**< session and act, for messages */
} told_t;

typedef struct cast_t {
    apr_array_header_t *names; /**< named_t */
    apr_array_header_t *told;  /**< told_t */
    apr_thread_mutex_t *mutex;
    apr_time_t most_shift; /**< the latest clock anybody has */
    apr_pool_t *p;
} cast_t;

/** A pool that another thread may use: it has an allocator of its own. */
apr_pool_t *cast_pool(apr_pool_t *parent);

cast_t *cast_make(apr_pool_t *parent);
/** The beginnings of another: names made before the run. */
cast_t *cast_copy(const cast_t *from, apr_pool_t *p);
/** A copy of what is known of an order; 0: unknown name. */
int cast_find(cast_t *cast, named_t *named, const char *name);
const char *cast_name_of(cast_t *cast, uint64_t order_id);

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
