/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOAD_SCRIPT_H
#define LOAD_SCRIPT_H

#include <stdint.h>
#include <stdio.h>

/**
 * @file script.h
 * @brief What the driver is told: where to go, what a click looks like there
 *        (from the arm), what a crowd does (from the mix), how many and when.
 *
 * A text of lines "key value"; `#` begins a comment. Later lines win, so the
 * rig writes arm, mix and options one after the other. Everything random is
 * drawn from `seed` and the number of the journey, so a run can be repeated
 * whatever thread does it.
 *
 *   url http[s]://127.0.0.1:8080     slot demo            places FILE
 *   cookies FILE
 *   action hold POST /yoyaku/slots/{slot}/holds {"places":[{places}]}
 *   action hold-area POST .. {"area":"{area}","quantity":{quantity}}
 *   area Floor pooled:500 30         area "Upper Circle" assigned 20
 *   steps slot plan board hold more exchange checkout confirm
 */

/** X(CONSTANT, "name"): the clicks there are. */
#define LOAD_ACTIONS(X)                                                        \
    X(SLOT, "slot")                                                            \
    X(PLAN, "plan")                                                            \
    X(BOARD, "board")                                                          \
    X(HOLD, "hold")                                                            \
    X(MORE, "more")                                                            \
    X(EXCHANGE, "exchange")                                                    \
    X(CHECKOUT, "checkout")                                                    \
    X(CONFIRM, "confirm")                                                      \
    X(RELEASE, "release")                                                      \
    X(POST, "post")

typedef enum load_action_e {
#define LOAD_ACTION_ENUM(name, text) LOAD_ACTION_##name,
    LOAD_ACTIONS(LOAD_ACTION_ENUM)
#undef LOAD_ACTION_ENUM
        LOAD_ACTION_COUNT
} load_action_e;

const char *load_action_name(load_action_e action);

typedef struct load_click_t {
    char *method; /**< NULL: the arm has no such click, it is passed over */
    char *path;   /**< with {slot} {folder} {line} */
    char *body;   /**< with {slot} {places} {place} {line} {area} {quantity}
                       {together}; NULL: none */
} load_click_t;

/** Where a part of the bookers asks for a count and names no place. */
typedef struct load_area_t {
    char *name;
    int pooled; /**< 0: assigned, the house seats the party */
    uint32_t percent;
} load_area_t;

#define LOAD_AREAS_MAX 8

typedef enum load_plan_e {
    LOAD_PLAN_CROWD, /**< each booker comes once, spread over stagger_ms */
    LOAD_PLAN_OPEN,  /**< journeys begin at `rate` a second, come what may */
    LOAD_PLAN_CLOSED /**< each booker begins anew as soon as he is through */
} load_plan_e;

typedef enum load_spread_e {
    LOAD_SPREAD_EVEN, /**< any slot, any place */
    LOAD_SPREAD_BEST, /**< any slot, the best places first */
    LOAD_SPREAD_SKEW  /**< skew percent want the first slot, any place */
} load_spread_e;

typedef enum load_keep_e {
    LOAD_KEEP_OFF,     /**< a connection a click */
    LOAD_KEEP_JOURNEY, /**< a connection a journey, as a visitor brings it */
    LOAD_KEEP_ON       /**< one for all of a closed booker's journeys */
} load_keep_e;

#define LOAD_SLOTS_MAX 4096
#define LOAD_STEPS_MAX 16

typedef struct load_script_t {
    char *host;
    uint16_t port;
    int tls, insecure; /**< https; any certificate will do */
    char *type;        /**< Content-Type of bodies */
    load_click_t clicks[LOAD_ACTION_COUNT];
    load_click_t in_area[LOAD_ACTION_COUNT]; /**< "hold-area": of a count */

    uint32_t nslots;
    char **slots;
    uint32_t nplaces;
    char **places; /**< guids in plan order, the same for all slots */
    uint32_t ncookies;
    char **cookies; /**< what visitors bring, one each in turn; NULL: none */
    uint32_t nareas;
    load_area_t areas[LOAD_AREAS_MAX];
    uint32_t together; /**< percent of the parties that will not be parted */

    uint32_t nsteps;
    load_action_e steps[LOAD_STEPS_MAX];
    uint32_t browse, abandon, exchange; /**< percent */
    uint32_t more_min, more_max, party_min, party_max;
    uint32_t tries;     /**< how often a refused or busy one tries again */
    uint32_t elsewhere; /**< percent of refusals of a first hold after which he
                             goes to another slot that has room */
    uint32_t think_ms, retry_cap_ms;
    load_keep_e keep;
    int keys, conditional, blind;

    load_plan_e plan;
    load_spread_e spread;
    uint32_t skew;
    uint32_t bookers, threads;
    double rate, seconds;
    uint32_t stagger_ms;
    uint64_t seed;
    uint32_t connect_timeout_ms, answer_timeout_ms;
    char *record;    /**< file for every change; NULL: none */
    char *header;    /**< one more line of every request's head */
    char *cpus;      /**< "0,1": one a thread; NULL: anywhere */
    int progress_ms; /**< 0: silent */
} load_script_t;

/** Read a script. On a mistake one sentence goes to stderr.
 *  @return the script or NULL */
load_script_t *load_script_read(FILE *in);
void load_script_drop(load_script_t *script);

/** The same words for the same seed: splitmix64. */
uint64_t load_random(uint64_t *state);
/** 0 .. below-1 */
uint32_t load_random_below(uint64_t *state, uint32_t below);
/** An exponential pause with this mean. */
uint32_t load_random_pause(uint64_t *state, uint32_t mean);

/**
 * When the journeys of one thread begin, microseconds from the start,
 * ascending, all known before the first is sent. NULL for a closed plan.
 * @param n set to how many
 */
int64_t *load_script_due(const load_script_t *script, uint64_t *n,
                         uint32_t thread);

/** @return 1 when the action takes places */
int load_action_takes(load_action_e action);
/** @return 1 when the action changes something on the server */
int load_action_changes(load_action_e action);
/** @return 1 when the mix has this step and the arm knows the click */
int load_script_has_step(const load_script_t *script, load_action_e action);

#endif
