/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_strings.h>
#include <string.h>
#include "ctl.h"

int yk_ctl_price_set(yk_ctl_t *ctl)
{
    const char *slot = yk_ctl_need(ctl, "slot");
    const char *tariff = slot != NULL ? yk_ctl_need(ctl, "tariff") : NULL;
    const char *amount_text = ctl->args->words[0];
    const char *currency = ctl->args->words[1];
    const char *say = NULL;
    int64_t amount, quota;
    apr_status_t rv;
    int status;

    if (tariff == NULL) {
        return YK_CTL_USAGE;
    }
    if (!yk_money_is_currency(currency)) {
        return yk_ctl_usage(ctl,
                            "a currency is three capital letters, as "
                            "EUR, not \"%s\"",
                            currency);
    }
    if (yk_money_parse(&amount, amount_text, currency) != APR_SUCCESS) {
        return yk_ctl_usage(ctl, "\"%s\" is not an amount of %s, as 45.00",
                            amount_text, currency);
    }
    status = yk_ctl_number(ctl, &quota, "quota", 0, -1);
    if (status == YK_CTL_DONE) {
        status = yk_ctl_open_tenant(ctl);
    }
    if (status != YK_CTL_DONE) {
        return status;
    }
    rv = yk_setup_price(ctl->store, &say, ctl->tenant_id, slot,
                        yk_ctl_args_get(ctl->args, "grade"),
                        yk_ctl_args_get(ctl->args, "area"), tariff, amount,
                        currency, quota, ctl->p);
    return rv == APR_SUCCESS ? yk_ctl_done(ctl, say, NULL)
                             : yk_ctl_status(ctl, rv, say);
}

static json_t *text_json(const char *text)
{
    return text != NULL ? json_string(text) : json_null();
}

static const char *price_line(yk_ctl_t *ctl, const yk_slot_t *slot,
                              const yk_price_t *price)
{
    const char *where =
        price->grade != NULL ? apr_pstrcat(ctl->p, "grade ", price->grade, NULL)
        : price->area_no >= 0
            ? apr_pstrcat(ctl->p, "area ", slot->areas[price->area_no].name,
                          NULL)
            : "everywhere";
    const char *quota =
        price->quota >= 0
            ? apr_psprintf(ctl->p, "  quota %" APR_INT64_T_FMT, price->quota)
            : "";

    return apr_psprintf(ctl->p, "%-16s %12s %s  %s%s\n", price->tariff,
                        yk_money_write(price->amount, price->currency, ctl->p),
                        price->currency, where, quota);
}

int yk_ctl_price_list(yk_ctl_t *ctl)
{
    const char *key = yk_ctl_need(ctl, "slot"), *text = "";
    json_t *prices;
    yk_slot_t *slot;
    apr_status_t rv;
    int status = key != NULL ? yk_ctl_open_tenant(ctl) : YK_CTL_USAGE;

    if (status != YK_CTL_DONE) {
        return status;
    }
    rv = yk_store_slot(ctl->store, &slot, ctl->tenant_id, key, ctl->p);
    if (rv != APR_SUCCESS) {
        return yk_ctl_status(
            ctl, rv,
            rv == APR_NOTFOUND
                ? apr_psprintf(ctl->p, "There is no slot %s.", key)
                : NULL);
    }
    prices = json_array();
    for (uint32_t i = 0; i < slot->nprices; i++) {
        const yk_price_t *price = &slot->prices[i];

        text = apr_pstrcat(ctl->p, text, price_line(ctl, slot, price), NULL);
        json_array_append_new(
            prices,
            json_pack(
                "{s:s, s:o, s:o, s:s, s:s, s:o}", "tariff", price->tariff,
                "grade", text_json(price->grade), "area",
                text_json(price->area_no >= 0 ? slot->areas[price->area_no].name
                                              : NULL),
                "amount",
                yk_money_write(price->amount, price->currency, ctl->p),
                "currency", price->currency, "quota",
                price->quota >= 0 ? json_integer(price->quota) : json_null()));
    }
    return yk_ctl_done(ctl,
                       *text != '\0'
                           ? apr_pstrmemdup(ctl->p, text, strlen(text) - 1)
                           : "The slot has no price yet.",
                       json_pack("{s:s, s:o}", "slot", key, "prices", prices));
}
