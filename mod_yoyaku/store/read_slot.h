/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YK_STORE_READ_SLOT_H
#define YK_STORE_READ_SLOT_H

#include "packet.h"

/**
 * @file read_slot.h
 * @brief A slot's own columns, of `yoyaku_slot s` joined to `yoyaku_tenant t`.
 */

#define YK_SLOT_COLUMNS 14
extern const char yk_slot_select[];
yk_slot_t *yk_slot_read(char **row, const unsigned long *lengths,
                        apr_pool_t *p);

#endif
