/* SPDX-License-Identifier: Apache-2.0 */
#include "throttle.h"

#include <stdlib.h>
#include <string.h>
#include "yoyaku/throttle.h"

/*
 * The rule as a list in which everything is counted by looking at all of it:
 * ten lines instead of tables, chains and queues. Random events go to both;
 * after each, both must agree who runs.
 */

#define MOST 64

typedef struct one_t {
    uint32_t holder;
    int user, runs;
} one_t;

static one_t list[MOST];
static int n;
static yk_rule_terms_t terms;

static int of(int user, int runs)
{
    int sum = 0;

    for (int i = 0; i < n; i++) {
        sum += (user < 0 || list[i].user == user) && list[i].runs == runs;
    }
    return sum;
}

static int may(int user)
{
    return terms.per_user == 0 || user == 0 ||
           of(user, 1) < (int)terms.per_user;
}

static int admit_oldest(void)
{
    for (int i = 0; i < n; i++) {
        if (!list[i].runs && may(list[i].user)) {
            return list[i].runs = 1;
        }
    }
    return 0;
}

static void settled(void)
{
    while (of(-1, 1) < (int)terms.limit && admit_oldest()) {
    }
}

/* -1 refused, 0 waits, 1 runs; the newcomer is the last of the list */
static int model_arrive(int user)
{
    int total = n + 1;

    if (of(-1, 1) < (int)terms.limit && may(user)) {
        list[n++] = (one_t){0, user, 1};
        return 1;
    }
    if ((terms.busy != 0 && total > (int)terms.busy) ||
        (terms.per_user != 0 && user != 0 && terms.user_wait != 0 &&
         of(user, 0) >= (int)terms.user_wait)) {
        return -1;
    }
    list[n++] = (one_t){0, user, 0};
    if (terms.overflow != 0 && total > (int)terms.overflow &&
        total <= (int)(terms.resume ? terms.resume : terms.busy)) {
        admit_oldest();
    }
    return list[n - 1].runs;
}

static void drop(int i)
{
    memmove(&list[i], &list[i + 1], sizeof(list[0]) * (size_t)(n - i - 1));
    n--;
    settled();
}

static int lives(void *world, uint32_t worker, uint64_t identity, int closely)
{
    return 1;
}

static void compare(const yk_queue_t *q, unsigned seed, int step)
{
    for (int i = 0; i < n; i++) {
        uint32_t state = atomic_load(&q->table->holder[list[i].holder].state);

        ck_assert_msg((state == YK_HOLDER_RUN) == list[i].runs,
                      "seed %u step %d: number %d of %d", seed, step, i, n);
    }
    ck_assert_int_eq((int)q->table->rule[0].running, of(-1, 1));
    ck_assert_int_eq((int)q->table->rule[0].waiting, of(-1, 0));
    ck_assert_int_eq((int)q->table->busy_workers, n);
}

static void come(yk_queue_t *q, yk_queue_acts_t *acts, unsigned seed, int step)
{
    yk_arrival_t who = {0};
    unsigned char user[16] = {0};
    yk_turn_t turn;
    int answer;

    user[0] = (unsigned char)(rand() % 4);
    who.user = user;
    yk_queue_arrive(q, &turn, acts, &who);
    answer = model_arrive(user[0]);
    ck_assert_msg(answer == (turn.answer == YK_QUEUE_RUN       ? 1
                             : turn.answer == YK_QUEUE_REFUSED ? -1
                                                               : 0),
                  "seed %u step %d", seed, step);
    if (answer >= 0) {
        list[n - 1].holder = turn.holder;
    }
}

static void change(yk_queue_t *q, yk_queue_acts_t *acts)
{
    terms.limit = 1 + (uint32_t)rand() % 6;
    terms.per_user = (uint32_t)rand() % 3;
    terms.user_wait = (uint32_t)rand() % 4;
    terms.overflow = rand() % 2 ? terms.limit + 2 : 0;
    terms.resume = rand() % 2 ? terms.limit + 4 : 0;
    terms.busy = terms.limit + 6 + (uint32_t)rand() % 20;
    yk_queue_set(q, acts, 0, &terms);
    settled();
}

START_TEST(random_events_leave_the_table_as_the_list_says)
{
    yk_queue_t q = {calloc(1, sizeof(yk_throttle_table_t)), 1, 0, lives, NULL};
    yk_queue_acts_t acts = {0};
    unsigned seed = (unsigned)_i;

    srand(seed);
    n = 0;
    yk_queue_fresh(q.table);
    q.table->next_ticket = UINT64_MAX - 500;
    ck_assert_uint_eq(yk_queue_rule(&q, "rule"), 0);
    yk_rule_terms_default(&terms);
    change(&q, &acts);
    for (int step = 0; step < 3000; step++) {
        int what = rand() % 100;

        acts.n = 0;
        if (what < 55 && n < MOST - 1) {
            come(&q, &acts, seed, step);
        }
        else if (what < 95 && n > 0) {
            int i = rand() % n;

            yk_queue_leave(&q, &acts, list[i].holder);
            drop(i);
        }
        else if (what < 97) {
            change(&q, &acts);
        }
        else {
            yk_queue_recount(&q);
        }
        compare(&q, seed, step);
    }
    free(q.table);
}
END_TEST

Suite *queue_model_suite(void)
{
    Suite *suite = suite_create("queue_model");
    TCase *all = tcase_create("all");

    tcase_add_loop_test(all, random_events_leave_the_table_as_the_list_says, 1,
                        41);
    suite_add_tcase(suite, all);
    return suite;
}
