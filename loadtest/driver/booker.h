/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOAD_BOOKER_H
#define LOAD_BOOKER_H

#include "script.h"
#include "tally.h"
#include "view.h"
#include "wire.h"

/**
 * @file booker.h
 * @brief A loop full of bookers: each with a connection, a cookie jar, an
 *        order, and his way through the steps.
 *
 *   arrival -> slot -> plan -> board -> hold -> more.. -> exchange
 *           -> checkout -> confirm            (or whatever `steps` says)
 *
 * A part only browses, a part holds and never comes back. Refused because a
 * place is gone, he looks at the board again and tries other places, or goes to
 * another slot that has some; told to wait he waits and asks again; with `keys
 * on` he asks again with the same Idempotency-Key when the line broke. When the
 * time is over he stops where he is, but what he would have given back he still
 * gives back.
 *
 * One loop per thread; nothing in it is shared but the atomic part of its
 * tally.
 */

#define LOAD_COOKIES 4
#define LOAD_COOKIE_BYTES 256
#define LOAD_LINES_MAX 32

typedef struct load_loop_t load_loop_t;

typedef struct load_booker_t {
    load_loop_t *loop;
    load_wire_t wire;
    struct event pause;
    struct load_booker_t *next_idle;
    uint64_t random;
    uint64_t journey;
    uint32_t slot, step;
    int browses, abandons, exchanges;
    uint32_t more_left, tries_left;
    uint32_t party;
    int area;             /**< of the script's; -1: he names places */
    int together;         /**< the party will not be parted */
    uint32_t quantity;    /**< asked for with this click, named or not */
    uint32_t wanted, got; /**< places, for the demand */
    int due_for_next;     /**< the pause was planned: measure lateness */
    int64_t due_us;
    int looked; /**< the view is this booker's own and fresh */
    int again;  /**< the same request again, same key */
    int doubt;  /**< a change was sent and its fate is unknown */
    char cookies[LOAD_COOKIES][LOAD_COOKIE_BYTES];
    char number[32];
    uint32_t nlines, lines[LOAD_LINES_MAX];
    uint32_t nasked, asked[LOAD_LINES_MAX];
    uint32_t nheld, held[LOAD_LINES_MAX];
    char key[40];
} load_booker_t;

struct load_loop_t {
    const load_script_t *script;
    load_tally_t *tally;
    load_peer_t peer;
    struct event_base *base;
    uint32_t thread;
    load_view_t *views; /**< one a slot */
    load_booker_t *bookers;
    load_booker_t *idle;
    uint32_t nbookers, ninside;
    int64_t *due; /**< NULL: closed */
    uint64_t ndue, next_due, next_journey;
    struct event arrival, over;
    int64_t begin_us, end_us; /**< end 0: when all are through */
    int ending;
    uint64_t nonce; /**< keys of two runs never meet */
    char *request;  /**< scratch for writing one */
    size_t request_space;
};

/** Make a loop; begins at begin_us (load_now()). NULL: said why on stderr.
 *  @param tls NULL for plain http; outlives the loop */
load_loop_t *load_loop_create(const load_script_t *script, load_tls_t *tls,
                              load_tally_t *tally, uint32_t thread,
                              int64_t begin_us);

/** Run until everybody is through or the time is over. */
void load_loop_run(load_loop_t *loop);

/* ---- loop.c and booker.c meet here ---- */

/** Give this idle booker the next journey that is due. @return 1 if one is */
int load_loop_next(load_booker_t *b);
/** Wake when the next journey is due; end the loop when none is left. */
void load_loop_arrival(load_loop_t *loop);
void load_booker_begin(load_booker_t *b, uint64_t journey, int64_t due_us);
void load_booker_pause(evutil_socket_t fd, short what, void *baton);
void load_booker_done(load_wire_t *wire, load_wire_end_e end, void *baton);
void load_booker_connected(load_wire_t *wire, void *baton);

/* ---- booker.c and answer.c meet here ---- */

load_action_e load_booker_action(const load_booker_t *b);

/** His journey ends here. @param way a counter of the tally: how */
void load_booker_end(load_booker_t *b, uint64_t *way);
/** On to his step, after so long; 0: after thinking, if the mix does. */
void load_booker_go_on(load_booker_t *b, uint32_t wait_ms);
/** The same step again, if his patience lasts.
 *  @param way how he ends if it does not */
void load_booker_again(load_booker_t *b, uint32_t wait_ms, uint64_t *way);
/** Back to where he last looked at the board. */
void load_booker_look_again(load_booker_t *b);
/** Refused with nothing in his hands, he may go to another slot.
 *  @param left what of this slot's demand his leaving is
 *  @return 1 when he goes on there */
int load_booker_elsewhere(load_booker_t *b, uint64_t *left);

/* ---- request.c: a click as bytes ---- */

/** Write the click into loop->request. @return its length */
size_t load_request_write(load_booker_t *b, load_action_e action);

/** Keep the cookies of an answer. */
void load_request_cookies(load_booker_t *b, const load_answer_t *answer);

/* ---- record.c: what the server said it did ---- */

/** Read the order of an answer into the booker and write it down.
 *  @return 1 when it was an order (or needs none) */
int load_record_change(load_booker_t *b, load_action_e action,
                       const load_answer_t *answer);

/** A request went out and nobody knows what became of it. */
void load_record_doubt(load_booker_t *b, load_action_e action);

/** @return 1 when the answer's reason is this one */
int load_record_reason(const load_answer_t *answer, const char *reason);

/** @return what a refusal says is still free; 0 when it says nothing */
uint32_t load_record_free(const load_answer_t *answer);

/** @return the demand he belongs to: his slot and area, or named places */
load_demand_t *load_booker_demand(load_booker_t *b);

#endif
