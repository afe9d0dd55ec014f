/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YK_HALL_DRAFT_H
#define YK_HALL_DRAFT_H

#include <apr_hash.h>
#include <apr_tables.h>
#include "yoyaku/plan.h"

/**
 * @file hall_draft.h
 * @brief A hall while it is being read: what the two readers and the generator
 *        fill, and what yk_hall_draft_end() makes a yk_hall_t of.
 *
 * Everything that can be wrong with a drawing is told to yk_hall_fault(), so
 * that one reading finds all of it.
 */

#define YK_HALL_FAULTS_SHOWN 5

typedef struct yk_hall_draft_t {
    apr_pool_t *p;
    const char *name;                    /**< may be NULL */
    double width, height;                /**< 0: as far as the places reach */
    apr_array_header_t *sections;        /**< yk_plan_section_t */
    apr_array_header_t *grades;          /**< yk_plan_grade_t */
    apr_array_header_t *seats;           /**< yk_hall_seat_t */
    apr_hash_t *section_nos, *grade_nos; /**< name -> number + 1 */
    apr_hash_t *guids;
    uint32_t nrows;
    uint32_t nfaults;
    const char *faults; /**< the first ones, "; " between them */
} yk_hall_draft_t;

typedef struct yk_hall_seat_t {
    yk_plan_place_t place;
    uint32_t row_no; /**< ascending in a section */
    uint32_t seq;    /**< as listed */
    double along;    /**< where in its row */
} yk_hall_seat_t;

yk_hall_draft_t *yk_hall_draft_make(const char *name, apr_pool_t *p);

void yk_hall_fault(yk_hall_draft_t *draft, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** A foreign text for a sentence: quoted, cut, "?" for NULL. */
const char *yk_hall_shown(yk_hall_draft_t *draft, const char *text);

/** A text fit for a hall: min .. max bytes, no control characters. */
int yk_hall_is_text(const char *text, apr_size_t min, apr_size_t max);

/** @return its number; -1: there is one of this name already */
int yk_hall_draft_section(yk_hall_draft_t *draft, const char *name);
int yk_hall_draft_grade(yk_hall_draft_t *draft, const char *name,
                        const char *color);

/** @return its number, or -1 */
int yk_hall_draft_find_section(yk_hall_draft_t *draft, const char *name);
int yk_hall_draft_find_grade(yk_hall_draft_t *draft, const char *name);

/** A new row; row numbers ascend. */
uint32_t yk_hall_draft_row(yk_hall_draft_t *draft);

/** @return APR_SUCCESS, APR_EEXIST: the guid is taken, APR_ENOSPC: full */
apr_status_t yk_hall_draft_place(yk_hall_draft_t *draft,
                                 const yk_plan_place_t *place, uint32_t row_no);

/** Number the places, find the neighbours, hash. @return as yk_hall_parse() */
apr_status_t yk_hall_draft_end(yk_hall_draft_t *draft, yk_hall_t **phall,
                               const char **errors);

/* The two readers; faults go into the draft. */
void yk_hall_parse_json(yk_hall_draft_t *draft, const char *bytes,
                        apr_size_t len);
void yk_hall_parse_csv(yk_hall_draft_t *draft, const char *bytes,
                       apr_size_t len);

#endif
