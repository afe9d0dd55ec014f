/* SPDX-License-Identifier: Apache-2.0 */
#include "play_act.h"
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

/* [SLOT/]PLACE[:TARIFF]   [SLOT/]AREA*N[:TARIFF]
 * [SLOT/]AREA*N:TARIFF*M:TARIFF: N of the first, M of the second */
void play_item(yk_wish_line_t *line, const char *item, const char *slot,
               apr_pool_t *p)
{
    char *text = apr_pstrdup(p, item), *slash = strchr(text, '/');
    char *rest, *head, *tariff, *star;
    uint32_t n = 1;
    line->slot = slot;
    if (slash) {
        *slash = '\0';
        line->slot = text;
        text = slash + 1;
    }
    head = apr_strtok(text, ":", &rest);
    star = strchr(head, '*');
    if (star) {
        *star = '\0';
        line->area = head;
        n = (uint32_t)atoi(star + 1);
    }
    else {
        line->place = head;
    }
    line->field = apr_pstrdup(p, item);
    line->nparts = 1;
    line->parts[0].quantity = n;
    for (tariff = apr_strtok(NULL, ":", &rest); tariff;
         tariff = apr_strtok(NULL, ":", &rest)) {
        star = strchr(tariff, '*');
        if (star) {
            *star = '\0';
        }
        line->parts[line->nparts - 1].tariff = tariff;
        if (star) {
            line->parts[line->nparts++].quantity = (uint32_t)atoi(star + 1);
        }
    }
}

/* "A-3..9": A-3 A-4 .. A-9 */
static apr_array_header_t *spread(const apr_array_header_t *items,
                                  apr_pool_t *p)
{
    apr_array_header_t *list = apr_array_make(p, 16, sizeof(char *));
    int i, k;
    for (i = 0; i < items->nelts; i++) {
        const char *item = ITEM(items, i, const char *);
        const char *dots = strstr(item, "..");
        const char *dash = strrchr(item, '-');
        if (!dots || !dash) {
            APR_ARRAY_PUSH(list, const char *) = item;
            continue;
        }
        for (k = atoi(dash + 1); k <= atoi(dots + 2); k++) {
            APR_ARRAY_PUSH(list, const char *) =
                apr_psprintf(p, "%.*s%d", (int)(dash + 1 - item), item, k);
        }
    }
    return list;
}

yk_wish_t *play_wish(const player_t *me, const act_t *act)
{
    yk_wish_t *wish = apr_pcalloc(me->p, sizeof(*wish));
    const char *slot = world_first_slot(me->script);
    const apr_array_header_t *items = spread(act->items, me->p);
    int i;
    wish->nlines = (uint32_t)items->nelts;
    wish->lines = apr_pcalloc(me->p, sizeof(yk_wish_line_t) * wish->nlines);
    for (i = 0; i < items->nelts; i++) {
        play_item(&wish->lines[i], ITEM(items, i, const char *), slot, me->p);
    }
    wish->together = apr_table_get(act->options, "together") != NULL;
    wish->confirm = apr_table_get(act->options, "confirm") != NULL;
    return wish;
}

/* "1,2*1": line 1, and one of line 2 */
yk_give_t *play_gives(uint32_t *n, const char *text, apr_pool_t *p)
{
    yk_give_t *gives = apr_pcalloc(p, sizeof(*gives) * 16);
    char *rest, *one;
    *n = 0;
    for (one = apr_strtok(apr_pstrdup(p, text ? text : ""), ",", &rest); one;
         one = apr_strtok(NULL, ",", &rest)) {
        char *star = strchr(one, '*');
        gives[*n].line = (uint32_t)atoi(one);
        gives[*n].quantity = star ? (uint32_t)atoi(star + 1) : 0;
        (*n)++;
    }
    return gives;
}

yk_once_t *play_once(const player_t *me, const act_t *act)
{
    yk_once_t *once;
    const char *key = apr_table_get(act->options, "key");
    if (!key) {
        return NULL;
    }
    once = apr_pcalloc(me->p, sizeof(*once));
    once->key = key;
    yk_secret_hash_parts(&once->scope, "1", act->verb, key, NULL);
    /* what is asked, not what then goes wrong */
    yk_secret_hash_parts(&once->request,
                         apr_array_pstrcat(me->p, act->items, ' '), NULL);
    return once;
}
