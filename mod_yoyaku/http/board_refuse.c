/* SPDX-License-Identifier: Apache-2.0 */
#include "board.h"
#include <string.h>

/*
 * A hold that cannot be is refused from the board, without the database, when
 * it is beyond doubt: no order in hand (it could be his own place), the key not
 * used before (it could be the repetition of one that worked), and a place that
 * the board, compared with the database by this host a moment ago, knows to be
 * booked or held for a while yet. Everything else is for the desk to say, and
 * so is a wish that has something else wrong with it.
 */

#define COMPARED (APR_USEC_PER_SEC / 2)
#define HELD_YET (APR_USEC_PER_SEC / 2)

/** The board of a line's slot, if it was compared just now. */
static apr_status_t board_find(yk_board_ref_t *ref, yk_http_call_t *call,
                               const char *slot)
{
    yk_boards_t *boards = yk_http_board_boards();
    apr_status_t rv = yk_board_find(boards, ref, yk_http_board_id(call, slot));
    apr_time_t compared =
        rv == APR_SUCCESS ? yk_board_compared(boards, ref) : 0;

    return compared != 0 && yk_state_now() - compared < COMPARED ? APR_SUCCESS
                                                                 : APR_NOTFOUND;
}

/** A named place of a placed area of a slot on sale. @return its number */
static uint32_t place_of(yk_http_call_t *call, const yk_wish_line_t *line,
                         apr_time_t now)
{
    const yk_slot_t *slot = NULL;
    yk_plan_place_t place;
    uint32_t no;

    if (line->place == NULL ||
        yk_catalogue_slot(call->catalogue, &slot, NULL, call->store,
                          call->terms.tenant_id, line->slot, 0,
                          call->r->pool) != APR_SUCCESS ||
        slot->plan == NULL || !yk_slot_on_sale(slot, now)) {
        return YK_PLAN_NONE;
    }
    no = yk_plan_find(slot->plan, line->place);
    if (no == YK_PLAN_NONE) {
        return no;
    }
    yk_plan_place(slot->plan, &place, no);
    return slot->areas[place.section_no].mode == YK_MODE_PLACED ? no
                                                                : YK_PLAN_NONE;
}

/** @return 1: it is gone, 0: perhaps not, -1: the wish is for the desk */
static int line_look(yk_http_call_t *call, const yk_wish_line_t *line)
{
    yk_board_ref_t ref;
    yk_place_state_e state;
    apr_time_t until, now, ignored;
    uint32_t no;

    if (board_find(&ref, call, line->slot) != APR_SUCCESS ||
        yk_board_place(yk_http_board_boards(), &ref, &state, &ignored, &now,
                       0) != APR_SUCCESS) {
        return -1;
    }
    no = place_of(call, line, now);
    if (no == YK_PLAN_NONE ||
        yk_board_place(yk_http_board_boards(), &ref, &state, &until, &now,
                       no) != APR_SUCCESS) {
        return -1;
    }
    return state == YK_PLACE_BOOKED ||
           (state == YK_PLACE_HELD && until > now + HELD_YET);
}

static int lines_look(yk_http_call_t *call, yk_reply_t *reply,
                      const yk_wish_t *wish)
{
    reply->places =
        apr_pcalloc(call->r->pool, wish->nlines * sizeof(*reply->places));
    for (uint32_t i = 0; i < wish->nlines; i++) {
        int gone = line_look(call, &wish->lines[i]);

        if (gone < 0) {
            return 0;
        }
        if (gone) {
            reply->places[reply->nplaces].slot = wish->lines[i].slot;
            reply->places[reply->nplaces++].place = wish->lines[i].place;
        }
    }
    return reply->nplaces > 0;
}

int yk_http_board_refuses(yk_http_call_t *call, yk_reply_t *reply,
                          const yk_wish_t *wish)
{
    yk_boards_t *boards = yk_http_board_boards();
    int used = 0;

    memset(reply, 0, sizeof(*reply));
    if (boards == NULL || call->claim != NULL || call->shop ||
        wish->nlines == 0 || wish->nlines > call->terms.hold_places ||
        yk_http_call_open(call) != APR_SUCCESS ||
        !lines_look(call, reply, wish)) {
        return 0;
    }
    if (call->once != NULL &&
        (yk_store_once_used(call->store, &used, call->terms.tenant_id,
                            &call->once->scope) != APR_SUCCESS ||
         used)) {
        return 0;
    }
    reply->answer = YK_ANSWER_TAKEN;
    reply->complete = 0;
    yk_boards_refused(boards);
    return 1;
}
