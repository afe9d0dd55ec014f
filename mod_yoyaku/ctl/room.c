/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_strings.h>
#include <string.h>
#include "ctl.h"
#include "yoyaku/room.h"
#include "yoyaku/throttle.h"

/** A room's file is made by the first configuration that has one, the rules'
 *  by every server. */
static int is_without_rooms(yk_ctl_t *ctl, apr_status_t rv)
{
    yk_throttle_t *throttle;

    return APR_STATUS_IS_ENOENT(rv) &&
           yk_throttle_attach(&throttle, yk_ctl_state(ctl), 0, ctl->p) ==
               APR_SUCCESS;
}

int yk_ctl_room_list(yk_ctl_t *ctl)
{
    yk_rooms_t *rooms;
    apr_status_t rv = yk_rooms_attach(&rooms, yk_ctl_state(ctl), 0, ctl->p);
    json_t *list, *room;
    char *text;
    size_t i;

    if (rv != APR_SUCCESS && !is_without_rooms(ctl, rv)) {
        return yk_ctl_state_fail(ctl, rv);
    }
    list = rv == APR_SUCCESS ? yk_rooms_document(rooms, ctl->p) : json_array();
    if (ctl->json) {
        return yk_ctl_done(ctl, "", json_pack("{s:o}", "rooms", list));
    }
    text =
        apr_psprintf(ctl->p, "%-20s %-7s %8s %8s %8s %8s  %s", "room", "state",
                     "rate", "waiting", "called", "passes", "message");
    json_array_foreach(list, i, room)
    {
        text = apr_psprintf(
            ctl->p, "%s\n%-20s %-7s %8s %8d %8d %8d  %s", text,
            json_string_value(json_object_get(room, "name")),
            json_string_value(json_object_get(room, "state")),
            json_string_value(json_object_get(room, "rate")),
            (int)json_integer_value(json_object_get(room, "waiting")),
            (int)json_integer_value(json_object_get(room, "called")),
            (int)json_integer_value(json_object_get(room, "passes")),
            json_string_value(json_object_get(room, "message")));
    }
    json_decref(list);
    return yk_ctl_done(ctl, text, NULL);
}

static int act(yk_ctl_t *ctl, yk_rooms_do_e what, const char *did)
{
    const char *name = ctl->args->words[0], *problem = NULL;
    const char *argument = ctl->args->nwords > 1 ? ctl->args->words[1] : "";
    yk_rooms_t *rooms;
    apr_status_t rv = yk_rooms_attach(&rooms, yk_ctl_state(ctl), 1, ctl->p);

    if (rv == APR_SUCCESS) {
        yk_ctl_signals_block();
        rv = yk_rooms_do(rooms, &problem, what, name, argument, ctl->p);
    }
    if (rv == APR_NOTFOUND || is_without_rooms(ctl, rv)) {
        return yk_ctl_fail(ctl, "there is no room \"%s\"", name);
    }
    if (rv == APR_EINVAL && problem != NULL) {
        return yk_ctl_usage(ctl, "%s", problem);
    }
    if (rv != APR_SUCCESS) {
        return yk_ctl_state_fail(ctl, rv);
    }
    did = apr_psprintf(ctl->p, "%s: %s.", name, did);
    return yk_ctl_done(ctl, did,
                       json_pack("{s:s,s:s}", "room", name, "said", did));
}

int yk_ctl_room_pause(yk_ctl_t *ctl)
{
    return act(ctl, YK_ROOMS_PAUSE, "nobody is called until resume");
}

int yk_ctl_room_resume(yk_ctl_t *ctl)
{
    return act(ctl, YK_ROOMS_RESUME, "numbers are called again");
}

int yk_ctl_room_rate(yk_ctl_t *ctl)
{
    return act(ctl, YK_ROOMS_RATE,
               "called at this rate until the configuration changes it");
}

int yk_ctl_room_say(yk_ctl_t *ctl)
{
    return act(ctl, YK_ROOMS_SAY, "the message is shown");
}
