/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOAD_TALLY_H
#define LOAD_TALLY_H

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include "hdr.h"
#include "script.h"
#include "wire.h"

/**
 * @file tally.h
 * @brief What came back: counts and latencies of one thread, and the record
 *        of everything the server said it had done.
 *
 * Each thread writes its own; the main thread reads the atomic part while it
 * runs and everything when it has ended. The record is a file of JSON lines,
 * one for each change the server owned up to, and one for each request whose
 * fate the driver does not know.
 */

/** X(CONSTANT, "name"): what came of a click. */
#define LOAD_OUTCOMES(X)                                                       \
    X(OK, "ok")           /* 2xx, 3xx */                                       \
    X(REFUSED, "refused") /* 404 409 410 422: an answer with a reason */       \
    X(BUSY, "busy")       /* 503 with Retry-After: said on purpose */          \
    X(BROKEN, "broken")   /* any other 5xx */                                  \
    X(BAD, "bad")         /* any other 4xx: our mistake */                     \
    X(LOST, "lost")       /* no answer */

typedef enum load_outcome_e {
#define LOAD_OUTCOME_ENUM(name, text) LOAD_OUTCOME_##name,
    LOAD_OUTCOMES(LOAD_OUTCOME_ENUM)
#undef LOAD_OUTCOME_ENUM
        LOAD_OUTCOME_COUNT
} load_outcome_e;

/** X(NAME): how a journey ended. */
#define LOAD_WAYS(X)                                                           \
    X(confirmed)                                                               \
    X(released)                                                                \
    X(abandoned)                                                               \
    X(browsed)                                                                 \
    X(through)    /* the steps ended without a confirm or release */           \
    X(full)       /* saw a board without a free place, holding nothing */      \
    X(gave_up)    /* refused more often than his patience lasts */             \
    X(turned_off) /* busy more often than his patience lasts */                \
    X(stopped)    /* refused for another reason, or something broke */         \
    X(cut)        /* the run was over */

typedef struct load_demand_t {
    uint64_t wanted;   /**< places asked for by those who came to buy, from
                            another slot too: there they were given up */
    uint64_t got;      /**< places of first holds and more, answered 201/200 */
    uint64_t unmet;    /**< wanted and left without: the board showed none */
    uint64_t given_up; /**< wanted and left without for another reason */
} load_demand_t;

#define LOAD_RECENT_CELLS 512

typedef struct load_tally_t {
    load_hdr_t *from_due[LOAD_ACTION_COUNT][LOAD_OUTCOME_COUNT];
    load_hdr_t *from_send[LOAD_ACTION_COUNT][LOAD_OUTCOME_COUNT];
    load_hdr_t *connects; /**< how long connecting took, new ones only */
    load_hdr_t *late;     /**< how much later than planned the driver acted */
    uint64_t statuses[600];
    uint64_t ends[LOAD_WIRE_END_COUNT];
    uint64_t journeys;
#define LOAD_WAY_COUNTER(name) uint64_t name;
    LOAD_WAYS(LOAD_WAY_COUNTER)
#undef LOAD_WAY_COUNTER
    uint64_t taken_again; /**< refused for a place taken, tried again */
    uint64_t moved;       /**< refused in one slot, went to another */
    uint64_t bytes_in;
    uint64_t opened;   /**< answers that were first on their connection */
    int64_t opened_us; /**< from send to answer, of these */
    uint64_t replayed; /**< asked again with the key after a loss */
    uint64_t unknown;  /**< changes whose fate was never learned */
    double cpu_seconds, wall_seconds;
    load_demand_t *demand; /**< per slot: of named places, of each area */
    FILE *record;

    /* for the eyes of the main thread while it runs */
    _Atomic uint64_t answers, ok_holds, confirms, refusals, busy, broken, lost;
    _Atomic int64_t connecting, waiting, inside;
    _Atomic int64_t free_seen;
    _Atomic uint32_t recent[LOAD_RECENT_CELLS];
} load_tally_t;

load_tally_t *load_tally_create(const load_script_t *script, uint32_t thread);

/** One exchange has ended. */
void load_tally_count(load_tally_t *tally, load_action_e action,
                      load_outcome_e outcome, int64_t from_due_us,
                      int64_t from_send_us);

/** Add a thread's to the sum. */
void load_tally_add(load_tally_t *sum, const load_tally_t *other,
                    const load_script_t *script);

/** One line: {"progress":{...}}; `seconds` since the last. */
void load_tally_progress(load_tally_t **tallies, uint32_t n, double at,
                         double seconds, FILE *out);

/** One line: {"result":{...}}. */
void load_tally_write(const load_tally_t *sum, const load_script_t *script,
                      FILE *out);

#endif
