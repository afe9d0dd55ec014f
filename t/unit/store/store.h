/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YK_UNIT_STORE_H
#define YK_UNIT_STORE_H

#include <apr_pools.h>
#include <check.h>

/** A pool of its own for every test. */
extern apr_pool_t *pool;

TCase *store_case(const char *name);
TCase *sql_case(void);
TCase *line_case(void);
TCase *schema_case(void);

#endif
