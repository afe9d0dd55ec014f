/* SPDX-License-Identifier: Apache-2.0 */
#include "booker.h"
#include <stdio.h>
#include <stdlib.h>

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

    if (load_action_changes(action) && !load_record_change(b, action, answer)) {
        load_booker_end(b, &tally->stopped);
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
    if (load_action_takes(action)) {
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
        load_booker_end(b, action == LOAD_ACTION_CONFIRM ? &tally->confirmed
                                                         : &tally->released);
        return;
    }
    if (action == LOAD_ACTION_MORE) {
        b->more_left--;
    }
    if (action != LOAD_ACTION_MORE || b->more_left == 0) {
        b->step++;
    }
    load_booker_go_on(b, 0);
}

static void refused(load_booker_t *b, load_action_e action,
                    const load_answer_t *answer)
{
    load_tally_t *tally = b->loop->tally;
    int gone =
        load_action_takes(action) && (load_record_reason(answer, "taken") ||
                                      load_record_reason(answer, "sold_out"));

    if (b->area >= 0 && b->together &&
        load_record_reason(answer, "not_together")) {
        b->together = 0; /* better apart than not at all */
        gone = 1;
    }
    if (!gone) {
        load_booker_end(b, &tally->stopped);
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
        load_booker_go_on(b, 0);
        return;
    }
    if (load_script_has_step(b->loop->script, LOAD_ACTION_BOARD)) {
        /* until the next board says otherwise */
        for (uint32_t i = 0; i < b->nasked; i++) {
            load_view_set(&b->loop->views[b->slot], b->asked[i], '1');
        }
    }
    if (action == LOAD_ACTION_HOLD) {
        if (load_booker_elsewhere(b, &load_booker_demand(b)->given_up)) {
            load_booker_go_on(b, 0);
            return;
        }
        load_booker_look_again(b);
    }
    load_booker_again(b, 0, &tally->gave_up);
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

    if (load_action_changes(action) && sent) {
        b->doubt = 1;
        if (!b->loop->script->keys) {
            load_booker_end(b, &tally->stopped);
            return;
        }
        tally->replayed++;
    }
    b->again = 1;
    load_booker_again(
        b, end == LOAD_WIRE_STALE ? 0 : 1 + load_random_below(&b->random, 200),
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
        if (load_action_changes(action) &&
            load_record_reason(answer, "unresolved")) {
            b->doubt = 1;
        }
        b->again = 1;
        load_booker_again(b, retry_after_ms(b, answer), &tally->turned_off);
        break;
    default:
        load_booker_end(b, &tally->stopped);
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
    load_action_e action = load_booker_action(b);
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
