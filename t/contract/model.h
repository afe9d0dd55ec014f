/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YK_CONTRACT_MODEL_H
#define YK_CONTRACT_MODEL_H

#include <apr_time.h>
#include <stdint.h>

/**
 * @file model.h
 * @brief The desk as one clerk who serves one after the other.
 *
 * Several workers wrote down what they asked and what they were told, each one
 * thing after the other. The model looks for an order of all of it, true to
 * the clock (what had ended before something began stands before it), in which
 * a single clerk would have told everybody just that and would have left just
 * this book. What a worker asked for and died over may stand anywhere after
 * its beginning, or nowhere.
 */

#define MODEL_WORKERS 4
#define MODEL_DEEDS 8
#define MODEL_PLACES 10

typedef enum model_what_e {
    MODEL_HOLD,    /**< begin an order with these places, or be refused */
    MODEL_ADD,     /**< more places for an order of one's own, or be refused */
    MODEL_RELEASE, /**< of an order of one's own, which is held */
    MODEL_CONFIRM
} model_what_e;

typedef struct model_deed_t {
    model_what_e what;
    uint32_t places;     /**< one bit each */
    uint32_t order;      /**< the deed that began the order it is about */
    int taken;           /**< told: all places are his; 0: refused */
    uint64_t order_id;   /**< told, by a hold; 0: never */
    apr_time_t from, to; /**< to 0: never answered */
} model_deed_t;

typedef struct model_history_t {
    uint32_t n;
    model_deed_t deeds[MODEL_DEEDS];
} model_history_t;

/** What the book has in the end. */
typedef struct model_book_t {
    uint64_t order_id[MODEL_PLACES]; /**< 0: free */
    int is_booked[MODEL_PLACES];
} model_book_t;

/** @return 1: there is such an order */
int model_explains(const model_history_t histories[MODEL_WORKERS],
                   const model_book_t *book);

#endif
