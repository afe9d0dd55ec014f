/* SPDX-License-Identifier: Apache-2.0 */
#include "view.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** With `best` everybody reaches for one of the first so many. */
#define BEST_AMONG 24

void load_view_init(load_view_t *view, uint32_t nplaces)
{
    view->nplaces = view->nfree = nplaces;
    view->states = malloc((size_t)nplaces + 1);
    if (view->states == NULL) {
        perror("driver: memory");
        exit(1);
    }
    memset(view->states, '0', nplaces);
    view->states[nplaces] = '\0';
}

int load_view_read(load_view_t *view, const char *body, size_t len)
{
    static const char mark[] = "\"places\":\"";
    const char *end = body + len;
    uint32_t at = 0, nfree = 0;

    for (;;) {
        body = memmem(body, (size_t)(end - body), mark, sizeof(mark) - 1);
        if (body == NULL) {
            break;
        }
        body += sizeof(mark) - 1;
        for (; body < end && *body >= '0' && *body <= '9'; body++) {
            if (at == view->nplaces) {
                return 0;
            }
            view->states[at++] = *body;
            nfree += *body == '0';
        }
    }
    view->nfree = nfree;
    return at == view->nplaces;
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
