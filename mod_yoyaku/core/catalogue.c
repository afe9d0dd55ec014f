/* SPDX-License-Identifier: Apache-2.0 */
#include "yoyaku/catalogue.h"
#include "yoyaku/log.h"
#include "yoyaku/pool.h"
#include <apr_hash.h>
#include <apr_strings.h>
#include <apr_thread_mutex.h>
#include <string.h>

/*
 * One entry a slot, in a pool of its own. An entry is found while it is
 * `listed`; it dies when it is not and nobody holds it. Reading from the book
 * happens outside the mutex: two may read the same slot, the later one stays.
 */
typedef struct entry_t {
    yk_catalogue_t *c;
    apr_pool_t *p;
    yk_slot_t *slot;
    const char *name; /* tenant and key, as by_name has it */
    unsigned holders;
    int listed;
    apr_uint64_t used; /* the catalogue's tick of its last use */
} entry_t;

struct yk_catalogue_t {
    apr_pool_t *p; /* own allocator: threads, and everything below */
    apr_thread_mutex_t *mutex;
    const char *folder;
    apr_hash_t *by_id;   /* slot_id -> entry_t */
    apr_hash_t *by_name; /* "tenant/key" -> entry_t */
    apr_hash_t *plans;   /* hall_id -> yk_plan_t, kept for the process's life */
    apr_hash_t *tenants; /* name -> uint32_t */
    apr_uint64_t tick;
};

static volatile int abandoned;

void yk_catalogue_abandon(void)
{
    abandoned = 1;
}

apr_status_t yk_catalogue_create(yk_catalogue_t **catalogue, const char *folder,
                                 apr_pool_t *p)
{
    apr_thread_mutex_t *mutex;
    apr_pool_t *own;
    yk_catalogue_t *c;
    apr_status_t rv = yk_pool_apart(&own, p);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    rv = apr_thread_mutex_create(&mutex, APR_THREAD_MUTEX_DEFAULT, own);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    apr_allocator_mutex_set(apr_pool_allocator_get(own), mutex);
    c = apr_pcalloc(own, sizeof(*c));
    c->p = own;
    c->folder = apr_pstrdup(own, folder);
    c->by_id = apr_hash_make(own);
    c->by_name = apr_hash_make(own);
    c->plans = apr_hash_make(own);
    c->tenants = apr_hash_make(own);
    /* Not the allocator's mutex: that one is taken inside pool calls. */
    rv = apr_thread_mutex_create(&c->mutex, APR_THREAD_MUTEX_DEFAULT, own);
    *catalogue = c;
    return rv;
}

/* Under the mutex. */
static void bury_if_unused(entry_t *e)
{
    if (!e->listed && e->holders == 0) {
        apr_pool_destroy(e->p);
    }
}

/* Under the mutex. */
static void unlist(entry_t *e)
{
    yk_catalogue_t *c = e->c;

    if (!e->listed) {
        return;
    }
    apr_hash_set(c->by_id, &e->slot->slot_id, sizeof(uint64_t), NULL);
    apr_hash_set(c->by_name, e->name, APR_HASH_KEY_STRING, NULL);
    e->listed = 0;
    bury_if_unused(e);
}

static apr_status_t let_go(void *data)
{
    entry_t *e = data;
    yk_catalogue_t *c;

    if (abandoned) {
        return APR_SUCCESS; /* the catalogue may be gone before the pool */
    }
    c = e->c;
    apr_thread_mutex_lock(c->mutex);
    e->holders--;
    bury_if_unused(e);
    apr_thread_mutex_unlock(c->mutex);
    return APR_SUCCESS;
}

/* Under the mutex: hand an entry out for as long as p lives. */
static const yk_slot_t *hand_out(entry_t *e, apr_pool_t *p)
{
    e->used = ++e->c->tick;
    e->holders++;
    apr_pool_cleanup_register(p, e, let_go, apr_pool_cleanup_null);
    return e->slot;
}

/* Under the mutex. */
static void make_way(yk_catalogue_t *c)
{
    entry_t *oldest = NULL;

    if (apr_hash_count(c->by_id) < YK_CATALOGUE_SLOTS) {
        return;
    }
    for (apr_hash_index_t *hi = apr_hash_first(NULL, c->by_id); hi != NULL;
         hi = apr_hash_next(hi)) {
        void *value;

        apr_hash_this(hi, NULL, NULL, &value);
        if (oldest == NULL || ((entry_t *)value)->used < oldest->used) {
            oldest = value;
        }
    }
    unlist(oldest);
}

static apr_status_t plan_compile(yk_catalogue_t *c, yk_store_t *store,
                                 uint64_t hall_id, const char *path)
{
    apr_pool_t *ptemp;
    yk_hall_t *hall;
    apr_status_t rv = yk_pool_apart(&ptemp, c->p);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    /* Once in the life of a hall one worker has all of it in memory. */
    rv = yk_store_hall(store, &hall, hall_id, ptemp);
    if (rv == APR_SUCCESS) {
        rv = yk_plan_write(hall, path, ptemp);
        if (rv != APR_SUCCESS) {
            yk_log(YK_LOG_ERROR, rv,
                   "YK0301: core: the plan of a hall cannot be written to "
                   "YoyakuStateDir (%s)",
                   c->folder);
        }
    }
    yk_pool_apart_end(ptemp);
    return rv;
}

/* Map a plan into `own`, compiling it first where it is missing. */
static apr_status_t plan_map(yk_catalogue_t *c, yk_plan_t **plan,
                             yk_store_t *store, uint64_t hall_id,
                             apr_pool_t *own)
{
    const char *path = apr_psprintf(own, "%s/hall-%" APR_UINT64_T_FMT ".plan",
                                    c->folder, (apr_uint64_t)hall_id);
    apr_status_t rv = yk_plan_open(plan, path, own);

    if (rv == APR_SUCCESS && yk_plan_hall_id(*plan) == hall_id) {
        return APR_SUCCESS;
    }
    rv = plan_compile(c, store, hall_id, path);
    return rv == APR_SUCCESS ? yk_plan_open(plan, path, own) : rv;
}

static apr_status_t plan_get(yk_catalogue_t *c, yk_plan_t **plan,
                             yk_store_t *store, uint64_t hall_id)
{
    apr_pool_t *own;
    apr_status_t rv;

    apr_thread_mutex_lock(c->mutex);
    *plan = apr_hash_get(c->plans, &hall_id, sizeof(hall_id));
    apr_thread_mutex_unlock(c->mutex);
    if (*plan != NULL) {
        return APR_SUCCESS;
    }
    /* Two threads may map one plan: the later map is found, both stay. */
    apr_pool_create(&own, c->p);
    rv = plan_map(c, plan, store, hall_id, own);
    if (rv != APR_SUCCESS) {
        apr_pool_destroy(own);
        return rv;
    }
    apr_thread_mutex_lock(c->mutex);
    apr_hash_set(c->plans, apr_pmemdup(own, &hall_id, sizeof(hall_id)),
                 sizeof(hall_id), *plan);
    apr_thread_mutex_unlock(c->mutex);
    return APR_SUCCESS;
}

static const char *name_of(uint32_t tenant_id, const char *key, apr_pool_t *p)
{
    return apr_psprintf(p, "%u/%s", tenant_id, key);
}

/* Read a slot from the book, by key or (key NULL) by number, and list it. */
static apr_status_t read_in(yk_catalogue_t *c, const yk_slot_t **slot,
                            yk_store_t *store, uint32_t tenant_id,
                            const char *key, uint64_t slot_id, apr_pool_t *p)
{
    entry_t *e, *old;
    apr_pool_t *own;
    yk_slot_t *found;
    apr_status_t rv;

    apr_pool_create(&own, c->p);
    rv = key != NULL ? yk_store_slot(store, &found, tenant_id, key, own)
                     : yk_store_slot_by_id(store, &found, slot_id, own);
    if (rv == APR_SUCCESS && found->hall_id != 0) {
        rv = plan_get(c, &found->plan, store, found->hall_id);
    }
    if (rv != APR_SUCCESS) {
        apr_pool_destroy(own);
        return rv;
    }
    e = apr_pcalloc(own, sizeof(*e));
    e->c = c;
    e->p = own;
    e->slot = found;
    e->name = name_of(found->tenant_id, found->key, own);
    apr_thread_mutex_lock(c->mutex);
    old = apr_hash_get(c->by_id, &found->slot_id, sizeof(uint64_t));
    if (old != NULL) {
        unlist(old);
    }
    make_way(c);
    apr_hash_set(c->by_id, &found->slot_id, sizeof(uint64_t), e);
    apr_hash_set(c->by_name, e->name, APR_HASH_KEY_STRING, e);
    e->listed = 1;
    *slot = hand_out(e, p);
    apr_thread_mutex_unlock(c->mutex);
    return APR_SUCCESS;
}

apr_status_t yk_catalogue_slot(yk_catalogue_t *c, const yk_slot_t **slot,
                               int *was_fresh, yk_store_t *store,
                               uint32_t tenant_id, const char *key, int fresh,
                               apr_pool_t *p)
{
    entry_t *e = NULL;

    if (!fresh) {
        const char *name = name_of(tenant_id, key, p);

        apr_thread_mutex_lock(c->mutex);
        e = apr_hash_get(c->by_name, name, APR_HASH_KEY_STRING);
        if (e != NULL) {
            *slot = hand_out(e, p);
        }
        apr_thread_mutex_unlock(c->mutex);
    }
    if (was_fresh != NULL) {
        *was_fresh = e == NULL;
    }
    return e != NULL ? APR_SUCCESS
                     : read_in(c, slot, store, tenant_id, key, 0, p);
}

apr_status_t yk_catalogue_slot_by_id(yk_catalogue_t *c, const yk_slot_t **slot,
                                     yk_store_t *store, uint64_t slot_id,
                                     int fresh, apr_pool_t *p)
{
    entry_t *e = NULL;

    if (!fresh) {
        apr_thread_mutex_lock(c->mutex);
        e = apr_hash_get(c->by_id, &slot_id, sizeof(slot_id));
        if (e != NULL) {
            *slot = hand_out(e, p);
        }
        apr_thread_mutex_unlock(c->mutex);
    }
    return e != NULL ? APR_SUCCESS
                     : read_in(c, slot, store, 0, NULL, slot_id, p);
}

void yk_catalogue_drop(yk_catalogue_t *c, uint64_t slot_id)
{
    entry_t *e;

    apr_thread_mutex_lock(c->mutex);
    e = apr_hash_get(c->by_id, &slot_id, sizeof(slot_id));
    if (e != NULL) {
        unlist(e);
    }
    apr_thread_mutex_unlock(c->mutex);
}

apr_status_t yk_catalogue_tenant(yk_catalogue_t *c, uint32_t *tenant_id,
                                 yk_store_t *store, const char *name)
{
    uint32_t *known;
    apr_status_t rv;

    apr_thread_mutex_lock(c->mutex);
    known = apr_hash_get(c->tenants, name, APR_HASH_KEY_STRING);
    apr_thread_mutex_unlock(c->mutex);
    if (known != NULL) {
        *tenant_id = *known;
        return APR_SUCCESS;
    }
    rv = yk_store_tenant(store, tenant_id, name);
    if (rv == APR_SUCCESS) {
        apr_thread_mutex_lock(c->mutex);
        apr_hash_set(c->tenants, apr_pstrdup(c->p, name), APR_HASH_KEY_STRING,
                     apr_pmemdup(c->p, tenant_id, sizeof(*tenant_id)));
        apr_thread_mutex_unlock(c->mutex);
    }
    return rv;
}
