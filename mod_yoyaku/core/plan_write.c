/* SPDX-License-Identifier: Apache-2.0 */
#include "plan_file.h"

#include <apr_file_io.h>
#include <apr_hash.h>
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* The texts of a plan; rows, grades and seats repeat, each stands once. */
typedef struct texts_t {
    char *bytes;
    uint32_t len, space;
    apr_hash_t *offsets; /* text -> offset + 1 */
    apr_pool_t *p;
} texts_t;

/* Where a text is put when it is known to be new. */
static uint32_t text_append(texts_t *texts, const char *text)
{
    uint32_t len = (uint32_t)strlen(text) + 1, at = texts->len;

    if (at + len > texts->space) {
        char *old = texts->bytes;

        texts->space = 2 * (at + len);
        texts->bytes = apr_palloc(texts->p, texts->space);
        memcpy(texts->bytes, old, at);
    }
    memcpy(texts->bytes + at, text, len);
    texts->len += len;
    return at;
}

static uint32_t text_put(texts_t *texts, const char *text)
{
    uintptr_t at =
        (uintptr_t)apr_hash_get(texts->offsets, text, APR_HASH_KEY_STRING);

    if (at == 0) {
        at = text_append(texts, text) + (uintptr_t)1;
        apr_hash_set(texts->offsets, text, APR_HASH_KEY_STRING, (void *)at);
    }
    return (uint32_t)(at - 1);
}

/* @return YK_PLAN_NONE: a place has a grade that the hall has not */
static uint32_t grade_no_of(const yk_hall_t *hall, const char *name)
{
    for (uint32_t i = 0; i < hall->ngrades; i++) {
        if (strcmp(hall->grades[i].name, name) == 0) {
            return i;
        }
    }
    return YK_PLAN_NONE;
}

typedef struct guid_t {
    const char *guid;
    uint32_t place_no;
} guid_t;

static int by_guid(const void *a, const void *b)
{
    return strcmp(((const guid_t *)a)->guid, ((const guid_t *)b)->guid);
}

static void write_index(uint32_t *index, const yk_hall_t *hall,
                        apr_pool_t *ptemp)
{
    guid_t *guids = apr_palloc(ptemp, (hall->nplaces + 1) * sizeof(*guids));

    for (uint32_t i = 0; i < hall->nplaces; i++) {
        guids[i].guid = hall->places[i].guid;
        guids[i].place_no = i;
    }
    qsort(guids, hall->nplaces, sizeof(*guids), by_guid);
    for (uint32_t i = 0; i < hall->nplaces; i++) {
        index[i] = guids[i].place_no;
    }
}

static void write_names(yk_plan_file_section_t *sections,
                        yk_plan_file_grade_t *grades, texts_t *texts,
                        const yk_hall_t *hall)
{
    for (uint32_t i = 0; i < hall->nsections; i++) {
        sections[i].name = text_put(texts, hall->sections[i].name);
        sections[i].first = hall->sections[i].first;
        sections[i].places = hall->sections[i].places;
    }
    for (uint32_t i = 0; i < hall->ngrades; i++) {
        grades[i].name = text_put(texts, hall->grades[i].name);
        grades[i].color = text_put(texts, hall->grades[i].color);
    }
}

static apr_status_t write_places(yk_plan_file_place_t *places, texts_t *texts,
                                 const yk_hall_t *hall)
{
    const char *grade = NULL;
    uint32_t grade_no = 0;

    for (uint32_t i = 0; i < hall->nplaces; i++) {
        const yk_plan_place_t *from = &hall->places[i];

        if (grade == NULL || strcmp(grade, from->grade) != 0) {
            grade = from->grade;
            grade_no = grade_no_of(hall, grade);
        }
        if (grade_no == YK_PLAN_NONE) {
            return APR_EINVAL;
        }
        places[i].x = from->x;
        places[i].y = from->y;
        places[i].guid = text_append(texts, from->guid);
        places[i].row = text_put(texts, from->row);
        places[i].seat = text_put(texts, from->seat);
        places[i].section_no = from->section_no;
        places[i].grade_no = grade_no;
        places[i].joined = from->joined != 0;
    }
    return APR_SUCCESS;
}

static apr_status_t write_file(const char *path, const void *bytes,
                               apr_size_t len, apr_pool_t *ptemp)
{
    char *temporary = apr_pstrcat(ptemp, path, ".XXXXXX", NULL);
    apr_file_t *file;
    apr_status_t rv;

    rv = apr_file_mktemp(&file, temporary,
                         APR_FOPEN_CREATE | APR_FOPEN_WRITE | APR_FOPEN_EXCL |
                             APR_FOPEN_BINARY,
                         ptemp);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    rv = apr_file_write_full(file, bytes, len, NULL);
    if (rv == APR_SUCCESS) {
        rv = apr_file_close(file);
    }
    else {
        apr_file_close(file);
    }
    if (rv == APR_SUCCESS) {
        rv = apr_file_rename(temporary, path, ptemp);
    }
    if (rv != APR_SUCCESS) {
        apr_file_remove(temporary, ptemp);
    }
    return rv;
}

apr_status_t yk_plan_write(const yk_hall_t *hall, const char *path,
                           apr_pool_t *ptemp)
{
    texts_t texts = {apr_palloc(ptemp, 4096), 0, 4096, apr_hash_make(ptemp),
                     ptemp};
    yk_plan_head_t head = {0};
    char *bytes, *at;
    apr_size_t tables;
    apr_status_t rv;

    head.magic = YK_PLAN_MAGIC;
    head.layout = YK_PLAN_LAYOUT;
    head.hall_id = hall->hall_id;
    head.hall_version = hall->version;
    head.width = hall->width;
    head.height = hall->height;
    head.nsections = hall->nsections;
    head.ngrades = hall->ngrades;
    head.nplaces = hall->nplaces;
    head.name = text_put(&texts, hall->name);
    memcpy(head.digest, hall->digest.bytes, sizeof(head.digest));

    tables = (apr_size_t)yk_plan_file_bytes(&head); /* without the texts */
    bytes = apr_pcalloc(ptemp, tables);
    at = bytes + sizeof(head);
    write_names(
        (yk_plan_file_section_t *)at,
        (yk_plan_file_grade_t *)(at + hall->nsections *
                                          sizeof(yk_plan_file_section_t)),
        &texts, hall);
    at += hall->nsections * sizeof(yk_plan_file_section_t) +
          hall->ngrades * sizeof(yk_plan_file_grade_t);
    rv = write_places((yk_plan_file_place_t *)at, &texts, hall);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    write_index((uint32_t *)(at + hall->nplaces * sizeof(yk_plan_file_place_t)),
                hall, ptemp);

    head.text_bytes = texts.len;
    head.bytes = yk_plan_file_bytes(&head);
    at = apr_palloc(ptemp, head.bytes);
    memcpy(at + sizeof(head), bytes + sizeof(head), tables - sizeof(head));
    memcpy(at + tables, texts.bytes, texts.len);
    head.crc = (uint32_t)crc32_z(0, (const Bytef *)at + sizeof(head),
                                 head.bytes - sizeof(head));
    memcpy(at, &head, sizeof(head));
    return write_file(path, at, head.bytes, ptemp);
}
