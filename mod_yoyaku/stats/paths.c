/* SPDX-License-Identifier: Apache-2.0 */
#include "stats.h"

#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

#define BESIDE 8  /* a path may stand in any of so many rows */
#define WAIT 1000 /* us; a request is not held up for its entry */

void yk_stats_prefix(char prefix[YK_STATS_PATH], const char *path)
{
    int n = 0, parts = 0;

    for (; *path != '\0' && n < YK_STATS_PATH - 1; path++) {
        unsigned char c = (unsigned char)*path;

        if (c == '/' && path[1] != '/') {
            parts++;
        }
        if (parts > 2) {
            break;
        }
        prefix[n++] = c > ' ' && c < 0x7f && strchr("<>\"'&\\", c) == NULL
                          ? (char)c
                          : '?';
    }
    prefix[n] = '\0';
}

static uint32_t hash_of(const char *prefix, const char *handler)
{
    uint32_t hash = 2166136261U;

    for (; *prefix != '\0'; prefix++) {
        hash = (hash ^ (unsigned char)*prefix) * 16777619U;
    }
    for (; *handler != '\0'; handler++) {
        hash = (hash ^ (unsigned char)*handler) * 16777619U;
    }
    return hash;
}

/* The path's row, or the one to be used for it; `is_other`: of another. */
static yk_path_t *row_of(yk_stats_memory_t *m, int *is_other,
                         const char *prefix, const char *handler)
{
    uint32_t at = hash_of(prefix, handler);
    yk_path_t *least = NULL;

    *is_other = 0;
    for (uint32_t i = 0; i < BESIDE; i++) {
        yk_path_t *row = &m->path[(at + i) % YK_STATS_PATHS];

        if (row->prefix[0] == '\0') {
            *is_other = 1;
            return row;
        }
        if (strncmp(row->prefix, prefix, sizeof(row->prefix)) == 0 &&
            strncmp(row->handler, handler, sizeof(row->handler)) == 0) {
            return row;
        }
        if (least == NULL || row->wall_us < least->wall_us) {
            least = row;
        }
    }
    *is_other = 1;
    return least;
}

static void enter(yk_stats_t *stats, const yk_sample_t *sample,
                  const char *prefix, const char *handler)
{
    int is_other;
    yk_path_t *row = row_of(stats->m, &is_other, prefix, handler);

    if (is_other) {
        if (row->prefix[0] != '\0') {
            yk_stats_add(stats, YK_TOTAL_PATHS_EVICTED, 1);
        }
        memset(row, 0, sizeof(*row));
        apr_cpystrn(row->prefix, prefix, sizeof(row->prefix));
        apr_cpystrn(row->handler, handler, sizeof(row->handler));
    }
    row->count++;
    row->wall_us += sample->wall_us;
    row->cpu_us += sample->cpu_us;
    row->grown_kb += sample->grown_kb;
    if (sample->wall_us > row->wall_max_us) {
        row->wall_max_us = sample->wall_us;
    }
}

void yk_stats_path(yk_stats_t *stats, const yk_sample_t *sample)
{
    char prefix[YK_STATS_PATH], handler[32];
    int died;

    if (sample->path == NULL || *sample->path == '\0') {
        return;
    }
    yk_stats_prefix(prefix, sample->path);
    apr_cpystrn(handler, sample->handler != NULL ? sample->handler : "",
                sizeof(handler));
    if (yk_lock_take(&stats->m->lock, &died, YK_LOCK_WRITE, WAIT) !=
        APR_SUCCESS) {
        yk_stats_add(stats, YK_TOTAL_PATHS_LOST, 1);
        return;
    }
    if (died) {
        /* at worst one row is half of one path: it is told, not trusted */
        yk_lock_mend(&stats->m->lock);
    }
    enter(stats, sample, prefix, handler);
    yk_lock_give(&stats->m->lock);
}

static int by_wall(const void *a, const void *b)
{
    const yk_path_t *x = a, *y = b;

    return x->wall_us < y->wall_us ? 1 : x->wall_us > y->wall_us ? -1 : 0;
}

uint32_t yk_stats_paths(yk_stats_t *stats, yk_path_t *paths, apr_pool_t *p)
{
    uint32_t n = 0;
    int died;
    apr_status_t rv = yk_lock_take(&stats->m->lock, &died, YK_LOCK_READ,
                                   apr_time_from_msec(100));

    if (rv == APR_SUCCESS && died) {
        yk_lock_mend(&stats->m->lock);
    }
    for (uint32_t i = 0; i < YK_STATS_PATHS; i++) {
        if (stats->m->path[i].prefix[0] != '\0') {
            paths[n] = stats->m->path[i];
            paths[n].prefix[YK_STATS_PATH - 1] = '\0';
            paths[n++].handler[31] = '\0';
        }
    }
    if (rv == APR_SUCCESS) {
        yk_lock_give(&stats->m->lock);
    }
    qsort(paths, n, sizeof(paths[0]), by_wall);
    return n;
}
