/* SPDX-License-Identifier: Apache-2.0 */
#include "board_memory.h"
#include "yoyaku/text.h"
#include <apr_strings.h>
#include <string.h>

/*
 * A board is laid out from its slot once; from then on whoever renders it
 * needs neither slot nor plan: names and order stand in its text.
 */

#define MEMBER_SPACE 64 /* of an area, beside its name and places */
#define HEAD_SPACE 160  /* of the whole, beside its text */

/* A JSON text of a name. Names in the book are UTF-8. */
static char *quoted(const char *name, apr_pool_t *p)
{
    char *made = apr_palloc(p, 6 * strlen(name) + 3);

    *yk_text_json(made, name) = '\0';
    return made;
}

typedef struct layout_t {
    char *head;
    uint32_t nareas, nplaces, ring_size;
    area_t *areas;
    char *text; /* head, then area after area */
    uint64_t text_len, text_space, json_space, gzip_space;
    uint64_t areas_bytes, text_bytes, cells_bytes, ring_bytes, all;
} layout_t;

static uint64_t aligned(uint64_t n)
{
    return (n + 63) / 64 * 64;
}

static uint32_t ring_size_for(uint32_t nplaces)
{
    uint32_t size = 256;

    while (size < nplaces / 4 && size < 2 * YK_BOARD_DELTA) {
        size *= 2;
    }
    return size;
}

static void put(layout_t *layout, const char *text, apr_pool_t *p)
{
    apr_size_t len = strlen(text);

    if (layout->text_len + len > layout->text_space) {
        char *old = layout->text;

        layout->text_space = 2 * (layout->text_len + len);
        layout->text = apr_palloc(p, layout->text_space);
        memcpy(layout->text, old, layout->text_len);
    }
    memcpy(layout->text + layout->text_len, text, len);
    layout->text_len += len;
}

static void area_lay(layout_t *layout, const yk_slot_t *slot, uint32_t i,
                     apr_pool_t *p)
{
    const yk_area_t *from = &slot->areas[i];
    area_t *area = &layout->areas[i];
    char *name = apr_pstrcat(p, "{\"section\":", quoted(from->name, p), NULL);
    char *rest = apr_pstrcat(p, ",\"mode\":\"", yk_mode_name(from->mode),
                             "\",\"free\":", NULL);

    area->mode = from->mode;
    area->first = UINT32_MAX;
    if (slot->plan != NULL && i < yk_plan_sections(slot->plan)) {
        yk_plan_section_t section;

        yk_plan_section(slot->plan, &section, i);
        area->first = section.first;
        area->places = section.places;
        area->left = section.places;
    }
    area->name_at = (uint32_t)layout->text_len;
    area->name_len = (uint32_t)strlen(name);
    area->text_len = area->name_len + (uint32_t)strlen(rest);
    put(layout, name, p);
    put(layout, rest, p);
    layout->json_space += area->text_len + area->places + MEMBER_SPACE;
}

static void lay_out(layout_t *layout, yk_boards_t *boards,
                    const yk_slot_t *slot, apr_pool_t *p)
{
    const char *digest =
        slot->plan != NULL
            ? quoted(yk_text_hex(yk_plan_digest(slot->plan)->bytes,
                                 YK_HASH_BYTES, p),
                     p)
            : "null";

    memset(layout, 0, sizeof(*layout));
    layout->head = apr_psprintf(
        p,
        "{\"slot\":%s,\"plan\":%s,\"epoch\":\"%016" APR_UINT64_T_HEX_FMT
        "\",\"generation\":",
        quoted(slot->key, p), digest, (apr_uint64_t)yk_boards_epoch(boards));
    layout->text = "";
    put(layout, layout->head, p);
    layout->json_space = layout->text_len + HEAD_SPACE;
    layout->nareas = slot->nareas;
    layout->nplaces = slot->plan != NULL ? yk_plan_places(slot->plan) : 0;
    layout->ring_size = ring_size_for(layout->nplaces);
    layout->areas = apr_pcalloc(p, (slot->nareas + 1) * sizeof(area_t));
    for (uint32_t i = 0; i < slot->nareas; i++) {
        area_lay(layout, slot, i, p);
    }
    layout->gzip_space = yk_board_gzip_space(layout->json_space);
    layout->areas_bytes = aligned(slot->nareas * sizeof(area_t));
    layout->text_bytes = aligned(layout->text_len);
    layout->cells_bytes = aligned(layout->nplaces * sizeof(cell_t));
    layout->ring_bytes = layout->ring_size * sizeof(ring_t);
    layout->all =
        layout->areas_bytes + layout->text_bytes + layout->cells_bytes +
        layout->ring_bytes +
        2 * (aligned(layout->json_space) + aligned(layout->gzip_space));
}

static uint64_t hash_base(const yk_slot_t *slot)
{
    uint64_t base = slot->slot_id;

    if (slot->plan != NULL) {
        uint64_t digest;

        memcpy(&digest, yk_plan_digest(slot->plan)->bytes, sizeof(digest));
        base ^= digest;
    }
    return base;
}

static void renderings_lay(entry_t *e, uint64_t at, uint64_t json_space,
                           uint64_t gzip_space)
{
    e->json_space = json_space;
    e->gzip_space = gzip_space;
    for (int i = 0; i < 2; i++) {
        e->rendering[i].json_at = at;
        e->rendering[i].gzip_at = at + aligned(json_space);
        at = e->rendering[i].gzip_at + aligned(gzip_space);
    }
}

/* Under the lock of a life that has just begun. */
static void fill(yk_boards_t *boards, entry_t *e, const layout_t *layout,
                 const yk_slot_t *slot)
{
    uint64_t at = e->first;

    e->kind = ENTRY_BOARD;
    e->nareas = layout->nareas;
    e->nplaces = layout->nplaces;
    e->ring_size = layout->ring_size;
    e->head_len = (uint32_t)strlen(layout->head);
    e->slot_version = slot->version;
    e->tenant_version = slot->tenant_version;
    atomic_store(&e->opens_us, slot->opens);
    e->areas_at = at;
    e->text_at = at += layout->areas_bytes;
    e->cells_at = at += layout->text_bytes;
    e->ring_at = at += layout->cells_bytes;
    renderings_lay(e, at + layout->ring_bytes, layout->json_space,
                   layout->gzip_space);
    memcpy(AREAS(boards, e), layout->areas, layout->nareas * sizeof(area_t));
    memcpy(TEXT(boards, e), layout->text, layout->text_len);
    memset(CELLS(boards, e), 0, layout->cells_bytes);
    memset(RING(boards, e), 0, layout->ring_bytes);
    e->hash = hash_base(slot);
    for (uint32_t i = 0; i < e->nplaces; i++) {
        e->hash += yk_board_hash_place(i, YK_PLACE_FREE);
    }
    for (uint32_t i = 0; i < e->nareas; i++) {
        if (layout->areas[i].mode == YK_MODE_POOLED) {
            e->hash += yk_board_hash_pool(i, 0);
        }
    }
    yk_board_name_slot(boards, e, slot->slot_id);
}

apr_status_t yk_board_make(yk_boards_t *boards, yk_board_ref_t *ref,
                           uint64_t id, const yk_slot_t *slot)
{
    layout_t layout;
    apr_pool_t *ptemp;
    entry_t *e;
    apr_status_t rv;

    if (yk_board_find(boards, ref, id) == APR_SUCCESS) {
        return APR_SUCCESS;
    }
    rv = apr_pool_create(&ptemp, NULL);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    lay_out(&layout, boards, slot, ptemp);
    rv = yk_board_begin(boards, &e, ref, id, layout.all);
    if (rv == APR_SUCCESS) {
        fill(boards, e, &layout, slot);
        yk_board_unlock(e);
    }
    apr_pool_destroy(ptemp);
    return rv == APR_EEXIST ? APR_SUCCESS : rv;
}

apr_size_t yk_board_block_bytes(yk_boards_t *boards, const yk_slot_t *slot,
                                apr_pool_t *p)
{
    layout_t layout;

    lay_out(&layout, boards, slot, p);
    return layout.all;
}

/* ---- pages ---- */

apr_status_t yk_board_page_make(yk_boards_t *boards, yk_board_ref_t *ref,
                                uint64_t id, apr_size_t len)
{
    apr_size_t space = len + len / 2 + 1024;
    apr_size_t gzip_space = yk_board_gzip_space(space);
    entry_t *e;
    apr_status_t rv = yk_board_begin(
        boards, &e, ref, id, 2 * (aligned(space) + aligned(gzip_space)));

    if (rv == APR_SUCCESS) {
        e->kind = ENTRY_PAGE;
        renderings_lay(e, e->first, space, gzip_space);
        yk_board_unlock(e);
    }
    return rv == APR_EEXIST ? APR_SUCCESS : rv;
}
