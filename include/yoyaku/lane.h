/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YOYAKU_LANE_H
#define YOYAKU_LANE_H

#include <apr_pools.h>
#include "desk.h"
#include "lock.h"
#include "state.h"
#include "worker.h"

/**
 * @file lane.h
 * @brief Where wishes for one slot on one host wait for each other and are
 *        committed together.
 *
 * Every commit waits for a disk. So a worker writes its wish into a record of
 * its own in shared memory, stands in the lane's queue and sleeps; whoever is
 * at the head, the leader, takes what stands there to the database in one
 * transaction, in order of arrival, and puts each answer into its record:
 *
 *   lane         queue (record numbers)        records
 *   +------+     +---+   +---+   +---+         +--------------------+
 *   | lock | --> | 7 |-->| 2 |-->| 9 |         | word  owner  ask   |
 *   | head |     +---+   +---+   +---+         |       leader reply |
 *   | lead |                                   +--------------------+
 *   +------+
 *
 * A leader leads for one batch, which has its own wish in it: its client pays
 * for nobody else. Once all is decided it hands on, and the next batch locks
 * and decides while this one is written and committed: the rows' locks keep
 * the two apart, as they keep two hosts apart. When fewer wait than half a
 * batch (rounded down: a lone one hands on at once) it hands on after the
 * COMMIT, or when that is lost: many small batches cost more than the little
 * time they gain. Nobody waits for company: a lone wish is a batch of
 * one.
 *
 * A record's word says where its wish is, and is what its owner sleeps on:
 *
 *   FREE -> WRITING -> WAITING -> TAKEN -> ANSWERING -> ANSWERED | ALONE
 *                        |  \-> LEAD (the owner leads now)
 *                        \-> GONE (the owner's time was over before anybody
 *                                  took it; who meets it in the queue frees it)
 *                               TAKEN -> WRITING (its leader died, or the
 *                                        owner's time is over)
 *                           ANSWERING -> WRITING (its leader died)
 *                           ANSWERING -> LEFT (the owner's time is over; the
 *                                        leader frees the record)
 *
 * The upper 24 bits are the wish's ticket, so that a leader which was stopped
 * for long cannot answer a later wish of the same record; nor carries it out:
 * it compares the word once more when it has read the wish.
 *
 * Who has led for long without an end, stopped or stuck, leads no more: the
 * next takes over, and what the first does later is one more transaction.
 *
 * Nobody waits past his time, whoever else is stopped where: an owner gives up
 * by its word alone, which needs no lock. Before it was taken nothing has been
 * written for it (APR_TIMEUP); afterwards only the leader knows
 * (APR_INCOMPLETE).
 *
 * When a leader dies, its batch's owners find out by themselves: the fate of
 * their wishes is unknown, so each does its own alone, with the same locks as
 * the lost transaction and a look for its change_id in the journal behind
 * them. When the owner of the lock dies, the queue is linked anew from the
 * records. No wish is answered twice, and none is lost.
 *
 * Who is alive is known by process: identities of worker.h. In an MPM with
 * threads each request takes a record of its own.
 *
 * Where it lives: state file "lanes", made by the parent, inherited.
 */

#define YK_LANES_LAYOUT 2
#define YK_LANES 128 /**< most lanes of a host */
#define YK_LANE_RECORDS 1024
#define YK_LANE_ASK_BYTES 6000
#define YK_LANE_REPLY_BYTES 10000
#define YK_LANE_BATCH 64  /**< wishes of one batch, at most */
#define YK_LANE_LINES 256 /**< most of YoyakuConnections */
#define YK_LANE_PERMITS (YK_LANE_LINES + YK_LANES)
#define YK_LANE_HINTS 65536
#define YK_LANE_NONE UINT32_MAX
#define YK_LANE_BUCKETS 16

typedef enum yk_lane_word_e {
    YK_LANE_FREE,
    YK_LANE_WRITING,
    YK_LANE_WAITING,
    YK_LANE_LEAD,
    YK_LANE_TAKEN,
    YK_LANE_ANSWERING,
    YK_LANE_ANSWERED,
    YK_LANE_ALONE,
    YK_LANE_UNRESOLVED,
    YK_LANE_LEFT,
    YK_LANE_GONE
} yk_lane_word_e;

typedef struct yk_lane_record_t {
    _Atomic uint32_t word;   /**< ticket << 8 | yk_lane_word_e */
    uint32_t next;           /**< in the queue; under the lane's lock */
    _Atomic uint64_t owner;  /**< identity; 0: free */
    _Atomic uint32_t worker; /**< the owner's row */
    uint32_t lane;           /**< under the lane's lock, as all that follow */
    uint32_t ask_bytes;
    uint32_t reply_bytes;
    uint32_t urgent;   /**< 1: a confirm */
    uint32_t has_line; /**< 1: its process keeps a connection */
    uint64_t arrival;  /**< orders the queue when it is linked anew */
    uint64_t realm;    /**< whose database; only one's own is taken */
    uint32_t was_next; /**< 1: put off once already */
    uint32_t spare1;
    _Atomic uint64_t leader;   /**< who has it in its batch */
    _Atomic uint64_t order_id; /**< about to be begun for it */
    unsigned char ask[YK_LANE_ASK_BYTES];
    unsigned char reply[YK_LANE_REPLY_BYTES];
    unsigned char spare[48];
} yk_lane_record_t;

_Static_assert(sizeof(yk_lane_record_t) % 64 == 0, "whole cache lines");

/** Counters: atomic, only ever added to. */
typedef struct yk_lane_counts_t {
    _Atomic uint64_t wishes, batches, leaders, handed_on, alone, rescued,
        given_up, unresolved, direct, lane_us, store_us;
    _Atomic uint64_t sizes[YK_LANE_BUCKETS]; /**< batches of 2^i .. 2^(i+1)-1 */
    uint64_t spare[5];
} yk_lane_counts_t;

typedef struct yk_lane_queue_t {
    yk_lock_t lock;
    uint32_t head, tail; /**< record numbers or YK_LANE_NONE */
    uint32_t length;
    uint32_t leads;        /**< the leader's record */
    uint64_t leader;       /**< identity; 0: nobody leads */
    uint64_t led_since_us; /**< steady clock */
    uint64_t arrivals;
    uint64_t spare[3];
} yk_lane_queue_t;

_Static_assert(sizeof(yk_lane_queue_t) % 64 == 0, "whole cache lines");

typedef struct yk_lanes_t {
    yk_state_head_t head;
    yk_lane_counts_t counts;
    _Atomic uint64_t line_owner[YK_LANE_PERMITS]; /**< who keeps a connection */
    _Atomic uint32_t line_worker[YK_LANE_PERMITS];
    _Atomic uint64_t hint[YK_LANE_HINTS]; /**< lane_hint.c */
    yk_lane_queue_t lane[YK_LANES];
    yk_lane_record_t record[YK_LANE_RECORDS];
} yk_lanes_t;

extern const yk_state_kind_t yk_lanes_kind;

/**
 * What a process brings along. Slots are hashed onto `width` lanes. Many keep
 * slots apart: who waits for a row that somebody else has locked keeps his
 * lane. Few make large batches: on two CPUs sixteen busy slots in two lanes
 * were served two and a half times as fast as in one each. Databases (realms)
 * have lanes of their own as far as 128 reach. Processes of different widths
 * may run side by side: a batch may hold any deed.
 */
typedef struct yk_lane_host_t {
    yk_lanes_t *lanes;
    yk_workers_t *workers;
    uint32_t worker; /**< this process's row */
    uint64_t identity;
    uint64_t realm;       /**< names the database: a hash, say */
    uint32_t width;       /**< lanes in use, 1..YK_LANES */
    uint32_t connections; /**< YoyakuConnections */
    int has_line;         /**< this process has one open */
} yk_lane_host_t;

/**
 * Let a desk's holds, and everything on orders that touch one slot, go through
 * the lanes. NULL: not.
 */
void yk_desk_lane(yk_desk_t *desk, const yk_lane_host_t *host);

#define YK_LANE_NO_PERMIT (-1)

/**
 * A permit to keep one connection open between requests; a host gives out at
 * most host->connections of them, one more for each lane that was led within
 * the last second, and those of the dead again. Whoever gets none closes its
 * line when its term is over.
 * @return the permit, or YK_LANE_NO_PERMIT
 */
int yk_lane_permit_take(const yk_lane_host_t *host);
/** 0: the lanes it was given out for are quiet again; close the line. */
int yk_lane_permit_holds(const yk_lane_host_t *host, int permit);
void yk_lane_permit_give(const yk_lane_host_t *host, int permit);

#endif
