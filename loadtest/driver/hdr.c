/* SPDX-License-Identifier: Apache-2.0 */
#include "hdr.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

load_hdr_t *load_hdr_create(void)
{
    load_hdr_t *hdr = calloc(1, sizeof(*hdr));

    if (hdr == NULL) {
        perror("histogram");
        exit(1);
    }
    hdr->min = UINT64_MAX;
    return hdr;
}

void load_hdr_destroy(load_hdr_t *hdr)
{
    free(hdr);
}

uint32_t load_hdr_index(uint64_t value)
{
    uint32_t shift;

    if (value > LOAD_HDR_MAX) {
        value = LOAD_HDR_MAX;
    }
    if (value < 2 * LOAD_HDR_SUB) {
        return (uint32_t)value;
    }
    /* the highest eleven bits are kept: 1024 .. 2047 */
    shift = 63u - (uint32_t)__builtin_clzll(value) - 10u;
    return shift * LOAD_HDR_SUB + (uint32_t)(value >> shift);
}

static uint32_t shift_of(uint32_t index)
{
    return index < 2 * LOAD_HDR_SUB ? 0 : index / LOAD_HDR_SUB - 1;
}

uint64_t load_hdr_low(uint32_t index)
{
    uint32_t shift = shift_of(index);

    return (uint64_t)(index - shift * LOAD_HDR_SUB) << shift;
}

uint64_t load_hdr_high(uint32_t index)
{
    return load_hdr_low(index) + (UINT64_C(1) << shift_of(index)) - 1;
}

void load_hdr_record(load_hdr_t *hdr, uint64_t value)
{
    hdr->cells[load_hdr_index(value)]++;
    hdr->total++;
    if (value < hdr->min) {
        hdr->min = value;
    }
    if (value > hdr->max) {
        hdr->max = value;
    }
}

void load_hdr_add(load_hdr_t *hdr, const load_hdr_t *other)
{
    for (uint32_t i = 0; i < LOAD_HDR_CELLS; i++) {
        hdr->cells[i] += other->cells[i];
    }
    hdr->total += other->total;
    if (other->min < hdr->min) {
        hdr->min = other->min;
    }
    if (other->max > hdr->max) {
        hdr->max = other->max;
    }
}

uint64_t load_hdr_at(const load_hdr_t *hdr, double percent)
{
    double want = ceil((double)hdr->total * percent / 100.0);
    uint64_t target = want < 1.0 ? 1 : (uint64_t)want;
    uint64_t seen = 0;

    if (hdr->total == 0) {
        return 0;
    }
    for (uint32_t i = 0; i < LOAD_HDR_CELLS; i++) {
        seen += hdr->cells[i];
        if (seen >= target) {
            uint64_t high = load_hdr_high(i);
            return high < hdr->max ? high : hdr->max;
        }
    }
    return hdr->max;
}

void load_hdr_write(const load_hdr_t *hdr, FILE *out)
{
    const char *comma = "";

    fprintf(out,
            "{\"total\":%" PRIu64 ",\"min\":%" PRIu64 ",\"max\":%" PRIu64
            ",\"cells\":[",
            hdr->total, hdr->total == 0 ? 0 : hdr->min, hdr->max);
    for (uint32_t i = 0; i < LOAD_HDR_CELLS; i++) {
        if (hdr->cells[i] != 0) {
            fprintf(out, "%s[%" PRIu64 ",%" PRIu64 "]", comma, load_hdr_high(i),
                    hdr->cells[i]);
            comma = ",";
        }
    }
    fputs("]}", out);
}
