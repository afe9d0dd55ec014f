/* SPDX-License-Identifier: Apache-2.0 */
#include "stage.h"
#include "judge.h"
#include "verdict.h"
#include <apr_strings.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef enum where_e { AT_GATE, GOING, GONE } where_e;

struct stage_t;

/* A session, or the packet that one lost and that arrives late. */
typedef struct actor_t {
    struct stage_t *stage;
    player_t *player; /* NULL: a late packet */
    const char *name;
    pthread_t thread;
    where_e where;
    int go;
    const char *sql; /* at the gate: the packet */
    packet_e kind;
    int since; /* at the gate since this step */
    int fd;    /* a late packet's line */
    unsigned long line_id;
} actor_t;

#define ACTORS_MOST 16

typedef struct stage_t {
    pthread_mutex_t mutex;
    pthread_cond_t moved;   /* an actor came to a gate or has gone */
    pthread_cond_t gone_on; /* an actor may go */
    unsigned changes;       /* +1 at every such move */
    int free;               /* the run failed: everybody may go */
    actor_t actors[ACTORS_MOST];
    int nactors;
    const mutant_t *mutant;
    stage_run_t *run;
    apr_pool_t *p;     /* the scheduler's, and under the mutex */
    apr_pool_t *pstep; /* of one look */
    int last;          /* who went last; -1 nobody */
    packet_e last_kind;
    uint32_t random;
} stage_t;

static const char *replace(const char *sql, const char *find, const char *put,
                           apr_pool_t *p)
{
    const char *done = "", *at;
    for (at = strstr(sql, find); at; at = strstr(sql, find)) {
        done = apr_pstrcat(
            p, done, apr_pstrndup(p, sql, (apr_size_t)(at - sql)), put, NULL);
        sql = at + strlen(find);
    }
    return *done ? apr_pstrcat(p, done, sql, NULL) : sql;
}

const char *stage_mutate(const char *sql, const mutant_t *mutant, apr_pool_t *p)
{
    int i;
    for (i = 0; mutant->find[i]; i++) {
        sql = replace(sql, mutant->find[i], mutant->put[i], p);
    }
    return sql;
}

/* ---- in the sessions' threads ---- */

/* Wait until the stage lets this packet go. Mutex held. */
static void wait_at_gate(actor_t *actor, const char *sql)
{
    stage_t *stage = actor->stage;
    actor->sql = apr_pstrdup(stage->p, sql);
    actor->kind = packet_of(sql);
    actor->since = stage->run->trail->nelts;
    actor->where = AT_GATE;
    actor->go = 0;
    stage->changes++;
    pthread_cond_signal(&stage->moved);
    while (!actor->go && !stage->free) {
        pthread_cond_wait(&stage->gone_on, &stage->mutex);
    }
    actor->where = GOING;
}

static void go_away(actor_t *actor)
{
    stage_t *stage = actor->stage;
    pthread_mutex_lock(&stage->mutex);
    actor->where = GONE;
    stage->changes++;
    pthread_cond_signal(&stage->moved);
    pthread_mutex_unlock(&stage->mutex);
}

static void *late_thread(void *data)
{
    actor_t *me = data;
    pthread_mutex_lock(&me->stage->mutex);
    wait_at_gate(me, me->sql);
    pthread_mutex_unlock(&me->stage->mutex);
    loss_deliver(me->fd, me->sql);
    go_away(me);
    return NULL;
}

static void add_late(stage_t *stage, const actor_t *of, int fd, const char *sql)
{
    actor_t *late;
    pthread_mutex_lock(&stage->mutex);
    if (stage->nactors == ACTORS_MOST) {
        script_wrong("too many", "late packets");
    }
    late = &stage->actors[stage->nactors];
    late->stage = stage;
    late->name = apr_pstrcat(stage->p, of->name, "'s lost packet", NULL);
    late->fd = fd;
    late->line_id = of->player->line_id;
    late->sql = apr_pstrdup(stage->p, sql);
    late->where = GOING;
    stage->nactors++;
    pthread_create(&late->thread, NULL, late_thread, late);
    pthread_mutex_unlock(&stage->mutex);
}

/* The product's watch: every packet of a session comes by here. */
static const char *gate(void *baton, const char *sql, apr_pool_t *p)
{
    actor_t *me = baton;
    stage_t *stage = me->stage;
    loss_e how;
    int fd;
    if (stage->mutant) {
        sql = stage_mutate(sql, stage->mutant, p);
    }
    pthread_mutex_lock(&stage->mutex);
    wait_at_gate(me, sql);
    pthread_mutex_unlock(&stage->mutex);
    how = me->player->line ? loss_of(me->player, me->kind) : LOSS_NONE;
    if (how != LOSS_NONE) {
        sql = loss_break(me->player, &fd, sql, how, p);
        if (fd >= 0) {
            add_late(stage, me, fd, sql);
        }
    }
    return sql;
}

/* A worker's sudden end, in its own thread: nothing of it runs any more. */
static void die(void *baton)
{
    mysql_thread_end();
    go_away(baton);
    pthread_exit(NULL);
}

static void *session_thread(void *data)
{
    actor_t *me = data;
    mysql_thread_init();
    player_perform(me->player);
    player_leave(me->player);
    mysql_thread_end();
    go_away(me);
    return NULL;
}

/* ---- the scheduler ---- */

static int going(stage_t *stage, unsigned long *ids)
{
    int i, n = 0;
    for (i = 0; i < stage->nactors; i++) {
        actor_t *actor = &stage->actors[i];
        if (actor->where == GOING) {
            ids[n++] = actor->player ? actor->player->line_id : actor->line_id;
        }
    }
    return n;
}

/* "await a.2": not before session a has done its second act. */
static int is_ready(const stage_t *stage, const actor_t *actor)
{
    const stage_run_t *run = stage->run;
    const char *name, *dot;
    int i;
    if (actor->where != AT_GATE || strncmp(actor->sql, "await ", 6) != 0) {
        return actor->where == AT_GATE;
    }
    name = actor->sql + 6;
    dot = strchr(name, '.');
    for (i = 0; dot && i < run->nplayers; i++) {
        const player_t *player = run->players[i];
        int n = atoi(dot + 1);
        if (strncmp(player->role->name, name, (size_t)(dot - name)) == 0 &&
            player->role->name[dot - name] == '\0' && n >= 1 &&
            n <= player->role->acts->nelts) {
            return player->results[n - 1].word != NULL;
        }
    }
    script_wrong("await SESSION.ACT", actor->sql);
}

static int at_gates(const stage_t *stage)
{
    int i, n = 0;
    for (i = 0; i < stage->nactors; i++) {
        n += is_ready(stage, &stage->actors[i]);
    }
    return n;
}

/* Mutex held. Wait for a move, or a little while. 1: something moved. */
static int moved_within(stage_t *stage, long us)
{
    unsigned before = stage->changes;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += us * 1000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    while (stage->changes == before) {
        if (pthread_cond_timedwait(&stage->moved, &stage->mutex, &until) != 0) {
            break;
        }
    }
    return stage->changes != before;
}

/* Do all that are under way wait for row locks? Asked twice: one that was
 * chosen to end a deadlock seems to wait for a moment. Mutex held. */
static int all_wait(stage_t *stage, const unsigned long *ids, int n)
{
    unsigned before = stage->changes;
    int i, wait = 1;
    for (i = 0; i < 2 && wait; i++) {
        pthread_mutex_unlock(&stage->mutex);
        wait =
            server_all_wait(stage->run->world->monitor, ids, n, stage->pstep);
        pthread_mutex_lock(&stage->mutex);
        if (wait && i == 0) {
            wait = !moved_within(stage, 300);
        }
    }
    return wait && stage->changes == before;
}

/* Mutex held. @return 0: nothing moves any more, and it should */
static int wait_until_quiet(stage_t *stage)
{
    apr_time_t end = apr_time_now() + apr_time_from_sec(30);
    while (apr_time_now() < end) {
        unsigned long ids[ACTORS_MOST];
        int n = going(stage, ids);
        if (n == 0) {
            return 1;
        }
        if (!moved_within(stage, 1500) && at_gates(stage) > 0 &&
            all_wait(stage, ids, n)) {
            return 1;
        }
    }
    return 0;
}

static int is_blind(packet_e kind)
{
    return kind == PACKET_READ || kind == PACKET_LOCK;
}

/* Of two steps that cannot notice each other only one order is tried. */
static int is_twin(const stage_t *stage, int i)
{
    const actor_t *actor = &stage->actors[i];
    return stage->last > i && actor->since < stage->run->trail->nelts &&
           is_blind(actor->kind) && is_blind(stage->last_kind) &&
           (actor->kind == PACKET_READ || stage->last_kind == PACKET_READ);
}

static int candidates(const stage_t *stage, int *list)
{
    int i, n = 0;
    for (i = 0; i < stage->nactors; i++) {
        if (is_ready(stage, &stage->actors[i]) && !is_twin(stage, i)) {
            list[n++] = i;
        }
    }
    for (i = 0; n == 0 && i < stage->nactors; i++) {
        if (is_ready(stage, &stage->actors[i])) {
            list[n++] = i;
        }
    }
    return n;
}

static int choose(stage_t *stage, const stage_plan_t *plan, int n)
{
    stage_run_t *run = stage->run;
    int k = run->chosen->nelts, choice = 0;
    if (k < plan->nprefix) {
        choice = plan->prefix[k] < n ? plan->prefix[k] : n - 1;
    }
    else if (plan->drawn) {
        stage->random = stage->random * 1664525u + 1013904223u;
        choice = (int)((stage->random >> 16) % (uint32_t)n);
    }
    APR_ARRAY_PUSH(run->chosen, int) = choice;
    APR_ARRAY_PUSH(run->offered, int) = n;
    return choice;
}

static void let_go(stage_t *stage, int i)
{
    actor_t *actor = &stage->actors[i];
    step_t *step = apr_array_push(stage->run->trail);
    loss_e how =
        actor->player ? loss_of(actor->player, actor->kind) : LOSS_NONE;
    step->who = actor->name;
    step->kind = actor->kind;
    step->sql = actor->sql;
    step->note = how ? apr_pstrcat(stage->p, " (breaks: ", actor->player->lose,
                                   ")", NULL)
                     : "";
    stage->last = i;
    stage->last_kind = how ? PACKET_OTHER : actor->kind;
    actor->go = 1;
    actor->where = GOING;
    pthread_cond_broadcast(&stage->gone_on);
}

static void note_waiting(stage_t *stage)
{
    stage_run_t *run = stage->run;
    if (stage->last >= 0 && stage->actors[stage->last].where == GOING) {
        step_t *step = &ITEM(run->trail, run->trail->nelts - 1, step_t);
        step->note = apr_pstrcat(stage->p, step->note, " (waits)", NULL);
        run->waits++;
    }
}

/* Mutex held. */
static void schedule(stage_t *stage, const stage_plan_t *plan)
{
    stage_run_t *run = stage->run;
    int list[ACTORS_MOST], n;
    for (;;) {
        if (!wait_until_quiet(stage)) {
            run->failure = "nothing moves any more";
            return;
        }
        note_waiting(stage);
        apr_pool_clear(stage->pstep);
        if (!plan->blind && stage->last >= 0 &&
            stage->last_kind != PACKET_READ &&
            stage->last_kind != PACKET_LOCK) {
            run->failure = judge_state(run->world, run->cast, stage->p);
        }
        n = candidates(stage, list);
        if (n == 0 || run->failure) {
            return;
        }
        let_go(stage, list[choose(stage, plan, n)]);
    }
}

static void start(stage_t *stage, const cast_t *before)
{
    stage_run_t *run = stage->run;
    int i;
    run->cast = cast_copy(before, stage->p);
    run->nplayers = run->script->sessions->nelts;
    run->players =
        apr_pcalloc(stage->p, sizeof(player_t *) * (apr_size_t)run->nplayers);
    for (i = 0; i < run->nplayers; i++) {
        const role_t *role = ITEM(run->script->sessions, i, role_t *);
        actor_t *actor = &stage->actors[i];
        apr_pool_t *own;
        own = cast_pool(stage->p);
        run->players[i] =
            player_make(run->world, run->script, run->cast, role, own);
        player_warm(run->players[i]);
        actor->stage = stage;
        actor->player = run->players[i];
        actor->name = role->name;
        actor->where = GOING;
        player_watch(run->players[i], gate, actor);
        run->players[i]->die = die;
    }
    stage->nactors = run->nplayers;
    for (i = 0; i < run->nplayers; i++) {
        pthread_create(&stage->actors[i].thread, NULL, session_thread,
                       &stage->actors[i]);
    }
}

static void finish(stage_t *stage)
{
    int i;
    stage->free = 1;
    pthread_cond_broadcast(&stage->gone_on);
    pthread_mutex_unlock(&stage->mutex);
    for (i = 0; i < stage->nactors; i++) {
        pthread_join(stage->actors[i].thread, NULL);
    }
}

static void judge_end(stage_run_t *run, const stage_plan_t *plan, apr_pool_t *p)
{
    int i;
    for (i = 0; i < run->nplayers && !run->failure; i++) {
        if (run->players[i]->open_lines) {
            run->failure = "a line was given back inside a transaction";
        }
    }
    if (!run->failure && !plan->blind) {
        run->failure = judge_final(run->world, run->cast, run->script, p);
    }
    if (!run->failure) {
        run->failure = verdict_of(run, p);
    }
}

stage_run_t *stage_run(world_t *world, const script_t *script,
                       const cast_t *before, const mutant_t *mutant,
                       const stage_plan_t *plan, apr_pool_t *p)
{
    stage_t *stage = apr_pcalloc(p, sizeof(*stage));
    stage_run_t *run = apr_pcalloc(p, sizeof(*run));
    long deadlocks, timeouts;

    run->world = world;
    run->script = script;
    run->chosen = apr_array_make(p, 16, sizeof(int));
    run->offered = apr_array_make(p, 16, sizeof(int));
    run->trail = apr_array_make(p, 16, sizeof(step_t));
    stage->run = run;
    stage->mutant = mutant;
    stage->p = p;
    stage->last = -1;
    stage->random = plan->seed;
    apr_pool_create(&stage->pstep, p);
    pthread_mutex_init(&stage->mutex, NULL);
    pthread_cond_init(&stage->moved, NULL);
    pthread_cond_init(&stage->gone_on, NULL);
    server_counts(world->monitor, &deadlocks, &timeouts, p);

    start(stage, before);
    pthread_mutex_lock(&stage->mutex);
    schedule(stage, plan);
    finish(stage);
    server_counts(world->monitor, &run->deadlocks, &run->timeouts, p);
    run->deadlocks -= deadlocks;
    run->timeouts -= timeouts;
    judge_end(run, plan, p);
    return run;
}

char *stage_trail(const stage_run_t *run, int sql, apr_pool_t *p)
{
    apr_array_header_t *parts = apr_array_make(p, 64, sizeof(char *));
    int i;
    for (i = 0; i < run->trail->nelts; i++) {
        const step_t *step = &ITEM(run->trail, i, step_t);
        APR_ARRAY_PUSH(parts, const char *) =
            apr_psprintf(p, "%s%d. %s %s%s", sql ? "\n" : "  ", i + 1,
                         step->who, packet_name(step->kind), step->note);
        if (sql) {
            APR_ARRAY_PUSH(parts, const char *) =
                apr_psprintf(p, "\n     %.1500s", step->sql);
        }
    }
    for (i = 0; i < run->nplayers; i++) {
        const player_t *player = run->players[i];
        int k;
        APR_ARRAY_PUSH(parts, const char *) =
            apr_pstrcat(p, "\n   ", player->role->name, " was told:", NULL);
        for (k = 0; k < player->role->acts->nelts; k++) {
            APR_ARRAY_PUSH(parts, const char *) = " ";
            APR_ARRAY_PUSH(parts, const char *) =
                player->results[k].word ? player->results[k].word : "-";
        }
    }
    return apr_array_pstrcat(p, parts, 0);
}
