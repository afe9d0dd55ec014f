/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOAD_ARM_H
#define LOAD_ARM_H

#include <httpd.h>
#include <http_config.h>
#include <http_protocol.h>
#include <apr_atomic.h>
#include <apr_shm.h>
#include <apr_strings.h>
#include <string.h>

/**
 * @file arm.h
 * @brief What every arm that is an httpd module has: a count of what it has
 *        answered, over all workers, by which it proves itself.
 *
 * Included by one source a module.
 */

static apr_shm_t *arm_shm;

static apr_uint32_t *arm_counter(void)
{
    return apr_shm_baseaddr_get(arm_shm);
}

static int arm_reply(request_rec *r, const char *type, const char *bytes,
                     apr_size_t len)
{
    ap_set_content_type(r, type);
    ap_set_content_length(r, (apr_off_t)len);
    ap_rwrite(bytes, (int)len, r);
    return OK;
}

static int arm_reply_count(request_rec *r, const char *type)
{
    const char *text =
        apr_psprintf(r->pool, "%u\n", apr_atomic_read32(arm_counter()));

    return arm_reply(r, type, text, strlen(text));
}

/* For post_config. */
static int arm_begin(apr_pool_t *p, apr_pool_t *plog, apr_pool_t *ptemp,
                     server_rec *s)
{
    return apr_shm_create(&arm_shm, sizeof(apr_uint32_t), NULL, p) ==
                   APR_SUCCESS
               ? OK
               : HTTP_INTERNAL_SERVER_ERROR;
}

#endif
