/* SPDX-License-Identifier: Apache-2.0 */
#include "core.h"

#include <apr_file_io.h>
#include <apr_strings.h>
#include <string.h>
#include <unistd.h>

const char *core_read(apr_size_t *len, const char *name, apr_pool_t *p)
{
    apr_file_t *file;
    apr_finfo_t info;
    char *bytes;

    ck_assert_int_eq(
        apr_file_open(&file, apr_pstrcat(p, YK_SOURCE_FOLDER "/", name, NULL),
                      APR_FOPEN_READ, 0, p),
        APR_SUCCESS);
    ck_assert_int_eq(apr_file_info_get(&info, APR_FINFO_SIZE, file),
                     APR_SUCCESS);
    *len = (apr_size_t)info.size;
    bytes = apr_palloc(p, *len);
    ck_assert_int_eq(apr_file_read_full(file, bytes, *len, NULL), APR_SUCCESS);
    apr_file_close(file);
    return bytes;
}

static yk_hall_t *parse(const char *bytes, apr_size_t len, apr_pool_t *p)
{
    yk_hall_t *hall = NULL;
    const char *errors = "";

    ck_assert_msg(yk_hall_parse(&hall, &errors, bytes, len, NULL, p) ==
                      APR_SUCCESS,
                  "%s", errors);
    return hall;
}

yk_hall_t *core_hall(const char *text, apr_pool_t *p)
{
    return parse(text, strlen(text), p);
}

yk_hall_t *core_hall_file(const char *name, apr_pool_t *p)
{
    apr_size_t len = 0;
    const char *bytes =
        core_read(&len, apr_pstrcat(p, "loadtest/halls/", name, NULL), p);

    return parse(bytes, len, p);
}

static apr_status_t remove_file(void *path)
{
    unlink(path);
    return APR_SUCCESS;
}

const char *core_path(apr_pool_t *p)
{
    static int no;
    char *path = apr_psprintf(p, YK_BUILD_FOLDER "/check-%d-%d.plan",
                              (int)getpid(), no++);

    apr_pool_cleanup_register(p, path, remove_file, apr_pool_cleanup_null);
    return path;
}

yk_plan_t *core_plan(const yk_hall_t *hall, apr_pool_t *p)
{
    const char *path = core_path(p);
    yk_plan_t *plan = NULL;

    ck_assert_int_eq(yk_plan_write(hall, path, p), APR_SUCCESS);
    ck_assert_int_eq(yk_plan_open(&plan, path, p), APR_SUCCESS);
    return plan;
}

uint32_t core_place(const yk_hall_t *hall, const char *guid)
{
    for (uint32_t i = 0; i < hall->nplaces; i++) {
        if (strcmp(hall->places[i].guid, guid) == 0) {
            return i;
        }
    }
    ck_abort_msg("there is no place %s", guid);
    return YK_PLAN_NONE;
}
