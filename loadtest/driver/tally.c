/* SPDX-License-Identifier: Apache-2.0 */
#include "tally.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define RELAXED memory_order_relaxed

static const char *const outcome_names[] = {
#define OUTCOME_NAME(name, text) text,
    LOAD_OUTCOMES(OUTCOME_NAME)
#undef OUTCOME_NAME
};

load_tally_t *load_tally_create(const load_script_t *script, uint32_t thread)
{
    load_tally_t *tally = calloc(1, sizeof(*tally));
    char path[4096];

    if (tally == NULL) {
        perror("driver: memory");
        exit(1);
    }
    tally->demand = calloc((size_t)script->nslots * (1 + script->nareas),
                           sizeof(*tally->demand));
    tally->connects = load_hdr_create();
    tally->late = load_hdr_create();
    atomic_store(&tally->free_seen, -1);
    if (script->record != NULL && thread != UINT32_MAX) {
        snprintf(path, sizeof(path), "%s.%u", script->record, thread);
        tally->record = fopen(path, "w");
        if (tally->record == NULL) {
            perror(path);
            exit(1);
        }
    }
    return tally;
}

/** A sixteenth wide: good enough to look at while it runs. */
static uint32_t recent_cell(uint64_t us)
{
    uint32_t shift, cell;

    if (us < 16) {
        return (uint32_t)us;
    }
    shift = 63u - (uint32_t)__builtin_clzll(us) - 3u;
    cell = shift * 8 + (uint32_t)(us >> shift);
    return cell < LOAD_RECENT_CELLS ? cell : LOAD_RECENT_CELLS - 1;
}

static uint64_t recent_value(uint32_t cell)
{
    uint32_t shift = cell < 16 ? 0 : cell / 8 - 1;

    return (uint64_t)(cell - shift * 8 + 1) << shift;
}

static void record_into(load_hdr_t **hdr, int64_t us)
{
    if (*hdr == NULL) {
        *hdr = load_hdr_create();
    }
    load_hdr_record(*hdr, us < 0 ? 0 : (uint64_t)us);
}

static void bump(_Atomic uint64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, RELAXED);
}

void load_tally_count(load_tally_t *tally, load_action_e action,
                      load_outcome_e outcome, int64_t from_due_us,
                      int64_t from_send_us)
{
    /* a timer may ring a little early: then it was due when it was sent */
    if (from_due_us < from_send_us) {
        from_due_us = from_send_us;
    }
    record_into(&tally->from_due[action][outcome], from_due_us);
    record_into(&tally->from_send[action][outcome], from_send_us);
    bump(&tally->answers);
    if (outcome == LOAD_OUTCOME_OK &&
        (action == LOAD_ACTION_HOLD || action == LOAD_ACTION_MORE)) {
        bump(&tally->ok_holds);
    }
    if (outcome == LOAD_OUTCOME_OK && action == LOAD_ACTION_CONFIRM) {
        bump(&tally->confirms);
    }
    if (outcome == LOAD_OUTCOME_REFUSED) {
        bump(&tally->refusals);
    }
    if (outcome == LOAD_OUTCOME_BUSY) {
        bump(&tally->busy);
    }
    if (outcome == LOAD_OUTCOME_BROKEN || outcome == LOAD_OUTCOME_BAD) {
        bump(&tally->broken);
    }
    if (outcome == LOAD_OUTCOME_LOST) {
        bump(&tally->lost);
    }
    atomic_fetch_add_explicit(
        &tally
             ->recent[recent_cell(from_due_us < 0 ? 0 : (uint64_t)from_due_us)],
        1, RELAXED);
}

static void hdr_sum(load_hdr_t **sum, const load_hdr_t *other)
{
    if (other == NULL) {
        return;
    }
    if (*sum == NULL) {
        *sum = load_hdr_create();
    }
    load_hdr_add(*sum, other);
}

void load_tally_add(load_tally_t *sum, const load_tally_t *other,
                    const load_script_t *script)
{
    for (int a = 0; a < LOAD_ACTION_COUNT; a++) {
        for (int o = 0; o < LOAD_OUTCOME_COUNT; o++) {
            hdr_sum(&sum->from_due[a][o], other->from_due[a][o]);
            hdr_sum(&sum->from_send[a][o], other->from_send[a][o]);
        }
    }
    hdr_sum(&sum->connects, other->connects);
    hdr_sum(&sum->late, other->late);
    for (int i = 0; i < 600; i++) {
        sum->statuses[i] += other->statuses[i];
    }
    for (int i = 0; i < LOAD_WIRE_END_COUNT; i++) {
        sum->ends[i] += other->ends[i];
    }
    for (uint32_t i = 0; i < script->nslots * (1 + script->nareas); i++) {
        sum->demand[i].wanted += other->demand[i].wanted;
        sum->demand[i].got += other->demand[i].got;
        sum->demand[i].unmet += other->demand[i].unmet;
        sum->demand[i].given_up += other->demand[i].given_up;
    }
#define WAY_ADD(name) sum->name += other->name;
    LOAD_WAYS(WAY_ADD)
#undef WAY_ADD
    sum->journeys += other->journeys;
    sum->taken_again += other->taken_again;
    sum->moved += other->moved;
    sum->bytes_in += other->bytes_in;
    sum->opened += other->opened;
    sum->opened_us += other->opened_us;
    sum->replayed += other->replayed;
    sum->unknown += other->unknown;
    sum->cpu_seconds += other->cpu_seconds;
    if (other->wall_seconds > sum->wall_seconds) {
        sum->wall_seconds = other->wall_seconds;
    }
}

static uint64_t recent_at(const uint32_t *cells, uint64_t total, double part)
{
    uint64_t want = (uint64_t)((double)total * part) + 1;
    uint64_t seen = 0;

    for (uint32_t i = 0; i < LOAD_RECENT_CELLS; i++) {
        seen += cells[i];
        if (seen >= want) {
            return recent_value(i);
        }
    }
    return 0;
}

void load_tally_progress(load_tally_t **tallies, uint32_t n, double at,
                         double seconds, FILE *out)
{
    static uint64_t answers_before;
    uint32_t cells[LOAD_RECENT_CELLS] = {0};
    uint64_t answers = 0, holds = 0, confirms = 0, refusals = 0, busy = 0,
             broken = 0, lost = 0, total = 0;
    int64_t connecting = 0, waiting = 0, inside = 0, free_seen = -1;

    for (uint32_t t = 0; t < n; t++) {
        load_tally_t *tally = tallies[t];
        int64_t seen = atomic_load_explicit(&tally->free_seen, RELAXED);

        answers += atomic_load_explicit(&tally->answers, RELAXED);
        holds += atomic_load_explicit(&tally->ok_holds, RELAXED);
        confirms += atomic_load_explicit(&tally->confirms, RELAXED);
        refusals += atomic_load_explicit(&tally->refusals, RELAXED);
        busy += atomic_load_explicit(&tally->busy, RELAXED);
        broken += atomic_load_explicit(&tally->broken, RELAXED);
        lost += atomic_load_explicit(&tally->lost, RELAXED);
        connecting += atomic_load_explicit(&tally->connecting, RELAXED);
        waiting += atomic_load_explicit(&tally->waiting, RELAXED);
        inside += atomic_load_explicit(&tally->inside, RELAXED);
        if (seen >= 0 && (free_seen < 0 || seen < free_seen)) {
            free_seen = seen;
        }
        for (uint32_t i = 0; i < LOAD_RECENT_CELLS; i++) {
            cells[i] += atomic_exchange_explicit(&tally->recent[i], 0, RELAXED);
        }
    }
    for (uint32_t i = 0; i < LOAD_RECENT_CELLS; i++) {
        total += cells[i];
    }
    fprintf(out,
            "{\"progress\":{\"at\":%.1f,\"rate\":%.0f,\"answers\":%" PRIu64
            ",\"holds\":%" PRIu64 ",\"confirmed\":%" PRIu64
            ",\"refused\":%" PRIu64 ",\"busy\":%" PRIu64 ",\"broken\":%" PRIu64
            ",\"lost\":%" PRIu64 ",\"connecting\":%" PRId64
            ",\"waiting\":%" PRId64 ",\"inside\":%" PRId64 ",\"free\":%" PRId64
            ",\"p50_us\":%" PRIu64 ",\"p95_us\":%" PRIu64 "}}\n",
            at, (double)(answers - answers_before) / seconds, answers, holds,
            confirms, refusals, busy, broken, lost, connecting, waiting, inside,
            free_seen, recent_at(cells, total, 0.5),
            recent_at(cells, total, 0.95));
    fflush(out);
    answers_before = answers;
}

static void write_latencies(load_hdr_t *const rows[][LOAD_OUTCOME_COUNT],
                            const char *name, FILE *out)
{
    const char *comma = "";

    fprintf(out, ",\"%s\":[", name);
    for (int a = 0; a < LOAD_ACTION_COUNT; a++) {
        for (int o = 0; o < LOAD_OUTCOME_COUNT; o++) {
            if (rows[a][o] != NULL) {
                fprintf(out, "%s{\"action\":\"%s\",\"outcome\":\"%s\",\"hdr\":",
                        comma, load_action_name((load_action_e)a),
                        outcome_names[o]);
                load_hdr_write(rows[a][o], out);
                fputc('}', out);
                comma = ",";
            }
        }
    }
    fputc(']', out);
}

static void write_demand(const load_tally_t *sum, const load_script_t *script,
                         FILE *out)
{
    uint32_t each = 1 + script->nareas;

    fputs(",\"slots\":[", out);
    for (uint32_t i = 0; i < script->nslots * each; i++) {
        const load_demand_t *d = &sum->demand[i];

        fprintf(out,
                "%s{\"slot\":\"%s\",\"area\":\"%s\",\"wanted\":%" PRIu64
                ",\"got\":%" PRIu64 ",\"unmet\":%" PRIu64
                ",\"given_up\":%" PRIu64 "}",
                i == 0 ? "" : ",", script->slots[i / each],
                i % each == 0 ? "" : script->areas[i % each - 1].name,
                d->wanted, d->got, d->unmet, d->given_up);
    }
    fputc(']', out);
}

void load_tally_write(const load_tally_t *sum, const load_script_t *script,
                      FILE *out)
{
    const char *comma = "";

    fprintf(out,
            "{\"result\":{\"seed\":%" PRIu64 ",\"threads\":%u,"
            "\"wall_seconds\":%.3f,\"cpu_seconds\":%.3f,\"bytes_in\":%" PRIu64
            ",\"taken_again\":%" PRIu64 ",\"moved\":%" PRIu64
            ",\"replayed\":%" PRIu64 ",\"unknown\":%" PRIu64
            ",\"opened\":%" PRIu64 ",\"opened_us\":%" PRId64 ",\"statuses\":{",
            script->seed, script->threads, sum->wall_seconds, sum->cpu_seconds,
            sum->bytes_in, sum->taken_again, sum->moved, sum->replayed,
            sum->unknown, sum->opened, sum->opened_us);
    for (int i = 0; i < 600; i++) {
        if (sum->statuses[i] != 0) {
            fprintf(out, "%s\"%d\":%" PRIu64, comma, i, sum->statuses[i]);
            comma = ",";
        }
    }
    fputs("},\"ends\":{", out);
    for (int i = 0; i < LOAD_WIRE_END_COUNT; i++) {
        fprintf(out, "%s\"%s\":%" PRIu64, i == 0 ? "" : ",",
                load_wire_end_name((load_wire_end_e)i), sum->ends[i]);
    }
    fprintf(out, "},\"journeys\":{\"all\":%" PRIu64, sum->journeys);
#define WAY_WRITE(name) fprintf(out, ",\"" #name "\":%" PRIu64, sum->name);
    LOAD_WAYS(WAY_WRITE)
#undef WAY_WRITE
    fputc('}', out);
    write_demand(sum, script, out);
    fputs(",\"connects\":", out);
    load_hdr_write(sum->connects, out);
    fputs(",\"late\":", out);
    load_hdr_write(sum->late, out);
    write_latencies(sum->from_due, "from_due", out);
    write_latencies(sum->from_send, "from_send", out);
    fputs("}}\n", out);
    fflush(out);
}
