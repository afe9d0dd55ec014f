/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YK_HTTP_BOARD_H
#define YK_HTTP_BOARD_H

#include <yoyaku/board.h>
#include "call.h"

/**
 * @file board.h
 * @brief The part that answers those who only look: availability, list, slot
 *        and plan, from memory.
 *
 *   board_config.c  directives
 *   board_state.c   the boards of this host, made by the parent before it forks
 *   board.c         availability
 *   board_plan.c    the drawing, a file
 *   slots.c         the list and a slot's document, as pages
 *
 * What lives where. The memory belongs to the generation (pconf); the file it
 * is a mapping of outlives it. Each child has a yk_boards_t of its own.
 */

/** Configuration of a directory; -1: not said here. */
typedef struct yk_http_board_dir_t {
    apr_interval_time_t age;
} yk_http_board_dir_t;

/** Configuration of the main server. */
typedef struct yk_http_board_server_t {
    apr_int64_t memory;    /**< bytes; -1: not said */
    const char *memcached; /**< "": none; NULL: not said */
} yk_http_board_server_t;

/* ---- board_config.c ---- */

void *yk_http_board_dir_create(apr_pool_t *p);
void *yk_http_board_dir_merge(apr_pool_t *p, void *base, void *add);
void *yk_http_board_server_create(apr_pool_t *p, server_rec *s);
void *yk_http_board_server_merge(apr_pool_t *p, void *base, void *add);

apr_size_t yk_http_board_memory(server_rec *s);
/** NULL: none. */
const char *yk_http_board_memcached(server_rec *s);
apr_interval_time_t yk_http_board_age(const request_rec *r);

const char *yk_http_board_set_memory(cmd_parms *cmd, void *dummy,
                                     const char *arg);
const char *yk_http_board_set_memcached(cmd_parms *cmd, void *dummy,
                                        const char *arg);
const char *yk_http_board_set_age(cmd_parms *cmd, void *dummy, const char *arg);

#define YK_HTTP_BOARD_DIRECTIVES                                               \
    AP_INIT_TAKE1("YoyakuMemory", yk_http_board_set_memory, NULL, RSRC_CONF,   \
                  "how much memory boards may take on this host"),             \
        AP_INIT_TAKE1("YoyakuMemcached", yk_http_board_set_memcached, NULL,    \
                      RSRC_CONF, "by which web hosts tell each other"),        \
        AP_INIT_TAKE1("YoyakuBoardAge", yk_http_board_set_age, NULL,           \
                      YK_HTTP_ANYWHERE,                                        \
                      "how long a cache in front may show a board"),

/* ---- board_state.c ---- */

/** This process's way to the boards; NULL: there are none (logged). */
yk_boards_t *yk_http_board_boards(void);

/** Boards shall hear of what this store writes. */
void yk_http_board_watch(yk_store_t *store);

/* ---- board_refuse.c ---- */

/** @return 1: refused from the board, `reply` says so */
int yk_http_board_refuses(yk_http_call_t *call, yk_reply_t *reply,
                          const yk_wish_t *wish);

/* ---- board.c ---- */

/** The board of the call's slot, brought up to date; see yk_board_fresh(). */
apr_status_t yk_http_board_fresh(yk_http_call_t *call, yk_board_ref_t *ref);
/** Name of something kept beside the boards, of this call's tenant. */
uint64_t yk_http_board_id(const yk_http_call_t *call, const char *name);
/** How the call's slot is read, by whoever must. */
void yk_http_board_source(yk_board_source_t *source, yk_http_call_t *call);
/** "max-age=0, s-maxage=1, ..." as YoyakuBoardAge says.
 *  @param left until something is to happen; -1: nothing is */
const char *yk_http_board_cache(const request_rec *r, apr_interval_time_t left);
/** A slot's members, as the list shows it. */
void yk_http_slots_members(yk_http_json_t *j, const yk_slot_t *slot,
                           apr_time_t now, int64_t free, int64_t places);
/** Send what was compressed once, or not; a filter behind us leaves it so. */
int yk_http_board_send(yk_http_call_t *call, uint64_t hash, const char *suffix,
                       const char *cache, const char *bytes, apr_size_t len,
                       int is_gzip);

#endif
