/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_strings.h>
#include <errno.h>
#include <string.h>
#include "ctl.h"

/** "pooled:400" as mode and count; YK_CTL_USAGE when it is neither. */
static int mode_parse(yk_ctl_t *ctl, yk_setup_area_t *area, const char *text)
{
    char *end = NULL;

    for (int mode = 0; mode < YK_MODE_COUNT; mode++) {
        const char *name = yk_mode_name((yk_mode_e)mode);
        apr_size_t len = strlen(name);

        if (strncmp(text, name, len) != 0) {
            continue;
        }
        area->mode = (yk_mode_e)mode;
        if (mode != YK_MODE_POOLED && text[len] == '\0') {
            return YK_CTL_DONE;
        }
        if (mode == YK_MODE_POOLED && text[len] == ':') {
            errno = 0;
            area->max = apr_strtoi64(text + len + 1, &end, 10);
            if (end != text + len + 1 && *end == '\0' && errno == 0 &&
                area->max >= 0) {
                return YK_CTL_DONE;
            }
        }
    }
    return yk_ctl_usage(ctl,
                        "an area is sold placed, assigned, pooled:N or "
                        "closed, not \"%s\"",
                        text);
}

/** --area NAME=MODE and --pool NAME=N, in the order they were typed. */
static int areas_parse(yk_ctl_t *ctl, yk_setup_slot_t *slot)
{
    const yk_ctl_args_t *args = ctl->args;

    slot->areas = apr_pcalloc(ctl->p, (apr_size_t)(args->nflags + 1) *
                                          sizeof(*slot->areas));
    for (int i = 0; i < args->nflags; i++) {
        const yk_ctl_flag_t *flag = &args->flags[i];
        int pool = strcmp(flag->name, "pool") == 0;
        yk_setup_area_t *area = &slot->areas[slot->nareas];
        const char *equals;
        int status;

        if (!pool && strcmp(flag->name, "area") != 0) {
            continue;
        }
        /* a name may hold "=", what follows it cannot */
        equals = strrchr(flag->value, '=');
        if (equals == NULL || equals == flag->value) {
            return yk_ctl_usage(ctl, "--%s is NAME=%s, not \"%s\"", flag->name,
                                pool ? "N" : "HOW", flag->value);
        }
        area->name = apr_pstrmemdup(ctl->p, flag->value,
                                    (apr_size_t)(equals - flag->value));
        status =
            mode_parse(ctl, area,
                       pool ? apr_pstrcat(ctl->p, "pooled:", equals + 1, NULL)
                            : equals + 1);
        if (status != YK_CTL_DONE) {
            return status;
        }
        slot->nareas++;
    }
    return YK_CTL_DONE;
}

static int times_parse(yk_ctl_t *ctl, yk_setup_slot_t *slot)
{
    const struct {
        const char *flag;
        apr_time_t *when;
    } times[] = {{"starts", &slot->starts},
                 {"ends", &slot->ends},
                 {"opens", &slot->opens},
                 {"closes", &slot->closes}};

    for (unsigned i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        int status = yk_ctl_time(ctl, times[i].when, times[i].flag);

        if (status != YK_CTL_DONE) {
            return status;
        }
    }
    return YK_CTL_DONE;
}

int yk_ctl_slot_add(yk_ctl_t *ctl)
{
    yk_setup_slot_t slot = {0};
    const char *say = NULL;
    apr_status_t rv;
    int status;

    slot.key = yk_ctl_need(ctl, "key");
    slot.title = slot.key != NULL ? yk_ctl_need(ctl, "title") : NULL;
    if (slot.title == NULL || yk_ctl_need(ctl, "starts") == NULL) {
        return YK_CTL_USAGE;
    }
    if (!yk_text_is_key(slot.key)) {
        return yk_ctl_usage(ctl, "--key is 1 to 64 of A-Z a-z 0-9 . _ -");
    }
    slot.resource = yk_ctl_args_get(ctl->args, "resource");
    slot.series = yk_ctl_args_get(ctl->args, "series");
    slot.hall = yk_ctl_args_get(ctl->args, "hall");
    status = times_parse(ctl, &slot);
    if (status == YK_CTL_DONE) {
        status = areas_parse(ctl, &slot);
    }
    if (status == YK_CTL_DONE && slot.hall == NULL && slot.nareas == 0) {
        status = yk_ctl_usage(ctl, "a slot needs --hall or at least one "
                                   "--pool");
    }
    if (status == YK_CTL_DONE) {
        status = yk_ctl_open_tenant(ctl);
    }
    if (status != YK_CTL_DONE) {
        return status;
    }
    rv = yk_setup_slot(ctl->store, &say, ctl->tenant_id, &slot, ctl->p);
    return rv == APR_SUCCESS
               ? yk_ctl_done(ctl, say, json_pack("{s:s}", "slot", slot.key))
               : yk_ctl_status(ctl, rv, say);
}

static int state_set(yk_ctl_t *ctl, yk_slot_state_e state)
{
    const char *key = ctl->args->words[0];
    const char *say = NULL;
    apr_status_t rv;
    int status = yk_ctl_open_tenant(ctl);

    if (status != YK_CTL_DONE) {
        return status;
    }
    rv = yk_setup_slot_state(ctl->store, &say, ctl->tenant_id, key, state,
                             ctl->p);
    return rv == APR_SUCCESS
               ? yk_ctl_done(
                     ctl, say,
                     json_pack("{s:s, s:s}", "slot", key, "state",
                               state == YK_SLOT_OPEN ? "open" : "closed"))
               : yk_ctl_status(ctl, rv, say);
}

int yk_ctl_slot_open(yk_ctl_t *ctl)
{
    return state_set(ctl, YK_SLOT_OPEN);
}

int yk_ctl_slot_close(yk_ctl_t *ctl)
{
    return state_set(ctl, YK_SLOT_CLOSED);
}

/** A time, or null when it is not set. */
static json_t *time_json(yk_ctl_t *ctl, apr_time_t when)
{
    return when != 0 ? json_string(yk_time_write(when, ctl->p)) : json_null();
}

static json_t *listed_json(yk_ctl_t *ctl, const yk_listed_t *one,
                           apr_time_t now)
{
    const yk_slot_t *slot = one->slot;

    return json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:I, s:I}", "slot",
        slot->key, "title", slot->title, "resource", slot->resource, "series",
        slot->series, "state", yk_slot_state_name(slot, now), "starts",
        time_json(ctl, slot->starts), "ends", time_json(ctl, slot->ends),
        "opens", time_json(ctl, slot->opens), "closes",
        time_json(ctl, slot->closes), "free", (json_int_t)one->free, "places",
        (json_int_t)one->places);
}

int yk_ctl_slot_list(yk_ctl_t *ctl)
{
    json_t *slots = json_array();
    const char *text = "", *after = NULL;
    int more = 1;
    int status = yk_ctl_open_tenant(ctl);

    if (status != YK_CTL_DONE) {
        return status;
    }
    while (more) {
        yk_listed_t *list;
        uint32_t n;
        apr_time_t now;
        apr_status_t rv = yk_store_slots(
            ctl->store, &list, &n, &more, &now, ctl->tenant_id,
            yk_ctl_args_get(ctl->args, "resource"),
            yk_ctl_args_get(ctl->args, "series"), NULL, after, ctl->p);

        if (rv != APR_SUCCESS) {
            return yk_ctl_status(ctl, rv, NULL);
        }
        for (uint32_t i = 0; i < n; i++) {
            const yk_slot_t *slot = list[i].slot;

            json_array_append_new(slots, listed_json(ctl, &list[i], now));
            text = apr_psprintf(ctl->p,
                                "%s%-24s %-7s %s %" APR_INT64_T_FMT
                                " of %" APR_INT64_T_FMT " free  %s\n",
                                text, slot->key, yk_slot_state_name(slot, now),
                                yk_time_write(slot->starts, ctl->p),
                                (apr_int64_t)list[i].free,
                                (apr_int64_t)list[i].places, slot->title);
            after = slot->key;
        }
        more = more && n > 0;
    }
    return yk_ctl_done(ctl,
                       *text != '\0'
                           ? apr_pstrmemdup(ctl->p, text, strlen(text) - 1)
                           : "There is no slot yet.",
                       json_pack("{s:o}", "slots", slots));
}
