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
 * so that nothing of it stays with the worker. What libraries took with malloc
 * meanwhile stays with the C library, which has to be asked for it.
 */

/** What is larger is large: less is cheaper kept than given back. */
#define YK_POOL_LARGE (32 * 1024)

/**
 * A child of `parent` with an allocator of its own; it ends with its parent at
 * the latest.
 * @return APR_SUCCESS or APR_ENOMEM
 */
apr_status_t yk_pool_apart(apr_pool_t **p, apr_pool_t *parent);

/** Destroy it, and give back to the system what lies free, also where libraries
 *  used malloc meanwhile: the C library keeps as much as it once had mapped.
 *  This looks through all of the process's free memory, so it is for large
 *  work; else apr_pool_destroy() will do. */
void yk_pool_apart_end(apr_pool_t *p);

/** Room for bytes that live as long as p: large ones in a pool apart.
 *  @return never NULL, where p's memory does not end */
void *yk_pool_room(apr_pool_t *p, apr_size_t bytes);

#endif
