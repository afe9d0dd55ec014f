/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INTERLEAVE_WORLD_H
#define INTERLEAVE_WORLD_H

#include <apr_hash.h>
#include <apr_pools.h>
#include <apr_thread_mutex.h>
#include <mysql.h>
#include "script.h"
#include "server.h"
#include <yoyaku/desk.h>

/**
 * @file world.h
 * @brief A database with the product's schema, and how it is brought back to
 *        the same beginning for each order of steps.
 *
 * A script's slots and earlier orders are made once by the product itself,
 * then every table is copied aside; each run begins from that copy. Halls,
 * and the anchors of bookers (which say nothing), stay.
 */

typedef struct world_t {
    server_t *server;
    const char *database;
    const char *params; /**< for yk_store_open() */
    const char *schema; /**< folder of the numbered files */
    MYSQL *monitor;     /**< looks and restores; the scheduler's thread */
    uint32_t tenant_id;
    apr_array_header_t *tables; /**< const char *, what is restored */
    apr_array_header_t *idle;   /**< MYSQL *, set up, not in a transaction */
    apr_thread_mutex_t *mutex;  /**< of idle */
    apr_time_t saved_at;
    apr_pool_t *p;
} world_t;

world_t *world_make(server_t *server, const char *database, apr_pool_t *p);
void world_destroy(world_t *world);

/** Take everything away but halls, tenants and bookers' anchors. */
void world_wipe(world_t *world);
/** Halls, slots, prices, limits of a script. */
void world_furnish(world_t *world, yk_store_t *store, const script_t *script,
                   apr_pool_t *p);
void world_save(world_t *world);
void world_restore(world_t *world);

/** A connection set up as the product wants it; NULL: not to be had. */
MYSQL *world_line(world_t *world, apr_pool_t *p);
void world_line_back(world_t *world, MYSQL *line, int broken);

/** The operator's acts, for set-up and for sessions: price, limit, open,
 *  close. */
apr_status_t world_operate(world_t *world, yk_store_t *store,
                           const char *keyword, const apr_array_header_t *items,
                           const apr_table_t *options, apr_pool_t *p);

/** A script's `terms`. */
void world_terms(yk_terms_t *terms, const world_t *world,
                 const script_t *script);
/** The first slot of a script: what an item without a slot means. */
const char *world_first_slot(const script_t *script);

#endif
