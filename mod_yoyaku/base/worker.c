/* SPDX-License-Identifier: Apache-2.0 */
#include "yoyaku/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void fresh(void *memory)
{
    (void)memory; /* nothing but zeros */
}

/* Nobody of before the machine's start lives. */
static void renew(void *memory)
{
    yk_workers_t *workers = memory;

    for (uint32_t i = 0; i < YK_WORKERS_MAX; i++) {
        atomic_store(&workers->worker[i].identity, 0);
    }
    atomic_fetch_add(&workers->graves, 1);
}

const yk_state_kind_t yk_workers_kind = {"workers", YK_WORKERS_LAYOUT,
                                         sizeof(yk_workers_t), fresh, renew};

/* /proc/PID/stat: "123 (name, may hold anything) S ppid ..."; the start time
 * is the 22nd word, 20 behind the last parenthesis. */
uint64_t yk_worker_identity(uint32_t pid)
{
    char path[32], text[1024];
    char *at;
    uint64_t start;
    ssize_t n;
    int fd;

    snprintf(path, sizeof(path), "/proc/%u/stat", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    n = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    at = strrchr(text, ')');
    if (at == NULL || at[1] != ' ' || at[2] == 'Z' || at[2] == 'X') {
        return 0;
    }
    for (int word = 0; word < 20 && at != NULL; word++) {
        at = strchr(at + 1, ' ');
    }
    if (at == NULL) {
        return 0;
    }
    start = strtoull(at + 1, NULL, 10);
    return ((uint64_t)pid << 32) | (start & 0xffffffffU);
}

int yk_worker_is_alive(uint64_t identity)
{
    uint32_t pid = (uint32_t)(identity >> 32);

    if (pid == 0 || (kill((pid_t)pid, 0) != 0 && errno == ESRCH)) {
        return 0;
    }
    return yk_worker_identity(pid) == identity;
}

uint32_t yk_workers_join(yk_workers_t *workers, uint64_t generation,
                         uint32_t layout)
{
    uint64_t me = yk_worker_identity((uint32_t)getpid());

    for (uint32_t i = 0; i < YK_WORKERS_MAX; i++) {
        yk_worker_t *w = &workers->worker[i];
        uint64_t none = 0;
        uint32_t high;

        if (atomic_load_explicit(&w->identity, memory_order_relaxed) != 0) {
            continue;
        }
        if (!atomic_compare_exchange_strong(&w->identity, &none, me)) {
            continue;
        }
        atomic_store(&w->generation, generation);
        atomic_store(&w->layout, layout);
        atomic_store(&w->leaving, 0);
        atomic_store(&w->looked_us, 0);
        atomic_store(&w->resident_kb, 0);
        atomic_store(&w->private_kb, 0);
        atomic_store(&w->proportional_kb, 0);
        atomic_store(&w->requests, 0);
        high = atomic_load(&workers->high);
        while (high < i + 1 &&
               !atomic_compare_exchange_weak(&workers->high, &high, i + 1)) {
        }
        return i;
    }
    return YK_WORKER_NONE;
}

int yk_workers_has(const yk_workers_t *workers, uint32_t worker,
                   uint64_t identity)
{
    return worker < YK_WORKERS_MAX &&
           atomic_load(&workers->worker[worker].identity) == identity;
}

void yk_workers_drop(yk_workers_t *workers, uint32_t worker, uint64_t identity)
{
    if (worker < YK_WORKERS_MAX && identity != 0 &&
        atomic_compare_exchange_strong(&workers->worker[worker].identity,
                                       &identity, 0)) {
        atomic_fetch_add(&workers->graves, 1);
    }
}

void yk_workers_bury(yk_workers_t *workers, uint32_t pid)
{
    for (uint32_t i = 0; i < YK_WORKERS_MAX; i++) {
        uint64_t identity = atomic_load(&workers->worker[i].identity);

        if (identity != 0 && (uint32_t)(identity >> 32) == pid) {
            yk_workers_drop(workers, i, identity);
        }
    }
}

/* A row may be above `high` for the moment between a join and its note of it;
 * who is missed now is looked at next time. */
uint32_t yk_workers_probe(yk_workers_t *workers, apr_interval_time_t age,
                          apr_time_t now)
{
    uint64_t last = atomic_load(&workers->probed_us);
    uint32_t high, dead = 0;

    if ((apr_time_t)last + age > now && (apr_time_t)last <= now) {
        return 0;
    }
    if (!atomic_compare_exchange_strong(&workers->probed_us, &last,
                                        (uint64_t)now)) {
        return 0;
    }
    high = atomic_load(&workers->high);
    for (uint32_t i = 0; i < high && i < YK_WORKERS_MAX; i++) {
        uint64_t identity = atomic_load(&workers->worker[i].identity);

        if (identity != 0 && !yk_worker_is_alive(identity)) {
            yk_workers_drop(workers, i, identity);
            dead++;
        }
    }
    return dead;
}

uint32_t yk_workers_of_layout(const yk_workers_t *workers, uint32_t layout)
{
    uint32_t high = atomic_load(&workers->high), n = 0;

    for (uint32_t i = 0; i < high && i < YK_WORKERS_MAX; i++) {
        const yk_worker_t *w = &workers->worker[i];

        if (atomic_load(&w->identity) != 0 &&
            atomic_load(&w->layout) == layout) {
            n++;
        }
    }
    return n;
}
