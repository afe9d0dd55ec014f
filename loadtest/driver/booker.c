/* SPDX-License-Identifier: Apache-2.0 */
#include "booker.h"
#include <stdio.h>
#include <string.h>

static void click(load_booker_t *b);

load_action_e load_booker_action(const load_booker_t *b)
{
    return b->loop->script->steps[b->step];
}

/* ---- journeys ---- */

static void pause_set(load_booker_t *b, uint32_t ms)
{
    struct timeval tv = {ms / 1000, (ms % 1000) * 1000};

    b->due_us = load_now() + (int64_t)ms * 1000;
    b->due_for_next = 1;
    evtimer_add(&b->pause, &tv);
}

load_demand_t *load_booker_demand(load_booker_t *b)
{
    uint32_t each = 1 + b->loop->script->nareas;

    return &b->loop->tally->demand[b->slot * each + (uint32_t)(b->area + 1)];
}

/** Who asks for a count, and where. */
static void area_draw(load_booker_t *b)
{
    const load_script_t *s = b->loop->script;
    uint32_t draw;

    b->area = -1;
    b->together = 0;
    if (s->nareas == 0) {
        return; /* a mix without areas draws as it always did */
    }
    draw = load_random_below(&b->random, 100);
    for (uint32_t i = 0; i < s->nareas && b->area < 0; i++) {
        if (draw < s->areas[i].percent) {
            b->area = (int)i;
            b->together = !s->areas[i].pooled &&
                          load_random_below(&b->random, 100) < s->together;
        }
        draw -= s->areas[i].percent;
    }
}

void load_booker_begin(load_booker_t *b, uint64_t journey, int64_t due_us)
{
    const load_script_t *s = b->loop->script;

    b->random = s->seed ^ ((journey + 1) * UINT64_C(0xd1342543de82ef95));
    b->journey = journey;
    b->step = 0;
    b->slot = load_random_below(&b->random, s->nslots);
    if (s->spread == LOAD_SPREAD_SKEW &&
        load_random_below(&b->random, 100) < s->skew) {
        b->slot = 0;
    }
    b->browses = load_random_below(&b->random, 100) < s->browse;
    b->abandons = load_random_below(&b->random, 100) < s->abandon;
    b->exchanges = load_random_below(&b->random, 100) < s->exchange;
    b->more_left = s->more_min +
                   load_random_below(&b->random, s->more_max - s->more_min + 1);
    if (!load_script_has_step(s, LOAD_ACTION_MORE)) {
        b->more_left = 0;
    }
    b->tries_left = s->tries;
    b->nlines = b->nasked = b->nheld = b->got = 0;
    b->number[0] = '\0';
    b->looked = b->again = b->doubt = 0;
    memset(b->cookies, 0, sizeof(b->cookies));
    if (s->ncookies > 0) {
        snprintf(b->cookies[0], sizeof(b->cookies[0]), "%s",
                 s->cookies[journey % s->ncookies]);
    }
    b->party = s->party_min +
               load_random_below(&b->random, s->party_max - s->party_min + 1);
    area_draw(b);
    b->wanted = b->browses || !load_script_has_step(s, LOAD_ACTION_HOLD)
                    ? 0
                    : b->party * (1 + b->more_left);
    load_booker_demand(b)->wanted += b->wanted;
    b->loop->tally->journeys++;
    b->due_us = due_us;
    b->due_for_next = 0;
    b->loop->ninside++;
    atomic_fetch_add_explicit(&b->loop->tally->inside, 1, memory_order_relaxed);
    click(b);
}

void load_booker_end(load_booker_t *b, uint64_t *way)
{
    load_loop_t *loop = b->loop;
    load_demand_t *demand = load_booker_demand(b);

    if (b->doubt) {
        load_record_doubt(b, load_booker_action(b));
    }
    (*way)++;
    if (b->wanted > b->got) {
        *(way == &loop->tally->full ? &demand->unmet : &demand->given_up) +=
            b->wanted - b->got;
    }
    /* the next booker in this seat is somebody else: he brings his own line */
    if (loop->due != NULL || loop->script->think_ms > 0 ||
        loop->script->keep == LOAD_KEEP_JOURNEY) {
        load_wire_close(&b->wire);
    }
    loop->ninside--;
    atomic_fetch_sub_explicit(&loop->tally->inside, 1, memory_order_relaxed);
    b->next_idle = loop->idle;
    loop->idle = b;
    if (loop->due == NULL && !loop->ending) {
        /* from the loop, not from here: a journey without clicks would
           otherwise call itself for ever */
        loop->idle = b->next_idle;
        b->step = UINT32_MAX;
        loop->ninside++;
        pause_set(b, 0);
        b->due_for_next = 0;
        return;
    }
    if (loop->due != NULL && loop->next_due < loop->ndue && !loop->ending) {
        load_loop_arrival(loop);
    }
    if (loop->ninside == 0 &&
        (loop->ending || loop->due == NULL || loop->next_due >= loop->ndue)) {
        event_base_loopbreak(loop->base);
    }
}

/* ---- clicks ---- */

/** Where the journey ends when there is no further step. */
static uint64_t *way_out(load_booker_t *b)
{
    load_tally_t *tally = b->loop->tally;

    if (b->browses) {
        return &tally->browsed;
    }
    if (b->abandons && b->nlines > 0) {
        return &tally->abandoned;
    }
    return &tally->through;
}

/** @return 1 when this booker does that step */
static int wants_step(load_booker_t *b, load_action_e action)
{
    if (b->loop->script->clicks[action].method == NULL) {
        return 0;
    }
    switch (action) {
    case LOAD_ACTION_HOLD:
        return !b->browses;
    case LOAD_ACTION_MORE:
        return b->more_left > 0 && b->nlines > 0;
    case LOAD_ACTION_EXCHANGE:
        return b->exchanges && b->nlines > 0 && b->area < 0;
    case LOAD_ACTION_CHECKOUT:
    case LOAD_ACTION_CONFIRM:
    case LOAD_ACTION_RELEASE:
        return !b->abandons && b->nlines > 0;
    default:
        return 1;
    }
}

static void choose(load_booker_t *b, load_action_e action)
{
    const load_script_t *s = b->loop->script;
    const load_view_t *view = &b->loop->views[b->slot];

    if (b->area >= 0) {
        uint32_t left = s->blind ? UINT32_MAX : view->left[b->area];

        b->nasked = 0;
        b->quantity = b->party < left ? b->party : left;
        return;
    }
    b->nasked = load_view_choose(view, b->asked,
                                 action == LOAD_ACTION_EXCHANGE ? 1 : b->party,
                                 s->spread, s->blind, &b->random);
    b->quantity = b->nasked;
}

static void send_click(load_booker_t *b, load_action_e action)
{
    load_loop_t *loop = b->loop;
    int keep = action != LOAD_ACTION_PLAN && action != LOAD_ACTION_SLOT &&
               action != LOAD_ACTION_POST;
    size_t len = load_request_write(b, action);

    load_wire_send(&b->wire, loop->request, len, keep);
    atomic_fetch_add_explicit(load_wire_is_connecting(&b->wire)
                                  ? &loop->tally->connecting
                                  : &loop->tally->waiting,
                              1, memory_order_relaxed);
}

void load_booker_look_again(load_booker_t *b)
{
    const load_script_t *s = b->loop->script;

    for (uint32_t i = b->step; i > 0; i--) {
        if (s->steps[i - 1] == LOAD_ACTION_BOARD) {
            b->step = i - 1;
            return;
        }
    }
}

int load_booker_elsewhere(load_booker_t *b, uint64_t *left)
{
    const load_script_t *s = b->loop->script;
    uint32_t other;

    if (s->nslots < 2 || b->tries_left == 0 ||
        load_random_below(&b->random, 100) >= s->elsewhere) {
        return 0;
    }
    other = load_view_other(b->loop->views, b->slot, b->area, &b->random);
    if (other == b->slot) {
        return 0;
    }
    *left += b->wanted - b->got;
    b->tries_left--;
    b->slot = other;
    b->looked = 0;
    load_booker_demand(b)->wanted += b->wanted - b->got;
    b->loop->tally->moved++;
    load_booker_look_again(b);
    return 1;
}

/** Nothing looks free. @return 1 when he goes on with another step */
static int nothing_free(load_booker_t *b, load_action_e action)
{
    if (action != LOAD_ACTION_HOLD) {
        b->more_left = 0;
        b->step++;
        return 1;
    }
    if (!b->looked &&
        load_script_has_step(b->loop->script, LOAD_ACTION_BOARD)) {
        load_booker_look_again(b);
        return 1;
    }
    if (load_booker_elsewhere(b, &load_booker_demand(b)->unmet)) {
        return 1;
    }
    load_booker_end(b, &b->loop->tally->full);
    return 0;
}

/** The time is over: where places come back, he gives back what he holds, or
 *  the next run would find a smaller hall. @return 1 when he has something */
static int gives_back(load_booker_t *b)
{
    const load_script_t *s = b->loop->script;

    if (!wants_step(b, LOAD_ACTION_RELEASE)) {
        return 0;
    }
    for (uint32_t i = b->step; i < s->nsteps; i++) {
        if (s->steps[i] == LOAD_ACTION_RELEASE) {
            b->step = i;
            return 1;
        }
    }
    return 0;
}

static void click(load_booker_t *b)
{
    const load_script_t *s = b->loop->script;

    for (;;) {
        load_action_e action;

        if (b->loop->ending && !gives_back(b)) {
            load_booker_end(b, &b->loop->tally->cut);
            return;
        }
        if (b->step >= s->nsteps) {
            load_booker_end(b, way_out(b));
            return;
        }
        action = load_booker_action(b);
        if (!wants_step(b, action)) {
            b->step++;
            continue;
        }
        if (load_action_takes(action) && !b->again) {
            choose(b, action);
            if (b->quantity == 0) {
                if (!nothing_free(b, action)) {
                    return;
                }
                continue;
            }
        }
        send_click(b, action);
        return;
    }
}

void load_booker_pause(evutil_socket_t fd, short what, void *baton)
{
    load_booker_t *b = baton;
    int64_t late = load_now() - b->due_us;

    if (b->due_for_next) {
        load_hdr_record(b->loop->tally->late, late < 0 ? 0 : (uint64_t)late);
    }
    b->due_for_next = 0;
    if (b->step == UINT32_MAX) {
        b->loop->ninside--;
        if (!load_loop_next(b) && b->loop->ninside == 0) {
            event_base_loopbreak(b->loop->base);
        }
        return;
    }
    click(b);
}

void load_booker_go_on(load_booker_t *b, uint32_t wait_ms)
{
    uint32_t think = b->loop->script->think_ms;

    if (wait_ms == 0 && think > 0) {
        wait_ms = load_random_pause(&b->random, think);
    }
    if (wait_ms > 0) {
        pause_set(b, wait_ms);
        return;
    }
    b->due_us = load_now();
    b->due_for_next = 0;
    click(b);
}

void load_booker_again(load_booker_t *b, uint32_t wait_ms, uint64_t *way)
{
    if (b->tries_left == 0) {
        load_booker_end(b, way);
        return;
    }
    b->tries_left--;
    load_booker_go_on(b, wait_ms);
}
