/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YK_STORE_SCHEMA_H
#define YK_STORE_SCHEMA_H

#include "packet.h"

/**
 * @file schema.h
 * @brief Which tables there must be. A test compares this with the files of
 *        mod_yoyaku/schema.
 */

/** The number of the last schema file. */
#define YK_SCHEMA_VERSION 6

/** X(table without its prefix) */
#define YK_TABLES(X)                                                           \
    X(schema_version)                                                          \
    X(tenant)                                                                  \
    X(hall)                                                                    \
    X(section)                                                                 \
    X(grade)                                                                   \
    X(place)                                                                   \
    X(resource)                                                                \
    X(slot)                                                                    \
    X(area)                                                                    \
    X(price)                                                                   \
    X(limit)                                                                   \
    X(lock_anchor)                                                             \
    X(slot_place)                                                              \
    X(order)                                                                   \
    X(booking)                                                                 \
    X(journal)                                                                 \
    X(idempotency)

/** All there, all InnoDB, the schema as young as this library?
 *  @return APR_SUCCESS, or APR_ENOTIMPL (see why) */
apr_status_t yk_schema_check(yk_store_t *store, const char **why,
                             apr_pool_t *p);

#endif
