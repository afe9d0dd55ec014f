/* SPDX-License-Identifier: Apache-2.0 */
#include "script.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *load_action_name(load_action_e action)
{
    static const char *const names[] = {
#define ACTION_NAME(name, text) text,
        LOAD_ACTIONS(ACTION_NAME)
#undef ACTION_NAME
    };

    return names[action];
}

static int action_of(load_action_e *action, const char *name)
{
    for (int i = 0; i < LOAD_ACTION_COUNT; i++) {
        if (strcmp(name, load_action_name((load_action_e)i)) == 0) {
            *action = (load_action_e)i;
            return 1;
        }
    }
    return 0;
}

uint64_t load_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint32_t load_random_below(uint64_t *state, uint32_t below)
{
    return below == 0 ? 0 : (uint32_t)(load_random(state) % below);
}

static double random_unit(uint64_t *state)
{
    return ((double)(load_random(state) >> 11) + 0.5) / 9007199254740992.0;
}

uint32_t load_random_pause(uint64_t *state, uint32_t mean)
{
    return (uint32_t)(-log(random_unit(state)) * mean);
}

/** All journeys in order, dealt to the threads like cards. */
int64_t *load_script_due(const load_script_t *script, uint64_t *n,
                         uint32_t thread)
{
    uint64_t state = script->seed ^ UINT64_C(0xa5a5a5a5);
    int crowd = script->plan == LOAD_PLAN_CROWD;
    uint64_t all =
        crowd ? script->bookers : (uint64_t)(script->rate * script->seconds);
    double mean = crowd ? (double)script->stagger_ms * 1000 / (double)all
                        : 1e6 / script->rate;
    double at = 0;
    int64_t *due;

    *n = 0;
    if (script->plan == LOAD_PLAN_CLOSED) {
        return NULL;
    }
    due = calloc(all / script->threads + 1, sizeof(*due));
    if (due == NULL) {
        perror("driver: memory");
        exit(1);
    }
    for (uint64_t i = 0; i < all; i++) {
        at += -log(random_unit(&state)) * mean;
        if (i % script->threads == thread) {
            due[(*n)++] = (int64_t)at;
        }
    }
    return due;
}

/* ---- reading ---- */

static char *word(char **rest)
{
    char *from = *rest + strspn(*rest, " \t");
    size_t len = strcspn(from, " \t");

    if (len == 0) {
        return NULL;
    }
    *rest = from + len;
    if (**rest != '\0') {
        *(*rest)++ = '\0';
    }
    return from;
}

static int read_number(uint32_t *number, const char *value)
{
    char *end;

    *number = (uint32_t)strtoul(value, &end, 10);
    return end != value && *end == '\0';
}

static int read_action(load_script_t *s, char *value)
{
    load_action_e action;
    load_click_t *click = s->clicks;
    char *name = word(&value);
    char *method = word(&value);
    char *path = word(&value);
    char *area = name == NULL ? NULL : strstr(name, "-area");

    if (area != NULL) {
        *area = '\0';
        click = s->in_area;
    }
    if (path == NULL || !action_of(&action, name)) {
        return 0;
    }
    click += action;
    value += strspn(value, " \t");
    click->method = strdup(method);
    click->path = strdup(path);
    click->body = *value == '\0' ? NULL : strdup(value);
    return 1;
}

/** A word, or "several of them". */
static char *name_of(char **rest)
{
    char *from = *rest + strspn(*rest, " \t");
    char *end = *from == '"' ? strchr(from + 1, '"') : NULL;

    if (end == NULL) {
        return word(rest);
    }
    *end = '\0';
    *rest = end + 1;
    return from + 1;
}

/** `area NAME assigned|pooled[:N] PERCENT`; N is for who makes the slot. */
static int read_area(load_script_t *s, char *value)
{
    load_area_t *area = &s->areas[s->nareas];
    char *name = name_of(&value);
    char *mode = word(&value);
    char *percent = word(&value);

    if (s->nareas == LOAD_AREAS_MAX || percent == NULL ||
        !read_number(&area->percent, percent)) {
        return 0;
    }
    area->pooled = strncmp(mode, "pooled", 6) == 0;
    if (!area->pooled && strcmp(mode, "assigned") != 0) {
        return 0;
    }
    area->name = strdup(name);
    s->nareas++;
    return 1;
}

static int read_steps(load_script_t *s, char *value)
{
    char *name;

    s->nsteps = 0;
    for (name = word(&value); name != NULL; name = word(&value)) {
        if (s->nsteps == LOAD_STEPS_MAX ||
            !action_of(&s->steps[s->nsteps], name)) {
            return 0;
        }
        s->nsteps++;
    }
    return s->nsteps > 0;
}

static int read_slot(load_script_t *s, const char *value)
{
    if (s->slots == NULL) {
        s->slots = calloc(LOAD_SLOTS_MAX, sizeof(*s->slots));
    }
    if (s->slots == NULL || s->nslots == LOAD_SLOTS_MAX || *value == '\0') {
        return 0;
    }
    s->slots[s->nslots++] = strdup(value);
    return 1;
}

/* A file's lines, added to the list. */
static int read_lines(char ***list, uint32_t *n, const char *path)
{
    FILE *in = fopen(path, "r");
    char line[256];
    uint32_t space = *n;

    if (in == NULL) {
        return 0;
    }
    while (fgets(line, sizeof(line), in) != NULL) {
        line[strcspn(line, "\r\n")] = '\0';
        if (*n == space) {
            space = space == 0 ? 1024 : 2 * space;
            *list = realloc(*list, space * sizeof(**list));
            if (*list == NULL) {
                perror("driver: memory");
                exit(1);
            }
        }
        (*list)[(*n)++] = strdup(line);
    }
    fclose(in);
    return *n > 0;
}

static int read_url(load_script_t *s, const char *value)
{
    char host[256];
    unsigned port;

    s->tls = strncmp(value, "https://", 8) == 0;
    if (!s->tls && strncmp(value, "http://", 7) != 0) {
        return 0;
    }
    value += s->tls ? 8 : 7;
    port = s->tls ? 443 : 80;
    if (sscanf(value, "[%255[^]]]:%u", host, &port) < 1 &&
        sscanf(value, "%255[^:/]:%u", host, &port) < 1) {
        return 0;
    }
    free(s->host);
    s->host = strdup(host);
    s->port = (uint16_t)port;
    return port > 0 && port < 65536;
}

static int read_spread(load_script_t *s, const char *value)
{
    if (strcmp(value, "even") == 0) {
        s->spread = LOAD_SPREAD_EVEN;
    }
    else if (strcmp(value, "best") == 0) {
        s->spread = LOAD_SPREAD_BEST;
    }
    else if (sscanf(value, "skew:%u", &s->skew) == 1 && s->skew <= 100) {
        s->spread = LOAD_SPREAD_SKEW;
    }
    else {
        return 0;
    }
    return 1;
}

static int read_plan(load_script_t *s, const char *value)
{
    static const char *const names[] = {"crowd", "open", "closed"};

    for (int i = 0; i < 3; i++) {
        if (strcmp(value, names[i]) == 0) {
            s->plan = (load_plan_e)i;
            return 1;
        }
    }
    return 0;
}

static int read_keep(load_script_t *s, const char *value)
{
    static const char *const names[] = {"off", "journey", "on"};

    for (int i = 0; i < 3; i++) {
        if (strcmp(value, names[i]) == 0) {
            s->keep = (load_keep_e)i;
            return 1;
        }
    }
    return 0;
}

static int read_range(uint32_t *min, uint32_t *max, const char *value)
{
    int n = sscanf(value, "%u..%u", min, max);

    if (n == 1) {
        *max = *min;
    }
    return n >= 1 && *min <= *max;
}

static int read_flag(int *flag, const char *value)
{
    *flag = strcmp(value, "on") == 0;
    return *flag || strcmp(value, "off") == 0;
}

static int read_real(double *number, const char *value)
{
    char *end;

    *number = strtod(value, &end);
    return end != value && *end == '\0' && *number >= 0;
}

/** X(key, how it is read): every key there is. */
#define KEYS(X)                                                                \
    X("url", read_url(s, v))                                                   \
    X("insecure", read_flag(&s->insecure, v))                                  \
    X("type", (s->type = strdup(v)) != NULL)                                   \
    X("action", read_action(s, v))                                             \
    X("slot", read_slot(s, v))                                                 \
    X("places", read_lines(&s->places, &s->nplaces, v))                        \
    X("cookies", read_lines(&s->cookies, &s->ncookies, v))                     \
    X("area", read_area(s, v))                                                 \
    X("together", read_number(&s->together, v))                                \
    X("steps", read_steps(s, v))                                               \
    X("browse", read_number(&s->browse, v))                                    \
    X("abandon", read_number(&s->abandon, v))                                  \
    X("exchange", read_number(&s->exchange, v))                                \
    X("more", read_range(&s->more_min, &s->more_max, v))                       \
    X("party", read_range(&s->party_min, &s->party_max, v))                    \
    X("tries", read_number(&s->tries, v))                                      \
    X("elsewhere", read_number(&s->elsewhere, v))                              \
    X("think_ms", read_number(&s->think_ms, v))                                \
    X("retry_cap_ms", read_number(&s->retry_cap_ms, v))                        \
    X("keepalive", read_keep(s, v))                                            \
    X("keys", read_flag(&s->keys, v))                                          \
    X("conditional", read_flag(&s->conditional, v))                            \
    X("blind", read_flag(&s->blind, v))                                        \
    X("plan", read_plan(s, v))                                                 \
    X("spread", read_spread(s, v))                                             \
    X("bookers", read_number(&s->bookers, v))                                  \
    X("threads", read_number(&s->threads, v))                                  \
    X("rate", read_real(&s->rate, v))                                          \
    X("seconds", read_real(&s->seconds, v))                                    \
    X("stagger_ms", read_number(&s->stagger_ms, v))                            \
    X("seed", (s->seed = strtoull(v, NULL, 10), 1))                            \
    X("connect_timeout_ms", read_number(&s->connect_timeout_ms, v))            \
    X("answer_timeout_ms", read_number(&s->answer_timeout_ms, v))              \
    X("record", (s->record = strdup(v)) != NULL)                               \
    X("header", (s->header = strdup(v)) != NULL)                               \
    X("cpus", (s->cpus = strdup(v)) != NULL)                                   \
    X("progress_ms", read_number((uint32_t *)&s->progress_ms, v))

static int read_line(load_script_t *s, const char *key, char *v)
{
#define KEY_READ(name, how)                                                    \
    if (strcmp(key, name) == 0) {                                              \
        return how;                                                            \
    }
    KEYS(KEY_READ)
#undef KEY_READ
    return 0;
}

static int areas_whole(const load_script_t *s)
{
    uint32_t percent = 0;

    for (uint32_t i = 0; i < s->nareas; i++) {
        percent += s->areas[i].percent;
    }
    return s->nareas == 0 ||
           (percent <= 100 && s->in_area[LOAD_ACTION_HOLD].method != NULL);
}

static int whole(const load_script_t *s)
{
    const char *missing = s->host == NULL     ? "url"
                          : s->nslots == 0    ? "slot"
                          : s->nsteps == 0    ? "steps"
                          : s->bookers == 0   ? "bookers"
                          : s->threads == 0   ? "threads"
                          : s->party_min == 0 ? "party"
                          : !areas_whole(s)   ? "area and hold-area"
                          : s->plan == LOAD_PLAN_OPEN && s->rate <= 0 ? "rate"
                          : s->plan != LOAD_PLAN_CROWD && s->seconds <= 0
                              ? "seconds"
                              : NULL;

    if (missing != NULL) {
        fprintf(stderr, "driver: the script says nothing usable of `%s`\n",
                missing);
    }
    return missing == NULL;
}

static void drop_list(char **list, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        free(list[i]);
    }
    free(list);
}

static void drop_click(load_click_t *click)
{
    free(click->method);
    free(click->path);
    free(click->body);
}

void load_script_drop(load_script_t *s)
{
    if (s == NULL) {
        return;
    }
    for (int i = 0; i < LOAD_ACTION_COUNT; i++) {
        drop_click(&s->clicks[i]);
        drop_click(&s->in_area[i]);
    }
    for (uint32_t i = 0; i < s->nareas; i++) {
        free(s->areas[i].name);
    }
    drop_list(s->slots, s->nslots);
    drop_list(s->places, s->nplaces);
    drop_list(s->cookies, s->ncookies);
    free(s->host);
    free(s->type);
    free(s->record);
    free(s->header);
    free(s->cpus);
    free(s);
}

load_script_t *load_script_read(FILE *in)
{
    load_script_t *s = calloc(1, sizeof(*s));
    static char line[65536];

    if (s == NULL) {
        return NULL;
    }
    s->type = strdup("application/json");
    s->party_min = s->party_max = 1;
    s->tries = 5;
    s->elsewhere = 30;
    s->threads = 1;
    s->keep = LOAD_KEEP_ON;
    s->retry_cap_ms = 2000;
    s->connect_timeout_ms = 10000;
    s->answer_timeout_ms = 30000;
    while (fgets(line, sizeof(line), in) != NULL) {
        char *rest = line;
        char *key;

        line[strcspn(line, "\r\n")] = '\0';
        key = word(&rest);
        if (key == NULL || key[0] == '#') {
            continue;
        }
        rest += strspn(rest, " \t");
        if (!read_line(s, key, rest)) {
            fprintf(stderr, "driver: cannot use `%s %s`\n", key, rest);
            load_script_drop(s);
            return NULL;
        }
    }
    if (!whole(s)) {
        load_script_drop(s);
        return NULL;
    }
    return s;
}

int load_action_takes(load_action_e action)
{
    return action == LOAD_ACTION_HOLD || action == LOAD_ACTION_MORE ||
           action == LOAD_ACTION_EXCHANGE;
}

int load_action_changes(load_action_e action)
{
    return load_action_takes(action) || action == LOAD_ACTION_CHECKOUT ||
           action == LOAD_ACTION_CONFIRM || action == LOAD_ACTION_RELEASE;
}

int load_script_has_step(const load_script_t *script, load_action_e action)
{
    for (uint32_t i = 0; i < script->nsteps; i++) {
        if (script->steps[i] == action) {
            return script->clicks[action].method != NULL;
        }
    }
    return 0;
}
