/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YK_STORE_LOCK_H
#define YK_STORE_LOCK_H

#include "packet.h"

/**
 * @file lock.h
 * @brief The locking statements, for lock.c and whoever locks the same rows.
 */

/** Rows of one list; longer lists are several statements, in key order. */
#define YK_LIST_ROWS 256

/** Add what locks a ledger's anchors, places and orders. Fills the rows found
 *  unless `blind`. */
void yk_lock_rows(yk_packet_t *packet, yk_ledger_t *ledger, int blind);

#endif
