/* SPDX-License-Identifier: Apache-2.0 */
#include "board.h"
#include <string.h>

/*
 * A hold that cannot be is refused from the board, without the database, when
 * it is beyond doubt: no order in hand (it could be his own place), the key not
 * used before (it could be the repetition of one that worked), and a place that
 * the board, compared with the database by this host a moment ago, knows to be
 * booked or held for a while yet. Everything else is for the desk to say.
 *
 * So is a wish of which the desk might say something else first: of several
 * reasons it gives the one further up (a name unknown, not on sale, a limit,
 * sold out, taken), and whoever asks twice gets the same. What only the book
 * knows of that, a quota's count or what a booker has elsewhere, is not guessed
 * at here.
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

/** What one line names, as far as the board may speak of it. */
typedef struct named_t {
    const yk_slot_t *slot;
    uint32_t place_no;
    const char *currency; /**< "": free of charge */
} named_t;

/** Could the desk find a tariff for it, and count nothing? */
static int tariff_look(named_t *named, const yk_wish_part_t *part,
                       const yk_plan_place_t *place, apr_pool_t *p)
{
    const yk_slot_t *slot = named->slot;
    const char *tariff = part->tariff, *choices;
    const yk_price_t *price;

    named->currency = "";
    if (slot->nprices == 0 && tariff == NULL) {
        return 1;
    }
    if (tariff == NULL) {
        tariff = yk_slot_only_tariff(slot, &choices, place->section_no,
                                     place->grade, p);
    }
    price = tariff == NULL
                ? NULL
                : yk_slot_price(slot, place->section_no, place->grade, tariff);
    if (price == NULL || price->counted) {
        return 0;
    }
    named->currency = price->currency;
    return 1;
}

/** A hold of n places that begins an order: can no limit stop it? */
static int limits_look(const yk_http_call_t *call, const yk_slot_t *slot,
                       uint32_t n)
{
    for (uint32_t i = 0; i < slot->nlimits; i++) {
        const yk_limit_t *limit = &slot->limits[i];

        if (limit->per == YK_PER_BOOKER ? *call->terms.booker != '\0'
                                        : limit->max < (int64_t)n) {
            return 0;
        }
    }
    return 1;
}

/** A named place of a placed area of a slot on sale, to be had but for being
 *  taken. @return 0: the wish is for the desk */
static int line_find(yk_http_call_t *call, named_t *named,
                     const yk_wish_line_t *line, uint32_t nlines,
                     apr_time_t now)
{
    yk_plan_place_t place;
    const yk_slot_t *slot = NULL;

    if (line->place == NULL || line->nparts != 1 ||
        yk_catalogue_slot(call->catalogue, &slot, NULL, call->store,
                          call->terms.tenant_id, line->slot, 0,
                          call->r->pool) != APR_SUCCESS ||
        slot->plan == NULL || !yk_slot_on_sale(slot, now) ||
        !limits_look(call, slot, nlines)) {
        return 0;
    }
    named->slot = slot;
    named->place_no = yk_plan_find(slot->plan, line->place);
    if (named->place_no == YK_PLAN_NONE) {
        return 0;
    }
    yk_plan_place(slot->plan, &place, named->place_no);
    return slot->areas[place.section_no].mode == YK_MODE_PLACED &&
           tariff_look(named, &line->parts[0], &place, call->r->pool);
}

/** Does it go with the lines before it? */
static int line_fits(const named_t *named, uint32_t i)
{
    for (uint32_t j = 0; j < i; j++) {
        if (strcmp(named[j].currency, named[i].currency) != 0 ||
            (named[j].slot->slot_id == named[i].slot->slot_id &&
             named[j].place_no == named[i].place_no)) {
            return 0;
        }
    }
    return 1;
}

/** @return 1: it is gone, 0: perhaps not, -1: the wish is for the desk */
static int line_look(yk_http_call_t *call, named_t *named, uint32_t i,
                     const yk_wish_t *wish)
{
    const yk_wish_line_t *line = &wish->lines[i];
    yk_board_ref_t ref;
    yk_place_state_e state;
    apr_time_t until, now, ignored;

    if (board_find(&ref, call, line->slot) != APR_SUCCESS ||
        yk_board_place(yk_http_board_boards(), &ref, &state, &ignored, &now,
                       0) != APR_SUCCESS) {
        return -1;
    }
    if (!line_find(call, &named[i], line, wish->nlines, now) ||
        !yk_board_is_current(yk_http_board_boards(), &ref, named[i].slot) ||
        !line_fits(named, i) ||
        yk_board_place(yk_http_board_boards(), &ref, &state, &until, &now,
                       named[i].place_no) != APR_SUCCESS) {
        return -1;
    }
    return state == YK_PLACE_BOOKED ||
           (state == YK_PLACE_HELD && until > now + HELD_YET);
}

static int lines_look(yk_http_call_t *call, yk_reply_t *reply,
                      const yk_wish_t *wish)
{
    named_t *named = apr_pcalloc(call->r->pool, wish->nlines * sizeof(*named));

    reply->places =
        apr_pcalloc(call->r->pool, wish->nlines * sizeof(*reply->places));
    for (uint32_t i = 0; i < wish->nlines; i++) {
        int gone = line_look(call, named, i, wish);

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
