/* SPDX-License-Identifier: Apache-2.0 */
#include "booker.h"
#include <inttypes.h>
#include <jansson.h>
#include <string.h>
#include <time.h>

static double wall(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/** An arm whose answer is a page says what it did in a header. */
static json_t *answer_json(const load_answer_t *answer)
{
    size_t len;
    const char *header = load_answer_header(answer, "Load-Answer", &len, NULL);

    if (header != NULL) {
        return json_loadb(header, len, 0, NULL);
    }
    return answer->body == NULL
               ? NULL
               : json_loadb(answer->body, strlen(answer->body), 0, NULL);
}

int load_record_reason(const load_answer_t *answer, const char *reason)
{
    json_t *json = answer_json(answer);
    const char *says = json_string_value(json_object_get(json, "reason"));
    int is = says != NULL && strcmp(says, reason) == 0;

    json_decref(json);
    return is;
}

uint32_t load_record_free(const load_answer_t *answer)
{
    json_t *json = answer_json(answer);
    json_int_t free_ = json_integer_value(json_object_get(json, "free"));

    json_decref(json);
    return free_ < 0 ? 0 : (uint32_t)free_;
}

/** The area he asks in; "": he names places. */
static const char *area_of(const load_booker_t *b)
{
    return b->area < 0 ? "" : b->loop->script->areas[b->area].name;
}

static const char *state_after(load_action_e action, json_t *order)
{
    const char *state = json_string_value(json_object_get(order, "state"));

    if (state != NULL) {
        return state;
    }
    return action == LOAD_ACTION_CHECKOUT  ? "locked"
           : action == LOAD_ACTION_CONFIRM ? "confirmed"
           : action == LOAD_ACTION_RELEASE ? "released"
                                           : "held";
}

static void lines_read(load_booker_t *b, json_t *lines, FILE *out)
{
    size_t i;
    json_t *line;
    const char *comma = "";

    json_int_t count = 0;

    b->nlines = 0;
    if (out != NULL) {
        fputs(",\"places\":[", out);
    }
    json_array_foreach(lines, i, line)
    {
        json_t *place = json_object_get(line, "place");

        if (b->nlines < LOAD_LINES_MAX) {
            b->lines[b->nlines++] =
                (uint32_t)json_integer_value(json_object_get(line, "line"));
        }
        if (!json_is_string(place)) {
            count += json_integer_value(json_object_get(line, "quantity"));
        }
        if (out != NULL && json_is_string(place)) {
            fputs(comma, out);
            json_dumpf(place, out, JSON_ENCODE_ANY);
            comma = ",";
        }
    }
    if (out != NULL) {
        fprintf(out, "],\"count\":%" JSON_INTEGER_FORMAT, count);
    }
}

int load_record_change(load_booker_t *b, load_action_e action,
                       const load_answer_t *answer)
{
    const load_script_t *script = b->loop->script;
    FILE *out = b->loop->tally->record;
    json_t *order = answer_json(answer);
    const char *number = json_string_value(json_object_get(order, "number"));
    json_t *lines = json_object_get(order, "lines");
    int good;

    if (number != NULL) {
        snprintf(b->number, sizeof(b->number), "%s", number);
    }
    good = action == LOAD_ACTION_HOLD || action == LOAD_ACTION_MORE ||
                   action == LOAD_ACTION_EXCHANGE
               ? number != NULL && json_is_array(lines)
               : b->number[0] != '\0';
    if (out != NULL) {
        fprintf(out,
                "{\"at\":%.6f,\"journey\":%" PRIu64 ",\"what\":\"%s\","
                "\"status\":%d,\"slot\":\"%s\",\"area\":\"%s\","
                "\"number\":\"%s\",\"state\":\"%s\"",
                wall(), b->journey, load_action_name(action), answer->status,
                script->slots[b->slot], area_of(b), b->number,
                state_after(action, order));
    }
    /* a released order's lines are history, not places anybody has */
    if (json_is_array(lines) && action != LOAD_ACTION_RELEASE) {
        lines_read(b, lines, out);
    }
    if (action == LOAD_ACTION_RELEASE) {
        b->nlines = 0;
    }
    if (out != NULL) {
        fputs("}\n", out);
    }
    json_decref(order);
    return good;
}

void load_record_doubt(load_booker_t *b, load_action_e action)
{
    const load_script_t *script = b->loop->script;
    FILE *out = b->loop->tally->record;

    b->loop->tally->unknown++;
    if (out == NULL) {
        return;
    }
    fprintf(out,
            "{\"at\":%.6f,\"journey\":%" PRIu64 ",\"what\":\"doubt\","
            "\"action\":\"%s\",\"slot\":\"%s\",\"area\":\"%s\","
            "\"quantity\":%u,\"number\":\"%s\",\"asked\":[",
            wall(), b->journey, load_action_name(action),
            script->slots[b->slot], area_of(b), b->quantity, b->number);
    for (uint32_t i = 0; i < b->nasked; i++) {
        json_t *place = json_string(script->places[b->asked[i]]);

        fputs(i == 0 ? "" : ",", out);
        json_dumpf(place, out, JSON_ENCODE_ANY);
        json_decref(place);
    }
    fputs("]}\n", out);
}
