/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YK_CONTRACT_H
#define YK_CONTRACT_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include "server.h"

/** X(file): each gives a `TCase *FILE_case(void)`. */
#define CONTRACTS(X)                                                           \
    X(book)                                                                    \
    X(setup)                                                                   \
    X(rules)                                                                   \
    X(lane)                                                                    \
    X(stopped)                                                                 \
    X(orders)                                                                  \
    X(ledger)                                                                  \
    X(faults)                                                                  \
    X(reads)

#define CONTRACT_CASE(name) TCase *name##_case(void);
CONTRACTS(CONTRACT_CASE)
#undef CONTRACT_CASE

/** A pool of its own for every test, destroyed after it. */
extern apr_pool_t *pool;
void pool_make(void);
void pool_end(void);

#define ck_ok(call) ck_assert_int_eq(call, APR_SUCCESS)

/** A database "contract" with schema, made anew, and a store on it. */
yk_store_t *book_make(void);
yk_store_t *book_open(void);
/** A plain line to it, closed after the test. */
MYSQL *book_line(void);

/** A generated hall under a name. @return its number */
uint64_t book_hall(yk_store_t *store, const char *name, uint32_t sections,
                   uint32_t places);

/** A slot of a hall, every section sold as `mode`, or a pool of 100 named
 *  "Pool" when hall is NULL; opened. @return its number */
uint64_t book_slot(yk_store_t *store, const char *key, const char *hall,
                   yk_mode_e mode);

#endif
