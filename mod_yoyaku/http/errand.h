/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YK_HTTP_ERRAND_H
#define YK_HTTP_ERRAND_H

#include <apr_time.h>
#include <stdatomic.h>

/**
 * @file errand.h
 * @brief Something that may hang, done by a thread that can be left alone with
 *        it.
 *
 * To connect to a database that hangs (stopped, its disk away, a host that
 * swallows packets) waits for ever: apr_dbd_mysql knows no time-out before
 * apr-util 1.7, and the client library asks for none by itself. So nobody who
 * serves a request connects: an errand does, and who sent it goes on without
 * it when its time is over.
 *
 * Lives in one process; any thread may send one. Costs a thread's start.
 */

/** What is to be done; `baton` is the errand's own copy. NULL: it failed. */
typedef void *yk_http_errand_fn(void *baton);
/** It was done at last, and nobody waits for the result any more. */
typedef void yk_http_errand_undo_fn(void *baton, void *result);

#define YK_HTTP_ERRAND_BYTES 64

/**
 * @param baton copied; at most YK_HTTP_ERRAND_BYTES
 * @param undo  called in the errand's thread with a result that came too late
 * @param late  how many are still out although nobody waits for them; must
 *              outlive them all
 * @return the result; NULL when it failed or took longer than `patience`
 */
void *yk_http_errand_run(yk_http_errand_fn *run, yk_http_errand_undo_fn *undo,
                         const void *baton, apr_size_t bytes,
                         apr_interval_time_t patience, _Atomic unsigned *late);

#endif
