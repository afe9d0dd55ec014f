/* SPDX-License-Identifier: Apache-2.0 */
#include "throttle.h"

#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
#include "yoyaku/room.h"
#include "yoyaku/throttle.h"

/*
 * The owner of a lock is killed after each step that it makes with the lock in
 * its hand. A child is led step by step; `turns` says at which of its locks it
 * shall die, `steps` how far in it. What the next one finds must be right.
 */

/* Steps between two kills, another for each run. With YK_STRIDE=5 no two writes
 * are that close; it takes minutes. */
static int stride(void)
{
    const char *text = getenv("YK_STRIDE");

    return text != NULL && atoi(text) > 0 ? atoi(text) : 97 + getpid() % 31;
}

static apr_pool_t *p;
static char folder[64];

static void setup(void)
{
    apr_pool_create(&p, NULL);
    strcpy(folder, "/tmp/yk-steps-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void teardown(void)
{
    char command[100];

    apr_pool_destroy(p);
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}

/* One step. @return 0: the child has ended */
static int step(pid_t pid)
{
    int status;

    ck_assert_int_eq(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL), 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return WIFSTOPPED(status);
}

/* Lead a child that stopped itself to its `turns`-th time with the lock, so
 * many steps in, and kill it there. @return 0: it has no such moment */
static int kill_at(pid_t pid, const yk_lock_t *lock, int turns, int steps)
{
    const volatile int *owner = &lock->own.mutex.__data.__owner;
    int had = 0, status, lives = 1;

    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    for (int turn = -1; lives && turn < turns;) {
        lives = step(pid);
        turn += !had && *owner == pid;
        had = *owner == pid;
    }
    for (int i = 0; lives && had && i < steps; i++) {
        lives = step(pid);
        had = *owner == pid;
    }
    if (lives) {
        kill(pid, SIGKILL);
        waitpid(pid, &status, 0);
    }
    return lives && had;
}

static void led(void)
{
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    raise(SIGSTOP);
}

/* ---- the throttle ---- */

static yk_throttle_t *throttle;
static yk_rule_terms_t terms;

static void come(yk_turn_t *turn)
{
    yk_arrival_t who = {0};

    who.name = "shop";
    who.user = (const unsigned char *)"0123456789abcdef";
    who.arrived_us = yk_state_now();
    if (yk_throttle_rule(throttle, &who.rule, who.name, &terms) !=
        APR_SUCCESS) {
        abort();
    }
    yk_throttle_arrive(throttle, turn, &who);
}

static void await_turn(yk_turn_t *turn)
{
    apr_time_t began = yk_state_now();

    while (turn->answer == YK_QUEUE_WAIT &&
           yk_state_now() - began < APR_USEC_PER_SEC) {
        yk_throttle_wait(throttle, turn, 10000);
    }
    ck_assert_int_eq(turn->answer, YK_QUEUE_RUN);
}

/* Arrives, queues or runs, and leaves. */
static pid_t visitor(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        yk_turn_t turn;

        yk_throttle_join(throttle);
        led();
        come(&turn);
        yk_throttle_leave(throttle, turn.holder);
        _exit(0);
    }
    ck_assert_int_gt(pid, 0);
    return pid;
}

static void nobody_is_left(void)
{
    const yk_throttle_table_t *t = yk_throttle_table(throttle);
    yk_turn_t turn;

    come(&turn);
    await_turn(&turn);
    yk_throttle_leave(throttle, turn.holder);
    ck_assert_uint_eq(t->rule[0].running, 0);
    ck_assert_uint_eq(t->rule[0].waiting, 0);
    ck_assert_uint_eq(t->rule[0].head, YK_HOLDER_NONE);
    ck_assert_uint_eq(t->busy_workers, 0);
    ck_assert_uint_eq(t->waiting, 0);
}

/* `others`: the place is taken, so it queues; and is left by us afterwards. */
static void killed_at_each_step(int others)
{
    const yk_lock_t *lock = &yk_throttle_table(throttle)->lock;
    int kills = 0;

    for (int turns = 0; turns < 5; turns++) {
        for (int steps = 0;; steps += stride()) {
            yk_turn_t turn = {0};
            int killed;

            if (others) {
                come(&turn);
                ck_assert_int_eq(turn.answer, YK_QUEUE_RUN);
            }
            killed = kill_at(visitor(), lock, turns, steps);
            if (others) {
                yk_throttle_leave(throttle, turn.holder);
            }
            nobody_is_left();
            kills += killed;
            if (!killed) {
                break;
            }
        }
    }
    ck_assert_int_ge(kills, 5);
}

static void throttle_make(void)
{
    yk_rule_terms_default(&terms);
    terms.limit = 1;
    terms.per_user = 3;
    ck_assert_int_eq(yk_throttle_create(&throttle, folder, 100, 10, 25, p),
                     APR_SUCCESS);
    yk_throttle_join(throttle);
}

START_TEST(killed_at_any_step_of_a_visit_nobody_is_counted_wrong)
{
    throttle_make();
    killed_at_each_step(0);
}
END_TEST

START_TEST(killed_at_any_step_of_queueing_the_place_goes_on)
{
    throttle_make();
    killed_at_each_step(1);
}
END_TEST

/* ---- the rooms ---- */

static yk_rooms_t *rooms;
static uint32_t row;

static yk_room_t *room_of(void)
{
    return &((yk_room_table_t *)((char *)yk_rooms_lock(rooms) -
                                 offsetof(yk_room_table_t, lock)))
                ->room[row];
}

static yk_room_e ask(uint64_t *number, uint64_t pass)
{
    yk_room_ask_t question = {0};
    yk_room_answer_t answer;

    question.number = *number;
    question.pass = pass;
    question.pass_issued = apr_time_now();
    question.may_issue = question.may_return = question.is_reading = 1;
    if (yk_rooms_arrive(rooms, &answer, row, &question) != APR_SUCCESS) {
        abort();
    }
    *number = answer.number;
    return answer.what;
}

/* Gets a number, enters with it, holds an order, and leaves. */
static pid_t buyer(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        uint64_t number = 0;

        led();
        ask(&number, 0);
        ask(&number, 0);
        yk_rooms_held(rooms, number, 7, APR_USEC_PER_SEC);
        yk_rooms_leave(rooms, number);
        _exit(0);
    }
    ck_assert_int_gt(pid, 0);
    return pid;
}

static void counts_are_right(void)
{
    const yk_room_t *room = room_of();
    uint32_t of[8] = {0}, chained = 0;
    uint64_t number = 0;

    ask(&number, 0); /* whoever comes next counts anew */
    for (uint32_t i = 0; i < room->high; i++) {
        of[room->visitor[i].state]++;
        chained += room->visitor[i].state != YK_VISITOR_NONE &&
                   yk_room_visitor(room_of(), room->visitor[i].number) ==
                       &room->visitor[i];
    }
    ck_assert_uint_eq(room->unreturned, of[YK_VISITOR_ISSUED]);
    ck_assert_uint_eq(room->waiting, of[YK_VISITOR_WAITING]);
    ck_assert_uint_eq(room->calls, of[YK_VISITOR_CALLED]);
    ck_assert_uint_eq(room->over, of[YK_VISITOR_PASSED_OVER]);
    ck_assert_uint_eq(room->inside, of[YK_VISITOR_PASS]);
    ck_assert_uint_eq(chained, room->high - of[YK_VISITOR_NONE]);
    ck_assert_uint_le(room->inside + room->calls, room->configured.active);
    /* and a newcomer comes in */
    ck_assert_int_eq(ask(&number, 0), YK_ROOM_ENTER);
    yk_rooms_leave(rooms, number);
}

START_TEST(killed_at_any_step_in_a_room_everybody_keeps_his_place)
{
    yk_room_terms_t room_terms;
    yk_hash_t seed = {{1}};
    int kills = 0;

    yk_room_terms_default(&room_terms);
    room_terms.active = 60000;
    room_terms.rate_milli = 10000 * 1000;
    room_terms.grace_us = 1;
    ck_assert_int_eq(yk_rooms_create(&rooms, folder, p), APR_SUCCESS);
    ck_assert_int_eq(yk_rooms_room(rooms, &row, "sale", &room_terms, &seed),
                     APR_SUCCESS);
    for (int turns = 0; turns < 4; turns++) {
        for (int steps = 0;; steps += stride() / 3 + 1) {
            int killed = kill_at(buyer(), yk_rooms_lock(rooms), turns, steps);

            counts_are_right();
            kills += killed;
            if (!killed) {
                break;
            }
        }
    }
    ck_assert_int_ge(kills, 5);
}
END_TEST

Suite *steps_suite(void)
{
    Suite *suite = suite_create("steps");
    TCase *all = tcase_create("all");

    tcase_set_timeout(all, 120);
    tcase_add_checked_fixture(all, setup, teardown);
    tcase_add_test(all, killed_at_any_step_of_a_visit_nobody_is_counted_wrong);
    tcase_add_test(all, killed_at_any_step_of_queueing_the_place_goes_on);
    tcase_add_test(all, killed_at_any_step_in_a_room_everybody_keeps_his_place);
    suite_add_tcase(suite, all);
    return suite;
}
