/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YK_STORE_JOURNAL_H
#define YK_STORE_JOURNAL_H

#include "packet.h"

/**
 * @file journal.h
 * @brief What a transaction changed, and how it is written down.
 *
 * One row for each slot of each order written, also when nothing but the order
 * changed. Places changed by nobody's order (an operator) have rows of order
 * number 0.
 */
typedef struct yk_change_t {
    yk_ledger_t *ledger;
    uint32_t nplaces, norders;
    yk_place_t **places;     /**< changed, ascending */
    uint64_t *versions;      /**< what they are written with */
    yk_order_row_t **orders; /**< changed, ascending */
} yk_change_t;

void yk_journal_write(yk_packet_t *packet, const yk_change_t *change);

#endif
