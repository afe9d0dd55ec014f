/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"
#include <apr_strings.h>
#include <stdlib.h>

/* x is held, y is locked, z is confirmed, w is past its deadline. */
static const char house[] =
    "hall A:6 B:1 C:6\n"
    "slot s B=pooled:5 C=assigned\n"
    "price s adult 1000 EUR quota=8\n"
    "price s child 500 EUR\n"
    "before x booker=bob hold A-1:adult B*1:child\n"
    "before y hold A-2:child C*1:adult then checkout\n"
    "before z hold A-3:adult B*1:adult C*1:child then confirm\n"
    "before w booker=bob clock -3000s then hold A-4:adult B*2:child "
    "C*2:adult\n";

static const char *const orders[] = {"@x", "@x", "@y", "@z", "@w", ""};

static unsigned below(unsigned *seed, unsigned n)
{
    return (unsigned)rand_r(seed) % n;
}

static const char *tariff(unsigned *seed)
{
    return below(seed, 2) ? "adult" : "child";
}

static const char *items(unsigned *seed, apr_pool_t *p)
{
    const char *text = "";
    int n = 1 + (int)below(seed, 2);
    while (n-- > 0) {
        switch (below(seed, 3)) {
        case 0:
            text = apr_psprintf(p, "%s A-%u:%s", text, 1 + below(seed, 6),
                                tariff(seed));
            break;
        case 1:
            text = apr_psprintf(p, "%s B*%u:%s", text, 1 + below(seed, 3),
                                tariff(seed));
            break;
        default:
            text = apr_psprintf(p, "%s C*%u:%s", text, 1 + below(seed, 3),
                                tariff(seed));
        }
    }
    return text;
}

static const char *loss(unsigned *seed)
{
    static const char *const losses[] = {" lose=write:late", " lose=write:done",
                                         " lose=write:never",
                                         " lose=lock:before"};
    return below(seed, 8) == 0 ? losses[below(seed, 4)] : "";
}

static const char *simple_act(unsigned *seed, apr_pool_t *p)
{
    static const char *const verbs[] = {"checkout", "reopen",  "confirm",
                                        "pay",      "release", "cancel"};
    const char *order = orders[below(seed, 6)];
    switch (below(seed, 6)) {
    case 0:
        return apr_psprintf(p, "hold%s", items(seed, p));
    case 1:
        return apr_psprintf(p, "add %s%s", order, items(seed, p));
    case 2:
        return apr_psprintf(p, "exchange %s give=%u%s%s", order,
                            1 + below(seed, 2), items(seed, p),
                            below(seed, 2) ? " shop=1 amount=99999" : "");
    case 3:
        return apr_psprintf(p, "remove %s %u", order, 1 + below(seed, 3));
    default:
        return apr_psprintf(p, "%s %s", verbs[below(seed, 6)], order);
    }
}

static const char *batch(unsigned *seed, apr_pool_t *p)
{
    const char *text = apr_psprintf(p, "batch hold%s", items(seed, p));
    int n = 1 + (int)below(seed, 2);
    while (n-- > 0) {
        switch (below(seed, 4)) {
        case 0:
            text =
                apr_psprintf(p, "%s | hold%s booker=bob", text, items(seed, p));
            break;
        case 1:
            text = apr_psprintf(p, "%s | confirm %s", text,
                                orders[below(seed, 5)]);
            break;
        case 2:
            text = apr_psprintf(p, "%s | release %s", text,
                                orders[below(seed, 5)]);
            break;
        default:
            text = apr_psprintf(p, "%s | add %s%s", text,
                                orders[below(seed, 5)], items(seed, p));
        }
    }
    return text;
}

static const char *act(unsigned *seed, apr_pool_t *p)
{
    switch (below(seed, 12)) {
    case 0:
        return "sweep";
    case 1:
        return apr_psprintf(p, "clock +%us", 700 * (1 + below(seed, 5)));
    case 2:
        return batch(seed, p);
    default:
        return apr_pstrcat(p, simple_act(seed, p), loss(seed), NULL);
    }
}

script_t *fuzz_script(unsigned seed, apr_pool_t *p)
{
    const char *text = house;
    const char *name = apr_psprintf(p, "fuzz %u", seed);
    char who[] = "a";
    seed = seed * 2654435761u + 1;
    if (below(&seed, 2)) {
        text = apr_pstrcat(p, text, "limit booker slot:s places 7\n", NULL);
    }
    for (; *who < 'd'; who[0]++) {
        int n = 1 + (int)below(&seed, 3);
        text = apr_psprintf(p, "%ssession %s %s%s", text, who,
                            below(&seed, 3) ? "" : "booker=bob ",
                            below(&seed, 3) ? "" : "clock +700s then ");
        while (n-- > 0) {
            text =
                apr_pstrcat(p, text, act(&seed, p), n ? " then " : "\n", NULL);
        }
    }
    text = apr_pstrcat(p, text, "orders 4\nalways at-most-one-owner agree\n",
                       NULL);
    return script_parse(name, text, p);
}
