/* SPDX-License-Identifier: Apache-2.0 */
#include "judge.h"
#include <apr_strings.h>
#include <string.h>

#define NO_PLACE "4294967295"
#define PLACE "CONCAT('slot ', sp.slot_id, ' place ', sp.place_no)"
/* signed: places of other areas come by, too */
#define SEAT "(CAST(sp.place_no AS SIGNED) - CAST(r.first_place AS SIGNED))"
#define OWN_LINE                                                               \
    "FROM yoyaku_order o JOIN yoyaku_booking b ON b.order_id = o.order_id "    \
    "WHERE o.order_id = sp.order_id AND b.live = 1 "                           \
    "AND b.slot_id = sp.slot_id AND b.place_no = sp.place_no"

/* Each gives a row of text for everything that is wrong. $now is the latest
 * clock that anybody has. */
static const char *const always[] = {
    "SELECT CONCAT('booked, but not by a confirmed live line: ', " PLACE ") "
    "FROM yoyaku_slot_place sp WHERE sp.state = 2 "
    "AND NOT EXISTS (SELECT 1 " OWN_LINE " AND o.state = 3)",

    "SELECT CONCAT('held, but not by a live line of a held order with this "
    "deadline: ', " PLACE ") FROM yoyaku_slot_place sp WHERE sp.state = 1 "
    "AND NOT EXISTS (SELECT 1 " OWN_LINE
    " AND o.state IN (1, 2) AND o.until_us = sp.until_us)",

    "SELECT CONCAT('free, but not clean: ', " PLACE ") "
    "FROM yoyaku_slot_place sp WHERE sp.state IN (0, 3) "
    "AND (sp.order_id <> 0 OR sp.until_us <> 0)",

    "SELECT CONCAT('sold to order ', o.order_id, ', but the row is not its: "
    "place ', b.place_no) FROM yoyaku_order o JOIN yoyaku_booking b "
    "ON b.order_id = o.order_id LEFT JOIN yoyaku_slot_place sp "
    "ON sp.slot_id = b.slot_id AND sp.place_no = b.place_no "
    "WHERE b.live = 1 AND b.place_no <> " NO_PLACE " AND "
    "((o.state = 3 AND NOT (sp.order_id = o.order_id AND sp.state = 2)) OR "
    "(o.state IN (1, 2) AND o.until_us > $now AND "
    "NOT (sp.order_id = o.order_id AND sp.state = 1)))",

    "SELECT CONCAT('two owners: slot ', b.slot_id, ' place ', b.place_no) "
    "FROM yoyaku_order o JOIN yoyaku_booking b ON b.order_id = o.order_id "
    "WHERE b.live = 1 AND b.place_no <> " NO_PLACE " AND (o.state = 3 OR "
    "(o.state IN (1, 2) AND o.until_us > $now)) "
    "GROUP BY b.slot_id, b.place_no HAVING COUNT(*) > 1",

    "SELECT CONCAT('an ended order has a live line: ', o.order_id) "
    "FROM yoyaku_order o JOIN yoyaku_booking b ON b.order_id = o.order_id "
    "WHERE b.live = 1 AND o.state NOT IN (1, 2, 3)",

    "SELECT CONCAT('an order is alive without a live line: ', o.order_id) "
    "FROM yoyaku_order o WHERE o.state IN (1, 2, 3) AND NOT EXISTS "
    "(SELECT 1 FROM yoyaku_booking b WHERE b.order_id = o.order_id "
    "AND b.live = 1)",

    "SELECT CONCAT('area ', a.no, ' has counted ', a.used, ' of ', a.max, "
    "', live lines are ', COALESCE(SUM(b.quantity), 0)) "
    "FROM yoyaku_lock_anchor a LEFT JOIN yoyaku_booking b "
    "ON b.slot_id = a.owner AND b.area_no = a.no AND b.live = 1 "
    "WHERE a.kind = 2 GROUP BY a.owner, a.no "
    "HAVING MAX(a.used) <> COALESCE(SUM(b.quantity), 0) "
    "OR MAX(a.used) > MAX(a.max)",

    "SELECT CONCAT('quota of price ', a.no, ' has counted ', a.used, ' of ', "
    "a.max, ', live lines are ', COALESCE(SUM(b.quantity), 0)) "
    "FROM yoyaku_lock_anchor a LEFT JOIN yoyaku_booking b "
    "ON b.slot_id = a.owner AND b.price_no = a.no AND b.live = 1 "
    "WHERE a.kind = 3 AND a.max >= 0 GROUP BY a.owner, a.no "
    "HAVING MAX(a.used) <> COALESCE(SUM(b.quantity), 0)",

    "SELECT CONCAT('the map of area ', r.area_no, ' does not say what the row "
    "says: place ', sp.place_no) FROM yoyaku_area r "
    "JOIN yoyaku_lock_anchor a ON a.kind = 2 AND a.owner = r.slot_id "
    "AND a.no = r.area_no JOIN yoyaku_slot_place sp "
    "ON sp.slot_id = r.slot_id AND sp.place_no >= r.first_place "
    "AND sp.place_no < r.first_place + r.places WHERE r.mode = 2 AND "
    "(ORD(SUBSTRING(a.map, 1 + " SEAT " DIV 8, 1)) >> (" SEAT " % 8)) & 1 "
    "<> (sp.state = 0)",
};

static const char *const finally[] = {
    /* the last word of the journal about each place is the row */
    "SELECT CONCAT('the journal says otherwise of ', " PLACE ", ': ', "
    "COALESCE(t.state, 'nothing'), ' at version ', COALESCE(t.version, '-'), "
    "', the row ', sp.state, ' at ', sp.version) FROM yoyaku_slot_place sp "
    "LEFT JOIN told t ON t.slot_id = sp.slot_id AND t.no = sp.place_no "
    "AND t.version = (SELECT MAX(u.version) FROM told u WHERE "
    "u.slot_id = sp.slot_id AND u.no = sp.place_no) "
    "WHERE (t.no IS NULL AND sp.state IN (1, 2)) "
    "OR t.state <> sp.state OR t.version <> sp.version",

    "SELECT CONCAT('the journal has one version twice: place ', no, "
    "' version ', version) FROM told GROUP BY slot_id, no, version "
    "HAVING COUNT(*) > 1",

    "SELECT CONCAT('the journal lacks versions of place ', t.no) FROM told t "
    "JOIN yoyaku_area r ON r.slot_id = t.slot_id AND r.mode = 1 "
    "AND t.no >= r.first_place AND t.no < r.first_place + r.places "
    "GROUP BY t.slot_id, t.no "
    "HAVING MAX(t.version) - MIN(t.version) + 1 <> COUNT(*)",

    "SELECT CONCAT('the journal counts ', COALESCE(SUM(c.delta), 0), "
    "' in area ', a.no, ', the anchor ', a.used) FROM yoyaku_lock_anchor a "
    "LEFT JOIN counted c ON c.slot_id = a.owner AND c.kind = a.kind "
    "AND c.no = a.no WHERE a.kind = 2 GROUP BY a.owner, a.no "
    "HAVING MAX(a.used) <> COALESCE(SUM(c.delta), 0)",
};

/* The journal as tables. */
static const char with_journal[] =
    "WITH told AS (SELECT j.slot_id, t.no, t.state, t.version "
    "FROM yoyaku_journal j, JSON_TABLE(CONVERT(j.`change` USING utf8mb4), "
    "'$.places[*]' COLUMNS (no BIGINT PATH '$[0]', state INT PATH '$[1]', "
    "version BIGINT PATH '$[2]')) t), "
    "counted AS (SELECT j.slot_id, c.kind, c.no, c.delta "
    "FROM yoyaku_journal j, JSON_TABLE(CONVERT(j.`change` USING utf8mb4), "
    "'$.counts[*]' COLUMNS (kind INT PATH '$[0]', no BIGINT PATH '$[1]', "
    "delta BIGINT PATH '$[2]')) c) ";

static char *put_now(const char *sql, const cast_t *cast, apr_pool_t *p)
{
    const char *at;
    while ((at = strstr(sql, "$now")) != NULL) {
        sql = apr_psprintf(
            p,
            "%s(CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED) + "
            "%" APR_TIME_T_FMT ")%s",
            apr_pstrndup(p, sql, (apr_size_t)(at - sql)), cast->most_shift,
            at + 4);
    }
    return (char *)sql;
}

static char *unite(const char *head, const char *const *questions, int n,
                   apr_pool_t *p)
{
    apr_array_header_t *parts = apr_array_make(p, 32, sizeof(char *));
    int i;
    APR_ARRAY_PUSH(parts, const char *) = head;
    for (i = 0; i < n; i++) {
        APR_ARRAY_PUSH(parts, const char *) = i ? " UNION ALL (" : "(";
        APR_ARRAY_PUSH(parts, const char *) = questions[i];
        APR_ARRAY_PUSH(parts, const char *) = ")";
    }
    return apr_array_pstrcat(p, parts, 0);
}

#define COUNT_OF(list) ((int)(sizeof(list) / sizeof((list)[0])))

const char *judge_state(world_t *world, const cast_t *cast, apr_pool_t *p)
{
    char *sql = put_now(unite("", always, COUNT_OF(always), p), cast, p);
    char *wrong = server_ask_all(world->monitor, sql, p);
    return *wrong ? wrong : NULL;
}

/* Everything told to anybody stands in the book; confirmed stays so unless it
 * was cancelled since. */
static const char *judge_told(world_t *world, const cast_t *cast, apr_pool_t *p)
{
    int i;
    for (i = 0; i < cast->told->nelts; i++) {
        const told_t *told = &ITEM(cast->told, i, told_t);
        const char *state = server_ask(
            world->monitor,
            apr_psprintf(p,
                         "SELECT state FROM yoyaku_order WHERE order_id = "
                         "%" APR_UINT64_T_FMT,
                         told->order_id),
            p);
        if (!state) {
            return apr_psprintf(p, "the order of '%s' is not in the book",
                                told->by);
        }
        if (told->state == YK_ORDER_CONFIRMED && *state != '3' &&
            *state != '6') {
            return apr_psprintf(p, "'%s' was told confirmed; it is %s",
                                told->by, state);
        }
    }
    return NULL;
}

const char *judge_final(world_t *world, const cast_t *cast,
                        const script_t *script, apr_pool_t *p)
{
    const char *wrong = judge_state(world, cast, p);
    char *journal;
    if (wrong) {
        return wrong;
    }
    journal = server_ask_all(
        world->monitor, unite(with_journal, finally, COUNT_OF(finally), p), p);
    if (*journal) {
        return journal;
    }
    if (server_open(world->monitor, p)) {
        return "a transaction is still open";
    }
    return judge_told(world, cast, p);
}

char *judge_dump(world_t *world, apr_pool_t *p)
{
    static const char *const tables[] = {
        "SELECT order_id, state, version, until_us, attempt, late, booker "
        "FROM yoyaku_order",
        "SELECT order_id, line, live, slot_id, area_no, place_no, quantity, "
        "price_no FROM yoyaku_booking",
        "SELECT slot_id, place_no, order_id, state, until_us, version "
        "FROM yoyaku_slot_place WHERE version > 1 OR state > 0 LIMIT 40",
        "SELECT kind, owner, no, used, max, version, HEX(map) "
        "FROM yoyaku_lock_anchor WHERE kind >= 2",
        "SELECT at_us, order_id, why, who, `change` FROM yoyaku_journal "
        "ORDER BY at_us"};
    char *all = "";
    int i;
    for (i = 0; i < COUNT_OF(tables); i++) {
        all = apr_pstrcat(p, all, tables[i], "\n",
                          server_ask_all(world->monitor, tables[i], p), NULL);
    }
    return all;
}
