/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YOYAKU_PLAN_H
#define YOYAKU_PLAN_H

#include <apr_pools.h>
#include <stdint.h>
#include "secret.h"

/**
 * @file plan.h
 * @brief The drawing of a hall, compiled once, mapped read-only by everybody.
 *
 * A hall never changes: a change is a new version with a new hall_id. So its
 * plan is compiled to one file (names, sections, rows, neighbours, an index of
 * guids) that all workers map; a worker's own memory does not grow with the
 * hall.
 *
 * Places are numbered 0 .. places-1 in plan order: section by section, row by
 * row, along the row as drawn. The places of a section are one range. Two
 * neighbours in plan order are side by side when they stand in one row, no
 * further apart than 1.5 times the row's usual (median) gap: an aisle
 * separates, a numbering error does not. A row is taken as listed when that is
 * a shortest walk along it (a horseshoe is), else along its own direction.
 *
 * The file: magic, layout version, sizes, then fixed-width tables, then text.
 * Offsets instead of pointers; every one is checked when opened. It is written
 * under a temporary name and renamed, so a reader sees a whole one or none.
 */

#define YK_PLAN_PLACES_MAX 200000
#define YK_PLAN_NONE UINT32_MAX

typedef struct yk_plan_t yk_plan_t;

/** One place as drawn. The texts live in the plan. Row and seat may be empty.
 */
typedef struct yk_plan_place_t {
    const char *guid; /**< at most 64 bytes */
    const char *row;
    const char *seat;
    const char *grade;
    uint32_t section_no; /**< 0 .. sections-1 */
    double x, y;         /**< units of the drawing */
    int joined;          /**< 1: side by side with the next place */
} yk_plan_place_t;

typedef struct yk_plan_section_t {
    const char *name;
    uint32_t first; /**< its first place */
    uint32_t places;
} yk_plan_section_t;

typedef struct yk_plan_grade_t {
    const char *name;
    const char *color; /**< "#c0392b" or "" */
} yk_plan_grade_t;

/** A hall in memory, on its way from a drawing or the book to a plan file.
 *  Places in plan order, sections and grades in order of first appearance. */
typedef struct yk_hall_t {
    uint64_t hall_id; /**< 0 before the book has numbered it */
    const char *name;
    uint32_t version;
    double width, height;
    uint32_t nsections, nplaces, ngrades;
    yk_plan_section_t *sections;
    yk_plan_place_t *places;
    yk_plan_grade_t *grades;
    yk_hash_t digest; /**< of the drawing as normalised; equal: same hall */
} yk_hall_t;

/**
 * Read a drawing: a pretix seating plan (JSON) or CSV, told apart by content.
 *
 * Of a plan: zones are sections, categories grades, positions of zone, row and
 * seat add up; what is drawn beside seats is passed over. A section may have no
 * places. Of CSV: section,row,place,x,y,grade[,guid] in this order or as a
 * first line names them; commas, semicolons or tabs; quotes as usual; a guid
 * not said is SECTION-ROW-PLACE. Lines of one row may stand anywhere.
 *
 * @param phall   set when APR_SUCCESS
 * @param errors  else one sentence: the first offenders, and how many more
 * @param name    of the hall; NULL: the drawing's own (CSV has none: "hall")
 * @return APR_SUCCESS, APR_EINVAL (see errors)
 */
apr_status_t yk_hall_parse(yk_hall_t **phall, const char **errors,
                           const char *bytes, apr_size_t len, const char *name,
                           apr_pool_t *p);

/**
 * Draw a hall for trying and measuring: so many sections of so many places, in
 * rows of 40 with an aisle in the middle, all of one grade, "standard". Always
 * the same drawing for the same numbers.
 * @return APR_SUCCESS, or APR_EINVAL: none, or more than YK_PLAN_PLACES_MAX
 */
apr_status_t yk_hall_generate(yk_hall_t **phall, uint32_t sections,
                              uint32_t places_each, apr_pool_t *p);

/** Compile a hall to a plan file: temporary name, fsync not needed, rename. */
apr_status_t yk_plan_write(const yk_hall_t *hall, const char *path,
                           apr_pool_t *ptemp);

/**
 * Map a plan file. Unmapped when p is destroyed.
 * @return APR_SUCCESS, APR_ENOENT, or APR_EINVAL: not a plan of this layout,
 *         or its sizes do not agree (make it anew)
 */
apr_status_t yk_plan_open(yk_plan_t **plan, const char *path, apr_pool_t *p);

uint64_t yk_plan_hall_id(const yk_plan_t *plan);
uint32_t yk_plan_version(const yk_plan_t *plan);
const char *yk_plan_name(const yk_plan_t *plan);
const yk_hash_t *yk_plan_digest(const yk_plan_t *plan);
void yk_plan_size(const yk_plan_t *plan, double *width, double *height);
uint32_t yk_plan_places(const yk_plan_t *plan);
uint32_t yk_plan_sections(const yk_plan_t *plan);
uint32_t yk_plan_grades(const yk_plan_t *plan);

/* A number the plan has not gives empty texts: a row of the book may carry one
 * that no drawing ever had, and a reader must not fall over it. */
void yk_plan_place(const yk_plan_t *plan, yk_plan_place_t *place,
                   uint32_t place_no);
void yk_plan_section(const yk_plan_t *plan, yk_plan_section_t *section,
                     uint32_t section_no);
void yk_plan_grade(const yk_plan_t *plan, yk_plan_grade_t *grade,
                   uint32_t grade_no);

/** @return place_no by its guid, or YK_PLAN_NONE. O(log places). */
uint32_t yk_plan_find(const yk_plan_t *plan, const char *guid);

/** @return section_no by its name, or YK_PLAN_NONE. */
uint32_t yk_plan_find_section(const yk_plan_t *plan, const char *name);

/* ---- the drawing for everybody: plan_document.c ---- */

/**
 * The drawing as JSON:
 *   {"hall", "version", "hash", "size": {"width", "height"},
 *    "grades": [{"grade", "color"}],
 *    "sections": [{"section", "places": 343, "rows": [{"row", "places":
 *       [{"guid", "seat", "x", "y", "grade"}]}]}]}
 * Places stand in plan order, as a board's characters do. Row after row of one
 * label is written as one row. "color" is missing where there is none.
 *
 * @param section_no only this section; YK_PLAN_NONE: all of them
 */
void yk_plan_document(const yk_plan_t *plan, const char **json, apr_size_t *len,
                      uint32_t section_no, apr_pool_t *p);

/**
 * The same, all of it, as a file, and compressed under PATH.gz: temporary
 * names, rename.
 */
apr_status_t yk_plan_save(const yk_plan_t *plan, const char *path,
                          apr_pool_t *ptemp);

/* ---- seating a party: plan_seat.c ---- */

typedef enum yk_seating_e {
    YK_SEATING_NONE,     /**< fewer free places than people */
    YK_SEATING_TOGETHER, /**< side by side */
    YK_SEATING_SPREAD    /**< as close as may be */
} yk_seating_e;

/**
 * Choose n free places of a section: side by side without leaving a single
 * free place between two that are gone; else side by side; else, unless
 * `together`, as close to each other as may be.
 *
 * @param places  n place numbers, ascending (also for SPREAD)
 * @param map     the section's free map: bit i (LSB first) of byte i/8 set when
 *                place first+i is free
 * @return what could be had; TOGETHER or SPREAD fill `places`. With `together`
 *         a party that could only be spread gets SPREAD and no places.
 */
yk_seating_e yk_plan_seat(const yk_plan_t *plan, uint32_t *places,
                          uint32_t section_no, const unsigned char *map,
                          uint32_t n, int together);

#endif
