/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YOYAKU_ROOM_H
#define YOYAKU_ROOM_H

#include <apr_pools.h>
#include <apr_time.h>
#include <jansson.h>
#include <stdint.h>
#include "lock.h"
#include "secret.h"
#include "state.h"

/**
 * @file room.h
 * @brief Waiting rooms: numbers, whose turn it is, and passes for a visit.
 *
 *   ISSUED -> WAITING -> CALLED -> PASS -> AFTER -> gone
 *      |         |          \-> PASSED_OVER -> PASS
 *      \---------\-> gone (not heard of for 3 min)
 *
 * A visitor is one row: his number, where he stands, when he was last heard
 * of. Times of a row are of the steady clock; numbers are microseconds of the
 * wall clock, so that they keep their order when the file is lost.
 *
 * Order. A number issued before `opens` has the key HMAC(seed, number) below
 * all others; one issued later its number. Nobody is called before `opens`.
 *
 * Calling. A bucket of one second at `rate`; live passes and called ones
 * within their grace never exceed `active`. Only a number that came back is
 * called. Who comes after his grace enters before the next call, as soon as
 * there is room.
 *
 * What it promises. A place in the line belongs to a signed number and to
 * nothing else: no clock but the server's counts. A file that was lost costs
 * nobody his place: a number issued before the new file was made is taken in
 * again for 3 minutes, a valid pass for a visit.
 *
 * Two parts, as in throttle.h: yk_room_* decide on a table that nobody else
 * touches; yk_rooms_* are the same on shared memory, under its lock.
 *
 * Where it lives. State file "room", mapped before fork().
 */

#define YK_ROOM_LAYOUT 2
#define YK_ROOMS_MAX 16
#define YK_ROOM_NAME 64
#define YK_ROOM_SAY 256
#define YK_ROOM_LIVE 65536  /**< numbers that wait, at most */
#define YK_ROOM_ROWS 131072 /**< visitors of a room, waiting or inside */
#define YK_ROOM_NONE UINT32_MAX
#define YK_ROOM_UNHEARD apr_time_from_sec(180)
#define YK_ROOM_ADDRESSES 4096
#define YK_ROOM_PER_ADDRESS 200 /**< unreturned numbers a minute */
#define YK_ROOM_MARKS 64
#define YK_ROOM_HELD 8 /**< orders of a pass that are remembered */

/** X(member, "counter", what it says) */
#define YK_ROOM_COUNTERS(X)                                                    \
    X(issued, "issued", "numbers issued")                                      \
    X(confirmed, "confirmed", "numbers that came back")                        \
    X(called, "called", "numbers called")                                      \
    X(redeemed, "redeemed", "numbers that became passes")                      \
    X(passed_over, "passed_over", "called ones who did not come in time")      \
    X(dropped, "dropped", "numbers not heard of any more")                     \
    X(left, "left", "passes ended by Yoyaku-Leave")                            \
    X(bought, "bought", "passes ended by confirmed orders")                    \
    X(idled, "idled", "passes ended by idle")                                  \
    X(visited, "visited", "passes ended by visit")                             \
    X(recovered, "recovered", "numbers and passes taken in again")             \
    X(forged, "forged", "cookies that were not ours")                          \
    X(full, "full", "visitors without a number: the room is full")             \
    X(greedy, "greedy", "visitors without a number: too many from there")

typedef enum yk_visitor_e {
    YK_VISITOR_NONE = 0,
    YK_VISITOR_ISSUED = 1, /**< the cookie has not come back */
    YK_VISITOR_WAITING = 2,
    YK_VISITOR_CALLED = 3,
    YK_VISITOR_PASSED_OVER = 4,
    YK_VISITOR_PASS = 5,
    YK_VISITOR_AFTER = 6 /**< bought; may look for one `idle` more */
} yk_visitor_e;

typedef struct yk_visitor_t {
    uint64_t number;  /**< truth */
    uint32_t state;   /**< yk_visitor_e; truth, written last */
    uint32_t orders;  /**< confirmed under the pass */
    uint64_t key;     /**< order in the line; smaller is ahead */
    int64_t heard_us; /**< steady */
    int64_t since_us; /**< steady: called, or the pass began */
    int64_t stay_us;  /**< steady: an application asked that it stay so long */
    uint32_t address; /**< where an ISSUED one was issued to */
    uint32_t next;    /**< in its chain, or free list; derived */
    uint64_t spare;
} yk_visitor_t;

_Static_assert(sizeof(yk_visitor_t) == 64, "a cache line");

/** Orders that are held or locked under a pass: while there is one in time,
 *  neither idle nor visit ends it. Past YK_ROOM_HELD the one that ends first
 *  is forgotten. */
typedef struct yk_room_held_t {
    struct {
        uint32_t order;   /**< of its id; 0: none */
        uint32_t until_s; /**< steady, rounded up */
    } one[YK_ROOM_HELD];
} yk_room_held_t;

_Static_assert(sizeof(yk_room_held_t) == 64, "a cache line");

/** What a room is configured to be. Fixed width. */
typedef struct yk_room_terms_t {
    uint32_t active;
    uint32_t rate_milli; /**< calls in 1,000 seconds */
    uint32_t orders;     /**< 0: they end no pass */
    uint32_t spare;
    int64_t visit_us, idle_us, grace_us;
    int64_t opens_us; /**< wall clock; 0: always open */
} yk_room_terms_t;

_Static_assert(sizeof(yk_room_terms_t) == 48, "part of the layout");

typedef struct yk_room_rank_t {
    uint64_t key;
    uint32_t row;
    uint32_t spare;
} yk_room_rank_t;

typedef struct yk_room_t {
    char name[YK_ROOM_NAME];
    uint64_t generation;
    yk_room_terms_t configured;
    uint32_t rate_milli; /**< in force; the operator may set it */
    uint32_t paused;
    uint32_t spare0;
    yk_seq_t seq; /**< around changes of what stands above `chain` */
    char say[YK_ROOM_SAY];
    unsigned char seed[YK_HASH_BYTES];
    int64_t begun_us; /**< steady: nobody is called for one grace */
    int64_t moved_us, swept_us, ranked_us, refilled_us;
    int64_t tokens_micro; /**< of the bucket: millionths of a call */
    uint64_t serving;     /**< key of the last one called */
    uint32_t waiting, inside, calls, unreturned, over; /**< derived */
    uint32_t nranks, rank_at, free, high;              /**< derived */
    uint32_t spare1;
#define YK_ROOM_COUNTER(member, counter, text) uint64_t member;
    YK_ROOM_COUNTERS(YK_ROOM_COUNTER)
#undef YK_ROOM_COUNTER
    uint64_t spare2[16];

    uint32_t chain[YK_ROOM_ROWS];      /**< by number; derived */
    yk_room_rank_t rank[YK_ROOM_ROWS]; /**< the line, sorted; derived */
    yk_visitor_t visitor[YK_ROOM_ROWS];
    yk_room_held_t held[YK_ROOM_ROWS]; /**< of that visitor, once inside */
} yk_room_t;

typedef struct yk_address_t {
    uint32_t hash;
    uint32_t minute;
    uint32_t unreturned;
    uint32_t spare;
} yk_address_t;

typedef struct yk_room_table_t {
    yk_state_head_t head;
    yk_lock_t lock;
    uint64_t last_number; /**< of all rooms: a number names one visitor */
    uint64_t generation;
    uint64_t recounts;
    uint64_t spare[5];
    yk_address_t address[YK_ROOM_ADDRESSES];
    yk_room_t room[YK_ROOMS_MAX];
} yk_room_table_t;

extern const yk_state_kind_t yk_room_kind;

/* ---- terms: room_terms.c ---- */

/** active=2000 rate=40/s visit=15min idle=3min grace=2min orders=1 */
void yk_room_terms_default(yk_room_terms_t *terms);
/** @return as yk_rule_terms_parse() */
apr_status_t yk_room_terms_parse(yk_room_terms_t *terms, const char **problem,
                                 const char *argument, apr_pool_t *p);
apr_status_t yk_room_terms_check(const yk_room_terms_t *terms,
                                 const char **problem, apr_pool_t *p);
/** Read "40/s", "90/min", "0.5/s". */
apr_status_t yk_room_rate_parse(uint32_t *rate_milli, const char *text);
char *yk_room_rate_write(uint32_t rate_milli, apr_pool_t *p);

/* ---- decisions: room.c, room_rows.c ---- */

/** The moment of an event on both clocks. */
typedef struct yk_room_now_t {
    apr_time_t steady, wall;
} yk_room_now_t;

void yk_room_fresh(yk_room_table_t *table);
void yk_room_recount(yk_room_t *room);

/** What a visitor's request comes to. */
typedef enum yk_room_e {
    YK_ROOM_WAIT,  /**< show the waiting page, with the number */
    YK_ROOM_BACK,  /**< a fresh number and room: come back with the cookie */
    YK_ROOM_ENTER, /**< a pass begins: send its cookie, and go on */
    YK_ROOM_PASS,  /**< inside: go on */
    YK_ROOM_FULL   /**< no number is to be had */
} yk_room_e;

/** What a visitor brings; numbers of cookies that verified. */
typedef struct yk_room_ask_t {
    uint64_t number;        /**< 0: none */
    uint64_t pass;          /**< 0: none */
    apr_time_t pass_issued; /**< wall */
    uint32_t address;
    int may_issue;  /**< this kind of request gets a number */
    int may_return; /**< a GET, which may be sent back with the cookie */
    int is_reading; /**< GET or HEAD: allowed after the last order */
} yk_room_ask_t;

typedef struct yk_room_answer_t {
    yk_room_e what;
    uint64_t number; /**< of the visitor; 0: none */
    uint64_t key;      /**< 0: not in the line yet, his number never came back */
    int is_new;        /**< the number was issued just now */
    apr_time_t issued; /**< of a pass that begins: wall */
    uint32_t ahead;    /**< how many are ahead of him; of a new number: at most,
                            with all whose numbers have not come back */
    int is_known;      /**< `ahead` means something (not before opens) */
    int64_t wait_us;   /**< an estimate; -1: not known */
} yk_room_answer_t;

void yk_room_arrive(yk_room_table_t *table, yk_room_t *room,
                    yk_room_answer_t *answer, const yk_room_ask_t *ask,
                    const yk_room_now_t *now);
/** Only where a number stands; admits nobody, but hears of him. */
void yk_room_ask(yk_room_table_t *table, yk_room_t *room,
                 yk_room_answer_t *answer, uint64_t number,
                 const yk_room_now_t *now);
/** Time passes: calls, graces, idles. At most each 50 ms. */
void yk_room_move(yk_room_t *room, const yk_room_now_t *now);

void yk_room_leave(yk_room_t *room, uint64_t number);
void yk_room_stay(yk_room_t *room, uint64_t number, apr_time_t until_steady);
/** An order begun under the pass is held or locked so long. */
void yk_room_held(yk_room_t *room, uint64_t number, uint64_t order,
                  apr_time_t until_steady);
/** It is no longer; other orders of the pass go on keeping it. */
void yk_room_released(yk_room_t *room, uint64_t number, uint64_t order);
void yk_room_bought(yk_room_t *room, uint64_t number, uint64_t order,
                    const yk_room_now_t *now);

yk_visitor_t *yk_room_visitor(yk_room_t *room, uint64_t number);
/** The line sorted anew when it is older than it may be. */
void yk_room_rank(yk_room_t *room, apr_time_t steady);
uint32_t yk_room_ahead(const yk_room_t *room, uint64_t key);
int yk_room_is_before(const yk_room_t *room, apr_time_t wall);

/* ---- the same, shared: rooms.c ---- */

typedef struct yk_rooms_t yk_rooms_t;

apr_status_t yk_rooms_create(yk_rooms_t **rooms, const char *folder,
                             apr_pool_t *p);
apr_status_t yk_rooms_attach(yk_rooms_t **rooms, const char *folder, int write,
                             apr_pool_t *p);
yk_lock_t *yk_rooms_lock(const yk_rooms_t *rooms);

/** A room's row, once this generation's terms are in force. The seed is
 *  HMAC(key, name, opens). */
apr_status_t yk_rooms_room(yk_rooms_t *rooms, uint32_t *row, const char *name,
                           const yk_room_terms_t *terms, const yk_hash_t *seed);

apr_status_t yk_rooms_arrive(yk_rooms_t *rooms, yk_room_answer_t *answer,
                             uint32_t row, const yk_room_ask_t *ask);
apr_status_t yk_rooms_ask(yk_rooms_t *rooms, yk_room_answer_t *answer,
                          uint32_t row, uint64_t number);
/** A cookie was not ours. */
void yk_rooms_forged(yk_rooms_t *rooms, uint32_t row);
void yk_rooms_leave(yk_rooms_t *rooms, uint64_t number);
void yk_rooms_stay(yk_rooms_t *rooms, uint64_t number,
                   apr_interval_time_t time);
void yk_rooms_held(yk_rooms_t *rooms, uint64_t number, uint64_t order,
                   apr_interval_time_t time);
void yk_rooms_released(yk_rooms_t *rooms, uint64_t number, uint64_t order);
void yk_rooms_bought(yk_rooms_t *rooms, uint64_t number, uint64_t order);
/** Time passes in all rooms. */
void yk_rooms_move(yk_rooms_t *rooms);

/** What everybody may know of a room; NULL: there is none. */
json_t *yk_rooms_public(yk_rooms_t *rooms, uint32_t row, apr_pool_t *p);
/** What the operator may know, of all rooms. */
json_t *yk_rooms_document(yk_rooms_t *rooms, apr_pool_t *p);

typedef enum yk_rooms_do_e {
    YK_ROOMS_PAUSE,
    YK_ROOMS_RESUME,
    YK_ROOMS_RATE, /**< argument; "" or "reset": as configured */
    YK_ROOMS_SAY   /**< argument; "": nothing */
} yk_rooms_do_e;

/** @return APR_SUCCESS, APR_NOTFOUND, APR_TIMEUP, APR_EINVAL (problem) */
apr_status_t yk_rooms_do(yk_rooms_t *rooms, const char **problem,
                         yk_rooms_do_e what, const char *name,
                         const char *argument, apr_pool_t *p);

/* ---- cookies: room_cookie.c ---- */

#define YK_ROOM_KEYS 2 /**< the one in use and the one before */

/** "N.NUMBER.MAC" or "P.NUMBER.ISSUED.MAC", for this room alone. */
char *yk_room_cookie_write(char kind, const char *room, uint64_t number,
                           apr_time_t issued, const yk_hash_t *key,
                           apr_pool_t *p);
/** @return APR_SUCCESS, or APR_EINVAL: not signed by one of the keys for this
 *          kind and room */
apr_status_t yk_room_cookie_read(uint64_t *number, apr_time_t *issued,
                                 const char *text, char kind, const char *room,
                                 const yk_hash_t *keys, int nkeys);
/** The seed of a room's draw. */
void yk_room_seed(yk_hash_t *seed, const char *room, apr_time_t opens,
                  const yk_hash_t *key);

#endif
