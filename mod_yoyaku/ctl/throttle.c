/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_env.h>
#include <apr_file_io.h>
#include <apr_strings.h>
#include <signal.h>
#include <string.h>
#include "ctl.h"
#include "yoyaku/stats.h"
#include "yoyaku/throttle.h"

#define RUNTIME_INSTALLED "/run/apache2"
#define STATE_INSTALLED RUNTIME_INSTALLED "/yoyaku"

/* ---- where the state is ---- */

/** The word behind a directive, without quotes; NULL: another line. */
static const char *word_behind(const char *line, const char *directive,
                               apr_pool_t *p)
{
    apr_size_t n = strlen(directive);

    line += strspn(line, " \t");
    if (strncasecmp(line, directive, n) != 0 || line[n] == '\0' ||
        strchr(" \t", line[n]) == NULL) {
        return NULL;
    }
    line += n + strspn(line + n, " \t");
    return *line == '"' ? apr_pstrmemdup(p, line + 1, strcspn(line + 1, "\""))
                        : apr_pstrmemdup(p, line, strcspn(line, " \t"));
}

/** A folder as httpd reads it, ${NAME} from the environment; NULL: it has not
 *  that name. Debian's envvars are sourced by whoever starts the server. */
static const char *folder_expand(const char *folder, apr_pool_t *p)
{
    const char *at = strstr(folder, "${");
    const char *end = at != NULL ? strchr(at, '}') : NULL;
    char *value = NULL;

    if (end == NULL) {
        return folder;
    }
    if (apr_env_get(&value, apr_pstrmemdup(p, at + 2, end - at - 2), p) !=
        APR_SUCCESS) {
        return NULL;
    }
    return apr_pstrcat(p, apr_pstrmemdup(p, folder, at - folder), value,
                       end + 1, NULL);
}

/** From httpd's configuration: YoyakuStateDir, under DefaultRuntimeDir. */
static const char *folder_of_file(const char *path, apr_pool_t *p)
{
    const char *state = NULL, *runtime = NULL, *word;
    apr_file_t *file;
    char line[4096];

    if (apr_file_open(&file, path, APR_FOPEN_READ | APR_FOPEN_BUFFERED, 0, p) !=
        APR_SUCCESS) {
        return NULL;
    }
    while (apr_file_gets(line, sizeof(line), file) == APR_SUCCESS) {
        line[strcspn(line, "\r\n")] = '\0';
        word = word_behind(line, "YoyakuStateDir", p);
        state = word != NULL ? word : state;
        word = word_behind(line, "DefaultRuntimeDir", p);
        runtime = word != NULL ? word : runtime;
    }
    apr_file_close(file);
    if (state != NULL && (*state == '/' || *state == '$')) {
        return folder_expand(state, p);
    }
    if (runtime != NULL) {
        runtime = folder_expand(runtime, p);
    }
    if (runtime == NULL && state != NULL) {
        runtime = RUNTIME_INSTALLED;
    }
    return runtime == NULL
               ? NULL
               : apr_pstrcat(p, runtime, "/", state != NULL ? state : "yoyaku",
                             NULL);
}

const char *yk_ctl_state(yk_ctl_t *ctl)
{
    const char *said = yk_ctl_args_get(ctl->args, "state");
    const char *file = yk_ctl_args_get(ctl->args, "config");
    char *environment = NULL;

    if (said != NULL) {
        return said;
    }
    if (apr_env_get(&environment, "YOYAKU_STATE", ctl->p) == APR_SUCCESS &&
        *environment != '\0') {
        return environment;
    }
    said = file != NULL ? folder_of_file(file, ctl->p) : NULL;
    return said != NULL ? said : STATE_INSTALLED;
}

int yk_ctl_state_fail(yk_ctl_t *ctl, apr_status_t rv)
{
    const char *folder = yk_ctl_state(ctl);

    if (APR_STATUS_IS_ENOENT(rv)) {
        return yk_ctl_fail(ctl,
                           "no server has its state in %s (--state, "
                           "YOYAKU_STATE or --config say where)",
                           folder);
    }
    if (rv == APR_EMISMATCH) {
        return yk_ctl_fail(ctl,
                           "the server that uses %s is of another version; use "
                           "its own yoyakuctl",
                           folder);
    }
    if (APR_STATUS_IS_EACCES(rv)) {
        return yk_ctl_fail(ctl,
                           "%s belongs to the user who started the server; "
                           "become that user",
                           folder);
    }
    if (rv == APR_TIMEUP) {
        return yk_ctl_fail(ctl, "a worker holds the lock all the time; is one "
                                "stopped? Nothing was changed");
    }
    return yk_ctl_status(ctl, rv, NULL);
}

/* A command that is interrupted must not leave a lock half way. */
void yk_ctl_signals_block(void)
{
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
}

/* ---- commands ---- */

static int list_print(yk_ctl_t *ctl, const json_t *rules)
{
    char *text =
        apr_psprintf(ctl->p, "%-20s %6s %8s %7s %9s %8s %8s", "rule", "limit",
                     "running", "queued", "arrived", "waited", "refused");
    json_t *rule;
    size_t i;

    json_array_foreach(rules, i, rule)
    {
        const char *name;
        apr_int64_t limit, running, queued, arrived, waited, refused;
        int is_set;
        json_t *terms;

        json_unpack(rule, "{s:s,s:o,s:I,s:I,s:I,s:I,s:I,s:b}", "name", &name,
                    "in_force", &terms, "running", &running, "queued", &queued,
                    "arrivals", &arrived, "admitted_after_waiting", &waited,
                    "refused_all", &refused, "set_by_operator", &is_set);
        limit = json_integer_value(json_object_get(terms, "limit"));
        text = apr_psprintf(
            ctl->p,
            "%s\n%-20s %6" APR_INT64_T_FMT " %8" APR_INT64_T_FMT
            " %7" APR_INT64_T_FMT " %9" APR_INT64_T_FMT " %8" APR_INT64_T_FMT
            " %8" APR_INT64_T_FMT "%s%s",
            text, name, limit, running, queued, arrived, waited, refused,
            is_set ? "  set" : "",
            json_is_true(json_object_get(terms, "dry-run")) ? "  dry-run" : "");
    }
    return yk_ctl_done(ctl, text, NULL);
}

int yk_ctl_throttle_list(yk_ctl_t *ctl)
{
    yk_throttle_t *throttle;
    apr_status_t rv =
        yk_throttle_attach(&throttle, yk_ctl_state(ctl), 0, ctl->p);
    json_t *tree;
    int status;

    if (rv != APR_SUCCESS) {
        return yk_ctl_state_fail(ctl, rv);
    }
    tree = yk_stats_document_rules(throttle);
    if (ctl->json) {
        return yk_ctl_done(ctl, "", tree);
    }
    status = list_print(ctl, json_object_get(tree, "rules"));
    json_decref(tree);
    return status;
}

static int act(yk_ctl_t *ctl, yk_throttle_do_e what, const char *did)
{
    const char *name = ctl->args->words[0], *problem = NULL;
    yk_throttle_t *throttle;
    uint32_t n;
    apr_status_t rv =
        yk_throttle_attach(&throttle, yk_ctl_state(ctl), 1, ctl->p);

    if (rv == APR_SUCCESS) {
        yk_ctl_signals_block();
        rv = yk_throttle_do(throttle, &n, &problem, what, name,
                            (char *const *)(ctl->args->words + 1),
                            ctl->args->nwords - 1, ctl->p);
    }
    if (rv == APR_NOTFOUND) {
        return yk_ctl_fail(ctl, "there is no rule \"%s\"", name);
    }
    if (rv == APR_EINVAL && problem != NULL) {
        return yk_ctl_usage(ctl, "%s", problem);
    }
    if (rv != APR_SUCCESS) {
        return yk_ctl_state_fail(ctl, rv);
    }
    did = what == YK_THROTTLE_RELEASE || what == YK_THROTTLE_REFUSE
              ? apr_psprintf(ctl->p, "%s: %u %s.", name, n, did)
              : apr_psprintf(ctl->p, "%s: %s.", name, did);
    return yk_ctl_done(ctl, did,
                       json_pack("{s:s,s:s,s:i}", "rule", name, "said", did,
                                 "requests", (int)n));
}

int yk_ctl_throttle_set(yk_ctl_t *ctl)
{
    return act(ctl, YK_THROTTLE_SET,
               "in force until reset or until the configuration changes it");
}

int yk_ctl_throttle_reset(yk_ctl_t *ctl)
{
    return act(ctl, YK_THROTTLE_RESET, "as configured again");
}

int yk_ctl_throttle_release(yk_ctl_t *ctl)
{
    return act(ctl, YK_THROTTLE_RELEASE, "that waited run");
}

int yk_ctl_throttle_refuse(yk_ctl_t *ctl)
{
    return act(ctl, YK_THROTTLE_REFUSE, "that waited are refused");
}

int yk_ctl_throttle_zero(yk_ctl_t *ctl)
{
    return act(ctl, YK_THROTTLE_ZERO, "counters begin anew");
}
