/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YOYAKU_POOL_H
#define YOYAKU_POOL_H

#include <apr_pools.h>

/**
 * @file pool.h
 * @brief A pool for what is large and short-lived.
 *
 * A pool gives its blocks back to its allocator, and httpd's keep two megabytes
 * for the next request. What depends on a hall's size goes into a pool apart,
 * so that nothing of it stays with the worker.
 */

/**
 * A child of `parent` with an allocator of its own; it ends with its parent at
 * the latest.
 * @return APR_SUCCESS or APR_ENOMEM
 */
apr_status_t yk_pool_apart(apr_pool_t **p, apr_pool_t *parent);

/** Destroy it, and give back to the system what lies free, also where libraries
 *  used malloc meanwhile: the C library keeps as much as it once had mapped. */
void yk_pool_apart_end(apr_pool_t *p);

#endif
