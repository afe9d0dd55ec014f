/* SPDX-License-Identifier: Apache-2.0 */
#include "race.h"
#include "explore.h"
#include "judge.h"
#include <apr_strings.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PLACES 200

/* "?" in a wish is a place drawn at random, "??" two neighbours. */
#define PLACED "hall A:200\nslot s\n"
#define ASSIGNED "hall A:200\nslot s A=assigned\n"
#define POOLED "pool s A=200\n"
#define QUOTA                                                                  \
    "pool s A=200\nprice s adult 100 EUR\nprice s child 50 EUR quota=70\n"
#define MIXED "hall A:80 B:60 C:60\nslot s B=assigned C=pooled:60\n"
#define MIXED_WISHES                                                           \
    {                                                                          \
        "?", "??", "B*2", "B*1", "C*2", "C*1", "? B*1 C*1"                     \
    }
#define QUOTA_WISHES                                                           \
    {                                                                          \
        "A*1:adult", "A*2:adult", "A*1:child", "A*2:adult*1:child"             \
    }

/* name, house, wishes, sessions, churn, lane */
static const race_t races[] = {
    {"placed", PLACED, {"?", "??", "? ?"}, 60, 0, 0},
    {"placed with churn", PLACED, {"?", "??"}, 60, 1, 0},
    {"placed through a lane", PLACED, {"?", "??", "? ?"}, 60, 0, 1},
    {"assigned", ASSIGNED, {"A*1", "A*2", "A*3", "A*4"}, 60, 0, 0},
    {"assigned with churn", ASSIGNED, {"A*1", "A*2", "A*3"}, 60, 1, 0},
    {"assigned through a lane", ASSIGNED, {"A*1", "A*2", "A*3"}, 60, 1, 1},
    {"pooled", POOLED, {"A*1", "A*2", "A*3"}, 60, 0, 0},
    {"pooled with churn and a quota", QUOTA, QUOTA_WISHES, 60, 1, 0},
    {"pooled with a quota through a lane", QUOTA, QUOTA_WISHES, 60, 1, 1},
    {"all three", MIXED, MIXED_WISHES, 60, 0, 0},
    {"all three with churn", MIXED, MIXED_WISHES, 60, 1, 0},
    {"all three through a lane", MIXED, MIXED_WISHES, 60, 1, 1},
    {"first holds on a fresh slot", PLACED, {"?"}, 64, 0, 0},
};

typedef struct runner_t {
    world_t *world;
    const race_t *race;
    const mutant_t *mutant;
    cast_t *cast;
    script_t *script;
    apr_pool_t *p;
    pthread_t thread;
    int number, sold, errors;
    unsigned seed;
    const char *trouble;
    const char *word; /* crowd: what it was told */
    int placed;       /* places that are named, from the first */
    pthread_barrier_t *start;
    const yk_lane_host_t *lane;
} runner_t;

int race_count(void)
{
    return (int)(sizeof(races) / sizeof(races[0]));
}

const char *race_name(int i)
{
    return races[i].name;
}

/* Numbers in marked wishes: "?" a place, "??" it and the next. */
static const char *draw_wish(runner_t *me, apr_pool_t *p)
{
    const char *wish, *at, *text = "";
    int n = 0;
    while (n < 8 && me->race->wishes[n]) {
        n++;
    }
    wish = me->race->wishes[rand_r(&me->seed) % (unsigned)n];
    for (at = wish; *at; at++) {
        int k = (int)(rand_r(&me->seed) % (unsigned)(me->placed - 1)) + 1;
        if (at[0] == '?' && at[1] == '?') {
            text = apr_psprintf(p, "%sA-%d A-%d", text, k, k + 1);
            at++;
        }
        else if (at[0] == '?') {
            text = apr_psprintf(p, "%sA-%d", text, k);
        }
        else {
            text = apr_psprintf(p, "%s%c", text, *at);
        }
    }
    return text;
}

static const char *watch(void *baton, const char *sql, apr_pool_t *p)
{
    runner_t *me = baton;
    return me->mutant ? stage_mutate(sql, me->mutant, p) : sql;
}

/* One visitor: hold, then what he makes of it. */
static const char *visit(runner_t *me, const char *acts, const char *name,
                         int *sold, apr_pool_t *p)
{
    script_t *script = script_parse(name,
                                    apr_pstrcat(p, me->race->house, "session ",
                                                name, " ", acts, "\n", NULL),
                                    p);
    const char *word;
    player_t *player;
    int last;
    player = player_make(me->world, script, me->cast,
                         ITEM(script->sessions, 0, role_t *), p);
    player_watch(player, watch, me);
    player->lane = me->lane;
    player_perform(player);
    player_leave(player);
    if (player->open_lines) {
        me->trouble = "a line was given back inside a transaction";
    }
    last = player->role->acts->nelts - 1;
    word = player->results[last].word;
    if (sold && strcmp(word, "ok") == 0 && player->results[last].reply->order) {
        const yk_order_t *order = player->results[last].reply->order;
        uint32_t i;
        for (i = 0; i < order->nlines; i++) {
            *sold += order->lines[i].live ? (int)order->lines[i].quantity : 0;
        }
    }
    for (last = 0; last < player->role->acts->nelts; last++) {
        if (strstr(
                " busy away unresolved error ",
                apr_pstrcat(p, " ", player->results[last].word, " ", NULL))) {
            me->errors++;
        }
    }
    return word;
}

static void *runner_thread(void *data)
{
    runner_t *me = data;
    apr_pool_t *p;
    int round, rounds = me->race->churn ? 12 : 6;
    mysql_thread_init();
    apr_pool_create(&p, me->p);
    pthread_barrier_wait(me->start);
    for (round = 0; round < rounds; round++) {
        const char *wish = draw_wish(me, p);
        const char *name = apr_psprintf(p, "v%d_%d", me->number, round);
        int how = me->race->churn ? (int)(rand_r(&me->seed) % 4) : 3;
        if (how == 1 && me->lane) {
            how = 0; /* a lane's clock is its leader's */
        }
        if (how == 0) {
            visit(me, apr_psprintf(p, "hold %s then release", wish), name, NULL,
                  p);
        }
        else if (how == 1) {
            /* held an hour ago and left alone: free to the next */
            visit(me, apr_psprintf(p, "clock -3600s then hold %s", wish), name,
                  NULL, p);
        }
        else {
            visit(me, apr_psprintf(p, "hold %s then confirm", wish), name,
                  &me->sold, p);
        }
        apr_pool_clear(p);
    }
    apr_pool_destroy(p);
    mysql_thread_end();
    return NULL;
}

/* What is still free is sold one by one: it must come to 200. */
static int sell_the_rest(runner_t *me, apr_pool_t *p)
{
    static const char *const singles[] = {"A*1", "B*1", "C*1", "A*1:adult"};
    int sold = 0, i, k;
    apr_pool_t *pt;
    apr_pool_create(&pt, p);
    for (i = 1; i <= me->placed; i++) {
        visit(me, apr_psprintf(pt, "hold A-%d then confirm", i),
              apr_psprintf(pt, "rest%d", i), &sold, pt);
        apr_pool_clear(pt);
    }
    for (k = 0; k < 4; k++) {
        const char *word = "ok";
        char area[4] = {singles[k][0], '=', '\0', '\0'};
        int has_tariffs = strstr(me->race->house, "price") != NULL;
        if ((k == 0 && me->placed > 0) || (k == 3) != has_tariffs ||
            (!strstr(me->race->house, area) && k != 3)) {
            continue;
        }
        for (i = 0; i < PLACES + 1 && strcmp(word, "ok") == 0; i++) {
            word =
                visit(me, apr_psprintf(pt, "hold %s then confirm", singles[k]),
                      apr_psprintf(pt, "more%d_%d", k, i), &sold, pt);
            word = apr_pstrdup(p, word);
            apr_pool_clear(pt);
        }
    }
    apr_pool_destroy(pt);
    return sold;
}

/* One host's lanes, in memory like the one that workers share. */
static yk_lane_host_t *make_host(apr_pool_t *p)
{
    yk_lane_host_t *host = apr_pcalloc(p, sizeof(*host));
    host->lanes = mmap(NULL, sizeof(*host->lanes), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    host->workers = mmap(NULL, sizeof(*host->workers), PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (host->lanes == MAP_FAILED || host->workers == MAP_FAILED) {
        script_wrong("no memory for", "lanes");
    }
    yk_lanes_kind.fresh(host->lanes);
    if (yk_workers_kind.fresh) {
        yk_workers_kind.fresh(host->workers);
    }
    host->identity = yk_worker_identity((uint32_t)getpid());
    host->worker = yk_workers_join(host->workers, 1, 1);
    host->realm = 1;
    host->width = 1; /* whatever meets can meet in one batch */
    return host;
}

static const char *drop_host(yk_lane_host_t *host, const char *wrong,
                             apr_pool_t *p)
{
    uint64_t batches = host->lanes->counts.batches;
    uint64_t wishes = host->lanes->counts.wishes;
    munmap(host->lanes, sizeof(*host->lanes));
    munmap(host->workers, sizeof(*host->workers));
    if (!wrong && wishes <= batches) {
        return apr_psprintf(p, "%d wishes in %d batches: nobody shared one",
                            (int)wishes, (int)batches);
    }
    return wrong;
}

static runner_t *start_runners(world_t *world, const race_t *race,
                               const mutant_t *mutant, cast_t *cast,
                               pthread_barrier_t *barrier, void *(*run)(void *),
                               const yk_lane_host_t *lane, apr_pool_t *p)
{
    runner_t *runners =
        apr_pcalloc(p, sizeof(runner_t) * (apr_size_t)(race->sessions + 1));
    int i;
    pthread_barrier_init(barrier, NULL, (unsigned)race->sessions);
    for (i = 0; i <= race->sessions; i++) {
        runner_t *one = &runners[i];
        one->world = world;
        one->race = race;
        one->mutant = mutant;
        one->cast = cast;
        one->number = i;
        one->seed = (unsigned)i * 7919u + 1;
        one->p = cast_pool(p);
        one->start = barrier;
        one->lane = lane;
        one->placed = strstr(race->house, "A:80") ? 80
                      : strstr(race->house, "A=") ? 0
                                                  : PLACES;
    }
    for (i = 0; i < race->sessions; i++) {
        pthread_create(&runners[i].thread, NULL, run, &runners[i]);
    }
    return runners;
}

static const char *check(world_t *world, const runner_t *runners, int n,
                         int sold, apr_pool_t *p)
{
    const char *book = server_ask(
        world->monitor,
        "SELECT SUM(b.quantity) FROM yoyaku_booking b JOIN yoyaku_order o "
        "USING (order_id) WHERE b.live = 1 AND o.state = 3",
        p);
    int i;
    for (i = 0; i <= n; i++) {
        if (runners[i].trouble) {
            return runners[i].trouble;
        }
        if (runners[i].errors) {
            return apr_psprintf(p,
                                "visitor %d got %d answers that are none "
                                "(busy, away)",
                                i, runners[i].errors);
        }
    }
    if (sold != PLACES || atoi(book) != PLACES) {
        return apr_psprintf(p,
                            "%d were told sold, %s are in the book, %d there "
                            "are",
                            sold, book, PLACES);
    }
    return NULL;
}

/* ---- one order, many hands ---- */

static void *crowd_thread(void *data)
{
    runner_t *me = data;
    apr_pool_t *p;
    mysql_thread_init();
    apr_pool_create(&p, me->p);
    pthread_barrier_wait(me->start);
    me->word =
        visit(me, "release @x", apr_psprintf(p, "v%d", me->number), NULL, p);
    mysql_thread_end();
    return NULL;
}

const char *race_release(world_t *world, apr_pool_t *p)
{
    static const race_t crowd = {
        "released by fifty at once",
        "hall A:4 P:1 C:4\nslot s P=pooled:9 C=assigned\n"
        "price s adult 100 EUR quota=20\n",
        {0},
        50,
        0,
        0};
    script_t *script = script_parse(
        crowd.name,
        apr_pstrcat(p, crowd.house,
                    "before x hold A-1 A-2 P*3 C*2\nbefore y hold A-3 P*4 C*1\n"
                    "session a sweep\n",
                    NULL),
        p);
    cast_t *cast = explore_begin(world, script, p);
    pthread_barrier_t barrier;
    runner_t *runners = start_runners(world, &crowd, NULL, cast, &barrier,
                                      crowd_thread, NULL, p);
    const char *left;
    int k;
    for (k = 0; k < crowd.sessions; k++) {
        pthread_join(runners[k].thread, NULL);
        if (strcmp(runners[k].word, "ok") != 0) {
            return apr_psprintf(p, "one of fifty was told %s", runners[k].word);
        }
    }
    left = server_ask_all(world->monitor,
                          "SELECT GROUP_CONCAT(used ORDER BY kind, no) FROM "
                          "yoyaku_lock_anchor WHERE kind >= 2",
                          p);
    if (strcmp(left, "4,1,6\n") != 0) {
        return apr_pstrcat(p, "counted in pool, section, quota: ", left, NULL);
    }
    return judge_final(world, cast, script, p);
}

const char *race_run(world_t *world, int i, const mutant_t *mutant,
                     apr_pool_t *p)
{
    const race_t *race = &races[i];
    cast_t *cast;
    runner_t *runners;
    pthread_barrier_t barrier;
    script_t *script;
    yk_lane_host_t *host = race->lane ? make_host(p) : NULL;
    const char *wrong;
    int k, sold = 0;
    script = script_parse(
        race->name, apr_pstrcat(p, race->house, "session a sweep\n", NULL), p);
    cast = explore_begin(world, script, p);
    runners = start_runners(world, race, mutant, cast, &barrier, runner_thread,
                            host, p);
    for (k = 0; k < race->sessions; k++) {
        pthread_join(runners[k].thread, NULL);
        sold += runners[k].sold;
    }
    sold += sell_the_rest(&runners[race->sessions], p);
    wrong = check(world, runners, race->sessions, sold, p);
    if (!wrong) {
        wrong = judge_final(world, cast, script, p);
    }
    if (host) {
        wrong = drop_host(host, wrong, p);
    }
    return wrong ? apr_pstrcat(p, race->name, ": ", wrong, NULL) : NULL;
}
