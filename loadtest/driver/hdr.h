/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOAD_HDR_H
#define LOAD_HDR_H

#include <stdint.h>
#include <stdio.h>

/**
 * @file hdr.h
 * @brief Latencies counted, never averaged: a histogram whose cells are
 *        narrow where values are small and a thousandth wide everywhere.
 *
 * Values are microseconds from 0 to LOAD_HDR_MAX; larger ones count as that.
 * Below 2048 a cell is one value; above, each power of two is cut into 1024
 * cells, so a value read back is at most 0.1 percent above the one recorded.
 *
 *   value     0 .. 2047   2048 .. 4095   4096 .. 8191   ...
 *   cell      1 us        2 us           4 us
 *   index     0 .. 2047   2048 .. 3071   3072 .. 4095   ...
 *
 * Two histograms add up to the histogram of both: that is how threads, rounds
 * and runs are put together. One thread writes; nobody reads meanwhile.
 */

#define LOAD_HDR_SUB 1024u
#define LOAD_HDR_SHIFTS 26u
#define LOAD_HDR_CELLS ((LOAD_HDR_SHIFTS + 2u) * LOAD_HDR_SUB)
#define LOAD_HDR_MAX ((UINT64_C(1) << (LOAD_HDR_SHIFTS + 11)) - 1)

typedef struct load_hdr_t {
    uint64_t total;
    uint64_t min, max; /**< as recorded, not as counted */
    uint64_t cells[LOAD_HDR_CELLS];
} load_hdr_t;

/** An empty one; never NULL (the driver ends when memory does). */
load_hdr_t *load_hdr_create(void);
void load_hdr_destroy(load_hdr_t *hdr);

void load_hdr_record(load_hdr_t *hdr, uint64_t value);
void load_hdr_add(load_hdr_t *hdr, const load_hdr_t *other);

/**
 * The smallest value that `percent` of all are at or below.
 * @param percent 0 .. 100
 * @return the upper end of its cell, at most `max`; 0 when empty
 */
uint64_t load_hdr_at(const load_hdr_t *hdr, double percent);

/** Which cell, and the lowest and highest value of one. */
uint32_t load_hdr_index(uint64_t value);
uint64_t load_hdr_low(uint32_t index);
uint64_t load_hdr_high(uint32_t index);

/** As JSON: {"total","min","max","cells":[[high,count],...]}; lossless. */
void load_hdr_write(const load_hdr_t *hdr, FILE *out);

#endif
