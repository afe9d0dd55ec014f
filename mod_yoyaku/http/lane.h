/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YK_HTTP_LANE_H
#define YK_HTTP_LANE_H

#include <yoyaku/lane.h>
#include "http.h"

/**
 * @file lane.h
 * @brief The part that lets bookings go through lanes: state file, this
 *        process's row, and who keeps a connection.
 *
 * Where the state cannot be made, or no row is left, bookings go directly:
 * slower and as right.
 */

const char *yk_http_lane_set(cmd_parms *cmd, void *dummy, const char *arg);
const char *yk_http_lane_set_connections(cmd_parms *cmd, void *dummy,
                                         const char *arg);

#define YK_HTTP_LANE_DIRECTIVES                                                \
    AP_INIT_TAKE1("YoyakuLane", yk_http_lane_set, NULL,                        \
                  RSRC_CONF | ACCESS_CONF,                                     \
                  "on: bookings of one slot are committed together; or how "   \
                  "many lanes the slots share"),                               \
        AP_INIT_TAKE1("YoyakuConnections", yk_http_lane_set_connections, NULL, \
                      RSRC_CONF,                                               \
                      "how many workers keep their connection to the "         \
                      "database"),

/**
 * Let this request's desk use the lanes, if they are on for it.
 * @param realm names the database; what differs in it never meets
 */
void yk_http_lane_bind(request_rec *r, yk_desk_t *desk, const char *realm);

/** What this host's lanes share, or NULL. */
const yk_lanes_t *yk_http_lane_shared(void);

/** A permit to keep a line between requests, and to give it back.
 *  @return YK_LANE_NO_PERMIT: it must be closed */
int yk_http_lane_permit_take(void);
/** 0: it ran out, close the line. */
int yk_http_lane_permit_holds(int permit);
void yk_http_lane_permit_give(int permit);

#endif
