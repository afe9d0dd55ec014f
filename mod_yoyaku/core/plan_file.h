/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YK_PLAN_FILE_H
#define YK_PLAN_FILE_H

#include <assert.h>
#include <stdint.h>
#include "yoyaku/plan.h"

/**
 * @file plan_file.h
 * @brief The bytes of a plan file: what plan_write.c writes and plan.c maps.
 *
 *   head | sections | grades | places | index | text
 *
 * All numbers as the machine has them (the file never leaves its host; another
 * byte order does not have the magic). Texts are offsets into `text`, whose
 * last byte is NUL, so every offset below text_bytes is a text. `index` holds
 * all place numbers, sorted by the bytes of their guids. `crc` is over all
 * bytes behind the head.
 */

#define YK_PLAN_MAGIC UINT64_C(0x6e616c506f596b59) /* "YkYoPlan" */
#define YK_PLAN_LAYOUT 1

typedef struct yk_plan_head_t {
    uint64_t magic;
    uint32_t layout;
    uint32_t crc;
    uint64_t bytes; /**< of the whole file */
    uint64_t hall_id;
    double width, height;
    uint32_t hall_version;
    uint32_t name; /**< text */
    uint32_t nsections, ngrades, nplaces;
    uint32_t text_bytes;
    uint8_t digest[YK_HASH_BYTES];
} yk_plan_head_t;
static_assert(sizeof(yk_plan_head_t) == 104, "the layout of a plan's head");

typedef struct yk_plan_file_section_t {
    uint32_t name;  /**< text */
    uint32_t first; /**< sections cover the places in order, without gaps */
    uint32_t places;
    uint32_t spare;
} yk_plan_file_section_t;
static_assert(sizeof(yk_plan_file_section_t) == 16, "the layout of a section");

typedef struct yk_plan_file_grade_t {
    uint32_t name, color; /**< texts */
} yk_plan_file_grade_t;
static_assert(sizeof(yk_plan_file_grade_t) == 8, "the layout of a grade");

typedef struct yk_plan_file_place_t {
    double x, y;
    uint32_t guid, row, seat; /**< texts */
    uint32_t section_no;
    uint32_t grade_no;
    uint32_t joined; /**< 1: side by side with the next place */
} yk_plan_file_place_t;
static_assert(sizeof(yk_plan_file_place_t) == 40, "the layout of a place");

/** A mapped plan. */
struct yk_plan_t {
    const yk_plan_head_t *head;
    const yk_plan_file_section_t *sections;
    const yk_plan_file_grade_t *grades;
    const yk_plan_file_place_t *places;
    const uint32_t *index;
    const char *text;
};

/** How long a file with these counts is. */
static inline uint64_t yk_plan_file_bytes(const yk_plan_head_t *head)
{
    return sizeof(*head) +
           (uint64_t)head->nsections * sizeof(yk_plan_file_section_t) +
           (uint64_t)head->ngrades * sizeof(yk_plan_file_grade_t) +
           (uint64_t)head->nplaces *
               (sizeof(yk_plan_file_place_t) + sizeof(uint32_t)) +
           head->text_bytes;
}

#endif
