/* SPDX-License-Identifier: Apache-2.0 */
#include "booker.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void click(load_booker_t *b);

static load_action_e action_of(const load_booker_t *b)
{
    return b->loop->script->steps[b->step];
}

static int takes(load_action_e action)
{
    return action == LOAD_ACTION_HOLD || action == LOAD_ACTION_MORE ||
           action == LOAD_ACTION_EXCHANGE;
}

static int changes(load_action_e action)
{
    return takes(action) || action == LOAD_ACTION_CHECKOUT ||
           action == LOAD_ACTION_CONFIRM || action == LOAD_ACTION_RELEASE;
}

static int has_step(const load_script_t *script, load_action_e action)
{
    for (uint32_t i = 0; i < script->nsteps; i++) {
        if (script->steps[i] == action) {
            return script->clicks[action].method != NULL;
        }
    }
    return 0;
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
    if (!has_step(s, LOAD_ACTION_MORE)) {
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
    b->wanted = b->browses || !has_step(s, LOAD_ACTION_HOLD)
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

static void journey_end(load_booker_t *b, uint64_t *way)
{
    load_loop_t *loop = b->loop;
    load_demand_t *demand = load_booker_demand(b);

    if (b->doubt) {
        load_record_doubt(b, action_of(b));
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

static void area_count(load_booker_t *b, int64_t change)
{
    uint32_t *left = &b->loop->views[b->slot].left[b->area];
    int64_t now = (int64_t)*left + change;

    if (*left != UINT32_MAX) { /* nobody has looked yet */
        *left = now < 0 ? 0 : (uint32_t)now;
    }
}

static uint64_t free_seen(const load_view_t *view)
{
    uint64_t all = view->nfree;

    for (uint32_t i = 0; i < view->script->nareas; i++) {
        all += view->left[i];
    }
    return all;
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

static void look_again(load_booker_t *b)
{
    const load_script_t *s = b->loop->script;

    for (uint32_t i = b->step; i > 0; i--) {
        if (s->steps[i - 1] == LOAD_ACTION_BOARD) {
            b->step = i - 1;
            return;
        }
    }
}

/** Refused with nothing in his hands, he may go to another slot.
 *  @param left what of this slot's demand his leaving is
 *  @return 1 when he goes on there */
static int elsewhere(load_booker_t *b, uint64_t *left)
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
    look_again(b);
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
    if (!b->looked && has_step(b->loop->script, LOAD_ACTION_BOARD)) {
        look_again(b);
        return 1;
    }
    if (elsewhere(b, &load_booker_demand(b)->unmet)) {
        return 1;
    }
    journey_end(b, &b->loop->tally->full);
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
            journey_end(b, &b->loop->tally->cut);
            return;
        }
        if (b->step >= s->nsteps) {
            journey_end(b, way_out(b));
            return;
        }
        action = action_of(b);
        if (!wants_step(b, action)) {
            b->step++;
            continue;
        }
        if (takes(action) && !b->again) {
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

static void go_on(load_booker_t *b, uint32_t wait_ms)
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

/** Again, if his patience lasts. */
static void again(load_booker_t *b, uint32_t wait_ms, uint64_t *way)
{
    if (b->tries_left == 0) {
        journey_end(b, way);
        return;
    }
    b->tries_left--;
    go_on(b, wait_ms);
}

/* ---- answers ---- */

static void took(load_booker_t *b, load_action_e action)
{
    if (b->area >= 0) {
        area_count(b, -(int64_t)b->quantity);
    }
    for (uint32_t i = 0; i < b->nasked; i++) {
        load_view_set(&b->loop->views[b->slot], b->asked[i], '1');
        if (b->nheld < LOAD_LINES_MAX) {
            b->held[b->nheld++] = b->asked[i];
        }
    }
    if (action != LOAD_ACTION_EXCHANGE) {
        b->got += b->quantity;
        load_booker_demand(b)->got += b->quantity;
    }
    b->looked = 0;
}

static void went_well(load_booker_t *b, load_action_e action,
                      const load_answer_t *answer)
{
    load_tally_t *tally = b->loop->tally;
    load_view_t *view = &b->loop->views[b->slot];
    const char *etag;
    size_t len;

    if (changes(action) && !load_record_change(b, action, answer)) {
        journey_end(b, &tally->stopped);
        return;
    }
    if (action == LOAD_ACTION_BOARD && answer->status == 200) {
        b->looked = load_view_read(view, answer->body, answer->body_len);
        etag = load_answer_header(answer, "ETag", &len, NULL);
        snprintf(view->etag, sizeof(view->etag), "%.*s",
                 etag == NULL ? 0 : (int)len, etag == NULL ? "" : etag);
        atomic_store_explicit(&tally->free_seen, free_seen(view),
                              memory_order_relaxed);
    }
    if (takes(action)) {
        took(b, action);
    }
    if (action == LOAD_ACTION_RELEASE && b->area >= 0) {
        area_count(b, b->got);
    }
    if (action == LOAD_ACTION_RELEASE) {
        for (uint32_t i = 0; i < b->nheld; i++) {
            load_view_set(view, b->held[i], '0');
        }
    }
    if (action == LOAD_ACTION_CONFIRM || action == LOAD_ACTION_RELEASE) {
        journey_end(b, action == LOAD_ACTION_CONFIRM ? &tally->confirmed
                                                     : &tally->released);
        return;
    }
    if (action == LOAD_ACTION_MORE) {
        b->more_left--;
    }
    if (action != LOAD_ACTION_MORE || b->more_left == 0) {
        b->step++;
    }
    go_on(b, 0);
}

static void refused(load_booker_t *b, load_action_e action,
                    const load_answer_t *answer)
{
    load_tally_t *tally = b->loop->tally;
    int gone = takes(action) && (load_record_reason(answer, "taken") ||
                                 load_record_reason(answer, "sold_out"));

    if (b->area >= 0 && b->together &&
        load_record_reason(answer, "not_together")) {
        b->together = 0; /* better apart than not at all */
        gone = 1;
    }
    if (!gone) {
        journey_end(b, &tally->stopped);
        return;
    }
    tally->taken_again++;
    b->looked = 0;
    if (b->area >= 0 && load_record_reason(answer, "sold_out")) {
        /* a smaller party may still find room */
        b->loop->views[b->slot].left[b->area] = load_record_free(answer);
    }
    if (action == LOAD_ACTION_EXCHANGE) {
        b->step++; /* he keeps what he has */
        go_on(b, 0);
        return;
    }
    if (has_step(b->loop->script, LOAD_ACTION_BOARD)) {
        /* until the next board says otherwise */
        for (uint32_t i = 0; i < b->nasked; i++) {
            load_view_set(&b->loop->views[b->slot], b->asked[i], '1');
        }
    }
    if (action == LOAD_ACTION_HOLD) {
        if (elsewhere(b, &load_booker_demand(b)->given_up)) {
            go_on(b, 0);
            return;
        }
        look_again(b);
    }
    again(b, 0, &tally->gave_up);
}

static uint32_t retry_after_ms(load_booker_t *b, const load_answer_t *answer)
{
    uint32_t cap = b->loop->script->retry_cap_ms;
    size_t len;
    const char *value = load_answer_header(answer, "Retry-After", &len, NULL);
    uint32_t ms = value == NULL ? 0 : (uint32_t)atoi(value) * 1000;

    ms = ms > cap ? cap : ms;
    return ms / 2 + load_random_below(&b->random, ms / 2 + 1) + 1;
}

static void lost(load_booker_t *b, load_action_e action, load_wire_end_e end)
{
    load_tally_t *tally = b->loop->tally;
    int sent = end != LOAD_WIRE_REFUSED && end != LOAD_WIRE_CONNECT_TIMEOUT &&
               end != LOAD_WIRE_TLS && end != LOAD_WIRE_LOCAL;

    if (changes(action) && sent) {
        b->doubt = 1;
        if (!b->loop->script->keys) {
            journey_end(b, &tally->stopped);
            return;
        }
        tally->replayed++;
    }
    b->again = 1;
    again(b,
          end == LOAD_WIRE_STALE ? 0 : 1 + load_random_below(&b->random, 200),
          &tally->stopped);
}

static load_outcome_e outcome_of(const load_answer_t *answer)
{
    size_t len;
    int status = answer->status;

    if (status < 400) {
        return LOAD_OUTCOME_OK;
    }
    if (status == 404 || status == 409 || status == 410 || status == 422) {
        return LOAD_OUTCOME_REFUSED;
    }
    if (status < 500) {
        return LOAD_OUTCOME_BAD;
    }
    return status == 503 &&
                   load_answer_header(answer, "Retry-After", &len, NULL) != NULL
               ? LOAD_OUTCOME_BUSY
               : LOAD_OUTCOME_BROKEN;
}

static void answered(load_booker_t *b, load_action_e action,
                     load_outcome_e outcome)
{
    load_tally_t *tally = b->loop->tally;
    const load_answer_t *answer = &b->wire.answer;

    load_request_cookies(b, answer);
    if (outcome == LOAD_OUTCOME_OK || outcome == LOAD_OUTCOME_REFUSED) {
        b->doubt = b->again = 0;
    }
    switch (outcome) {
    case LOAD_OUTCOME_OK:
        went_well(b, action, answer);
        break;
    case LOAD_OUTCOME_REFUSED:
        refused(b, action, answer);
        break;
    case LOAD_OUTCOME_BUSY:
        if (changes(action) && load_record_reason(answer, "unresolved")) {
            b->doubt = 1;
        }
        b->again = 1;
        again(b, retry_after_ms(b, answer), &tally->turned_off);
        break;
    default:
        journey_end(b, &tally->stopped);
    }
}

void load_booker_connected(load_wire_t *wire, void *baton)
{
    load_booker_t *b = baton;
    load_tally_t *tally = b->loop->tally;

    atomic_fetch_sub_explicit(&tally->connecting, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&tally->waiting, 1, memory_order_relaxed);
}

void load_booker_done(load_wire_t *wire, load_wire_end_e end, void *baton)
{
    load_booker_t *b = baton;
    load_tally_t *tally = b->loop->tally;
    load_action_e action = action_of(b);
    load_outcome_e outcome = LOAD_OUTCOME_LOST;
    int64_t now = load_now();

    atomic_fetch_sub_explicit(&tally->waiting, 1, memory_order_relaxed);
    tally->ends[end]++;
    if (wire->connect_us > 0) {
        load_hdr_record(tally->connects, (uint64_t)wire->connect_us);
    }
    if (end == LOAD_WIRE_DONE) {
        outcome = outcome_of(&wire->answer);
        if (!wire->reused) {
            tally->opened++;
            tally->opened_us += now - wire->sent_us;
        }
        tally->bytes_in += wire->answer.body_len;
        tally->statuses[wire->answer.status < 600 ? wire->answer.status : 0]++;
    }
    load_tally_count(tally, action, outcome, now - b->due_us,
                     now - wire->sent_us);
    if (end == LOAD_WIRE_DONE) {
        answered(b, action, outcome);
    }
    else {
        lost(b, action, end);
    }
}
