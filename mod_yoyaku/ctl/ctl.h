/* SPDX-License-Identifier: Apache-2.0 */
#ifndef YK_CTL_H
#define YK_CTL_H

#include <apr_pools.h>
#include <jansson.h>
#include "yoyaku/catalogue.h"
#include "yoyaku/desk.h"
#include "yoyaku/setup.h"
#include "yoyaku/store.h"

/**
 * @file ctl.h
 * @brief yoyakuctl: the operator's tool. One table of commands; what is said
 *        about a command in it is also what its arguments are read by.
 *
 * A command says what it did once: as a sentence on standard output, or with
 * --json as one object. What went wrong is one sentence on standard error. Exit
 * status: 0 done, 1 not done, 2 asked wrongly.
 */

#define YK_CTL_DONE 0
#define YK_CTL_FAILED 1
#define YK_CTL_USAGE 2

/** Longest drawing that is read. */
#define YK_CTL_FILE_BYTES (256 * 1024 * 1024)

/* ---- what was typed: args.c ---- */

typedef struct yk_ctl_args_t {
    const char *const *words; /**< without flags, in order */
    int nwords;
    struct yk_ctl_flag_t *flags; /**< as typed, in order */
    int nflags;
} yk_ctl_args_t;

typedef struct yk_ctl_flag_t {
    const char *name;  /**< without dashes */
    const char *value; /**< "" when it takes none */
} yk_ctl_flag_t;

/**
 * Read words and flags as a synopsis allows them: a flag takes a value when
 * one stands behind it there ("--key KEY"), and may come more than once when
 * "..." follows its bracket.
 * @param why set when not APR_SUCCESS
 * @return APR_SUCCESS or APR_EINVAL
 */
apr_status_t yk_ctl_args_parse(yk_ctl_args_t **args, const char **why,
                               const char *synopsis, int argc,
                               const char *const *argv, apr_pool_t *p);

/** The value of a flag, or NULL when it was not typed. */
const char *yk_ctl_args_get(const yk_ctl_args_t *args, const char *name);

/** Flags that hold for every command stand in a synopsis of their own. */
#define YK_CTL_EVERYWHERE                                                      \
    "[--db PARAMS] [--config FILE] [--state FOLDER] [--tenant NAME] [--json] "    \
    "[--help]"

/* ---- one run ---- */

typedef struct yk_ctl_t {
    apr_pool_t *p;
    const yk_ctl_args_t *args;
    const char *synopsis; /**< of the command being run */
    const char *command;
    int json;
    const char *params; /**< where the database is */
    const char *from;   /**< who says so: --db, YOYAKU_DB or a file */
    yk_store_t *store;  /**< opened by the first that asks for it */
    uint32_t tenant_id;
    const char *tenant;
    yk_catalogue_t *catalogue;
    const char *folder; /**< of its plans; removed at the end */
} yk_ctl_t;

/* What a command starts with; each says what is wrong and gives the exit
 * status, 0 when all is well. */
int yk_ctl_open(yk_ctl_t *ctl);        /**< store */
int yk_ctl_open_tenant(yk_ctl_t *ctl); /**< store and tenant */
int yk_ctl_open_desk(yk_ctl_t *ctl, yk_desk_t **desk);

/** A flag that must be there. NULL: it is not, and that was said. */
const char *yk_ctl_need(yk_ctl_t *ctl, const char *name);
/** A whole number of at least `least`; YK_CTL_USAGE when not. */
int yk_ctl_number(yk_ctl_t *ctl, int64_t *number, const char *name,
                  int64_t least, int64_t unless);
/** A time with its zone; 0 when the flag was not typed. */
int yk_ctl_time(yk_ctl_t *ctl, apr_time_t *when, const char *name);

/* ---- the running server: throttle.c ---- */

/** Where its state files are: --state, YOYAKU_STATE, --config (YoyakuStateDir),
 *  else where a package's server has them. */
const char *yk_ctl_state(yk_ctl_t *ctl);
/** What a status of a state file means; gives YK_CTL_FAILED. */
int yk_ctl_state_fail(yk_ctl_t *ctl, apr_status_t rv);
/** Before a lock of the running server is taken. */
void yk_ctl_signals_block(void);

/* ---- what is said: say.c ---- */

/** One sentence on standard error; gives YK_CTL_FAILED. */
int yk_ctl_fail(yk_ctl_t *ctl, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/** The same with the command's synopsis; gives YK_CTL_USAGE. */
int yk_ctl_usage(yk_ctl_t *ctl, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/** A status of the library as a sentence; `say` when it gave one. */
int yk_ctl_status(yk_ctl_t *ctl, apr_status_t rv, const char *say);
/** Done: the object with --json, else the sentence. Takes `object`, which may
 *  be NULL: then it is {"said": sentence}. */
int yk_ctl_done(yk_ctl_t *ctl, const char *sentence, json_t *object);

/* ---- the commands ---- */

typedef int yk_ctl_fn(yk_ctl_t *ctl);

/** X(words, function, fewest words behind, most, synopsis, what it does) */
#define YK_CTL_COMMANDS(X)                                                     \
    X("schema", yk_ctl_schema, 0, 0, "[--folder DIR]",                         \
      "Apply the schema files that are missing. May be run again, and from "   \
      "two hosts at once.")                                                    \
    X("setup", yk_ctl_setup, 0, 0, "[--folder DIR]",                           \
      "Apply the schema and make the tenant named by --tenant.")               \
    X("hall import", yk_ctl_hall_import, 1, 1, "FILE [--name HALL]",           \
      "Put a drawing into the book: a pretix seating plan, CSV (section, "     \
      "row, place, x, y, grade, guid), \"-\" for standard input, or "          \
      "generated:SECTIONSxPLACES.")                                            \
    X("hall list", yk_ctl_hall_list, 0, 0, "",                                 \
      "List halls with their versions.")                                       \
    X("slot add", yk_ctl_slot_add, 0, 0,                                       \
      "--key KEY --title TITLE --starts WHEN [--ends WHEN] [--opens WHEN] "    \
      "[--closes WHEN] [--resource KEY] [--series KEY] [--hall HALL] "         \
      "[--area SECTION=placed|assigned|pooled:N|closed]... "                   \
      "[--pool NAME=N]...",                                                    \
      "Add a slot, closed at first: of a hall, whose sections are placed "     \
      "unless --area says otherwise, or of pools alone. A WHEN has a zone: "   \
      "2026-12-24T20:00+01:00.")                                               \
    X("slot open", yk_ctl_slot_open, 1, 1, "KEY", "Put a slot on sale.")       \
    X("slot close", yk_ctl_slot_close, 1, 1, "KEY",                            \
      "Take a slot off sale; returns when no hold that saw it open is going "  \
      "on.")                                                                   \
    X("slot list", yk_ctl_slot_list, 0, 0, "[--resource KEY] [--series KEY]",  \
      "List slots with what is free.")                                         \
    X("price set", yk_ctl_price_set, 2, 2,                                     \
      "AMOUNT CURRENCY --slot KEY --tariff TARIFF [--grade GRADE] "            \
      "[--area AREA] [--quota N]",                                             \
      "Set what a tariff costs: everywhere in the slot, for a grade, or in "   \
      "an area. --quota: at most so many are sold at it.")                     \
    X("price list", yk_ctl_price_list, 0, 0, "--slot KEY",                     \
      "List a slot's prices with their quotas.")                               \
    X("limit add", yk_ctl_limit_add, 0, 0,                                     \
      "--per order|booker --over slot:KEY|resource:KEY|series:KEY|all "        \
      "--count places|slots|resources --max N",                                \
      "Let an order or a booker have at most so many; again with another "     \
      "--max to change it.")                                                   \
    X("limit remove", yk_ctl_limit_remove, 0, 0,                               \
      "--per order|booker --over slot:KEY|resource:KEY|series:KEY|all "        \
      "--count places|slots|resources",                                        \
      "Take a limit away; returns when no hold that still kept to it is "      \
      "going on.")                                                             \
    X("limit list", yk_ctl_limit_list, 0, 0, "",                               \
      "List limits, in the words that add or remove them.")                    \
    X("place close", yk_ctl_place_close, 1, 256, "PLACE... --slot KEY",        \
      "Keep free places from sale.")                                           \
    X("place open", yk_ctl_place_open, 1, 256, "PLACE... --slot KEY",          \
      "Put places that were kept from sale back on sale.")                     \
    X("order show", yk_ctl_order_show, 1, 1, "NUMBER", "Show an order.")       \
    X("order find", yk_ctl_order_find, 0, 0,                                   \
      "[--reference TEXT] [--booker TEXT] [--contact TEXT]",                   \
      "Find orders, the newest first.")                                        \
    X("order release", yk_ctl_order_release, 1, 1, "NUMBER [--reason TEXT]",   \
      "Let go of what a held order holds.")                                    \
    X("order cancel", yk_ctl_order_cancel, 1, 1, "NUMBER [--reason TEXT]",     \
      "Cancel a confirmed order; its places are free again.")                  \
    X("verify", yk_ctl_verify, 0, 0, "[--slot KEY]",                           \
      "Does the book agree with itself? No place sold twice, counts and "      \
      "limits kept, the journal replayed gives the state. Locks nothing.")     \
    X("doctor", yk_ctl_doctor, 0, 0, "",                                       \
      "Is the database fit to sell from? Says what is wrong if not.") \
    X("throttle list", yk_ctl_throttle_list, 0, 0, "",                         \
      "List the running server's rules: who runs, who waits, what became of "  \
      "the rest.")                                                             \
    X("throttle set", yk_ctl_throttle_set, 2, 12, "NAME limit=N ...",          \
      "Change a rule at once: limit=, per-user=, user-wait=, overflow=, "      \
      "resume=, busy=, run-after=, refuse-after=, dry-run, dry-run=off. In "   \
      "force until reset or until the configured value changes.")              \
    X("throttle reset", yk_ctl_throttle_reset, 1, 1, "NAME",                   \
      "Put a rule back to what is configured.")                                \
    X("throttle release", yk_ctl_throttle_release, 1, 1, "NAME",               \
      "Let all run that wait under a rule.")                                   \
    X("throttle refuse", yk_ctl_throttle_refuse, 1, 1, "NAME",                 \
      "Refuse all that wait under a rule.")                                    \
    X("throttle zero", yk_ctl_throttle_zero, 1, 1, "NAME",                     \
      "Begin a rule's counters anew.") \
    X("room list", yk_ctl_room_list, 0, 0, "",                                 \
      "List the running server's waiting rooms.")                              \
    X("room pause", yk_ctl_room_pause, 1, 1, "NAME",                           \
      "Call nobody more; who is inside stays inside.")                         \
    X("room resume", yk_ctl_room_resume, 1, 1, "NAME", "Call numbers again.")  \
    X("room rate", yk_ctl_room_rate, 2, 2, "NAME RATE|reset",                  \
      "Call at another rate: 40/s, 90/min.")                                   \
    X("room say", yk_ctl_room_say, 2, 2, "NAME MESSAGE",                       \
      "Show a message in the room and its page; \"\" takes it away.")

#define YK_CTL_DECLARE(words, fn, least, most, synopsis, what) yk_ctl_fn fn;
YK_CTL_COMMANDS(YK_CTL_DECLARE)
#undef YK_CTL_DECLARE

#endif
