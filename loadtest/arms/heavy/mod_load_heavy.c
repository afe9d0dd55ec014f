/* SPDX-License-Identifier: Apache-2.0 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* mkostemp */
#endif
#include "../arm.h"
#include <errno.h>
#include <fcntl.h>
#include <http_log.h>
#include <http_request.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * Stand-ins for what runs behind a server on its worst day.
 *
 *   GET /heavy/task..  goes over LoadHeavyMemory bytes LoadHeavyPasses times
 *   GET /heavy/light   answers from memory
 *   GET /heavy/wait    waits LoadHeavyWait milliseconds, as for a database
 *   GET /heavy/count   how many of all these there were
 *
 * The memory of /heavy/task is a file without a name, mapped shared: under a
 * limit of memory its pages are written out and read in again, as swap would,
 * on machines that have none. LoadHeavyWeight is what a worker keeps for good
 * after its first request, whatever that was.
 */

extern module AP_MODULE_DECLARE_DATA load_heavy_module;

#define PAGE 4096
#define MB ((apr_size_t)1024 * 1024)

static const char *folder = "/tmp";
static apr_size_t memory_mb = 16, weight_mb;
static int passes = 4, wait_ms = 20;

static int reply(request_rec *r, const char *bytes)
{
    return arm_reply(r, "text/plain", bytes, strlen(bytes));
}

/* Mapped anew for each request, as an application that builds its world. */
static unsigned char *world_make(request_rec *r, apr_size_t size)
{
    char *path = apr_pstrcat(r->pool, folder, "/world-XXXXXX", NULL);
    int fd = mkostemp(path, O_CLOEXEC);
    void *world = MAP_FAILED;

    if (fd >= 0) {
        unlink(path);
        if (ftruncate(fd, (off_t)size) == 0) {
            world = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        }
        close(fd);
    }
    return world != MAP_FAILED ? world : NULL;
}

static int task(request_rec *r)
{
    apr_size_t size = memory_mb * MB;
    unsigned char *world = world_make(r, size);
    apr_uint32_t sum = 1;

    if (world == NULL) {
        ap_log_rerror(APLOG_MARK, APLOG_ERR, APR_FROM_OS_ERROR(errno), r,
                      "no world of %d MB in %s", (int)memory_mb, folder);
        return HTTP_INTERNAL_SERVER_ERROR;
    }
    for (int pass = 0; pass < passes; pass++) {
        for (apr_size_t at = 0; at < size; at += PAGE) {
            for (int i = 0; i < PAGE; i += 16) {
                sum = sum * 1664525U + 1013904223U + world[at + i];
            }
            world[at] = (unsigned char)(sum >> 24);
        }
    }
    munmap(world, size);
    return reply(r, apr_psprintf(r->pool, "%u\n", sum));
}

static void weigh(void)
{
    static unsigned char *weight;

    if (weight == NULL && weight_mb > 0) {
        weight = malloc(weight_mb * MB);
        if (weight != NULL) {
            memset(weight, 1, weight_mb * MB);
        }
    }
}

static int handler(request_rec *r)
{
    if (r->handler == NULL || strcmp(r->handler, "load-heavy") != 0) {
        return DECLINED;
    }
    if (strcmp(r->uri, "/heavy/count") == 0) {
        return arm_reply_count(r, "text/plain");
    }
    apr_atomic_inc32(arm_counter());
    weigh();
    if (strncmp(r->uri, "/heavy/task", 11) == 0) {
        return task(r);
    }
    if (strcmp(r->uri, "/heavy/wait") == 0) {
        apr_sleep(apr_time_from_msec(wait_ms));
    }
    return reply(r, "ok\n");
}

static const char *set_folder(cmd_parms *cmd, void *dummy, const char *value)
{
    folder = value;
    return NULL;
}

static const char *set_memory(cmd_parms *cmd, void *dummy, const char *value)
{
    memory_mb = (apr_size_t)atoi(value);
    return NULL;
}

static const char *set_weight(cmd_parms *cmd, void *dummy, const char *value)
{
    weight_mb = (apr_size_t)atoi(value);
    return NULL;
}

static const char *set_passes(cmd_parms *cmd, void *dummy, const char *value)
{
    passes = atoi(value);
    return NULL;
}

static const char *set_wait(cmd_parms *cmd, void *dummy, const char *value)
{
    wait_ms = atoi(value);
    return NULL;
}

static const command_rec directives[] = {
    AP_INIT_TAKE1("LoadHeavyFolder", set_folder, NULL, RSRC_CONF,
                  "where the memory of /heavy/task lies"),
    AP_INIT_TAKE1("LoadHeavyMemory", set_memory, NULL, RSRC_CONF,
                  "how many MB of it a request goes over"),
    AP_INIT_TAKE1("LoadHeavyPasses", set_passes, NULL, RSRC_CONF,
                  "how often it does"),
    AP_INIT_TAKE1("LoadHeavyWait", set_wait, NULL, RSRC_CONF,
                  "milliseconds that /heavy/wait waits"),
    AP_INIT_TAKE1("LoadHeavyWeight", set_weight, NULL, RSRC_CONF,
                  "MB that a worker keeps after its first request"),
    {NULL}};

static void hooks(apr_pool_t *p)
{
    ap_hook_post_config(arm_begin, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_handler(handler, NULL, NULL, APR_HOOK_MIDDLE);
}

AP_DECLARE_MODULE(load_heavy) = {
    STANDARD20_MODULE_STUFF, NULL, NULL, NULL, NULL, directives, hooks, 0,
};
