/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INTERLEAVE_SCRIPT_H
#define INTERLEAVE_SCRIPT_H

#include <apr_pools.h>
#include <apr_tables.h>

/**
 * @file script.h
 * @brief A written-down race: who does what, and what must then be true.
 *
 * One line, one thing; words are separated by blanks, "quoted" where they hold
 * some. A first comment says what the script shows.
 *
 *   hall    A:4 B:6:T2         sections NAME:PLACES[:GRADE], one row each; the
 *                              places are A-1 A-2 .., the grade T1
 *   slot    s B=pooled:5       a performance in the hall, open; sections not
 *                              named are placed; "closed" leaves it closed,
 *                              resource=R series=Q
 *   pool    f Floor=5          a slot without hall
 *   price   s adult 1000 EUR   area=, grade=, quota=
 *   limit   booker slot:s places 2
 *   terms   ttl=600 life=1800 checkout=2100 wait=10 places=8 confirm=shop
 *
 *   before  x clock -1000s then hold A-1 then checkout
 *   session a hold A-1 then confirm
 *
 * `before` runs alone and first; then all sessions at once. An order is called
 * by the name of who began it, @x; without a name it is the session's own.
 *
 *   hold ITEM..          :child, A-3..9, s/A-1, Floor*3, Floor*3:adult,
 *                        Floor*2:adult*1:child; key=, together=1, confirm=1
 *   add [@x] ITEM..      exchange [@x] [give=1,2*1] ITEM.. [amount=]
 *   remove [@x] LINE     checkout, reopen, confirm, release, cancel, look [@x]
 *   pay [@x]             the shop's confirm; attempt=, amount=, payment=
 *   sweep                price, limit: as above; open s, close s
 *   batch ACT | ACT ..   several in one transaction, as the head of a lane
 * takes them; holds are called a1, a2 .. after session a, answers are joined:
 * held+taken clock +601s          from now on the database's clock is so much
 * later lock ITEM.., unlock  a foreign transaction on rows; pause 300ms await
 * a.2            goes on when session a has done its second act count how many
 * places and counts are live now (kept) lose=KIND:HOW        with an act: the
 * line breaks at its packet of KIND (read, lock, write), HOW: before (it could
 * not be sent), never (sent, did not arrive), done (arrived, answer lost), late
 * (arrives whenever); dies=: the same, and the worker is dead
 *
 *   orders  all | N            all orders of packets, or so many drawn
 *   fresh                      set up anew each time: deadlines of less than
 *                              a minute
 *   always  at-most-one-owner | agree
 *   never   errno 1213 | errno 1205 | wait
 *   finally a held             what session a's last act was answered
 *   reach   b held             true at the end of one order at least
 *   mutant  no-lock replace " FOR UPDATE" "" finds "two owners"
 *
 * Conditions are in verdict.h, invariants in judge.h. A mutant changes the
 * SQL of every packet; in one order at least the script must then fail, for
 * the reason said.
 */

typedef struct act_t {
    const char *verb;
    const char *order;         /**< NULL: the session's own */
    apr_array_header_t *items; /**< const char * */
    apr_table_t *options;
    const char *text; /**< as written */
} act_t;

typedef struct role_t {
    const char *name;
    apr_table_t *options;
    apr_array_header_t *acts; /**< act_t * */
} role_t;

typedef struct line_t {
    const char *keyword;
    apr_array_header_t *items;
    apr_table_t *options;
} line_t;

typedef struct mutant_t {
    const char *name;
    const char *find[4], *put[4]; /**< NULL ends */
    const char *finds;            /**< must stand in what is then wrong */
} mutant_t;

#define SCRIPT_ORDERS_MOST 1500

typedef struct script_t {
    const char *path, *name, *title;
    const char *text;
    apr_array_header_t *setup;            /**< line_t * */
    apr_array_header_t *befores;          /**< role_t * */
    apr_array_header_t *sessions;         /**< role_t * */
    apr_array_header_t *finals, *reaches; /**< const char * */
    apr_array_header_t *mutants;          /**< mutant_t * */
    int orders_most;
    int fresh; /**< set up anew for each order */
    int never_1213, never_1205, never_wait;
} script_t;

/** Read one; ends the process with a sentence when it is not well formed. */
script_t *script_read(const char *path, apr_pool_t *p);
/** The same from text. */
script_t *script_parse(const char *name, const char *text, apr_pool_t *p);

/** A number with a unit: "601s", "-5min", "300ms"; ends the process else. */
apr_time_t script_time(const char *text);

/** A defect of the script or the harness: say it and end the process. */
void script_wrong(const char *what, const char *detail)
    __attribute__((noreturn));

#define ITEM(array, i, type) APR_ARRAY_IDX(array, i, type)

#endif
