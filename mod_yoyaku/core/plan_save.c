/* SPDX-License-Identifier: Apache-2.0 */
#include "yoyaku/plan.h"

#include <apr_strings.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

/*
 * A drawing of 80,000 places is five megabytes of JSON: written section by
 * section, so that whoever writes it needs room for one of them only.
 */

#define MARK "\"sections\":["

typedef struct pair_t {
    FILE *plain;
    gzFile packed;
} pair_t;

static int pair_put(pair_t *pair, const char *bytes, apr_size_t len)
{
    return len == 0 ||
           (fwrite(bytes, 1, len, pair->plain) == len &&
            gzwrite(pair->packed, bytes, (unsigned)len) == (int)len);
}

/* Everything around the sections, then each of them. The mark cannot stand in
 * a text: its quotes would be escaped there. */
static apr_status_t write_sections(pair_t *pair, const yk_plan_t *plan,
                                   apr_pool_t *ptemp)
{
    uint32_t n = yk_plan_sections(plan);
    apr_pool_t *p;
    int fits = 1;

    apr_pool_create(&p, ptemp);
    for (uint32_t i = 0; fits && i < n; i++) {
        const char *json, *from, *end;
        apr_size_t len;

        yk_plan_document(plan, &json, &len, i, p);
        from = strstr(json, MARK);
        end = json + len;
        while (end > json && *end != ']') {
            end--;
        }
        if (from == NULL || end < from) {
            apr_pool_destroy(p);
            return APR_EGENERAL;
        }
        from += strlen(MARK);
        fits =
            (i == 0 ? pair_put(pair, json, (apr_size_t)(from - json))
                    : pair_put(pair, ",", 1)) &&
            pair_put(pair, from, (apr_size_t)(end - from)) &&
            (i + 1 < n || pair_put(pair, end, (apr_size_t)(json + len - end)));
        apr_pool_clear(p);
    }
    apr_pool_destroy(p);
    return fits ? APR_SUCCESS : APR_ENOSPC;
}

static apr_status_t pair_open(pair_t *pair, const char *plain,
                              const char *packed)
{
    pair->plain = fopen(plain, "wxe");
    if (pair->plain == NULL) {
        return errno;
    }
    pair->packed = gzopen(packed, "wbe6");
    if (pair->packed == NULL) {
        apr_status_t rv = errno != 0 ? errno : APR_ENOMEM;

        fclose(pair->plain);
        return rv;
    }
    return APR_SUCCESS;
}

apr_status_t yk_plan_save(const yk_plan_t *plan, const char *path,
                          apr_pool_t *ptemp)
{
    const char *half = apr_psprintf(ptemp, "%s.%ld.new", path, (long)getpid());
    const char *half_gz = apr_pstrcat(ptemp, half, ".gz", NULL);
    pair_t pair = {NULL, NULL};
    apr_status_t rv;

    unlink(half);
    unlink(half_gz);
    rv = pair_open(&pair, half, half_gz);
    if (rv != APR_SUCCESS) {
        return rv;
    }
    rv = write_sections(&pair, plan, ptemp);
    if (fclose(pair.plain) != 0 && rv == APR_SUCCESS) {
        rv = APR_ENOSPC;
    }
    if (gzclose(pair.packed) != Z_OK && rv == APR_SUCCESS) {
        rv = APR_ENOSPC;
    }
    /* the plain one last: whoever finds it finds the other */
    if (rv == APR_SUCCESS &&
        (rename(half_gz, apr_pstrcat(ptemp, path, ".gz", NULL)) != 0 ||
         rename(half, path) != 0)) {
        rv = errno;
    }
    if (rv != APR_SUCCESS) {
        unlink(half);
        unlink(half_gz);
    }
    return rv;
}
