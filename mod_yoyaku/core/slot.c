/* SPDX-License-Identifier: Apache-2.0 */
#include "yoyaku/slot.h"

#include <apr_strings.h>
#include <string.h>

const char *yk_mode_name(yk_mode_e mode)
{
    static const char *const names[] = {
#define MODE_TEXT(name, text) text,
        YK_MODES(MODE_TEXT)
#undef MODE_TEXT
    };

    return (unsigned)mode < YK_MODE_COUNT ? names[mode] : "unheard_of";
}

const yk_area_t *yk_slot_area(const yk_slot_t *slot, const char *name)
{
    for (uint32_t i = 0; i < slot->nareas; i++) {
        if (strcmp(slot->areas[i].name, name) == 0) {
            return &slot->areas[i];
        }
    }
    return NULL;
}

/* How closely a price fits an area and grade: the area outweighs the grade.
 * -1: it is not meant for them. */
static int fit(const yk_price_t *price, uint32_t area_no, const char *grade)
{
    int fits = 0;

    if (price->area_no >= 0) {
        if ((uint32_t)price->area_no != area_no) {
            return -1;
        }
        fits += 2;
    }
    if (price->grade != NULL) {
        if (grade == NULL || strcmp(price->grade, grade) != 0) {
            return -1;
        }
        fits += 1;
    }
    return fits;
}

const yk_price_t *yk_slot_price(const yk_slot_t *slot, uint32_t area_no,
                                const char *grade, const char *tariff)
{
    const yk_price_t *best = NULL;
    int best_fit = -1;

    for (uint32_t i = 0; i < slot->nprices; i++) {
        const yk_price_t *price = &slot->prices[i];
        int fits;

        if (strcmp(price->tariff, tariff) != 0) {
            continue;
        }
        fits = fit(price, area_no, grade);
        if (fits > best_fit) {
            best = price;
            best_fit = fits;
        }
    }
    return best;
}

/* 1 when an earlier price offers the same tariff there. */
static int is_repeated(const yk_slot_t *slot, uint32_t no, uint32_t area_no,
                       const char *grade)
{
    for (uint32_t i = 0; i < no; i++) {
        if (fit(&slot->prices[i], area_no, grade) >= 0 &&
            strcmp(slot->prices[i].tariff, slot->prices[no].tariff) == 0) {
            return 1;
        }
    }
    return 0;
}

const char *yk_slot_only_tariff(const yk_slot_t *slot, const char **choices,
                                uint32_t area_no, const char *grade,
                                apr_pool_t *p)
{
    const char *only = NULL, *all = "";
    uint32_t count = 0;

    for (uint32_t i = 0; i < slot->nprices; i++) {
        if (fit(&slot->prices[i], area_no, grade) < 0 ||
            is_repeated(slot, i, area_no, grade)) {
            continue;
        }
        only = slot->prices[i].tariff;
        all = count == 0 ? only : apr_pstrcat(p, all, ", ", only, NULL);
        count++;
    }
    if (count == 1) {
        return only;
    }
    *choices = all;
    return NULL;
}

/* The instant sales end; 0: never. */
static apr_time_t end_of_sale(const yk_slot_t *slot)
{
    return slot->closes != 0 ? slot->closes : slot->starts;
}

int yk_slot_on_sale(const yk_slot_t *slot, apr_time_t now)
{
    apr_time_t end = end_of_sale(slot);

    return slot->state == YK_SLOT_OPEN && now >= slot->opens &&
           (end == 0 || now < end);
}

const char *yk_slot_state_name(const yk_slot_t *slot, apr_time_t now)
{
    if (slot->state != YK_SLOT_OPEN) {
        return "closed";
    }
    if (now < slot->opens) {
        return "before";
    }
    return yk_slot_on_sale(slot, now) ? "open" : "over";
}
