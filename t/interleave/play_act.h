/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INTERLEAVE_PLAY_ACT_H
#define INTERLEAVE_PLAY_ACT_H

#include "play.h"

/**
 * @file play_act.h
 * @brief What the files of a player share: from an act's words to what a desk
 *        is asked.
 */

/** [SLOT/]PLACE[:TARIFF]  [SLOT/]AREA*N[:TARIFF]  [SLOT/]AREA*N:TARIFF*M:TARIFF
 *  @param slot when none is named */
void play_item(yk_wish_line_t *line, const char *item, const char *slot,
               apr_pool_t *p);
yk_wish_t *play_wish(const player_t *player, const act_t *act);
/** "1,2*1": line 1, and one of line 2 */
yk_give_t *play_gives(uint32_t *n, const char *text, apr_pool_t *p);
/** NULL without key= */
yk_once_t *play_once(const player_t *player, const act_t *act);

/** Asked by the shop, not by a booker? */
int play_is_shops(const act_t *act);
/** NULL: nobody knows an order of that name */
yk_claim_t *play_claim(player_t *player, named_t *order, const act_t *act,
                       const char *name);
yk_payment_t *play_payment(player_t *player, const act_t *act,
                           const named_t *order);
yk_desk_t *play_desk_for(player_t *player, const act_t *act);

/** One act at the desk.
 *  @param name whose order it was about */
apr_status_t play_desk(player_t *player, yk_reply_t *reply, const act_t *act,
                       const char **name);

/** Several in one transaction, as the head of a lane does; what is left alone
 *  is then done alone.
 *  @return the answers, joined by + */
const char *play_batch(player_t *player, const act_t *act);

/** The answer's reason, or what the status means. */
const char *play_word(apr_status_t rv, const yk_reply_t *reply);

#endif
