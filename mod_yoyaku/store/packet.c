/* SPDX-License-Identifier: Apache-2.0 */
#include "packet.h"
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>
#include "yoyaku/log.h"
#include "yoyaku/state.h"

/* Ours: the server answered more or less than it was asked. */
#define BAD_ANSWER 65535u

yk_packet_t *yk_packet_make(yk_store_t *store)
{
    apr_pool_t *p;
    yk_packet_t *packet;

    apr_pool_create(&p, store->p);
    packet = apr_pcalloc(p, sizeof(*packet));
    packet->p = p;
    packet->store = store;
    packet->space = 16;
    packet->steps = apr_palloc(p, packet->space * sizeof(*packet->steps));
    yk_sql_make(&packet->sql, p);
    return packet;
}

void yk_packet_end(yk_packet_t *packet)
{
    apr_pool_destroy(packet->p);
}

yk_sql_t *yk_packet_ask(yk_packet_t *packet, yk_row_fn *row, void *baton)
{
    yk_step_t *step;

    if (packet->nsteps == packet->space) {
        yk_step_t *steps =
            apr_palloc(packet->p, 2 * packet->space * sizeof(*steps));
        memcpy(steps, packet->steps, packet->space * sizeof(*steps));
        packet->steps = steps;
        packet->space *= 2;
    }
    if (packet->nsteps > 0) {
        yk_sql_put(&packet->sql, ";\n");
    }
    step = &packet->steps[packet->nsteps++];
    step->row = row;
    step->baton = baton;
    return &packet->sql;
}

yk_sql_t *yk_packet_do(yk_packet_t *packet)
{
    return yk_packet_ask(packet, NULL, NULL);
}

void yk_packet_begin(yk_packet_t *packet)
{
    /* BEGIN would commit what somebody left open on a shared line */
    yk_sql_put(yk_packet_do(packet), "ROLLBACK");
    yk_sql_put(yk_packet_do(packet), "BEGIN");
    packet->begins = 1;
}

void yk_packet_commit(yk_packet_t *packet)
{
    yk_sql_put(yk_packet_do(packet), "COMMIT");
    packet->ends = 1;
}

/* Take one answer. @return 0, or an error number */
static unsigned answer(yk_packet_t *packet, MYSQL *line)
{
    const yk_step_t *step = &packet->steps[packet->seen];
    MYSQL_RES *result;
    MYSQL_ROW row;
    int next;

    if (packet->seen == 0) {
        next = mysql_read_query_result(line) ? 1 : 0;
    }
    else {
        next = mysql_next_result(line);
    }
    if (next != 0) {
        /* -1: no more answers, though there must be one more */
        unsigned number = mysql_errno(line);
        return number != 0 ? number : BAD_ANSWER;
    }
    result = mysql_store_result(line);
    if (result == NULL) {
        /* a statement that fails on its way through the rows says so here
         * and nowhere else */
        if (mysql_errno(line) != 0) {
            return mysql_errno(line);
        }
        if (mysql_field_count(line) > 0 || step->row != NULL) {
            return BAD_ANSWER;
        }
        packet->changed = mysql_affected_rows(line);
        return 0;
    }
    if (mysql_errno(line) != 0 || step->row == NULL) {
        unsigned number = mysql_errno(line);
        mysql_free_result(result);
        return number != 0 ? number : BAD_ANSWER;
    }
    for (row = mysql_fetch_row(result); row != NULL;
         row = mysql_fetch_row(result)) {
        step->row(step->baton, row, mysql_fetch_lengths(result));
    }
    mysql_free_result(result);
    return 0;
}

/* Read away what is left after an error, so that ROLLBACK can be sent.
 * @return 0 when the line is in step again */
static int drain(MYSQL *line)
{
    int next = mysql_more_results(line) ? mysql_next_result(line) : -1;

    while (next == 0) {
        MYSQL_RES *result = mysql_store_result(line);
        if (result != NULL) {
            mysql_free_result(result);
        }
        next = mysql_next_result(line);
    }
    return next > 0 && yk_line_is_lost(mysql_errno(line));
}

/* Leave no transaction behind: ROLLBACK, or the line goes. */
static void undo(yk_store_t *store, unsigned number)
{
    if (store->line == NULL) {
        return;
    }
    if (yk_line_is_lost(number) || number == BAD_ANSWER ||
        drain(store->line) != 0) {
        yk_line_drop(store);
        return;
    }
    yk_store_rollback(store);
}

static void complain(const yk_packet_t *packet, apr_status_t rv,
                     unsigned number, const char *text)
{
    if (number == BAD_ANSWER) {
        yk_log(YK_LOG_ERROR, rv,
               "YK0201: store: the database answered %u of %u statements in "
               "step; the line was dropped",
               packet->seen, packet->nsteps);
        return;
    }
    yk_log(YK_LOG_ERROR, rv,
           "YK0202: store: statement %u of %u failed (%u): %s",
           packet->seen + 1, packet->nsteps, number, text);
}

static unsigned exchange(yk_packet_t *packet, const char *text)
{
    MYSQL *line = packet->store->line;
    unsigned number = 0;

    if (mysql_send_query(line, text, strlen(text)) != 0) {
        number = mysql_errno(line);
        return number != 0 ? number : BAD_ANSWER;
    }
    packet->sent = 1;
    while (packet->seen < packet->nsteps) {
        number = answer(packet, line);
        if (number != 0) {
            return number;
        }
        packet->seen++;
    }
    return mysql_more_results(line) ? BAD_ANSWER : 0;
}

/* After a COMMIT was sent: known not to have happened only when the server
 * itself said so before or at it. */
static int fate_is_open(const yk_packet_t *packet, unsigned number)
{
    if (!packet->ends || !packet->sent) {
        return 0;
    }
    if (packet->seen + 1 < packet->nsteps) {
        /* a server that says why the line ends, ends the transaction too */
        return number == BAD_ANSWER ||
               (yk_line_is_lost(number) && number >= 2000 && number < 3000) ||
               number >= 5000;
    }
    return yk_line_status(number) != APR_EBUSY;
}

static apr_status_t send_once(yk_packet_t *packet)
{
    yk_store_t *store = packet->store;
    const char *text;
    unsigned number;
    apr_status_t rv = yk_line_take(store);

    if (rv != APR_SUCCESS) {
        return rv;
    }
    text = packet->sql.text;
    if (store->watch != NULL) {
        text = store->watch(store->watch_baton, text, packet->p);
    }
    if (packet->begins) {
        store->open = 1;
    }
    store->busy = 1;
    number = exchange(packet, text);
    store->busy = 0;
    packet->number = number;
    if (number == 0) {
        store->open = packet->ends ? 0 : store->open;
        return APR_SUCCESS;
    }
    rv = number == BAD_ANSWER ? APR_EGENERAL : yk_line_status(number);
    if (fate_is_open(packet, number)) {
        yk_line_drop(store);
        return APR_INCOMPLETE;
    }
    if (rv == APR_EGENERAL) {
        complain(packet, rv, number, mysql_error(store->line));
    }
    undo(store, number);
    return rv;
}

/* Nothing is lost when this packet is sent twice. */
static int may_repeat(const yk_packet_t *packet)
{
    uint32_t i;

    if (packet->begins || packet->ends) {
        return packet->begins && !packet->ends;
    }
    for (i = 0; i < packet->nsteps; i++) {
        if (packet->steps[i].row == NULL) {
            return 0;
        }
    }
    return 1;
}

/* A line that lay idle may be gone without our knowing, ended by wait_timeout
 * or a restart: then the same once more on a new one. */
apr_status_t yk_packet_send(yk_packet_t *packet)
{
    yk_store_t *store = packet->store;
    int was_idle = store->line != NULL && !store->open;
    apr_time_t began = yk_state_now();
    apr_status_t rv = send_once(packet);

    if (rv == APR_ECONNRESET && was_idle && packet->seen == 0 &&
        may_repeat(packet) && yk_state_now() - began < APR_USEC_PER_SEC) {
        packet->sent = 0;
        rv = send_once(packet);
    }
    return rv;
}

apr_status_t yk_packet_run(yk_packet_t *packet)
{
    apr_status_t rv = yk_packet_send(packet);
    yk_packet_end(packet);
    return rv;
}

uint64_t yk_column_uint(const char *column)
{
    return column != NULL ? strtoull(column, NULL, 10) : 0;
}

int64_t yk_column_int(const char *column)
{
    return column != NULL ? strtoll(column, NULL, 10) : 0;
}

double yk_column_double(const char *column)
{
    return column != NULL ? strtod(column, NULL) : 0.0;
}

const char *yk_column_text(const char *column, unsigned long len, apr_pool_t *p)
{
    return column != NULL ? apr_pstrmemdup(p, column, len) : "";
}

void yk_column_bytes(void *to, apr_size_t space, const char *column,
                     unsigned long len)
{
    memset(to, 0, space);
    if (column != NULL) {
        memcpy(to, column, len < space ? len : space);
    }
}
