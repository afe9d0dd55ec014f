/* SPDX-License-Identifier: Apache-2.0 */
#include "board.h"

#include <apr_strings.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define BYTES (8 * 1024 * 1024)
#define POOL 2 /* area_no */

apr_pool_t *board_pool;
yk_boards_t *board_boards;

void board_setup(void)
{
    yk_state_kind_t kind;
    void *memory;

    apr_pool_create(&board_pool, NULL);
    yk_boards_kind(&kind, BYTES);
    ck_assert_int_eq(yk_boards_memory(&memory, &kind, board_pool), APR_SUCCESS);
    ck_assert_int_eq(
        yk_boards_attach(&board_boards, memory, kind.size, board_pool),
        APR_SUCCESS);
}

void board_teardown(void)
{
    apr_pool_destroy(board_pool);
}

/* ---- slots and documents ---- */

yk_slot_t *board_slot(const char *key, uint64_t slot_id, uint32_t rows)
{
    yk_slot_t *slot = apr_pcalloc(board_pool, sizeof(*slot));
    yk_hall_t *hall = NULL;

    ck_assert_int_eq(yk_hall_generate(&hall, 2, rows * 10, board_pool),
                     APR_SUCCESS);
    slot->slot_id = slot_id;
    slot->tenant_id = 1;
    slot->key = key;
    slot->hall_id = 5;
    slot->plan = core_plan(hall, board_pool);
    slot->nareas = 3;
    slot->areas = apr_pcalloc(board_pool, 3 * sizeof(*slot->areas));
    for (uint32_t i = 0; i < 3; i++) {
        slot->areas[i].area_no = i;
        slot->areas[i].mode = i == POOL ? YK_MODE_POOLED : YK_MODE_PLACED;
        slot->areas[i].name = i == POOL ? "Floor \"x\"" : i == 0 ? "A" : "B";
        slot->areas[i].max = rows * 10;
    }
    return slot;
}

uint32_t board_places(const yk_slot_t *slot)
{
    return yk_plan_places(slot->plan);
}

yk_board_ref_t board_make(const yk_slot_t *slot)
{
    yk_board_ref_t ref;

    ck_assert_int_eq(yk_board_make(board_boards, &ref,
                                   yk_board_id("db", "t", slot->key), slot),
                     APR_SUCCESS);
    return ref;
}

apr_status_t board_put(const yk_board_ref_t *ref, uint32_t no,
                       yk_place_state_e state, uint64_t version)
{
    yk_board_change_t change = {no, 0, state, 0, 0, version};

    if (state == YK_PLACE_HELD) {
        change.until_us = INT64_C(3000000000000000);
    }
    return yk_board_apply(board_boards, ref, &change, 1, 1000);
}

const char *board_json(const yk_board_ref_t *ref, uint64_t *hash,
                       uint64_t *generation)
{
    yk_board_answer_t answer;

    ck_assert_int_eq(
        yk_board_get(board_boards, ref, &answer, YK_BOARD_JSON, board_pool),
        APR_SUCCESS);
    if (hash != NULL) {
        *hash = answer.hash;
    }
    if (generation != NULL) {
        *generation = answer.generation;
    }
    return answer.bytes;
}

static json_t *parsed(const char *json)
{
    json_t *root = json_loads(json, 0, NULL);

    ck_assert_msg(root != NULL, "no JSON: %s", json);
    return root;
}

const char *board_content(const char *json)
{
    json_t *root = parsed(json);
    const char *content = "";
    json_int_t sum = 0;
    json_t *section;
    size_t i;

    json_array_foreach(json_object_get(root, "sections"), i, section)
    {
        const char *places =
            json_string_value(json_object_get(section, "places"));
        json_int_t left = json_integer_value(json_object_get(section, "free")),
                   free = 0;

        sum += left;
        for (const char *c = places; c != NULL && *c != '\0'; c++) {
            free += *c == '0';
        }
        ck_assert(places == NULL || free == left);
        content = places != NULL
                      ? apr_pstrcat(board_pool, content, places, NULL)
                      : apr_psprintf(board_pool, "%s|%d", content, (int)left);
    }
    ck_assert_int_eq(json_integer_value(json_object_get(root, "free")), sum);
    json_decref(root);
    return content;
}

const char *board_patch(const char *content, const char *json)
{
    json_t *root = parsed(json), *section, *change;
    char *made = apr_pstrdup(board_pool, content);
    size_t half = (size_t)(strchr(made, '|') - made) / 2, i, k;

    if (json_object_get(root, "since") == NULL) {
        json_decref(root);
        return NULL;
    }
    json_array_foreach(json_object_get(root, "sections"), i, section)
    {
        const char *name =
            json_string_value(json_object_get(section, "section"));
        size_t at = *name == 'B' ? half : 0;

        json_array_foreach(json_object_get(section, "changes"), k, change)
        {
            made[at + (size_t)json_integer_value(json_array_get(change, 0))] =
                *json_string_value(json_array_get(change, 1));
        }
        if (*name == 'F') {
            *strchr(made, '|') = '\0';
            made = apr_psprintf(
                board_pool, "%s|%d", made,
                (int)json_integer_value(json_object_get(section, "free")));
        }
    }
    json_decref(root);
    return made;
}

/* ---- cells ---- */

START_TEST(a_board_is_what_was_put_into_it)
{
    const yk_slot_t *slot = board_slot("s", 7, 1);
    yk_board_ref_t ref = board_make(slot);
    yk_board_change_t pool = {POOL, 1, YK_PLACE_FREE, 0, 40, 1};

    ck_assert_int_eq(yk_board_apply(board_boards, &ref, &pool, 1, 0),
                     APR_SUCCESS);
    board_put(&ref, 0, YK_PLACE_HELD, 2);
    board_put(&ref, 11, YK_PLACE_BOOKED, 2);
    board_put(&ref, 19, YK_PLACE_NOT_FOR_SALE, 2);
    ck_assert_str_eq(board_content(board_json(&ref, NULL, NULL)),
                     "10000000000200000003|40");
}
END_TEST

START_TEST(a_cell_takes_only_what_is_newer)
{
    yk_board_ref_t ref = board_make(board_slot("s", 7, 1));
    uint64_t generation, later;

    board_put(&ref, 3, YK_PLACE_BOOKED, 5);
    board_json(&ref, NULL, &generation);
    board_put(&ref, 3, YK_PLACE_FREE, 4);
    board_put(&ref, 3, YK_PLACE_HELD, 5);
    ck_assert_str_eq(board_content(board_json(&ref, NULL, &later)),
                     "00020000000000000000|0");
    ck_assert_uint_eq(generation, later);
    board_put(&ref, 3, YK_PLACE_HELD, 6);
    ck_assert_int_eq(board_content(board_json(&ref, NULL, NULL))[3], '1');
}
END_TEST

/* The same changes in any order, some of them twice, give one board. */
START_TEST(the_order_in_which_news_arrives_does_not_matter)
{
    const yk_slot_t *slot = board_slot("s", 7, 2), *twin;
    yk_board_ref_t a = board_make(slot), b;
    struct {
        uint32_t no;
        int state;
        uint64_t version;
    } news[200];
    uint64_t hash_a, hash_b;

    twin = board_slot("twin", 7, 2);
    b = board_make(twin);
    srand(1);
    for (int i = 0; i < 200; i++) {
        news[i].no = (uint32_t)rand() % board_places(slot);
        news[i].state = rand() % 4;
        news[i].version = (uint64_t)i + 2;
        board_put(&a, news[i].no, news[i].state, news[i].version);
    }
    for (int round = 0; round < 2; round++) {
        for (int i = 199; i > 0; i--) {
            int k = rand() % (i + 1);

            board_put(&b, news[k].no, news[k].state, news[k].version);
            board_put(&b, news[i].no, news[i].state, news[i].version);
        }
        board_put(&b, news[0].no, news[0].state, news[0].version);
    }
    ck_assert_str_eq(board_content(board_json(&a, &hash_a, NULL)),
                     board_content(board_json(&b, &hash_b, NULL)));
    ck_assert_uint_eq(hash_a, hash_b);
}
END_TEST

START_TEST(the_tag_is_the_contents)
{
    yk_board_ref_t ref = board_make(board_slot("s", 7, 1));
    yk_board_change_t pool = {POOL, 1, YK_PLACE_FREE, 0, 40, 1};
    uint64_t empty, one, other, again;

    board_json(&ref, &empty, NULL);
    board_put(&ref, 1, YK_PLACE_HELD, 2);
    board_json(&ref, &one, NULL);
    board_put(&ref, 1, YK_PLACE_FREE, 3);
    board_put(&ref, 2, YK_PLACE_HELD, 2);
    board_json(&ref, &other, NULL);
    ck_assert_uint_ne(empty, one);
    ck_assert_uint_ne(other, one);
    yk_board_apply(board_boards, &ref, &pool, 1, 0);
    board_put(&ref, 2, YK_PLACE_FREE, 3);
    board_json(&ref, &again, NULL);
    ck_assert_uint_ne(empty, again);
    pool.left = 0;
    pool.version++;
    yk_board_apply(board_boards, &ref, &pool, 1, 0);
    board_json(&ref, &again, NULL);
    ck_assert_uint_eq(empty, again);
}
END_TEST

START_TEST(a_hold_past_its_end_is_free)
{
    yk_board_ref_t ref = board_make(board_slot("s", 7, 1));
    yk_board_change_t change = {4, 0, YK_PLACE_HELD, 5000, 0, 2};

    yk_board_apply(board_boards, &ref, &change, 1, 4999);
    ck_assert_int_eq(board_content(board_json(&ref, NULL, NULL))[4], '1');
    change.no = 5;
    yk_board_apply(board_boards, &ref, &change, 1, 5000);
    ck_assert_int_eq(board_content(board_json(&ref, NULL, NULL))[5], '0');
}
END_TEST

START_TEST(the_packed_document_is_the_same)
{
    yk_board_ref_t ref = board_make(board_slot("s", 7, 40));
    yk_board_answer_t packed;
    const char *json;
    char *bytes = apr_palloc(board_pool, 100000);
    z_stream z;

    for (uint32_t i = 0; i < 800; i += 3) {
        board_put(&ref, i, YK_PLACE_HELD, 2);
    }
    json = board_json(&ref, NULL, NULL);
    ck_assert_int_eq(
        yk_board_get(board_boards, &ref, &packed, YK_BOARD_GZIP, board_pool),
        APR_SUCCESS);
    memset(&z, 0, sizeof(z));
    ck_assert_int_eq(inflateInit2(&z, 31), Z_OK);
    z.next_in = (Bytef *)packed.bytes;
    z.avail_in = (uInt)packed.len;
    z.next_out = (Bytef *)bytes;
    z.avail_out = 100000;
    ck_assert_int_eq(inflate(&z, Z_FINISH), Z_STREAM_END);
    bytes[z.total_out] = '\0';
    inflateEnd(&z);
    ck_assert_str_eq(bytes, json);
    ck_assert_uint_lt(packed.len, strlen(json) / 2);
}
END_TEST

/* ---- what changed since ---- */

#define KEPT 400

START_TEST(changes_put_on_an_old_board_give_the_new_one)
{
    const yk_slot_t *slot = board_slot("s", 7, 3);
    yk_board_ref_t ref = board_make(slot);
    uint64_t epoch = yk_boards_epoch(board_boards);
    struct {
        uint64_t generation;
        const char *content;
    } olds[KEPT];
    const char *now;
    int whole = 0;

    srand(3);
    for (int i = 0; i < KEPT; i++) {
        yk_board_change_t pool = {POOL, 1,          YK_PLACE_FREE,
                                  0,    rand() % 9, (uint64_t)i + 2};

        olds[i].content =
            board_content(board_json(&ref, NULL, &olds[i].generation));
        if (i % 5 == 0) {
            yk_board_apply(board_boards, &ref, &pool, 1, 0);
        }
        board_put(&ref, (uint32_t)rand() % board_places(slot), rand() % 4,
                  (uint64_t)i + 2);
    }
    now = board_content(board_json(&ref, NULL, NULL));
    for (int i = 0; i < KEPT; i++) {
        yk_board_answer_t answer;
        const char *made;

        ck_assert_int_eq(yk_board_since(board_boards, &ref, &answer, epoch,
                                        olds[i].generation, board_pool),
                         APR_SUCCESS);
        made =
            board_patch(olds[i].content,
                        apr_pstrmemdup(board_pool, answer.bytes, answer.len));
        whole += made == NULL;
        ck_assert_str_eq(made != NULL ? made : board_content(answer.bytes),
                         now);
    }
    /* some were too old, but not all of them */
    ck_assert_int_gt(whole, 0);
    ck_assert_int_lt(whole, KEPT / 2);
}
END_TEST

START_TEST(another_epoch_gets_the_whole)
{
    yk_board_ref_t ref = board_make(board_slot("s", 7, 1));
    uint64_t epoch = yk_boards_epoch(board_boards), generation;
    yk_board_answer_t answer;

    board_json(&ref, NULL, &generation);
    board_put(&ref, 1, YK_PLACE_HELD, 2);
    yk_board_since(board_boards, &ref, &answer, epoch, generation, board_pool);
    ck_assert(answer.is_delta);
    yk_board_since(board_boards, &ref, &answer, epoch + 1, generation,
                   board_pool);
    ck_assert(!answer.is_delta);
    /* one that has not been yet */
    yk_board_since(board_boards, &ref, &answer, epoch, UINT64_MAX, board_pool);
    ck_assert(!answer.is_delta);
}
END_TEST

/* ---- one slot and another ---- */

START_TEST(a_change_in_one_slot_touches_nothing_of_another)
{
    yk_board_ref_t a = board_make(board_slot("a", 7, 1));
    yk_board_ref_t b = board_make(board_slot("b", 8, 1));
    uint64_t before, after;
    const char *was = board_json(&b, NULL, &before), *is;

    board_put(&a, 0, YK_PLACE_HELD, 2);
    is = board_json(&b, NULL, &after);
    ck_assert_str_eq(was, is);
    ck_assert_uint_eq(before, after);
}
END_TEST

START_TEST(a_ledger_reaches_the_boards_of_its_slots)
{
    yk_board_ref_t a = board_make(board_slot("a", 7, 1));
    yk_board_ref_t b = board_make(board_slot("b", 8, 1));
    yk_ledger_t *l = yk_ledger_make(board_pool);
    yk_anchor_t *anchor;
    yk_place_t *place;
    yk_boards_use_t use;

    yk_ledger_want_place(l, 7, 0, 4, 0);
    yk_ledger_want_place(l, 7, 0, 5, 0);
    yk_ledger_want_place(l, 99, 0, 5, 0);
    yk_ledger_want_anchor(l, YK_ANCHOR_AREA, 8, POOL);
    yk_ledger_sort(l);
    yk_ledger_mark(l);
    place = yk_ledger_place(l, 7, 4);
    yk_ledger_touch_place(l, place);
    place->state = YK_PLACE_BOOKED;
    place->version = 2;
    yk_ledger_touch_place(l, yk_ledger_place(l, 99, 5));
    anchor = yk_ledger_anchor(l, YK_ANCHOR_AREA, 8, POOL);
    yk_ledger_touch_anchor(l, anchor);
    anchor->max = 50;
    anchor->used = 8;
    anchor->version = 3;
    yk_boards_apply_ledger(board_boards, l, 1234);
    ck_assert_str_eq(board_content(board_json(&a, NULL, NULL)),
                     "00002000000000000000|0");
    ck_assert_str_eq(board_content(board_json(&b, NULL, NULL)),
                     "00000000000000000000|42");
    yk_boards_use(board_boards, &use);
    ck_assert_int_eq(use.commit_max, 1234);
    ck_assert_uint_eq(use.boards, 2);
}
END_TEST

Suite *board_suite(void)
{
    Suite *suite = suite_create("board");
    TCase *tc = tcase_create("board");

    tcase_add_checked_fixture(tc, board_setup, board_teardown);
    tcase_add_test(tc, a_board_is_what_was_put_into_it);
    tcase_add_test(tc, a_cell_takes_only_what_is_newer);
    tcase_add_test(tc, the_order_in_which_news_arrives_does_not_matter);
    tcase_add_test(tc, the_tag_is_the_contents);
    tcase_add_test(tc, a_hold_past_its_end_is_free);
    tcase_add_test(tc, the_packed_document_is_the_same);
    tcase_add_test(tc, changes_put_on_an_old_board_give_the_new_one);
    tcase_add_test(tc, another_epoch_gets_the_whole);
    tcase_add_test(tc, a_change_in_one_slot_touches_nothing_of_another);
    tcase_add_test(tc, a_ledger_reaches_the_boards_of_its_slots);
    suite_add_tcase(suite, tc);
    return suite;
}
