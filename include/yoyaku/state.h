/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YOYAKU_STATE_H
#define YOYAKU_STATE_H

#include <apr_pools.h>
#include <apr_time.h>
#include <stdint.h>

/**
 * @file state.h
 * @brief Memory that all workers share and that outlives them: one file a
 *        kind in the state directory.
 *
 *   <state directory>/            root's, nobody else may write
 *     throttle-1.state            kind "throttle", layout 1; 0600
 *     workers-1.state
 *
 *   0        64        128                                    size
 *   | magic, layout, size, epoch | what the kind keeps ...       |
 *
 * What it keeps. Fixed-width integers and offsets, no pointers. Magic, layout
 * and size stand first. Every kind is of one size, known when it is compiled,
 * and the file is sparse: what is not touched costs nothing.
 *
 * What it promises. The server's parent creates or finds the file and maps it
 * before it forks; children inherit the mapping and nothing else. The next
 * generation, and the next start, find the same file again, so counts go on.
 * A file of another layout is left alone: the new layout makes a file of its
 * own, and its kind may read the old one (yk_state_before()). After the
 * machine was started anew nobody can hold a lock any more: yk_state_create()
 * calls the kind's renew().
 *
 * What the parent trusts: sizes it has compiled in and the owner and mode of
 * the file; no index, count or offset that a child could have written.
 *
 * Where it lives. A yk_state_t belongs to a pool (the mapping ends with it);
 * the memory is shared by all processes that mapped it.
 */

#define YK_STATE_MAGIC "YOYAKUS1"

typedef struct yk_state_head_t {
    char magic[8];
    uint32_t layout;      /**< of this kind */
    uint32_t mutex_bytes; /**< sizeof(pthread_mutex_t) where it was made */
    uint64_t size;
    uint64_t epoch; /**< random, for each file another */
    char kind[16];
    uint64_t boot;       /**< which start of the machine */
    uint64_t parent;     /**< yk_worker_identity() of the server's parent */
    uint64_t generation; /**< grows with every configuration in force */
    uint64_t made_us;    /**< wall clock */
    uint64_t spare[6];
} yk_state_head_t;

_Static_assert(sizeof(yk_state_head_t) == 128, "every file begins so");

/** One kind of state. The memory begins with a yk_state_head_t. */
typedef struct yk_state_kind_t {
    const char *name; /**< [a-z]{1,15} */
    uint32_t layout;
    apr_size_t size;
    /** Fill memory that is all zero after its head. */
    void (*fresh)(void *memory);
    /** Make the locks anew: the machine was started since. */
    void (*renew)(void *memory);
} yk_state_kind_t;

typedef struct yk_state_t yk_state_t;

/**
 * Make the state directory when it is missing, and look whether it is fit.
 * @param problem one sentence when it is not
 * @return APR_SUCCESS, APR_EACCES: owned or writable by somebody else
 */
apr_status_t yk_state_folder(const char **problem, const char *folder,
                             apr_pool_t *p);

/**
 * Find or make the file of a kind and map it. The parent's call.
 * @param generation of the configuration coming into force; see
 *                   yk_state_generation()
 * @return APR_SUCCESS
 *         APR_EACCES  the file is not ours alone
 *         APR_EBUSY   the parent of another server is alive and uses it
 *         others      the system's reason
 */
apr_status_t yk_state_create(yk_state_t **state, const yk_state_kind_t *kind,
                             const char *folder, apr_pool_t *p);

/**
 * Map a file that a server has made. The tool's call.
 * @param write 0: may only be read
 * @return APR_SUCCESS, APR_ENOENT, APR_EMISMATCH: another layout's file is
 *         there, APR_EACCES
 */
apr_status_t yk_state_attach(yk_state_t **state, const yk_state_kind_t *kind,
                             const char *folder, int write, apr_pool_t *p);

void *yk_state_memory(const yk_state_t *state);

/** 1: there before this call; 0: made by it. */
int yk_state_was_found(const yk_state_t *state);

/**
 * The newest file of the kind in another layout, mapped for writing.
 * @param size its size: nothing beyond it may be touched
 * @return APR_SUCCESS or APR_ENOENT
 */
apr_status_t yk_state_before(yk_state_t **state, apr_size_t *size,
                             const yk_state_kind_t *kind, const char *folder,
                             apr_pool_t *p);

/** Remove the file from the directory; who has it mapped keeps it. */
apr_status_t yk_state_unlink(const yk_state_t *state);

/** Microseconds of the machine's steady clock: the same in all processes,
 *  unmoved by whoever sets the time. Not to be kept over a start of it. */
apr_time_t yk_state_now(void);

#endif
