/* SPDX-License-Identifier: Apache-2.0 */
#include "view.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** With `best` everybody reaches for one of the first so many. */
#define BEST_AMONG 24

void load_view_init(load_view_t *view, const load_script_t *script)
{
    uint32_t nplaces = script->nplaces;

    view->script = script;
    view->nplaces = view->nfree = nplaces;
    for (uint32_t i = 0; i < script->nareas; i++) {
        view->left[i] = UINT32_MAX; /* nobody has looked yet */
    }
    view->states = malloc((size_t)nplaces + 1);
    if (view->states == NULL) {
        perror("driver: memory");
        exit(1);
    }
    memset(view->states, '0', nplaces);
    view->states[nplaces] = '\0';
}

/** The first `mark` of the bytes. @return what stands behind it, or NULL */
static const char *behind(const char *from, const char *end, const char *mark)
{
    size_t len = strlen(mark);
    const char *found = memmem(from, (size_t)(end - from), mark, len);

    return found == NULL ? NULL : found + len;
}

static void areas_read(load_view_t *view, const char *body, const char *end)
{
    for (uint32_t i = 0; i < view->script->nareas; i++) {
        char mark[300];
        const char *at;

        snprintf(mark, sizeof(mark), "\"section\":\"%s\"",
                 view->script->areas[i].name);
        at = behind(body, end, mark);
        at = at == NULL ? NULL : behind(at, end, "\"free\":");
        view->left[i] = at == NULL ? 0 : (uint32_t)strtoul(at, NULL, 10);
    }
}

int load_view_read(load_view_t *view, const char *body, size_t len)
{
    const char *end = body + len;
    uint32_t at = 0, nfree = 0;

    areas_read(view, body, end);
    for (;;) {
        const char *from = body;
        const char *house;

        body = behind(body, end, "\"places\":\"");
        if (body == NULL) {
            break;
        }
        house = behind(from, body, "\"mode\":\"assigned\"");
        for (; body < end && *body >= '0' && *body <= '9'; body++) {
            if (at == view->nplaces) {
                return 0;
            }
            view->states[at++] = house != NULL ? LOAD_VIEW_HOUSE : *body;
            nfree += house == NULL && *body == '0';
        }
    }
    view->nfree = nfree;
    return at == view->nplaces;
}

uint32_t load_view_other(const load_view_t *views, uint32_t slot, int area,
                         uint64_t *random)
{
    uint32_t n = views->script->nslots;
    uint32_t from = load_random_below(random, n);

    for (uint32_t i = 0; i < n; i++) {
        uint32_t other = (from + i) % n;
        const load_view_t *view = &views[other];

        if (other != slot && (area < 0 ? view->nfree : view->left[area]) > 0) {
            return other;
        }
    }
    return slot;
}

void load_view_set(load_view_t *view, uint32_t place, char state)
{
    view->nfree -= view->states[place] == '0';
    view->nfree += state == '0';
    view->states[place] = state;
}

uint32_t load_view_choose(const load_view_t *view, uint32_t *places, uint32_t n,
                          load_spread_e spread, int blind, uint64_t *random)
{
    uint32_t found = 0, at, skip;

    if (view->nplaces == 0) {
        return 0;
    }
    at = spread == LOAD_SPREAD_BEST ? 0
                                    : load_random_below(random, view->nplaces);
    skip =
        spread == LOAD_SPREAD_BEST ? load_random_below(random, BEST_AMONG) : 0;
    if (!blind && skip + n > view->nfree) {
        skip = view->nfree > n ? view->nfree - n : 0;
    }
    for (uint32_t i = 0; i < view->nplaces && found < n; i++) {
        uint32_t place = (at + i) % view->nplaces;

        if (!blind && view->states[place] != '0') {
            continue;
        }
        if (skip > 0) {
            skip--;
            continue;
        }
        places[found++] = place;
    }
    return found;
}
