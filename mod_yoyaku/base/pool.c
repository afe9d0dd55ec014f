/* SPDX-License-Identifier: Apache-2.0 */
#include "yoyaku/pool.h"
#include <apr_allocator.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

apr_status_t yk_pool_apart(apr_pool_t **p, apr_pool_t *parent)
{
    apr_allocator_t *allocator;
    apr_status_t rv = apr_allocator_create(&allocator);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    rv = apr_pool_create_ex(p, parent, NULL, allocator);
    if (rv != APR_SUCCESS) {
        apr_allocator_destroy(allocator);
        return rv;
    }
    apr_allocator_owner_set(allocator, *p);
    return APR_SUCCESS;
}

void *yk_pool_room(apr_pool_t *p, apr_size_t bytes)
{
    apr_pool_t *apart;

    if (bytes <= YK_POOL_LARGE || yk_pool_apart(&apart, p) != APR_SUCCESS) {
        return apr_palloc(p, bytes);
    }
    return apr_palloc(apart, bytes);
}

void yk_pool_apart_end(apr_pool_t *p)
{
    apr_pool_destroy(p);
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}
