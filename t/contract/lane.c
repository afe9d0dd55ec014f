/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_file_io.h>
#include <apr_strings.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "contract.h"
#include "yoyaku/catalogue.h"
#include "yoyaku/desk.h"
#include "yoyaku/lane.h"

/*
 * Workers of a lane as real processes on a real database: what they were told
 * is written down in memory that all share, and compared with the book.
 */

#define PLACES 200
#define WORKERS 8

typedef struct told_t {
    _Atomic uint32_t held[PLACES]; /* how often somebody was told "held" */
    _Atomic uint32_t refused;
    _Atomic uint32_t faults;       /* any status but success */
    _Atomic uint32_t unknown;      /* asked, and killed before the answer */
} told_t;

static yk_lanes_t *lanes;
static yk_workers_t *workers;
static told_t *told;
static const char *plans;

static void *shared(apr_size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    ck_assert(memory != MAP_FAILED);
    return memory;
}

static void stage_make(void)
{
    yk_store_t *store;
    const char *say = NULL;
    yk_setup_slot_t slot = {.key = "lane", .title = "A lane", .hall = "hall"};

    pool_make();
    store = book_make();
    book_hall(store, "hall", 1, PLACES);
    slot.starts = apr_time_now() + apr_time_from_sec(86400);
    ck_ok(yk_setup_slot(store, &say, 1, &slot, pool));
    ck_ok(yk_setup_slot_state(store, &say, 1, "lane", YK_SLOT_OPEN, pool));
    plans = apr_pstrdup(pool, "plans");
    apr_dir_make(plans, APR_OS_DEFAULT, pool);
    lanes = shared(sizeof(*lanes));
    workers = shared(sizeof(*workers));
    told = shared(sizeof(*told));
    yk_lanes_kind.fresh(lanes);
    if (yk_workers_kind.fresh != NULL) {
        yk_workers_kind.fresh(workers);
    }
}

static void stage_end(void)
{
    munmap(lanes, sizeof(*lanes));
    munmap(workers, sizeof(*workers));
    munmap(told, sizeof(*told));
    pool_end();
}

/* ---- a worker ---- */

static apr_status_t hold_one(yk_desk_t *desk, yk_reply_t *reply, uint32_t no,
                             apr_pool_t *p)
{
    yk_wish_line_t line = {.slot = "lane",
                           .place = apr_psprintf(p, "1-%u-%u", no / 40 + 1, no % 40 + 1),
                           .nparts = 1,
                           .parts = {{NULL, 1}},
                           .field = "places[0]"};
    yk_wish_t wish = {.nlines = 1, .lines = &line};

    return yk_desk_hold(desk, reply, &wish, NULL, NULL, p);
}

/* Try places in an order of one's own until the time is over. */
static void worker(uint32_t number, apr_time_t until)
{
    yk_terms_t terms = {.tenant_id = 1,
                        .booker = "",
                        .who = "worker",
                        .confirm = YK_CONFIRM_BOOKER,
                        .hold_ttl = apr_time_from_sec(600),
                        .hold_max_lifetime = apr_time_from_sec(1800),
                        .checkout_ttl = apr_time_from_sec(600),
                        .wait = apr_time_from_sec(10),
                        .hold_places = 8};
    yk_lane_host_t host = {.lanes = lanes,
                           .workers = workers,
                           .identity = yk_worker_identity(getpid()),
                           .realm = 1};
    yk_catalogue_t *catalogue;
    yk_store_t *store;
    apr_pool_t *p;

    apr_pool_create(&p, NULL);
    host.worker = yk_workers_join(workers, 1, 1);
    if (yk_catalogue_create(&catalogue, plans, p) != APR_SUCCESS
        || yk_store_open(&store, server_params("contract", p), p)
               != APR_SUCCESS) {
        told->faults++;
        _exit(1);
    }
    for (uint32_t i = 0; apr_time_now() < until; i++) {
        uint32_t no = (i * 7 + number * 31) % PLACES;
        apr_pool_t *own;
        yk_desk_t *desk;
        yk_reply_t reply;
        apr_status_t rv;

        apr_pool_create(&own, p);
        desk = yk_desk_make(store, catalogue, &terms, own);
        yk_desk_lane(desk, &host);
        told->unknown++;
        rv = hold_one(desk, &reply, no, own);
        if (rv == APR_SUCCESS && reply.answer == YK_ANSWER_HELD) {
            told->held[no]++;
        }
        else if (rv == APR_SUCCESS && reply.answer == YK_ANSWER_TAKEN) {
            told->refused++;
        }
        else {
            fprintf(stderr, "worker %u: status %d, answer %s\n", number, rv,
                    yk_answer_reason(reply.answer));
            told->faults++;
        }
        told->unknown--;
        yk_store_rest(store);
        apr_pool_destroy(own);
    }
    _exit(0);
}

static pid_t hire(uint32_t number, apr_time_t until)
{
    pid_t pid = fork();

    ck_assert_int_ne(pid, -1);
    if (pid == 0) {
        worker(number, until);
    }
    return pid;
}

/* ---- the book ---- */

static void compare_with_book(int killed)
{
    MYSQL *line = book_line();
    long long held = server_number(
        line, "SELECT COUNT(*) FROM yoyaku_slot_place WHERE state=1");
    long long orders =
        server_number(line, "SELECT COUNT(*) FROM yoyaku_order");
    long long lines = server_number(
        line, "SELECT COUNT(*) FROM yoyaku_booking WHERE live=1");
    uint32_t once = 0;

    for (uint32_t i = 0; i < PLACES; i++) {
        ck_assert_uint_le(told->held[i], 1);
        once += told->held[i];
    }
    ck_assert_int_eq(held, PLACES);
    ck_assert_int_eq(orders, PLACES);
    ck_assert_int_eq(lines, PLACES);
    /* Whoever was killed may have held a place and not told us. */
    ck_assert_uint_le(once, PLACES);
    ck_assert_uint_ge(once + (uint32_t) killed, PLACES);
    ck_assert_uint_eq(told->faults, 0);
}

START_TEST(holds_through_a_lane_sell_every_place_once)
{
    apr_time_t until = apr_time_now() + apr_time_from_sec(3);
    pid_t pids[WORKERS];
    int status;

    stage_make();
    for (uint32_t i = 0; i < WORKERS; i++) {
        pids[i] = hire(i, until);
    }
    for (uint32_t i = 0; i < WORKERS; i++) {
        ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
        ck_assert_int_eq(status, 0);
    }
    compare_with_book(0);
    ck_assert_uint_gt(lanes->counts.batches, 0);
    ck_assert_uint_gt(lanes->counts.wishes, lanes->counts.batches);
    stage_end();
}
END_TEST

START_TEST(workers_killed_at_any_moment_lose_and_double_nothing)
{
    apr_time_t until = apr_time_now() + apr_time_from_sec(8);
    pid_t pids[WORKERS];
    int killed = 0;

    stage_make();
    for (uint32_t i = 0; i < WORKERS; i++) {
        pids[i] = hire(i, until);
    }
    while (apr_time_now() < until - apr_time_from_sec(3)) {
        uint32_t i = (uint32_t) rand() % WORKERS;

        apr_sleep(apr_time_from_msec(20));
        kill(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
        yk_workers_bury(workers, (uint32_t) pids[i]);
        killed++;
        pids[i] = hire(i + (uint32_t) killed, until);
    }
    for (uint32_t i = 0; i < WORKERS; i++) {
        int status;

        ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
        ck_assert_int_eq(status, 0);
    }
    compare_with_book(killed);
    stage_end();
}
END_TEST

TCase *lane_case(void)
{
    TCase *tcase = tcase_create("lane");

    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, holds_through_a_lane_sell_every_place_once);
    tcase_add_test(tcase, workers_killed_at_any_moment_lose_and_double_nothing);
    return tcase;
}
