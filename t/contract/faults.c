/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_strings.h>
#include <apr_thread_proc.h>
#include <string.h>
#include <sys/socket.h>
#include "sample.h"

/* Replaces one statement of the next packet that has so many. */
typedef struct fault_t {
    int at;           /* from 0; -1: let everything pass */
    int statements;   /* how many the last packet had */
    const char *with; /* what stands there instead */
} fault_t;

static const char *inject(void *baton, const char *sql, apr_pool_t *p)
{
    fault_t *fault = baton;
    const char *made = "", *from = sql;
    int i;

    for (i = 0; from != NULL; i++) {
        const char *end = strstr(from, ";\n");
        const char *one =
            end != NULL ? apr_pstrmemdup(p, from, (apr_size_t)(end - from))
                        : from;
        made = apr_pstrcat(p, made, i > 0 ? ";\n" : "",
                           i == fault->at ? fault->with : one, NULL);
        from = end != NULL ? end + 2 : NULL;
    }
    fault->statements = i;
    return made;
}

#define SIGNAL(number) "SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO=" #number

static const struct {
    const char *with;
    apr_status_t rv;
} errors[] = {
    {SIGNAL(1205), APR_TIMEUP},
    {SIGNAL(1213), APR_EBUSY},
    {SIGNAL(1020), APR_EBUSY},
    {SIGNAL(1290), APR_ENOTIMPL},
    {"KILL CONNECTION_ID()", APR_ECONNRESET},
};
#define ERRORS (sizeof(errors) / sizeof(errors[0]))

/* After any of it the store goes on as if nothing had been. */
static void still_works(sample_t *s, fault_t *fault)
{
    fault->at = -1;
    sample_want(s);
    ck_ok(yk_store_lock(s->store, s->l));
    yk_store_rollback(s->store);
    ck_assert_int_eq(sample_is_open(s), 0);
}

START_TEST(an_error_at_any_statement_of_the_first_packet_leaves_nothing_open)
{
    sample_t *s = sample_make();
    const char *before = sample_state(book_line());
    fault_t fault = {-1, 0, NULL};
    int at, statements;
    size_t e;

    yk_store_watch(s->store, inject, &fault);
    still_works(s, &fault);
    statements = fault.statements;
    ck_assert_int_eq(statements, 12);
    for (e = 0; e < ERRORS; e++) {
        for (at = 0; at < statements; at++) {
            fault.at = at;
            fault.with = errors[e].with;
            sample_want(s);
            ck_assert_int_eq(yk_store_lock(s->store, s->l), errors[e].rv);
            ck_assert_int_eq(sample_is_open(s), 0);
            still_works(s, &fault);
        }
    }
    ck_assert_str_eq(before, sample_state(book_line()));
}
END_TEST

START_TEST(an_error_at_any_statement_of_the_second_packet_writes_nothing)
{
    sample_t *s = sample_make();
    const char *before = sample_state(book_line());
    fault_t fault = {-1, 0, NULL};
    int at, statements = 9;
    size_t e;

    yk_store_watch(s->store, inject, &fault);
    for (e = 0; e < ERRORS; e++) {
        for (at = 0; at < statements; at++) {
            apr_status_t rv;
            fault.at = -1;
            sample_want(s);
            ck_ok(yk_store_lock(s->store, s->l));
            sample_decide(s);
            fault.at = at;
            fault.with = errors[e].with;
            rv = yk_store_write(s->store, s->l);
            ck_assert_int_eq(fault.statements, statements);
            if (at == statements - 1 && errors[e].rv != APR_EBUSY) {
                /* said at COMMIT itself: not for us to guess */
                int done = 1;
                ck_assert_int_eq(rv, APR_INCOMPLETE);
                fault.at = -1;
                ck_ok(yk_store_fate(s->store, &done, s->l, pool));
                ck_assert_int_eq(done, 0);
            }
            else {
                ck_assert_int_eq(rv, errors[e].rv);
            }
            ck_assert_int_eq(sample_is_open(s), 0);
            ck_assert_uint_eq(yk_ledger_order(s->l, SAMPLE_NEW)->order->version,
                              0);
            still_works(s, &fault);
            ck_assert_str_eq(before, sample_state(book_line()));
        }
    }
}
END_TEST

START_TEST(fewer_or_more_answers_than_statements_are_an_error)
{
    static const char *const odd[] = {"SELECT 1;SELECT 1", "DO 1",
                                      "SELECT 1 FROM DUAL WHERE 0;DO 1"};
    sample_t *s = sample_make();
    fault_t fault = {-1, 0, NULL};
    size_t i;

    yk_store_watch(s->store, inject, &fault);
    for (i = 0; i < 3; i++) {
        fault.at = 11;
        fault.with = odd[i];
        sample_want(s);
        ck_assert_int_eq(yk_store_lock(s->store, s->l), APR_EGENERAL);
        ck_assert_int_eq(sample_is_open(s), 0);
        still_works(s, &fault);
    }
}
END_TEST

START_TEST(a_place_somebody_holds_is_waited_for_and_then_said)
{
    sample_t *s = sample_make();
    MYSQL *foreign = book_line();
    apr_time_t began = apr_time_now();

    server_run(foreign, "BEGIN; SELECT * FROM yoyaku_slot_place WHERE"
                        " place_no=3 FOR UPDATE");
    sample_want(s);
    ck_assert_int_eq(yk_store_lock(s->store, s->l), APR_TIMEUP);
    ck_assert_int_ge(apr_time_now() - began, apr_time_from_sec(1));
    ck_assert_int_eq(sample_is_open(s), 0);
    /* what it had locked before it waited is free again */
    server_run(foreign, "SELECT * FROM yoyaku_lock_anchor FOR UPDATE");
}
END_TEST

static long long waiting(MYSQL *line)
{
    return server_number(line,
                         "SELECT COUNT(*) FROM information_schema.INNODB_TRX"
                         " WHERE trx_state='LOCK WAIT'");
}

static void until_waiting(MYSQL *line)
{
    int i;

    /* asked more often than every tenth of a second, the server shows what
     * it showed before */
    for (i = 0; i < 10 && waiting(line) == 0; i++) {
        apr_sleep(150000);
    }
}

typedef struct cut_t {
    apr_thread_t *thread;
    sample_t *s;
    MYSQL *foreign; /* holds what the store waits for */
    MYSQL *other;
    const char *kill; /* NULL: cut the wire */
} cut_t;

static void *APR_THREAD_FUNC cut(apr_thread_t *thread, void *data)
{
    cut_t *c = data;

    until_waiting(c->other);
    if (c->kill != NULL) {
        mysql_query(c->other, c->kill);
    }
    else {
        shutdown((int)mysql_get_socket(c->s->own), SHUT_RDWR);
    }
    apr_sleep(400000);
    mysql_query(c->foreign, "ROLLBACK");
    mysql_thread_end();
    return NULL;
}

/* The write packet waits for a key that a foreign transaction has inserted;
 * meanwhile something happens to its line. */
static apr_status_t write_and_cut(sample_t *s, cut_t *c, int kill)
{
    apr_status_t rv;

    c->s = s;
    c->foreign = book_line();
    c->other = book_line();
    sample_want(s);
    ck_ok(yk_store_lock(s->store, s->l));
    sample_decide(s);
    if (kill) {
        c->kill = apr_psprintf(pool, "KILL %lu", mysql_thread_id(s->own));
    }
    server_run(c->foreign, "BEGIN; INSERT INTO yoyaku_idempotency VALUES"
                           " (1,REPEAT(CHAR(7),32),'',0,'',0,0,0,'')");
    ck_ok(apr_thread_create(&c->thread, NULL, cut, c, pool));
    rv = yk_store_write(s->store, s->l);
    return rv;
}

START_TEST(a_commit_whose_answer_was_lost_is_found)
{
    sample_t *s = sample_make();
    cut_t c;
    int done = 0;
    apr_status_t rv, wrote, looked;

    memset(&c, 0, sizeof(c));
    wrote = write_and_cut(s, &c, 0);
    /* the lost transaction is still at work: looking must wait for it */
    looked = yk_store_fate(s->store, &done, s->l, pool);
    ck_ok(apr_thread_join(&rv, c.thread));
    ck_assert_int_eq(wrote, APR_INCOMPLETE);
    ck_ok(looked);
    ck_assert_int_eq(done, 1);
    ck_assert_int_eq(sample_is_open(s), 0);
    ck_assert_int_eq(server_number(c.other, "SELECT COUNT(*) FROM yoyaku_order"
                                            " WHERE order_id=600"),
                     1);
}
END_TEST

START_TEST(a_transaction_that_was_killed_is_known_not_to_have_been)
{
    sample_t *s = sample_make();
    const char *before = sample_state(book_line());
    cut_t c;
    int done = 1;
    apr_status_t rv, wrote, looked;

    memset(&c, 0, sizeof(c));
    wrote = write_and_cut(s, &c, 1);
    looked = yk_store_fate(s->store, &done, s->l, pool);
    ck_ok(apr_thread_join(&rv, c.thread));
    /* as the server put it: the statement, the line, or no word at all */
    ck_assert(wrote == APR_INCOMPLETE || wrote == APR_ECONNRESET ||
              wrote == APR_EBUSY);
    ck_ok(looked);
    ck_assert_int_eq(done, 0);
    ck_assert_str_eq(before, sample_state(book_line()));
}
END_TEST

START_TEST(a_line_lost_between_the_packets_wrote_nothing)
{
    sample_t *s = sample_make();
    MYSQL *line = book_line();
    const char *before = sample_state(line);

    sample_want(s);
    ck_ok(yk_store_lock(s->store, s->l));
    sample_decide(s);
    server_run(line, apr_psprintf(pool, "KILL %lu", mysql_thread_id(s->own)));
    apr_sleep(200000);
    shutdown((int)mysql_get_socket(s->own), SHUT_WR);
    ck_assert_int_eq(yk_store_write(s->store, s->l), APR_ECONNRESET);
    ck_assert_ptr_null(s->own);
    ck_assert_str_eq(before, sample_state(line));
    ck_assert_int_eq(yk_store_write(s->store, s->l), APR_ECONNRESET);
}
END_TEST

/* ---- a real deadlock ---- */

typedef struct opponent_t {
    apr_thread_t *thread;
    MYSQL *line;
} opponent_t;

static void *APR_THREAD_FUNC oppose(apr_thread_t *thread, void *data)
{
    opponent_t *o = data;

    /* against the lock order; it has changed more, so it is not the victim */
    mysql_query(o->line, "SELECT * FROM yoyaku_slot_place WHERE place_no=1"
                         " FOR UPDATE");
    mysql_free_result(mysql_store_result(o->line));
    mysql_thread_end();
    return NULL;
}

START_TEST(a_deadlock_is_told_as_one_and_leaves_nothing_open)
{
    sample_t *s = sample_make();
    opponent_t o;
    apr_status_t rv;
    yk_order_t *old;

    ck_ok(yk_store_order(s->store, &old, NULL, 1, SAMPLE_OLD, pool));
    o.line = book_line();
    server_run(o.line, "BEGIN; UPDATE yoyaku_place SET seat='x';"
                       "SELECT * FROM yoyaku_order FOR UPDATE");
    s->l = yk_ledger_make(pool);
    yk_ledger_want_place(s->l, s->slot_id, 0, 1, 0);
    ck_ok(yk_store_lock(s->store, s->l));
    ck_ok(apr_thread_create(&o.thread, NULL, oppose, &o, pool));
    until_waiting(book_line());
    /* the same transaction goes on to the order, which the other has */
    yk_ledger_order_add(s->l, old)->is_new = 0;
    ck_assert_int_eq(yk_store_write(s->store, s->l), APR_EBUSY);
    ck_assert_int_eq(sample_is_open(s), 0);
    ck_ok(apr_thread_join(&rv, o.thread));
}
END_TEST

/* ---- lines of others ---- */

START_TEST(a_line_taken_in_a_transaction_is_rolled_back_first)
{
    sample_t *s = sample_make();
    MYSQL *line = book_line();

    sample_want(s);
    ck_ok(yk_store_lock(s->store, s->l));
    yk_store_rollback(s->store);
    server_run(s->own, "BEGIN; UPDATE yoyaku_slot_place SET state=2");
    sample_want(s);
    ck_ok(yk_store_lock(s->store, s->l));
    ck_ok(yk_store_write(s->store, s->l));
    ck_assert_int_eq(server_number(line, "SELECT COUNT(*) FROM"
                                         " yoyaku_slot_place WHERE state=2"),
                     0);
}
END_TEST

START_TEST(a_line_that_died_idle_is_replaced_once)
{
    sample_t *s = sample_make();
    yk_order_t *order;
    int opened;

    sample_want(s);
    ck_ok(yk_store_lock(s->store, s->l));
    yk_store_rollback(s->store);
    opened = s->opened;
    server_run(book_line(),
               apr_psprintf(pool, "KILL %lu", mysql_thread_id(s->own)));
    ck_ok(yk_store_order(s->store, &order, NULL, 1, SAMPLE_OLD, pool));
    ck_assert_int_eq(s->opened, opened + 1);
    server_run(book_line(),
               apr_psprintf(pool, "KILL %lu", mysql_thread_id(s->own)));
    ck_ok(yk_store_lock(s->store, s->l));
    ck_assert_int_eq(s->opened, opened + 2);
    yk_store_rollback(s->store);
}
END_TEST

/* A host like mod_dbd: it keeps its line for whoever comes next. */
typedef struct keeper_t {
    MYSQL *line;
    int out, broken;
} keeper_t;

static apr_status_t lend(void *baton, void **line)
{
    keeper_t *k = baton;

    k->out = 1;
    *line = k->line;
    return APR_SUCCESS;
}

static void get_back(void *baton, void *line, int broken)
{
    keeper_t *k = baton;

    k->out = 0;
    k->broken = broken;
}

START_TEST(a_pool_that_ends_gives_its_line_back_without_a_transaction)
{
    sample_t *s = sample_make();
    keeper_t k = {book_line(), 0, 0};
    yk_store_host_t host = {&k, lend, get_back};
    apr_pool_t *request;
    yk_store_t *store;
    yk_ledger_t *l;

    ck_ok(yk_store_session_set(k.line, pool));
    apr_pool_create(&request, pool);
    ck_ok(yk_store_attach(&store, &host, request));
    l = yk_ledger_make(request);
    yk_ledger_want_place(l, s->slot_id, 0, 1, 0);
    ck_ok(yk_store_lock(store, l));
    ck_assert_int_eq(server_number(k.line, "SELECT @@in_transaction"), 1);
    apr_pool_destroy(request);
    ck_assert_int_eq(k.out, 0);
    ck_assert_int_eq(k.broken, 0);
    ck_assert_int_eq(server_number(k.line, "SELECT @@in_transaction"), 0);
}
END_TEST

TCase *faults_case(void)
{
    TCase *tc = tcase_create("faults");

    tcase_set_timeout(tc, 120);
    tcase_add_checked_fixture(tc, pool_make, pool_end);
    tcase_add_test(
        tc, an_error_at_any_statement_of_the_first_packet_leaves_nothing_open);
    tcase_add_test(
        tc, an_error_at_any_statement_of_the_second_packet_writes_nothing);
    tcase_add_test(tc, fewer_or_more_answers_than_statements_are_an_error);
    tcase_add_test(tc, a_place_somebody_holds_is_waited_for_and_then_said);
    tcase_add_test(tc, a_commit_whose_answer_was_lost_is_found);
    tcase_add_test(tc, a_transaction_that_was_killed_is_known_not_to_have_been);
    tcase_add_test(tc, a_line_lost_between_the_packets_wrote_nothing);
    tcase_add_test(tc, a_deadlock_is_told_as_one_and_leaves_nothing_open);
    tcase_add_test(tc, a_line_taken_in_a_transaction_is_rolled_back_first);
    tcase_add_test(tc, a_line_that_died_idle_is_replaced_once);
    tcase_add_test(tc,
                   a_pool_that_ends_gives_its_line_back_without_a_transaction);
    return tc;
}
