/* SPDX-License-Identifier: Apache-2.0 */
#include "booker.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** The next arrival that is due, for a booker who has nothing to do. */
int load_loop_next(load_booker_t *b)
{
    load_loop_t *loop = b->loop;
    const load_script_t *s = loop->script;
    int64_t now = load_now();
    uint64_t journey;

    if (loop->ending) {
        return 0;
    }
    if (loop->due == NULL) {
        journey = loop->next_journey++ * s->threads + loop->thread;
        load_booker_begin(b, journey, now);
        return 1;
    }
    if (loop->next_due < loop->ndue &&
        loop->begin_us + loop->due[loop->next_due] <= now) {
        uint64_t i = loop->next_due++;

        load_booker_begin(b, i * s->threads + loop->thread,
                          loop->begin_us + loop->due[i]);
        return 1;
    }
    return 0;
}

void load_loop_arrival(load_loop_t *loop)
{
    int64_t left;
    struct timeval tv;

    if (loop->next_due >= loop->ndue) {
        if (loop->ninside == 0) {
            event_base_loopbreak(loop->base);
        }
        return;
    }
    left = loop->begin_us + loop->due[loop->next_due] - load_now();
    left = left < 0 ? 0 : left;
    tv.tv_sec = left / 1000000;
    tv.tv_usec = left % 1000000;
    evtimer_add(&loop->arrival, &tv);
}

static void on_arrival(evutil_socket_t fd, short what, void *baton)
{
    load_loop_t *loop = baton;
    int64_t late;

    if (loop->ending) {
        return;
    }
    if (loop->next_due < loop->ndue && loop->idle != NULL) {
        late = load_now() - loop->begin_us - loop->due[loop->next_due];
        load_hdr_record(loop->tally->late, late < 0 ? 0 : (uint64_t)late);
    }
    while (loop->idle != NULL) {
        load_booker_t *b = loop->idle;

        loop->idle = b->next_idle;
        if (!load_loop_next(b)) {
            b->next_idle = loop->idle;
            loop->idle = b;
            break;
        }
    }
    if (loop->idle != NULL) {
        load_loop_arrival(
            loop); /* nobody idle: whoever is through asks again */
    }
}

static void on_over(evutil_socket_t fd, short what, void *baton)
{
    load_loop_t *loop = baton;

    loop->ending = 1;
    for (uint32_t i = 0; i < loop->nbookers; i++) {
        load_booker_t *b = &loop->bookers[i];

        if (evtimer_pending(&b->pause, NULL)) {
            event_active(&b->pause, EV_TIMEOUT, 0);
        }
    }
    if (loop->ninside == 0) {
        event_base_loopbreak(loop->base);
    }
}

static int loop_base(load_loop_t *loop)
{
    struct event_config *config = event_config_new();

    if (config == NULL) {
        return 0;
    }
    event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK |
                                      EVENT_BASE_FLAG_PRECISE_TIMER);
    loop->base = event_base_new_with_config(config);
    event_config_free(config);
    return loop->base != NULL;
}

static int loop_peer(load_loop_t *loop)
{
    const load_script_t *s = loop->script;
    struct evutil_addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct evutil_addrinfo *found;
    char port[8];

    snprintf(port, sizeof(port), "%u", s->port);
    if (evutil_getaddrinfo(s->host, port, &hints, &found) != 0) {
        fprintf(stderr, "driver: no address for %s\n", s->host);
        return 0;
    }
    memcpy(&loop->peer.address, found->ai_addr, found->ai_addrlen);
    loop->peer.address_len = found->ai_addrlen;
    loop->peer.connect_timeout_ms = s->connect_timeout_ms;
    loop->peer.answer_timeout_ms = s->answer_timeout_ms;
    evutil_freeaddrinfo(found);
    return 1;
}

load_loop_t *load_loop_create(const load_script_t *script, load_tls_t *tls,
                              load_tally_t *tally, uint32_t thread,
                              int64_t begin_us)
{
    load_loop_t *loop = calloc(1, sizeof(*loop));

    if (loop == NULL) {
        return NULL;
    }
    loop->script = script;
    loop->peer.tls = tls;
    loop->tally = tally;
    loop->thread = thread;
    loop->begin_us = begin_us;
    loop->nonce = (uint64_t)load_now() ^ ((uint64_t)rand() << 40) ^ thread;
    if (!loop_base(loop) || !loop_peer(loop)) {
        return NULL;
    }
    loop->due = load_script_due(script, &loop->ndue, thread);
    loop->views = calloc(script->nslots, sizeof(*loop->views));
    loop->nbookers = script->bookers / script->threads +
                     (thread < script->bookers % script->threads);
    loop->bookers = calloc(loop->nbookers + 1, sizeof(*loop->bookers));
    if (loop->views == NULL || loop->bookers == NULL) {
        return NULL;
    }
    for (uint32_t i = 0; i < script->nslots; i++) {
        load_view_init(&loop->views[i], script);
    }
    for (uint32_t i = 0; i < loop->nbookers; i++) {
        load_booker_t *b = &loop->bookers[i];

        b->loop = loop;
        load_wire_init(&b->wire, loop->base, &loop->peer, load_booker_done, b);
        b->wire.connected = load_booker_connected;
        evtimer_assign(&b->pause, loop->base, load_booker_pause, b);
        b->next_idle = loop->idle;
        loop->idle = b;
    }
    evtimer_assign(&loop->arrival, loop->base, on_arrival, loop);
    evtimer_assign(&loop->over, loop->base, on_over, loop);
    return loop;
}

void load_loop_run(load_loop_t *loop)
{
    const load_script_t *s = loop->script;
    struct timeval tv;

    if (s->seconds > 0) {
        /* an open plan's last arrivals still get their answers */
        double most = s->plan == LOAD_PLAN_OPEN ? s->seconds + 30 : s->seconds;

        tv.tv_sec = (time_t)most;
        tv.tv_usec = (suseconds_t)((most - (double)tv.tv_sec) * 1e6);
        evtimer_add(&loop->over, &tv);
    }
    if (loop->due == NULL) {
        while (loop->idle != NULL) {
            load_booker_t *b = loop->idle;

            loop->idle = b->next_idle;
            load_loop_next(b);
        }
    }
    else {
        load_loop_arrival(loop);
    }
    event_base_dispatch(loop->base);
    for (uint32_t i = 0; i < loop->nbookers; i++) {
        load_wire_destroy(&loop->bookers[i].wire);
    }
}
