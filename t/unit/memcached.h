/* SPDX-License-Identifier: Apache-2.0 */
#ifndef UNIT_MEMCACHED_H
#define UNIT_MEMCACHED_H

#include <apr_strings.h>
#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/** A memcached of a test's own, on a socket in a folder of its own. */
typedef struct memcached_t {
    char folder[64];
    const char *path, *servers; /**< as YoyakuMemcached names it */
    pid_t pid;
} memcached_t;

static inline void memcached_start(memcached_t *m, apr_pool_t *p)
{
    strcpy(m->folder, "/tmp/yoyaku-memcached-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(m->folder));
    m->path = apr_pstrcat(p, m->folder, "/socket", NULL);
    m->servers = apr_pstrcat(p, "unix:", m->path, NULL);
    m->pid = fork();
    if (m->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execlp("memcached", "memcached", "-s", m->path, "-u", "root", NULL);
        _exit(127);
    }
    for (int i = 0; i < 500 && access(m->path, F_OK) != 0; i++) {
        usleep(10000);
    }
}

static inline void memcached_stop(const memcached_t *m)
{
    kill(m->pid, SIGKILL);
    waitpid(m->pid, NULL, 0);
    unlink(m->path);
    rmdir(m->folder);
}

#endif
