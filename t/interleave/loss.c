/* SPDX-License-Identifier: Apache-2.0 */
#include "stage.h"
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

loss_e loss_of(const player_t *player, packet_e kind)
{
    static const char *const names[] = {"none", "before", "never", "done",
                                        "late"};
    const char *colon = player->lose ? strchr(player->lose, ':') : NULL;
    const char *kind_name = packet_name(kind);
    loss_e how;
    if (!colon || strncmp(player->lose, kind_name, strlen(kind_name)) != 0) {
        return LOSS_NONE;
    }
    for (how = LOSS_BEFORE; how <= LOSS_LATE; how++) {
        if (strcmp(names[how], colon + 1) == 0) {
            return how;
        }
    }
    script_wrong("lose=KIND:HOW", player->lose);
}

static void write_all(int fd, const void *bytes, size_t len)
{
    const char *at = bytes;
    while (len > 0) {
        ssize_t n = send(fd, at, len, MSG_NOSIGNAL);
        if (n <= 0) {
            return;
        }
        at += n;
        len -= (size_t)n;
    }
}

/* COM_QUERY as the protocol has it: length (3 bytes), number 0, 3, text */
void loss_deliver(int fd, const char *sql)
{
    size_t len = strlen(sql) + 1;
    unsigned char head[5] = {(unsigned char)len, (unsigned char)(len >> 8),
                             (unsigned char)(len >> 16), 0, 3};
    char answer[4096];
    write_all(fd, head, sizeof(head));
    write_all(fd, sql, len - 1);
    /* the server does what it has got, then finds the end of the stream */
    shutdown(fd, SHUT_WR);
    while (recv(fd, answer, sizeof(answer), 0) > 0) {
    }
    close(fd);
}

/* The server's end of the line under another number; the client library keeps
 * its number, which now leads to `peer`. */
static int divert(MYSQL *line, int *peer)
{
    int ends[2];
    int fd = (int)mysql_get_socket(line);
    int server = dup(fd);
    if (server < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0 ||
        dup2(ends[0], fd) < 0) {
        script_wrong("cannot divert", "a connection");
    }
    close(ends[0]);
    *peer = ends[1];
    return server;
}

/* Closes a diverted peer with the run. */
static apr_status_t close_peer(void *data)
{
    close((int)(intptr_t)data);
    return APR_SUCCESS;
}

static void end_session(player_t *player, int server, apr_pool_t *p)
{
    MYSQL *line = server_connect(player->world->server, "");
    close(server);
    server_kill(line, player->line_id, p);
    mysql_close(line);
}

const char *loss_break(player_t *player, int *late, const char *sql, loss_e how,
                       apr_pool_t *p)
{
    int peer, server;
    *late = -1;
    player->lose = NULL;
    if (apr_table_get(ITEM(player->role->acts, player->now, act_t *)->options,
                      "dies")) {
        player->dead = 1;
    }
    server = divert(player->line, &peer);
    switch (how) {
    case LOSS_DONE:
        loss_deliver(server, sql);
        break;
    case LOSS_LATE:
        *late = server;
        break;
    default:
        end_session(player, server, p);
        break;
    }
    if (how == LOSS_BEFORE) {
        close(peer);
    }
    else {
        shutdown(peer, SHUT_WR);
        apr_pool_cleanup_register(player->p, (void *)(intptr_t)peer, close_peer,
                                  apr_pool_cleanup_null);
    }
    return sql;
}
