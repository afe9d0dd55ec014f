/* SPDX-License-Identifier: Apache-2.0 */
#include "../../mod_yoyaku/core/batch.h"
#include "play_act.h"
#include <apr_strings.h>
#include <string.h>

#define PARTS_MOST 8

/* One wish of the batch. */
typedef struct part_t {
    act_t *act;
    const char *name; /* of the order it is about, or begins */
    named_t order;
    yk_ask_t ask;
    yk_turn_t *turn;
    const char *word;
} part_t;

/* "hold A-1 A-2 booker=bob" */
static act_t *read_part(char *text, apr_pool_t *p)
{
    act_t *act = apr_pcalloc(p, sizeof(*act));
    char *rest, *word;

    act->text = apr_pstrdup(p, text);
    act->items = apr_array_make(p, 4, sizeof(char *));
    act->options = apr_table_make(p, 4);
    act->verb = apr_strtok(text, " ", &rest);
    for (word = apr_strtok(NULL, " ", &rest); word;
         word = apr_strtok(NULL, " ", &rest)) {
        char *equals = strchr(word, '=');
        if (*word == '@') {
            act->order = word + 1;
        }
        else if (equals) {
            *equals = '\0';
            apr_table_setn(act->options, word, equals + 1);
        }
        else {
            APR_ARRAY_PUSH(act->items, const char *) = word;
        }
    }
    return act;
}

static int read_parts(player_t *me, part_t *parts, const act_t *act)
{
    char *text = apr_pstrdup(me->p, act->text + strlen("batch"));
    char *rest, *one;
    int n = 0;

    for (one = apr_strtok(text, "|", &rest); one && n < PARTS_MOST;
         one = apr_strtok(NULL, "|", &rest)) {
        parts[n].act = read_part(one, me->p);
        parts[n].name =
            parts[n].act->order
                ? parts[n].act->order
                : apr_psprintf(me->p, "%s%d", me->role->name, n + 1);
        n++;
    }
    return n;
}

static yk_ask_e kind_of(const char *verb)
{
    static const struct {
        const char *verb;
        yk_ask_e kind;
    } kinds[] = {{"hold", YK_ASK_HOLD},         {"add", YK_ASK_HOLD},
                 {"exchange", YK_ASK_EXCHANGE}, {"checkout", YK_ASK_CHECKOUT},
                 {"reopen", YK_ASK_REOPEN},     {"confirm", YK_ASK_CONFIRM},
                 {"pay", YK_ASK_CONFIRM},       {"release", YK_ASK_RELEASE},
                 {"cancel", YK_ASK_CANCEL}};
    size_t i;

    for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(kinds[i].verb, verb) == 0) {
            return kinds[i].kind;
        }
    }
    script_wrong("cannot stand in a batch", verb);
}

static void ask_for(player_t *me, part_t *part)
{
    const act_t *act = part->act;
    yk_ask_t *ask = &part->ask;

    memset(ask, 0, sizeof(*ask));
    ask->kind = kind_of(act->verb);
    ask->amount = -1;
    ask->currency = "";
    ask->why = ask->kind == YK_ASK_HOLD ? "hold" : act->verb;
    ask->once = play_once(me, act);
    if (strcmp(act->verb, "hold") != 0) {
        ask->claim = play_claim(me, &part->order, act, part->name);
        if (!ask->claim) {
            script_wrong("no such order", part->name);
        }
    }
    if (ask->kind == YK_ASK_HOLD || ask->kind == YK_ASK_EXCHANGE) {
        ask->wish = play_wish(me, act);
    }
    if (ask->kind == YK_ASK_EXCHANGE) {
        ask->give =
            play_gives(&ask->ngive, apr_table_get(act->options, "give"), me->p);
    }
    if (strcmp(act->verb, "pay") == 0) {
        ask->why = "confirm";
        ask->payment = play_payment(me, act, &part->order);
    }
}

static void learn(player_t *me, const part_t *part, apr_status_t rv,
                  const yk_reply_t *reply)
{
    cast_learn(me->cast, part->name,
               apr_psprintf(me->p, "%s: %s", me->role->name, part->act->text),
               rv == APR_SUCCESS && !me->dead, reply);
}

/* Those that are open go in one transaction. */
static void run_open(player_t *me, part_t *parts, int n, const act_t *act,
                     int was_next)
{
    yk_turn_t *turns = apr_pcalloc(me->p, sizeof(*turns) * (apr_size_t)n);
    uint32_t open = 0;
    int i;

    for (i = 0; i < n; i++) {
        if (parts[i].turn && parts[i].turn->turn != YK_TURN_NEXT) {
            continue;
        }
        ask_for(me, &parts[i]);
        parts[i].turn = &turns[open++];
        parts[i].turn->was_next = was_next;
        yk_deed_make(&parts[i].turn->deed, play_desk_for(me, parts[i].act),
                     &parts[i].ask, &parts[i].turn->reply, me->p);
    }
    if (open > 0) {
        yk_batch_run(play_desk_for(me, act), turns, open, NULL, NULL, me->p);
    }
}

static void finish(player_t *me, part_t *part)
{
    yk_reply_t *reply = &part->turn->reply;
    const char *name;
    apr_status_t rv = APR_SUCCESS;

    if (part->turn->turn == YK_TURN_UNRESOLVED) {
        part->word = "unresolved";
        return;
    }
    if (part->turn->turn != YK_TURN_DONE) {
        reply = apr_pcalloc(me->p, sizeof(*reply));
        rv = play_desk(me, reply, part->act, &name);
        yk_store_rest(me->store);
    }
    if (rv == APR_SUCCESS || rv == APR_INCOMPLETE) {
        learn(me, part, rv, reply);
    }
    part->word = play_word(rv, reply);
}

const char *play_batch(player_t *me, const act_t *act)
{
    part_t parts[PARTS_MOST];
    const char *words = "";
    int n, i;

    memset(parts, 0, sizeof(parts));
    n = read_parts(me, parts, act);
    run_open(me, parts, n, act, 0);
    run_open(me, parts, n, act, 1);
    yk_store_rest(me->store);
    for (i = 0; i < n; i++) {
        finish(me, &parts[i]);
        words = apr_pstrcat(me->p, words, i ? "+" : "", parts[i].word, NULL);
    }
    return words;
}
