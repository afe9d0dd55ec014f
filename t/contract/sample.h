/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YK_CONTRACT_SAMPLE_H
#define YK_CONTRACT_SAMPLE_H

#include "contract.h"

/**
 * @file sample.h
 * @brief A transaction that has everything: anchors of all kinds, places,
 *        seats, an order changed, an order begun, a booker, a key.
 *
 * The house has two sections of ten, the first placed, the second assigned,
 * and a pool. Order 500 holds place 0; order 600 takes 1 to 3, seat 12 and two
 * in the pool, and order 500 gets a reference.
 */
#define SAMPLE_OLD 500
#define SAMPLE_NEW 600
#define SAMPLE_CHANGE 4711

typedef struct sample_t {
    yk_store_t *store;
    MYSQL *own; /**< the store's line */
    int opened; /**< how many lines it has had */
    uint64_t slot_id;
    yk_ledger_t *l;
} sample_t;

/** A book with the house, one order, and a store whose line we see. */
sample_t *sample_make(void);
/** A ledger that wants it all. */
void sample_want(sample_t *s);
/** What the desk would do with it. */
void sample_decide(sample_t *s);
/** Every row of the book, as one number. */
const char *sample_state(MYSQL *line);
/** Is the store's line in a transaction? */
int sample_is_open(const sample_t *s);

#endif
