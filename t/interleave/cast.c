/* SPDX-License-Identifier: Apache-2.0 */
#include "cast.h"
#include "script.h"
#include <apr_allocator.h>
#include <apr_strings.h>
#include <string.h>

apr_pool_t *cast_pool(apr_pool_t *parent)
{
    apr_allocator_t *allocator;
    apr_pool_t *p;
    apr_allocator_create(&allocator);
    apr_pool_create_ex(&p, parent, NULL, allocator);
    apr_allocator_owner_set(allocator, p);
    return p;
}

cast_t *cast_make(apr_pool_t *parent)
{
    apr_pool_t *p = cast_pool(parent);
    cast_t *cast = apr_pcalloc(p, sizeof(*cast));
    cast->p = p;
    cast->names = apr_array_make(p, 8, sizeof(named_t));
    cast->told = apr_array_make(p, 8, sizeof(told_t));
    apr_thread_mutex_create(&cast->mutex, APR_THREAD_MUTEX_DEFAULT, p);
    return cast;
}

cast_t *cast_copy(const cast_t *from, apr_pool_t *p)
{
    cast_t *cast = cast_make(p);
    apr_array_cat(cast->names, from->names);
    cast->most_shift = from->most_shift;
    return cast;
}

static named_t *find(cast_t *cast, const char *name)
{
    int i;
    for (i = 0; i < cast->names->nelts; i++) {
        named_t *one = &ITEM(cast->names, i, named_t);
        if (strcmp(one->name, name) == 0) {
            return one;
        }
    }
    return NULL;
}

int cast_find(cast_t *cast, named_t *named, const char *name)
{
    named_t *one;
    apr_thread_mutex_lock(cast->mutex);
    one = find(cast, name);
    if (one) {
        *named = *one;
    }
    apr_thread_mutex_unlock(cast->mutex);
    return one != NULL;
}

const char *cast_name_of(cast_t *cast, uint64_t order_id)
{
    int i;
    for (i = 0; i < cast->names->nelts; i++) {
        if (ITEM(cast->names, i, named_t).order_id == order_id) {
            return ITEM(cast->names, i, named_t).name;
        }
    }
    return order_id ? "somebody" : "nobody";
}

/* Everything a reply says of an order is a promise: remember it. */
void cast_learn(cast_t *cast, const char *name, const char *by, int answered,
                const yk_reply_t *reply)
{
    named_t *one;
    told_t *told;
    if (!reply->order) {
        return;
    }
    apr_thread_mutex_lock(cast->mutex);
    one = find(cast, name);
    if (!one) {
        one = apr_array_push(cast->names);
        memset(one, 0, sizeof(*one));
        one->name = apr_pstrdup(cast->p, name);
    }
    if (one->order_id != reply->order->order_id) {
        one->order_id = reply->order->order_id;
        one->token = NULL;
    }
    if (reply->token) {
        one->token = apr_pstrdup(cast->p, reply->token);
    }
    one->total = yk_order_total(reply->order);
    one->currency = apr_pstrdup(cast->p, reply->order->currency);
    one->attempt = reply->order->attempt;
    if (answered &&
        (reply->answer == YK_ANSWER_OK || reply->answer == YK_ANSWER_HELD)) {
        told = apr_array_push(cast->told);
        told->order_id = reply->order->order_id;
        told->state = reply->order->state;
        told->by = apr_pstrdup(cast->p, by);
    }
    apr_thread_mutex_unlock(cast->mutex);
}
