/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YK_ROOM_ROWS_H
#define YK_ROOM_ROWS_H

#include "yoyaku/room.h"

/**
 * @file room_rows.h
 * @brief Between the files of the room's decisions: rows, counts, the line.
 */

/** NULL: no row is left. */
yk_visitor_t *yk_room_add(yk_room_t *room, uint64_t number, uint64_t key,
                          yk_visitor_e state, apr_time_t steady);
void yk_room_drop(yk_room_t *room, yk_visitor_t *v);
/** Change a visitor's state and the counts with it. */
void yk_room_become(yk_room_t *room, yk_visitor_t *v, yk_visitor_e state);

/** Sort the line now. */
void yk_room_rank_now(yk_room_t *room, apr_time_t steady);
/** The first who waits; NULL: nobody does. */
yk_visitor_t *yk_room_first(yk_room_t *room, apr_time_t steady);

#endif
