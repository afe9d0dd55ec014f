/* SPDX-License-Identifier: Apache-2.0 */
#include "explore.h"
#include "judge.h"
#include "verdict.h"
#include <apr_strings.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A copy's deadlines stay where they were while the clock goes on: it is made
 * anew before that matters to "600s". */
#define COPY_LASTS apr_time_from_sec(20)

cast_t *explore_begin(world_t *world, const script_t *script, apr_pool_t *p)
{
    cast_t *cast = cast_make(p);
    yk_store_t *store;
    apr_pool_t *ptemp;
    int i, k;

    apr_pool_create(&ptemp, p);
    world_wipe(world);
    if (yk_store_open(&store, world->params, ptemp) != APR_SUCCESS) {
        script_wrong("no store", world->params);
    }
    world_furnish(world, store, script, ptemp);
    for (i = 0; i < script->befores->nelts; i++) {
        const role_t *role = ITEM(script->befores, i, role_t *);
        player_t *player = player_make(world, script, cast, role, ptemp);
        player_perform(player);
        player_leave(player);
        for (k = 0; k < role->acts->nelts; k++) {
            const char *word = player->results[k].word;
            if (!word ||
                (strcmp(word, "ok") != 0 && strcmp(word, "held") != 0)) {
                script_wrong(apr_psprintf(p, "%s: before %s: %s", script->name,
                                          role->name,
                                          player->results[k].act->text),
                             word ? word : "-");
            }
        }
    }
    apr_pool_destroy(ptemp);
    cast->told->nelts = 0;
    world_save(world);
    return cast;
}

typedef struct search_t {
    world_t *world;
    const script_t *script;
    const mutant_t *mutant;
    cast_t *before;
    apr_pool_t *p, *pbefore, *prun;
    explored_t *found;
    int *reached;
    int prefix[256], nprefix;
} search_t;

static void begin_anew(search_t *search)
{
    apr_pool_clear(search->pbefore);
    search->before =
        explore_begin(search->world, search->script, search->pbefore);
}

static void look_for_reached(search_t *search, const stage_run_t *run)
{
    int i;
    for (i = 0; i < search->script->reaches->nelts; i++) {
        if (!search->reached[i]) {
            search->reached[i] = verdict_holds(
                run, ITEM(search->script->reaches, i, const char *),
                search->prun);
        }
    }
}

/* One run; search->prun holds it until the next. */
static stage_run_t *run_once(search_t *search, const stage_plan_t *plan)
{
    stage_run_t *run;
    apr_pool_clear(search->prun);
    if (search->script->fresh ||
        apr_time_now() - search->world->saved_at > COPY_LASTS) {
        begin_anew(search);
    }
    else {
        world_restore(search->world);
    }
    run = stage_run(search->world, search->script, search->before,
                    search->mutant, plan, search->prun);
    search->found->orders++;
    if (getenv("YOYAKU_INTERLEAVE_VERBOSE")) {
        printf("%s:%s\n", search->script->name,
               stage_trail(run, 0, search->prun));
    }
    if (run->failure && search->mutant &&
        !strstr(run->failure, search->mutant->finds)) {
        run->failure = NULL; /* broken, but not in the way it is to show */
    }
    if (run->failure) {
        search->found->failure = apr_psprintf(
            search->p, "%s\n%s\n-- %s%s\n-- order of steps:%s\n-- book:\n%s",
            search->script->name, search->script->text,
            search->mutant ? "(mutant) " : "", run->failure,
            stage_trail(run, 1, search->prun),
            judge_dump(search->world, search->prun));
    }
    else {
        look_for_reached(search, run);
    }
    return run;
}

/* The next prefix in depth-first order. 0: there is none. */
static int next_prefix(search_t *search, const stage_run_t *run)
{
    int k;
    for (k = run->chosen->nelts - 1; k >= 0; k--) {
        if (ITEM(run->chosen, k, int) + 1 < ITEM(run->offered, k, int)) {
            memcpy(search->prefix, run->chosen->elts, sizeof(int) * (size_t)k);
            search->prefix[k] = ITEM(run->chosen, k, int) + 1;
            search->nprefix = k + 1;
            return 1;
        }
    }
    return 0;
}

/* How many orders there are when nobody waits for anybody: (sum)! / prod(n!) */
static double estimate(const stage_run_t *run)
{
    int i, k, all = 0;
    double n = 1;
    for (i = 0; i < run->nplayers; i++) {
        int own = 0;
        for (k = 0; k < run->trail->nelts; k++) {
            own += strcmp(ITEM(run->trail, k, step_t).who,
                          run->players[i]->role->name) == 0;
        }
        for (k = 1; k <= own; k++) {
            all++;
            n = n * all / k;
        }
    }
    return n;
}

static void search_all(search_t *search)
{
    stage_plan_t plan = {0};
    stage_run_t *run;
    int most = search->script->orders_most, draw = 0;
    plan.prefix = search->prefix;
    while (!search->found->failure && search->found->orders < most) {
        plan.nprefix = search->nprefix;
        plan.drawn = draw;
        plan.seed = (uint32_t)search->found->orders * 2654435761u;
        run = run_once(search, &plan);
        if (search->found->failure) {
            return;
        }
        if (search->found->orders == 1) {
            draw = estimate(run) > 4.0 * most;
        }
        if (draw) {
            search->nprefix = 0;
        }
        else if (run->chosen->nelts > 250) {
            script_wrong(search->script->name, "a run of over 250 steps");
        }
        else if (!next_prefix(search, run)) {
            search->found->complete = 1;
            return;
        }
    }
}

explored_t explore(world_t *world, const script_t *script,
                   const mutant_t *mutant, apr_pool_t *p)
{
    explored_t found = {0};
    search_t search = {0};
    int i;
    search.world = world;
    search.script = script;
    search.mutant = mutant;
    search.p = p;
    search.found = &found;
    search.reached = apr_pcalloc(p, sizeof(int) * 32);
    apr_pool_create(&search.prun, p);
    apr_pool_create(&search.pbefore, p);
    begin_anew(&search);
    search_all(&search);
    for (i = 0; i < script->reaches->nelts && !mutant && !found.failure; i++) {
        if (!search.reached[i]) {
            found.failure = apr_psprintf(
                p, "%s: in none of %d orders: %s", script->name, found.orders,
                ITEM(script->reaches, i, const char *));
        }
    }
    apr_pool_destroy(search.prun);
    apr_pool_destroy(search.pbefore);
    return found;
}
