/* SPDX-License-Identifier: Apache-2.0 */
#include "yoyaku/order.h"

#include <apr_strings.h>
#include <string.h>

const char *yk_order_state_name(yk_order_state_e state)
{
    switch (state) {
#define STATE_NAME(name, number, text)                                         \
    case YK_ORDER_##name:                                                      \
        return text;
        YK_ORDER_STATES(STATE_NAME)
#undef STATE_NAME
    }
    return "unheard_of";
}

int64_t yk_order_total(const yk_order_t *order)
{
    int64_t total = 0;

    for (uint32_t i = 0; i < order->nlines; i++) {
        total += order->lines[i].amount * order->lines[i].quantity;
    }
    return total;
}

yk_order_state_e yk_order_state_at(const yk_order_t *order, apr_time_t now)
{
    int is_timed =
        order->state == YK_ORDER_HELD || order->state == YK_ORDER_LOCKED;

    return is_timed && now >= order->until_us ? YK_ORDER_EXPIRED : order->state;
}

yk_order_t *yk_order_copy(const yk_order_t *order, apr_pool_t *p)
{
    yk_order_t *copy = apr_pmemdup(p, order, sizeof(*order));

    copy->line_space = order->nlines;
    if (order->nlines > 0) {
        copy->lines =
            apr_pmemdup(p, order->lines, order->nlines * sizeof(yk_line_t));
    }
    return copy;
}

void yk_booker_hash(unsigned char hash[16], const char *booker)
{
    yk_hash_t whole;

    yk_secret_hash(&whole, booker, strlen(booker));
    memcpy(hash, whole.bytes, 16);
}
