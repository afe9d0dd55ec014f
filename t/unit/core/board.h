/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YK_CHECK_BOARD_H
#define YK_CHECK_BOARD_H

#include "core.h"
#include "yoyaku/board.h"

/** @file board.h
 *  @brief Boards in memory of our own, and slots for them. */

extern apr_pool_t *board_pool;
extern yk_boards_t *board_boards;

/** 8 MB of boards in memory that children share. */
void board_setup(void);
void board_teardown(void);

/** A slot of two placed sections (A, B) of `rows` rows of 10 and a pool. */
yk_slot_t *board_slot(const char *key, uint64_t slot_id, uint32_t rows);
uint32_t board_places(const yk_slot_t *slot);

yk_board_ref_t board_make(const yk_slot_t *slot);

/** Write one place. */
apr_status_t board_put(const yk_board_ref_t *ref, uint32_t no,
                       yk_place_state_e state, uint64_t version);

/** The document. */
const char *board_json(const yk_board_ref_t *ref, uint64_t *hash,
                       uint64_t *generation);
/** Its places, all sections in one text, and the pool's count behind. */
const char *board_content(const char *json);
/** What changed since, put on top of a content. NULL: the whole was given. */
const char *board_patch(const char *content, const char *json);

Suite *board_suite(void);
Suite *board_life_suite(void);
Suite *board_reused_suite(void);

#endif
