/* SPDX-License-Identifier: Apache-2.0 */
#include "plan_file.h"

#include <apr_file_io.h>
#include <apr_mmap.h>
#include <math.h>
#include <string.h>
#include <zlib.h>

/* ---- opening: nothing of a file is believed that was not looked at ---- */

/* Point at the tables. @return 1 when the sizes agree */
static int lay_out(yk_plan_t *plan, const char *bytes, uint64_t len)
{
    const yk_plan_head_t *head = (const yk_plan_head_t *)bytes;
    const char *at = bytes + sizeof(*head);

    if (len < sizeof(*head) || head->magic != YK_PLAN_MAGIC ||
        head->layout != YK_PLAN_LAYOUT || head->bytes != len ||
        head->nplaces > YK_PLAN_PLACES_MAX || yk_plan_file_bytes(head) != len ||
        head->text_bytes == 0) {
        return 0;
    }
    plan->head = head;
    plan->sections = (const yk_plan_file_section_t *)at;
    at += head->nsections * sizeof(*plan->sections);
    plan->grades = (const yk_plan_file_grade_t *)at;
    at += head->ngrades * sizeof(*plan->grades);
    plan->places = (const yk_plan_file_place_t *)at;
    at += head->nplaces * sizeof(*plan->places);
    plan->index = (const uint32_t *)at;
    at += head->nplaces * sizeof(*plan->index);
    plan->text = at;
    return plan->text[head->text_bytes - 1] == '\0' &&
           head->name < head->text_bytes &&
           head->crc == crc32_z(0, (const Bytef *)bytes + sizeof(*head),
                                len - sizeof(*head));
}

static int are_names_sound(const yk_plan_t *plan)
{
    uint32_t text_bytes = plan->head->text_bytes, first = 0;

    for (uint32_t i = 0; i < plan->head->ngrades; i++) {
        if (plan->grades[i].name >= text_bytes ||
            plan->grades[i].color >= text_bytes) {
            return 0;
        }
    }
    for (uint32_t i = 0; i < plan->head->nsections; i++) {
        const yk_plan_file_section_t *section = &plan->sections[i];

        if (section->name >= text_bytes || section->first != first ||
            section->places > plan->head->nplaces - first) {
            return 0;
        }
        first += section->places;
    }
    return first == plan->head->nplaces;
}

static int are_places_sound(const yk_plan_t *plan)
{
    uint32_t text_bytes = plan->head->text_bytes;

    for (uint32_t s = 0; s < plan->head->nsections; s++) {
        const yk_plan_file_section_t *section = &plan->sections[s];

        for (uint32_t i = 0; i < section->places; i++) {
            const yk_plan_file_place_t *place =
                &plan->places[section->first + i];

            if (place->section_no != s || place->guid >= text_bytes ||
                place->row >= text_bytes || place->seat >= text_bytes ||
                place->grade_no >= plan->head->ngrades || place->joined > 1 ||
                !isfinite(place->x) || !isfinite(place->y) ||
                (place->joined && i + 1 == section->places)) {
                return 0;
            }
        }
    }
    return 1;
}

static const char *guid_at(const yk_plan_t *plan, uint32_t at)
{
    return plan->text + plan->places[plan->index[at]].guid;
}

/* Strictly ascending: then no guid stands there twice, and none is left out. */
static int is_index_sound(const yk_plan_t *plan)
{
    for (uint32_t i = 0; i < plan->head->nplaces; i++) {
        if (plan->index[i] >= plan->head->nplaces ||
            (i > 0 && strcmp(guid_at(plan, i - 1), guid_at(plan, i)) >= 0)) {
            return 0;
        }
    }
    return 1;
}

apr_status_t yk_plan_open(yk_plan_t **pplan, const char *path, apr_pool_t *p)
{
    yk_plan_t *plan = apr_pcalloc(p, sizeof(*plan));
    apr_pool_t *pfile;
    apr_file_t *file;
    apr_finfo_t info;
    apr_mmap_t *map;
    apr_status_t rv;

    /* The descriptor is closed at the end; the map stays with its pool. */
    apr_pool_create(&pfile, p);
    rv = apr_file_open(&file, path, APR_FOPEN_READ | APR_FOPEN_BINARY,
                       APR_FPROT_OS_DEFAULT, pfile);
    if (rv != APR_SUCCESS) {
        rv = APR_STATUS_IS_ENOENT(rv) ? APR_ENOENT : rv;
        goto close;
    }
    rv = apr_file_info_get(&info, APR_FINFO_SIZE | APR_FINFO_TYPE, file);
    if (rv != APR_SUCCESS) {
        goto close;
    }
    if (info.filetype != APR_REG ||
        info.size < (apr_off_t)sizeof(yk_plan_head_t)) {
        rv = APR_EINVAL;
        goto close;
    }
    rv =
        apr_mmap_create(&map, file, 0, (apr_size_t)info.size, APR_MMAP_READ, p);
    if (rv != APR_SUCCESS) {
        goto close;
    }
    if (!lay_out(plan, map->mm, (uint64_t)info.size) ||
        !are_names_sound(plan) || !are_places_sound(plan) ||
        !is_index_sound(plan)) {
        apr_mmap_delete(map);
        rv = APR_EINVAL;
        goto close;
    }
    *pplan = plan;
close:
    apr_pool_destroy(pfile);
    return rv;
}

/* ---- reading ---- */

uint64_t yk_plan_hall_id(const yk_plan_t *plan)
{
    return plan->head->hall_id;
}

uint32_t yk_plan_version(const yk_plan_t *plan)
{
    return plan->head->hall_version;
}

const char *yk_plan_name(const yk_plan_t *plan)
{
    return plan->text + plan->head->name;
}

const yk_hash_t *yk_plan_digest(const yk_plan_t *plan)
{
    return (const yk_hash_t *)plan->head->digest;
}

void yk_plan_size(const yk_plan_t *plan, double *width, double *height)
{
    *width = plan->head->width;
    *height = plan->head->height;
}

uint32_t yk_plan_places(const yk_plan_t *plan)
{
    return plan->head->nplaces;
}

uint32_t yk_plan_sections(const yk_plan_t *plan)
{
    return plan->head->nsections;
}

uint32_t yk_plan_grades(const yk_plan_t *plan)
{
    return plan->head->ngrades;
}

void yk_plan_place(const yk_plan_t *plan, yk_plan_place_t *place,
                   uint32_t place_no)
{
    const yk_plan_file_place_t *from;

    if (place_no >= plan->head->nplaces) {
        *place = (yk_plan_place_t){"", "", "", "", YK_PLAN_NONE, 0, 0, 0};
        return;
    }
    from = &plan->places[place_no];
    place->guid = plan->text + from->guid;
    place->row = plan->text + from->row;
    place->seat = plan->text + from->seat;
    place->grade = plan->text + plan->grades[from->grade_no].name;
    place->section_no = from->section_no;
    place->x = from->x;
    place->y = from->y;
    place->joined = (int)from->joined;
}

void yk_plan_section(const yk_plan_t *plan, yk_plan_section_t *section,
                     uint32_t section_no)
{
    const yk_plan_file_section_t *from;

    if (section_no >= plan->head->nsections) {
        *section = (yk_plan_section_t){"", 0, 0};
        return;
    }
    from = &plan->sections[section_no];
    section->name = plan->text + from->name;
    section->first = from->first;
    section->places = from->places;
}

void yk_plan_grade(const yk_plan_t *plan, yk_plan_grade_t *grade,
                   uint32_t grade_no)
{
    const yk_plan_file_grade_t *from;

    if (grade_no >= plan->head->ngrades) {
        *grade = (yk_plan_grade_t){"", ""};
        return;
    }
    from = &plan->grades[grade_no];
    grade->name = plan->text + from->name;
    grade->color = plan->text + from->color;
}

uint32_t yk_plan_find(const yk_plan_t *plan, const char *guid)
{
    uint32_t low = 0, high = plan->head->nplaces;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int side = strcmp(guid_at(plan, middle), guid);

        if (side == 0) {
            return plan->index[middle];
        }
        if (side < 0) {
            low = middle + 1;
        }
        else {
            high = middle;
        }
    }
    return YK_PLAN_NONE;
}

uint32_t yk_plan_find_section(const yk_plan_t *plan, const char *name)
{
    for (uint32_t i = 0; i < plan->head->nsections; i++) {
        if (strcmp(plan->text + plan->sections[i].name, name) == 0) {
            return i;
        }
    }
    return YK_PLAN_NONE;
}
