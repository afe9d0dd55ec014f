/* SPDX-License-Identifier: Apache-2.0 */
#include <apr_env.h>
#include <apr_file_io.h>
#include <apr_general.h>
#include <apr_strings.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ctl.h"
#include "yoyaku/log.h"

typedef struct command_t {
    const char *words;
    yk_ctl_fn *run;
    int least, most;
    const char *synopsis;
    const char *what;
} command_t;

static const command_t commands[] = {
#define COMMAND(words, fn, least, most, synopsis, what)                        \
    {words, fn, least, most, synopsis, what},
    YK_CTL_COMMANDS(COMMAND)
#undef COMMAND
};
#define NCOMMANDS (sizeof(commands) / sizeof(commands[0]))

static void log_line(yk_log_e level, apr_status_t rv, const char *line)
{
    if (level == YK_LOG_ERROR || level == YK_LOG_WARNING) {
        fprintf(stderr, "yoyakuctl: %s\n", line);
    }
}

/** How many of the words typed are the command's; 0: it is another. */
static int match(const command_t *command, int argc, const char *const *argv)
{
    const char *rest = command->words;

    for (int i = 0; i < argc; i++) {
        apr_size_t len = strcspn(rest, " ");

        if (strlen(argv[i]) != len || strncmp(argv[i], rest, len) != 0) {
            return 0;
        }
        if (rest[len] == '\0') {
            return i + 1;
        }
        rest += len + 1;
    }
    return 0;
}

/** Break a text into lines of a terminal's width. */
static void print_wrapped(const char *text, int indent, int width)
{
    int column = 0;

    while (*text != '\0') {
        int len = (int)strcspn(text, " ");

        if (column == 0 || column + 1 + len > width) {
            printf("%s%*s", column == 0 ? "" : "\n", indent, "");
            column = indent;
        }
        else {
            putchar(' ');
            column++;
        }
        printf("%.*s", len, text);
        column += len;
        text += len;
        text += strspn(text, " ");
    }
    putchar('\n');
}

static void help_one(const command_t *command)
{
    printf("yoyakuctl %s\n", command->words);
    if (*command->synopsis != '\0') {
        print_wrapped(command->synopsis, 6, 78);
    }
    print_wrapped(command->what, 4, 78);
}

/** All commands, or those that begin with `topic`. */
static int help(const char *topic)
{
    int found = 0;

    if (topic == NULL) {
        printf("yoyakuctl: halls, slots, prices, limits and orders of "
               "mod_yoyaku,\nthrottles and waiting rooms of a running "
               "server.\n\n");
    }
    for (unsigned i = 0; i < NCOMMANDS; i++) {
        apr_size_t len = topic != NULL ? strlen(topic) : 0;

        if (topic == NULL || (strncmp(commands[i].words, topic, len) == 0 &&
                              strchr(" ", commands[i].words[len]) != NULL)) {
            help_one(&commands[i]);
            found = 1;
        }
    }
    if (found) {
        putchar('\n');
        print_wrapped("With every command: " YK_CTL_EVERYWHERE, 0, 78);
        print_wrapped("The database is named by --db, as mod_dbd's DBDParams "
                      "(\"host=,port=,sock=,user=,pass=,dbname=\"), else by "
                      "the environment's YOYAKU_DB, else by --config FILE: "
                      "httpd's configuration with DBDParams in it, or a file "
                      "with such a line alone. throttle and room find the "
                      "running server by its folder, YoyakuStateDir: --state, "
                      "else the environment's YOYAKU_STATE, else as --config "
                      "FILE says, else /run/apache2/yoyaku. Exit status: 0 "
                      "done, 1 not done, 2 asked wrongly.",
                      0, 78);
    }
    return found;
}

static int is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 ||
           strcmp(word, "help") == 0;
}

static int unknown(int argc, const char *const *argv)
{
    if (argc > 0 && help(argv[0])) {
        if (argc == 2 && is_help(argv[1])) {
            return YK_CTL_DONE;
        }
        if (argc > 1 && *argv[1] != '-') {
            fflush(stdout);
            fprintf(stderr, "yoyakuctl: there is no command \"%s %s\"\n",
                    argv[0], argv[1]);
        }
        return YK_CTL_USAGE;
    }
    fprintf(stderr,
            "yoyakuctl: there is no command \"%s\"; yoyakuctl --help lists "
            "them\n",
            argc > 0 ? argv[0] : "");
    return YK_CTL_USAGE;
}

static int run(yk_ctl_t *ctl, const command_t *command, int argc,
               const char *const *argv)
{
    const char *why = NULL;
    yk_ctl_args_t *args;
    apr_status_t rv;

    ctl->command = command->words;
    ctl->synopsis = command->synopsis;
    rv = yk_ctl_args_parse(&args, &why, command->synopsis, argc, argv, ctl->p);
    ctl->args = args;
    if (yk_ctl_args_get(args, "help") != NULL) {
        help_one(command);
        return YK_CTL_DONE;
    }
    if (rv != APR_SUCCESS) {
        return yk_ctl_usage(ctl, "%s", why);
    }
    if (args->nwords < command->least) {
        return yk_ctl_usage(ctl, "something is missing");
    }
    if (args->nwords > command->most) {
        return yk_ctl_usage(ctl, "\"%s\" is too much",
                            args->words[command->most]);
    }
    ctl->json = yk_ctl_args_get(args, "json") != NULL;
    ctl->tenant = yk_ctl_args_get(args, "tenant");
    if (ctl->tenant == NULL) {
        ctl->tenant = "default";
    }
    return command->run(ctl);
}

/** Flags of every command may be typed before it as well: put them behind. */
static const char *const *flags_behind(int argc, const char *const *argv,
                                       apr_pool_t *p)
{
    const char **turned = apr_palloc(p, sizeof(*turned) * (argc + 1));
    int n = 0;

    while (n < argc && strncmp(argv[n], "--", 2) == 0) {
        const char *with = apr_pstrcat(p, "[", argv[n], " ", NULL);

        n += strstr(YK_CTL_EVERYWHERE, with) != NULL ? 2 : 1;
    }
    n = n < argc ? n : 0; /* nothing but flags: they are what is unknown */
    for (int i = 0; i < argc; i++) {
        turned[i] = argv[(i + n) % argc];
    }
    turned[argc] = NULL;
    return turned;
}

int main(int argc, const char *const *argv)
{
    yk_ctl_t ctl = {0};
    apr_pool_t *p;
    int status;

    apr_app_initialize(&argc, &argv, NULL);
    atexit(apr_terminate);
    apr_pool_create(&p, NULL);
    ctl.p = p;
    yk_log_sink_set(log_line);
    argc--;
    argv++;
    if (argc == 0) {
        help(NULL);
        return YK_CTL_USAGE;
    }
    if (is_help(argv[0])) {
        return help(argc > 1 ? argv[1] : NULL) ? YK_CTL_DONE
                                               : unknown(argc - 1, argv + 1);
    }
    argv = flags_behind(argc, argv, p);
    status = -1;
    for (unsigned i = 0; i < NCOMMANDS && status < 0; i++) {
        int words = match(&commands[i], argc, argv);

        if (words > 0) {
            status = run(&ctl, &commands[i], argc - words, argv + words);
        }
    }
    if (status < 0) {
        status = unknown(argc, argv);
    }
    apr_pool_destroy(p);
    return status;
}
