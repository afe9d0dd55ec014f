/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshot.h"
#include <apr_hash.h>
#include <apr_optional.h>
#include <apr_strings.h>
#include <mod_watchdog.h>
#include <string.h>
#include "room.h"

#define WATCHDOG "_yoyaku_snapshot_"
#define TURN (APR_USEC_PER_SEC / 4)
#define LIST_EVERY APR_USEC_PER_SEC
/* However long a list takes, it takes at most a twentieth of the time. */
#define LIST_DEAR 20
#define QUIET (3 * APR_USEC_PER_SEC)
#define PAGES 10 /* of YK_LIST_MAX slots */
/* Where nothing happens the book is asked after a twentieth of the time that
 * nothing has happened for, and after so long at most: a season's slots would
 * otherwise keep a database busy by lying there. What this host does, and the
 * end of a hold, are known without asking. */
#define STILL_PART 20
#define STILL_MOST (2 * APR_USEC_PER_SEC)

/** One public slot. */
typedef struct shot_t {
    const char *key;
    int is_written;
    uint64_t hash; /* of what was written last */
    uint64_t mark; /* of its files */
    int seen;      /* in the last list */
    uint64_t generation;
    apr_time_t changed_us, look_us; /* steady */
} shot_t;

/** Of one house: this process's, while the turns are its. */
typedef struct album_t {
    const yk_http_house_t *house;
    apr_pool_t *p;
    apr_hash_t *shots; /* key -> shot_t */
    uint64_t list_hash, list_mark;
    int is_swept;
    apr_time_t list_next, quiet_until;
} album_t;

static const apr_array_header_t *houses; /* yk_http_house_t */
/* one process's, one for each house: a turn's own pool ends with the turn */
static apr_pool_t *albums_pool;
static album_t *albums;

/* ---- one slot ---- */

typedef struct reading_t {
    const album_t *album;
    yk_store_t *store;
    uint32_t tenant_id;
    const char *key;
    apr_pool_t *p;
} reading_t;

static apr_status_t source_open(void *baton, yk_store_t **store)
{
    *store = ((reading_t *)baton)->store;
    return APR_SUCCESS;
}

static apr_status_t source_slot(void *baton, const yk_slot_t **slot, int fresh)
{
    reading_t *r = baton;

    return yk_catalogue_slot(r->album->house->database->catalogue, slot, NULL,
                             r->store, r->tenant_id, r->key, fresh, r->p);
}

static apr_status_t file_write(const album_t *album, const char *name,
                               uint64_t *mark, const char *json, apr_size_t len,
                               apr_pool_t *p)
{
    const char *folder = album->house->folder;
    apr_status_t rv = yk_snapshot_write(folder, name, mark, json, len, p);

    if (rv != APR_SUCCESS) {
        ap_log_error(APLOG_MARK, APLOG_ERR, rv, album->house->s,
                     "YK0444: snapshot: %s/%s.json cannot be written", folder,
                     name);
    }
    return rv;
}

static int file_stands(const album_t *album, const char *name, uint64_t mark,
                       apr_pool_t *ptemp)
{
    return yk_snapshot_stands(album->house->folder, name, mark, ptemp);
}

static void file_remove(const album_t *album, const char *name,
                        apr_pool_t *ptemp)
{
    yk_snapshot_remove(album->house->folder, name, ptemp);
}

/* It was looked at. */
static void shot_seen(shot_t *shot, const yk_board_answer_t *answer,
                      apr_time_t now)
{
    apr_interval_time_t still;

    if (!shot->is_written || shot->hash != answer->hash) {
        shot->changed_us = now;
    }
    still = (now - shot->changed_us) / STILL_PART;
    shot->look_us = now + (still < STILL_MOST ? still : STILL_MOST);
    shot->generation = answer->generation;
}

static apr_status_t shot_take(reading_t *r, shot_t *shot)
{
    yk_boards_t *boards = yk_http_board_boards();
    uint64_t id = yk_board_id(r->album->house->database->name,
                              r->album->house->tenant, shot->key);
    apr_time_t now = yk_state_now();
    yk_board_source_t source = {r, source_open, source_slot};
    yk_board_answer_t answer;
    const char *name;
    yk_board_ref_t ref;
    int old = 0;
    apr_status_t rv;

    if (shot->is_written && now < shot->look_us &&
        yk_board_is_still(boards, id, shot->generation)) {
        return APR_SUCCESS;
    }
    r->key = shot->key;
    rv = yk_board_fresh(boards, &ref, &old, id, &source, r->p);
    if (rv == APR_SUCCESS) {
        rv = yk_board_get(boards, &ref, &answer, YK_BOARD_JSON, r->p);
    }
    if (rv == APR_ENOSPC) {
        rv = yk_board_overflow(boards, &answer, YK_BOARD_JSON, &source, r->p);
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    shot_seen(shot, &answer, now);
    name = yk_snapshot_board(shot->key, r->p);
    if (shot->is_written && shot->hash == answer.hash &&
        file_stands(r->album, name, shot->mark, r->p)) {
        return APR_SUCCESS;
    }
    rv =
        file_write(r->album, name, &shot->mark, answer.bytes, answer.len, r->p);
    if (rv == APR_SUCCESS) {
        shot->is_written = 1;
        shot->hash = answer.hash;
    }
    return APR_SUCCESS;
}

/* ---- the list ---- */

static void shot_list(album_t *album, const yk_slot_t *slot, apr_time_t now,
                      apr_pool_t *ptemp)
{
    const char *below =
        apr_pstrcat(ptemp, "/slots/", slot->key, "/availability", NULL);
    shot_t *shot = apr_hash_get(album->shots, slot->key, APR_HASH_KEY_STRING);

    if (!yk_http_snapshot_is_public(album->house, below, ptemp)) {
        file_remove(album, yk_snapshot_board(slot->key, ptemp), ptemp);
        return;
    }
    if (slot->starts != 0 && slot->starts < now &&
        !yk_slot_on_sale(slot, now) && shot == NULL) {
        return; /* over before we looked: nobody polls it */
    }
    if (shot == NULL) {
        shot = apr_pcalloc(album->p, sizeof(*shot));
        shot->key = apr_pstrdup(album->p, slot->key);
        apr_hash_set(album->shots, shot->key, APR_HASH_KEY_STRING, shot);
    }
    shot->seen = 1;
}

/* What the list does not name any more goes. */
static void shots_prune(album_t *album, apr_pool_t *ptemp)
{
    for (apr_hash_index_t *hi = apr_hash_first(ptemp, album->shots); hi != NULL;
         hi = apr_hash_next(hi)) {
        void *value;
        shot_t *shot;

        apr_hash_this(hi, NULL, NULL, &value);
        shot = value;
        if (!shot->seen) {
            file_remove(album, yk_snapshot_board(shot->key, ptemp), ptemp);
            apr_hash_set(album->shots, shot->key, APR_HASH_KEY_STRING, NULL);
        }
        shot->seen = 0;
    }
}

static int is_known(void *baton, const char *key)
{
    return apr_hash_get(((album_t *)baton)->shots, key, APR_HASH_KEY_STRING) !=
           NULL;
}

/* What an earlier process wrote of slots that went while none was here. */
static void shots_sweep(album_t *album, apr_pool_t *ptemp)
{
    if (!album->is_swept) {
        yk_snapshot_sweep(album->house->folder, is_known, album, ptemp);
        album->is_swept = 1;
    }
}

static void list_page(album_t *album, yk_http_json_t *j,
                      const yk_listed_t *list, uint32_t n, apr_time_t now,
                      apr_pool_t *ptemp)
{
    for (uint32_t i = 0; i < n; i++) {
        const char *below =
            apr_pstrcat(ptemp, "/slots/", list[i].slot->key, NULL);

        shot_list(album, list[i].slot, now, ptemp);
        if (yk_http_snapshot_is_public(album->house, below, ptemp)) {
            yk_http_json_object(j, NULL);
            yk_http_slots_members(j, list[i].slot, now, list[i].free,
                                  list[i].places);
            yk_http_json_end(j);
        }
    }
}

static void list_write(album_t *album, yk_http_json_t *j, apr_pool_t *ptemp)
{
    apr_size_t len;
    const char *json = yk_http_json_done(j, &len);
    uint64_t hash = yk_board_id(json, "", "");

    if (!yk_http_snapshot_is_public(album->house, "/slots", ptemp)) {
        file_remove(album, "slots", ptemp);
    }
    else if ((hash != album->list_hash ||
              !file_stands(album, "slots", album->list_mark, ptemp)) &&
             file_write(album, "slots", &album->list_mark, json, len, ptemp) ==
                 APR_SUCCESS) {
        album->list_hash = hash;
    }
}

static apr_status_t list_take(album_t *album, reading_t *r)
{
    yk_http_json_t *j = yk_http_json_make(4096, r->p);
    apr_time_t began = yk_state_now(), now = 0;
    const char *after = NULL;
    yk_listed_t *list;
    int more = 1;
    apr_status_t rv = APR_SUCCESS;

    if (began < album->list_next) {
        return rv;
    }
    yk_http_json_array(j, "slots");
    for (int page = 0; rv == APR_SUCCESS && more && page < PAGES; page++) {
        uint32_t n = 0;

        more = 0;
        rv = yk_store_slots(r->store, &list, &n, &more, &now, r->tenant_id,
                            NULL, NULL, NULL, after, r->p);
        if (rv == APR_SUCCESS) {
            list_page(album, j, list, n, now, r->p);
            after = n > 0 ? list[n - 1].slot->key : NULL;
            more = more && n > 0;
        }
    }
    if (rv != APR_SUCCESS) {
        return rv;
    }
    shots_prune(album, r->p);
    shots_sweep(album, r->p);
    yk_http_json_end(j);
    yk_http_json_text(j, "next", NULL);
    list_write(album, j, r->p);
    now = yk_state_now();
    album->list_next = now + (LIST_DEAR * (now - began) > LIST_EVERY
                                  ? LIST_DEAR * (now - began)
                                  : LIST_EVERY);
    return rv;
}

/* ---- turns ---- */

static void albums_make(void)
{
    apr_pool_create(&albums_pool, NULL);
    albums =
        apr_pcalloc(albums_pool, (apr_size_t)houses->nelts * sizeof(*albums));
    for (int i = 0; i < houses->nelts; i++) {
        albums[i].house = &APR_ARRAY_IDX(houses, i, yk_http_house_t);
        albums[i].p = albums_pool;
        albums[i].shots = apr_hash_make(albums_pool);
    }
}

static apr_status_t album_turn(album_t *album, apr_pool_t *ptemp)
{
    reading_t r = {album, NULL, 0, NULL, ptemp};
    yk_http_dbd_t *dbd = NULL;
    apr_status_t rv = yk_http_desk_dbd_attach(&r.store, &dbd,
                                              album->house->database->s, ptemp);

    if (rv == APR_SUCCESS) {
        rv = yk_catalogue_tenant(album->house->database->catalogue,
                                 &r.tenant_id, r.store, album->house->tenant);
    }
    if (rv == APR_SUCCESS) {
        rv = list_take(album, &r);
    }
    for (apr_hash_index_t *hi = apr_hash_first(ptemp, album->shots);
         rv == APR_SUCCESS && hi != NULL; hi = apr_hash_next(hi)) {
        void *value;

        apr_hash_this(hi, NULL, NULL, &value);
        apr_pool_create(&r.p, ptemp);
        rv = shot_take(&r, value);
        apr_pool_destroy(r.p);
        rv = rv == APR_ECONNRESET ? rv : APR_SUCCESS;
    }
    yk_store_rest(r.store);
    return rv;
}

static apr_status_t turn(int state, void *data, apr_pool_t *p)
{
    if (state != AP_WATCHDOG_STATE_RUNNING || yk_http_board_boards() == NULL) {
        return APR_SUCCESS;
    }
    if (albums == NULL) {
        albums_make();
    }
    for (int i = 0; i < houses->nelts; i++) {
        album_t *album = &albums[i];
        apr_pool_t *ptemp = NULL;

        if (album->house->database->catalogue == NULL ||
            yk_state_now() < album->quiet_until) {
            continue;
        }
        apr_pool_create(&ptemp, p);
        if (album_turn(album, ptemp) == APR_ECONNRESET) {
            album->quiet_until = yk_state_now() + QUIET;
        }
        apr_pool_destroy(ptemp);
    }
    yk_boards_tell(yk_http_board_boards(), p);
    return APR_SUCCESS;
}

/* ---- before the children ---- */

void yk_http_snapshot_create(apr_pool_t *pconf, server_rec *s)
{
    APR_OPTIONAL_FN_TYPE(ap_watchdog_get_instance) *get =
        APR_RETRIEVE_OPTIONAL_FN(ap_watchdog_get_instance);
    APR_OPTIONAL_FN_TYPE(ap_watchdog_register_callback) *registration =
        APR_RETRIEVE_OPTIONAL_FN(ap_watchdog_register_callback);
    ap_watchdog_t *watchdog = NULL;

    albums = NULL;
    houses = yk_http_snapshot_scope_read(pconf, s);
    if (apr_is_empty_array(houses)) {
        return;
    }
    if (get == NULL || registration == NULL ||
        get(&watchdog, WATCHDOG, 0, 1, pconf) != APR_SUCCESS ||
        registration(watchdog, TURN, s, turn) != APR_SUCCESS) {
        ap_log_error(APLOG_MARK, APLOG_ERR, 0, s,
                     "YK0446: snapshot: mod_watchdog does not run; nothing is "
                     "written to %s",
                     APR_ARRAY_IDX(houses, 0, yk_http_house_t).folder);
    }
}
