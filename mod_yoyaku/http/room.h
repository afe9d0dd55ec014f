/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YK_HTTP_ROOM_H
#define YK_HTTP_ROOM_H

#include <yoyaku/room.h>
#include "http.h"

/**
 * @file room.h
 * @brief The part that keeps visitors waiting: numbers and passes as cookies,
 *        the waiting page, the public document.
 *
 *   room_config.c  directives, keys, rooms of a configuration by name
 *   room.c         who comes in, who waits; what responses say of a pass
 *   room_page.c    the page, JSON, the public document and its snapshot
 *
 * The room is asked before the throttle, once for a chain of internal
 * redirects. A request with a pass never waits here.
 *
 * What lives where. Rooms are made in the parent from pconf, keys are read by
 * it while it is root. In each child a room learns its row when it is first
 * asked.
 */

typedef struct yk_http_room_t {
    const char *name;
    int is_defined;
    const char *where;
    yk_room_terms_t terms;
    yk_hash_t seed;
    _Atomic uint32_t row; /* in the shared table; a child's own */
} yk_http_room_t;

typedef struct yk_http_room_dir_t {
    int is_off;
    yk_http_room_t *room;
    const char *page; /**< a template's text; NULL: waiting.html */
} yk_http_room_dir_t;

typedef struct yk_http_room_server_t {
    int nkeys; /**< 0: YoyakuKeyFile not said */
    yk_hash_t keys[YK_ROOM_KEYS];
    int has_snapshots;     /**< said here, be it none */
    const char *snapshots; /**< folder, or NULL */
    apr_finfo_t folder;    /**< of it: which one it is, whatever its name */
} yk_http_room_server_t;

/* ---- room_config.c ---- */

void *yk_http_room_dir_create(apr_pool_t *p);
void *yk_http_room_dir_merge(apr_pool_t *p, void *base, void *add);
void *yk_http_room_server_create(apr_pool_t *p, server_rec *s);
void yk_http_room_config_begin(apr_pool_t *pconf);
int yk_http_room_config_check(server_rec *s, apr_pool_t *ptemp);
/** Of yk_http_room_t *. */
const apr_array_header_t *yk_http_room_all(void);
/** The main server's. */
const yk_http_room_server_t *yk_http_room_keys(void);

/** Where this server's documents go: its own word, else the main server's.
 *  @return NULL: nowhere; *folder: untouched then */
const char *yk_http_room_folder(const apr_finfo_t **folder, server_rec *s);

const char *yk_http_room_set(cmd_parms *cmd, void *dummy, int argc,
                             char *const argv[]);
const char *yk_http_room_set_page(cmd_parms *cmd, void *dummy, const char *arg);
const char *yk_http_room_set_keys(cmd_parms *cmd, void *dummy, const char *arg,
                                  const char *old);
const char *yk_http_room_set_snapshots(cmd_parms *cmd, void *dummy,
                                       const char *arg);

#define YK_HTTP_ROOM_DIRECTIVES                                                \
    AP_INIT_TAKE_ARGV("YoyakuWaitingRoom", yk_http_room_set, NULL,             \
                      RSRC_CONF | ACCESS_CONF,                                 \
                      "name and terms of a room, a room's name, or off"),      \
        AP_INIT_TAKE1("YoyakuWaitingPage", yk_http_room_set_page, NULL,        \
                      RSRC_CONF | ACCESS_CONF,                                 \
                      "a template in place of the waiting page"),              \
        AP_INIT_TAKE12("YoyakuKeyFile", yk_http_room_set_keys, NULL,           \
                       RSRC_CONF,                                              \
                       "the file that numbers and passes are signed with, "    \
                       "and the one before"),                                  \
        AP_INIT_TAKE1("YoyakuSnapshotDir", yk_http_room_set_snapshots, NULL,   \
                      RSRC_CONF, "where public documents are written"),

/* ---- room.c ---- */

/** NULL: no room is configured, or the state could not be made. */
yk_rooms_t *yk_http_room_shared(void);

/** The number of the pass under which this request runs; 0: none. An order
 *  begun by it keeps that number. */
uint64_t yk_http_room_pass(request_rec *r);

/* What becomes of an order that keeps a pass's number. 0 is no number and
 * harmless; a number of another host's room too. */

/** It is held or locked for so long from now. */
void yk_http_room_held(uint64_t pass, uint64_t order, apr_interval_time_t time);
/** It is no longer held, and not confirmed. */
void yk_http_room_released(uint64_t pass, uint64_t order);
/** It was confirmed, by whomever. */
void yk_http_room_confirmed(uint64_t pass, uint64_t order);

/* ---- room_page.c ---- */

int yk_http_room_page(request_rec *r, yk_http_room_t *room, const char *page,
                      const yk_room_answer_t *answer);
/** To a request with the header "Yoyaku-Room: ask". */
int yk_http_room_position(request_rec *r, const yk_room_answer_t *answer);
/** GET BASE/rooms/NAME. @return DECLINED: another path */
int yk_http_room_document(request_rec *r);
/** Write each room's public document to YoyakuSnapshotDir, at most every 2 s
 *  over all workers. */
void yk_http_room_snapshots(apr_pool_t *ptemp);

#endif
