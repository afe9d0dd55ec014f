/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INTERLEAVE_INJECT_H
#define INTERLEAVE_INJECT_H

#include "stage.h"

/**
 * @file inject.h
 * @brief Every operation with an error in every statement of every packet,
 *        and with the line cut at every packet.
 *
 * Once: the operation is done as if nothing had happened, exactly once. Again
 * and again: it says busy, and the book is byte for byte what it was. Never is
 * a line given back inside a transaction.
 *
 * An error is put in place of a statement: at once (SIGNAL), for 1213 and 1020
 * after a ROLLBACK, as the server does; and for a SELECT also while its rows
 * are being sent, which a client sees later.
 */

int inject_operations(void);
const char *inject_name(int i);
/** @return NULL or what went wrong; *tries how many were made */
const char *inject_errors(world_t *world, int i, int *tries, apr_pool_t *p);
const char *inject_losses(world_t *world, int i, int *tries, apr_pool_t *p);

#endif
