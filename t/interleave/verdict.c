/* SPDX-License-Identifier: Apache-2.0 */
#include "verdict.h"
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

/* Is `word` one of "held|taken"? */
static int is_one_of(const char *word, const char *list)
{
    size_t len = strlen(word);
    const char *at = list;
    while (at) {
        if (strncmp(at, word, len) == 0 && (at[len] == '|' || at[len] == 0)) {
            return 1;
        }
        at = strchr(at, '|');
        at = at ? at + 1 : NULL;
    }
    return 0;
}

/* "3", "<=3", ">=3" */
static int fits(int64_t n, const char *bound)
{
    if (strncmp(bound, "<=", 2) == 0) {
        return n <= atol(bound + 2);
    }
    if (strncmp(bound, ">=", 2) == 0) {
        return n >= atol(bound + 2);
    }
    return n == atol(bound);
}

static int64_t ask_number(const stage_run_t *run, const char *sql,
                          apr_pool_t *p)
{
    const char *text = server_ask(run->world->monitor, sql, p);
    return text && strcmp(text, "NULL") != 0 ? apr_atoi64(text) : 0;
}

/* NAME or NAME.N: the last act of a session, or its Nth */
static const result_t *result_of(const stage_run_t *run, const char *name,
                                 apr_pool_t *p)
{
    const char *dot = strchr(name, '.');
    const char *who =
        dot ? apr_pstrndup(p, name, (apr_size_t)(dot - name)) : name;
    int i;
    for (i = 0; i < run->nplayers; i++) {
        const player_t *player = run->players[i];
        if (strcmp(player->role->name, who) == 0) {
            int n = dot ? atoi(dot + 1) : player->role->acts->nelts;
            if (n < 1 || n > player->role->acts->nelts) {
                script_wrong("no such act", name);
            }
            return &player->results[n - 1];
        }
    }
    return NULL;
}

static const char *word_of(const result_t *result)
{
    return result->word ? result->word : "none";
}

static int one_each(const stage_run_t *run, char *const *words, int n)
{
    int used[16] = {0}, i, k;
    if (n != run->nplayers) {
        script_wrong("one-of: as many words as sessions", run->script->name);
    }
    for (i = 0; i < run->nplayers; i++) {
        const player_t *player = run->players[i];
        const char *word =
            word_of(&player->results[player->role->acts->nelts - 1]);
        for (k = 0; k < n; k++) {
            if (!used[k] && strcmp(words[k], word) == 0) {
                used[k] = 1;
                break;
            }
        }
        if (k == n) {
            return 0;
        }
    }
    return 1;
}

static int order_is(const stage_run_t *run, const char *name,
                    const char *states, apr_pool_t *p)
{
    named_t named;
    const char *state;
    if (!cast_find(run->cast, &named, name)) {
        return is_one_of("none", states);
    }
    state = server_ask(run->world->monitor,
                       apr_psprintf(p,
                                    "SELECT state FROM yoyaku_order WHERE "
                                    "order_id = %" APR_UINT64_T_FMT,
                                    named.order_id),
                       p);
    return is_one_of(state ? yk_order_state_name((yk_order_state_e)atoi(state))
                           : "none",
                     states);
}

static char *place_row(const stage_run_t *run, const char *column,
                       const char *item, apr_pool_t *p)
{
    const char *slash = strchr(item, '/');
    const char *slot = slash ? apr_pstrndup(p, item, (apr_size_t)(slash - item))
                             : world_first_slot(run->script);
    char *row = server_ask(
        run->world->monitor,
        apr_psprintf(p,
                     "SELECT sp.%s FROM yoyaku_slot s JOIN yoyaku_place p ON "
                     "p.hall_id = s.hall_id JOIN yoyaku_slot_place sp ON "
                     "sp.slot_id = s.slot_id AND sp.place_no = p.place_no "
                     "WHERE s.slot_key = '%s' AND p.guid = '%s'",
                     column, slot, slash ? slash + 1 : item),
        p);
    if (!row) {
        script_wrong("no such place", item);
    }
    return row;
}

static int64_t of_order(const stage_run_t *run, const char *format,
                        const char *name, apr_pool_t *p)
{
    named_t named;
    if (!cast_find(run->cast, &named, name)) {
        return 0;
    }
    return ask_number(
        run, apr_psprintf(p, "%s%" APR_UINT64_T_FMT, format, named.order_id),
        p);
}

static int count_holds(const stage_run_t *run, char *const *w, apr_pool_t *p)
{
    const char *sum = "SELECT SUM(b.quantity) FROM yoyaku_booking b ";
    const char *sql = NULL;
    if (strcmp(w[0], "live") == 0) {
        return fits(
            ask_number(run, apr_pstrcat(p, sum, "WHERE b.live", NULL), p),
            w[1]);
    }
    if (strcmp(w[0], "orders") == 0) {
        return fits(ask_number(run, "SELECT COUNT(*) FROM yoyaku_order", p),
                    w[1]);
    }
    if (strcmp(w[0], "pool") == 0) {
        sql = apr_psprintf(p,
                           "SELECT SUM(a.used) FROM yoyaku_lock_anchor a JOIN "
                           "yoyaku_area r ON a.kind = 2 AND a.owner = "
                           "r.slot_id AND a.no = r.area_no WHERE r.name = '%s'",
                           w[1]);
    }
    else if (strcmp(w[0], "quota") == 0) {
        sql = apr_psprintf(p, "%s WHERE b.live AND b.tariff = '%s'", sum, w[1]);
    }
    else if (strcmp(w[0], "booker") == 0) {
        sql = apr_psprintf(p,
                           "%s JOIN yoyaku_order o USING (order_id) WHERE "
                           "b.live AND o.booker = '%s'",
                           sum, w[1]);
    }
    else if (strcmp(w[0], "journal") == 0) {
        sql = apr_psprintf(
            p, "SELECT COUNT(*) FROM yoyaku_journal WHERE why = '%s'", w[1]);
    }
    else {
        script_wrong("not a condition", w[0]);
    }
    return fits(ask_number(run, sql, p), w[2]);
}

static int same_order(const stage_run_t *run, const char *a, const char *b)
{
    named_t one, other;
    return cast_find(run->cast, &one, a) && cast_find(run->cast, &other, b) &&
           one.order_id == other.order_id && one.token && other.token &&
           strcmp(one.token, other.token) == 0;
}

/* Did the session's count find as much as is there at the end? */
static int nothing_since(const stage_run_t *run, const char *who, apr_pool_t *p)
{
    int i;
    for (i = 0; i < run->nplayers; i++) {
        if (strcmp(run->players[i]->role->name, who) == 0) {
            return run->players[i]->counted ==
                   ask_number(run,
                              "SELECT SUM(quantity) FROM yoyaku_booking "
                              "WHERE live = 1",
                              p);
        }
    }
    script_wrong("nothing-since SESSION", who);
}

static int term_holds(const stage_run_t *run, char *const *w, int n,
                      apr_pool_t *p)
{
    const result_t *result;
    if (strcmp(w[0], "not") == 0) {
        return !term_holds(run, w + 1, n - 1, p);
    }
    if (strcmp(w[0], "one-of") == 0) {
        return one_each(run, w + 1, n - 1);
    }
    result = result_of(run, w[0], p);
    if (result && n == 2) {
        return is_one_of(word_of(result), w[1]);
    }
    if (strcmp(w[0], "order") == 0 && n == 3) {
        return order_is(run, w[1], w[2], p);
    }
    if (strcmp(w[0], "same") == 0 && n == 3) {
        return same_order(run, w[1], w[2]);
    }
    if (strcmp(w[0], "nothing-since") == 0 && n == 2) {
        return nothing_since(run, w[1], p);
    }
    if (strcmp(w[0], "late") == 0 && n == 2) {
        return of_order(run,
                        "SELECT late FROM yoyaku_order WHERE order_id = ", w[1],
                        p) == 1;
    }
    if (strcmp(w[0], "lines") == 0 && n == 3) {
        return fits(of_order(run,
                             "SELECT COUNT(*) FROM yoyaku_booking WHERE live "
                             "AND order_id = ",
                             w[1], p),
                    w[2]);
    }
    if (strcmp(w[0], "place") == 0 && n == 3) {
        return is_one_of(
            cast_name_of(run->cast,
                         (uint64_t)apr_strtoi64(
                             place_row(run, "order_id", w[1], p), NULL, 10)),
            w[2]);
    }
    if (strcmp(w[0], "state") == 0 && n == 3) {
        return is_one_of(place_row(run, "state", w[1], p), w[2]);
    }
    return count_holds(run, w, p);
}

/* Terms joined by `and`, alternatives by `or` */
static int conjunction(const stage_run_t *run, char *const *w, int n,
                       apr_pool_t *p)
{
    int i, begin = 0, holds = 1;
    for (i = 0; i <= n; i++) {
        int is_end = i == n;
        if (is_end || strcmp(w[i], "and") == 0 || strcmp(w[i], "or") == 0) {
            holds = holds && term_holds(run, w + begin, i - begin, p);
            begin = i + 1;
            if (!is_end && strcmp(w[i], "or") == 0) {
                if (holds) {
                    return 1;
                }
                holds = 1;
            }
        }
    }
    return holds;
}

int verdict_holds(const stage_run_t *run, const char *condition, apr_pool_t *p)
{
    char *words[64], *rest;
    int n = 0, then = -1, i;
    char *one = apr_strtok(apr_pstrdup(p, condition), " \t", &rest);
    for (; one && n < 64; one = apr_strtok(NULL, " \t", &rest)) {
        words[n++] = one;
    }
    for (i = 0; i < n; i++) {
        if (strcmp(words[i], "then") == 0) {
            then = i;
        }
    }
    if (strcmp(words[0], "if") != 0) {
        return conjunction(run, words, n, p);
    }
    if (then < 0) {
        script_wrong("if without then", condition);
    }
    return !conjunction(run, words + 1, then - 1, p) ||
           conjunction(run, words + then + 1, n - then - 1, p);
}

const char *verdict_of(const stage_run_t *run, apr_pool_t *p)
{
    int i, k;
    for (i = 0; i < run->nplayers; i++) {
        const player_t *player = run->players[i];
        for (k = 0; k < player->role->acts->nelts; k++) {
            if (strcmp(word_of(&player->results[k]), "error") == 0) {
                return apr_psprintf(p, "%s ended with status %d",
                                    player->results[k].act->text,
                                    player->results[k].rv);
            }
        }
    }
    if (run->script->never_1213 && run->deadlocks) {
        return "a deadlock (1213)";
    }
    if (run->script->never_1205 && run->timeouts) {
        return "a lock wait time-out (1205)";
    }
    if (run->script->never_wait && run->waits) {
        return "somebody waited for a row";
    }
    for (i = 0; i < run->script->finals->nelts; i++) {
        const char *condition = ITEM(run->script->finals, i, const char *);
        if (!verdict_holds(run, condition, p)) {
            return apr_pstrcat(p, "not so: finally ", condition, NULL);
        }
    }
    return NULL;
}
