/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YK_LANE_WIRE_H
#define YK_LANE_WIRE_H

#include "ask.h"

/**
 * @file lane_wire.h
 * @brief What is asked and what was answered as bytes, for another process of
 *        the same build on the same machine.
 *
 * One description a struct both writes and reads, so that the two cannot
 * drift. Reading trusts no length: the bytes stand in memory that a process
 * may have left half written.
 */

/** A wish of a lane: what is asked, on whose terms, with which secrets. */
typedef struct yk_lane_wish_t {
    yk_ask_t ask;
    yk_terms_t terms;
    const char *token; /**< of an order begun; NULL else */
    unsigned char salt[16];
    uint64_t change_id; /**< stands in the journal when it was done */
} yk_lane_wish_t;

/** @return bytes written, or 0: they do not fit */
apr_size_t yk_lane_wish_write(unsigned char *bytes, apr_size_t space,
                              const yk_lane_wish_t *wish);
/** @return APR_SUCCESS, APR_EINVAL: not a wish */
apr_status_t yk_lane_wish_read(yk_lane_wish_t *wish, const unsigned char *bytes,
                               apr_size_t len, apr_pool_t *p);

/** The reply's token is not carried: its owner has it.
 *  @return bytes written, or 0: they do not fit */
apr_size_t yk_lane_reply_write(unsigned char *bytes, apr_size_t space,
                               const yk_reply_t *reply);
apr_status_t yk_lane_reply_read(yk_reply_t *reply, int *has_token,
                                const unsigned char *bytes, apr_size_t len,
                                apr_pool_t *p);

#endif
