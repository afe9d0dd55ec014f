/* SPDX-License-Identifier: Apache-2.0 */
#include "play_act.h"
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

yk_payment_t *play_payment(player_t *me, const act_t *act, const named_t *order)
{
    yk_payment_t *payment = apr_pcalloc(me->p, sizeof(*payment));
    const char *attempt = apr_table_get(act->options, "attempt");
    const char *amount = apr_table_get(act->options, "amount");
    const char *text = apr_table_get(act->options, "payment");

    payment->attempt = attempt ? (uint32_t)atoi(attempt) : order->attempt;
    payment->amount = amount ? atol(amount) : order->total;
    payment->currency = order->currency ? order->currency : "";
    payment->payment = text ? text : "paid";
    return payment;
}

static apr_status_t do_exchange(player_t *me, yk_desk_t *desk,
                                yk_reply_t *reply, const act_t *act,
                                const yk_claim_t *claim, const yk_once_t *once)
{
    const char *amount = apr_table_get(act->options, "amount");
    uint32_t ngive;
    yk_give_t *give =
        play_gives(&ngive, apr_table_get(act->options, "give"), me->p);
    return yk_desk_exchange(desk, reply, give, ngive, play_wish(me, act),
                            amount ? atol(amount) : -1, amount ? "EUR" : "",
                            "test", claim, once, me->p);
}

static apr_status_t do_sweep(player_t *me, yk_desk_t *desk, yk_reply_t *reply)
{
    uint32_t settled = 0;
    apr_status_t rv = yk_desk_sweep(desk, &settled, me->p);
    reply->answer = YK_ANSWER_OK;
    return rv;
}

static apr_status_t on_order(player_t *me, yk_desk_t *desk, yk_reply_t *reply,
                             const act_t *act, const named_t *order,
                             const yk_claim_t *claim, const yk_once_t *once)
{
    const char *verb = act->verb;
    if (strcmp(verb, "add") == 0) {
        return yk_desk_hold(desk, reply, play_wish(me, act), claim, once,
                            me->p);
    }
    if (strcmp(verb, "exchange") == 0) {
        return do_exchange(me, desk, reply, act, claim, once);
    }
    if (strcmp(verb, "remove") == 0) {
        return yk_desk_remove(desk, reply,
                              (uint32_t)atoi(ITEM(act->items, 0, char *)),
                              claim, once, me->p);
    }
    if (strcmp(verb, "checkout") == 0) {
        return yk_desk_checkout(desk, reply, claim, once, me->p);
    }
    if (strcmp(verb, "reopen") == 0) {
        return yk_desk_reopen(desk, reply, claim, once, me->p);
    }
    if (strcmp(verb, "confirm") == 0) {
        return yk_desk_confirm(desk, reply, NULL, claim, once, me->p);
    }
    if (strcmp(verb, "pay") == 0) {
        return yk_desk_confirm(desk, reply, play_payment(me, act, order), claim,
                               once, me->p);
    }
    if (strcmp(verb, "release") == 0) {
        return yk_desk_release(desk, reply, "test", claim, once, me->p);
    }
    if (strcmp(verb, "cancel") == 0) {
        return yk_desk_cancel(desk, reply, "test", claim, once, me->p);
    }
    if (strcmp(verb, "look") == 0) {
        return yk_desk_look(desk, reply, claim, me->p);
    }
    script_wrong("no such act", act->text);
}

int play_is_shops(const act_t *act)
{
    return strcmp(act->verb, "pay") == 0 || strcmp(act->verb, "cancel") == 0 ||
           apr_table_get(act->options, "shop") != NULL;
}

yk_desk_t *play_desk_for(player_t *me, const act_t *act)
{
    yk_terms_t terms;
    yk_desk_t *desk;
    const char *booker = apr_table_get(act->options, "booker");
    if (!booker) {
        booker = apr_table_get(me->role->options, "booker");
    }
    world_terms(&terms, me->world, me->script);
    terms.booker = booker ? booker : "";
    terms.who = me->role->name;
    terms.shop = play_is_shops(act);
    desk = yk_desk_make(me->store, me->catalogue, &terms, me->p);
    yk_desk_lane(desk, me->lane);
    return desk;
}

yk_claim_t *play_claim(player_t *me, named_t *order, const act_t *act,
                       const char *name)
{
    yk_claim_t *claim = apr_pcalloc(me->p, sizeof(*claim));
    yk_hash_t *token = apr_pcalloc(me->p, sizeof(*token));

    if (!cast_find(me->cast, order, name)) {
        return NULL;
    }
    claim->order_id = order->order_id;
    if (!play_is_shops(act) && order->token) {
        yk_token_hash(token, order->token);
        claim->token = token;
    }
    return claim;
}

apr_status_t play_desk(player_t *me, yk_reply_t *reply, const act_t *act,
                       const char **name)
{
    yk_desk_t *desk = play_desk_for(me, act);
    yk_once_t *once = play_once(me, act);
    yk_claim_t *claim;
    named_t order;

    *name = act->order ? act->order : me->role->name;
    if (strcmp(act->verb, "hold") == 0) {
        return yk_desk_hold(desk, reply, play_wish(me, act), NULL, once, me->p);
    }
    if (strcmp(act->verb, "sweep") == 0) {
        return do_sweep(me, desk, reply);
    }
    claim = play_claim(me, &order, act, *name);
    if (!claim) {
        reply->answer = YK_ANSWER_UNKNOWN;
        return APR_SUCCESS;
    }
    return on_order(me, desk, reply, act, &order, claim, once);
}
