/* SPDX-License-Identifier: Apache-2.0 */
#include "hall_draft.h"

#include <apr_lib.h>
#include <apr_strings.h>
#include <math.h>
#include <string.h>
#include <strings.h>
#include "yoyaku/text.h"

#define FIELDS_MAX                                                             \
    64 /* a line; those beyond the known ones are passed over                  \
        */
#define FAR 1e7

/** X(CONSTANT, "name", "other name"): columns in the order of a file without a
 *  first line of names. */
#define COLUMNS(X)                                                             \
    X(SECTION, "section", "zone")                                              \
    X(ROW, "row", "row_number")                                                \
    X(PLACE, "place", "seat")                                                  \
    X(EAST, "x", "pos_x")                                                      \
    X(SOUTH, "y", "pos_y")                                                     \
    X(GRADE, "grade", "category")                                              \
    X(GUID, "guid", "seat_guid")

typedef enum column_e {
#define COLUMN_ENUM(constant, name, other) COLUMN_##constant,
    COLUMNS(COLUMN_ENUM)
#undef COLUMN_ENUM
        COLUMN_COUNT
} column_e;

static const char *const column_names[][2] = {
#define COLUMN_NAMES(constant, name, other) {name, other},
    COLUMNS(COLUMN_NAMES)
#undef COLUMN_NAMES
};

typedef struct csv_t {
    yk_hall_draft_t *draft;
    const char *at, *end;
    char comma;
    int line; /* where the record began */
    int next_line;
    int nfields;
    const char *fields[FIELDS_MAX];
    int columns[COLUMN_COUNT]; /* which field; -1: none */
    apr_hash_t *rows;          /* section number and label -> row number + 1 */
} csv_t;

/* ---- records ---- */

/* The separator that the first line has most of. */
static char comma_of(const char *at, const char *end)
{
    static const char commas[] = ",;\t";
    int counts[3] = {0}, best = 0, quoted = 0;

    for (; at < end && (quoted || (*at != '\n' && *at != '\r')); at++) {
        const char *comma = strchr(commas, *at);

        if (*at == '"') {
            quoted = !quoted;
        }
        else if (!quoted && comma != NULL) {
            counts[comma - commas]++;
        }
    }
    for (int i = 1; i < 3; i++) {
        best = counts[i] > counts[best] ? i : best;
    }
    return commas[best];
}

static int is_field_end(const csv_t *csv, const char *at)
{
    return at == csv->end || *at == csv->comma || *at == '\n' || *at == '\r';
}

/* The quote that ends what begins at `at`, or csv->end. */
static const char *closing_quote(const csv_t *csv, const char *at)
{
    for (; at < csv->end; at++) {
        if (*at != '"') {
            continue;
        }
        if (at + 1 == csv->end || at[1] != '"') {
            return at;
        }
        at++;
    }
    return csv->end;
}

/* "say ""A"", please"; the quote stands at csv->at. NULL: it is not closed, or
 * something follows it. */
static const char *quoted_field(csv_t *csv)
{
    const char *at = csv->at + 1, *close = closing_quote(csv, at);
    char *text, *to;

    if (close == csv->end || !is_field_end(csv, close + 1)) {
        return NULL;
    }
    text = to = apr_palloc(csv->draft->p, (apr_size_t)(close - at) + 1);
    for (; at < close; at++) {
        at += *at == '"';
        csv->next_line += *at == '\n';
        *to++ = *at;
    }
    *to = '\0';
    csv->at = close + 1;
    return text;
}

static const char *plain_field(csv_t *csv)
{
    const char *from = csv->at, *end;

    while (!is_field_end(csv, csv->at)) {
        csv->at++;
    }
    end = csv->at;
    while (from < end && (*from == ' ' || *from == '\t')) {
        from++;
    }
    while (end > from && (end[-1] == ' ' || end[-1] == '\t')) {
        end--;
    }
    return apr_pstrmemdup(csv->draft->p, from, (apr_size_t)(end - from));
}

static void skip_line(csv_t *csv)
{
    while (csv->at < csv->end && *csv->at != '\n') {
        csv->at++;
    }
}

/* Read one record. @return 0: the file is at its end */
static int record(csv_t *csv)
{
    const char *field = "";

    csv->nfields = 0;
    csv->line = csv->next_line;
    if (csv->at == csv->end) {
        return 0;
    }
    for (;;) {
        int is_quoted = csv->at < csv->end && *csv->at == '"';

        field = is_quoted ? quoted_field(csv) : plain_field(csv);
        if (field == NULL) {
            yk_hall_fault(csv->draft,
                          "line %d: a quote is not closed, or text "
                          "follows it",
                          csv->line);
            csv->nfields = 0;
            skip_line(csv);
            break;
        }
        if (csv->nfields < FIELDS_MAX) {
            csv->fields[csv->nfields++] = field;
        }
        if (csv->at == csv->end || *csv->at != csv->comma) {
            break;
        }
        csv->at++;
    }
    if (csv->at < csv->end && *csv->at == '\r') {
        csv->at++;
        if (csv->at == csv->end || *csv->at != '\n') {
            csv->next_line++;
        }
    }
    if (csv->at < csv->end && *csv->at == '\n') {
        csv->at++;
        csv->next_line++;
    }
    return 1;
}

/* ---- columns ---- */

static int column_of(const char *name)
{
    for (int i = 0; i < COLUMN_COUNT; i++) {
        if (strcasecmp(name, column_names[i][0]) == 0 ||
            strcasecmp(name, column_names[i][1]) == 0) {
            return i;
        }
    }
    return -1;
}

/* When the first record holds names, take the columns from them. @return 1 */
static int take_names(csv_t *csv)
{
    int named[COLUMN_COUNT], n = 0;

    for (int i = 0; i < COLUMN_COUNT; i++) {
        named[i] = -1;
    }
    for (int i = 0; i < csv->nfields; i++) {
        int column = column_of(csv->fields[i]);

        if (column >= 0 && named[column] < 0) {
            named[column] = i;
            n++;
        }
    }
    /* A section may be called "row"; three such names are no accident. */
    if (n < 3) {
        for (int i = 0; i < COLUMN_COUNT; i++) {
            csv->columns[i] = i;
        }
        return 0;
    }
    memcpy(csv->columns, named, sizeof(named));
    for (int i = 0; i < COLUMN_GUID; i++) {
        if (named[i] < 0) {
            yk_hall_fault(csv->draft, "line %d: there is no column %s",
                          csv->line, column_names[i][0]);
        }
    }
    return 1;
}

static const char *field_of(const csv_t *csv, column_e column)
{
    int no = csv->columns[column];

    return no >= 0 && no < csv->nfields ? csv->fields[no] : NULL;
}

/* ---- places ---- */

/* A plain decimal; a comma may be its point when it does not separate. Not
 * strtod(), whose point depends on the locale. */
static int number_of(const csv_t *csv, double *number, column_e column)
{
    const char *at = field_of(csv, column);
    double value = 0, scale = 1;
    int sign = 1, n = 0;

    if (at == NULL) {
        return 0;
    }
    if (*at == '-' || *at == '+') {
        sign = *at++ == '-' ? -1 : 1;
    }
    for (; apr_isdigit(*at); at++, n++) {
        value = value * 10 + (*at - '0');
    }
    if (*at == '.' || (*at == ',' && csv->comma != ',')) {
        for (at++; apr_isdigit(*at); at++, n++) {
            scale /= 10;
            value += (*at - '0') * scale;
        }
    }
    *number = sign * value;
    return n > 0 && *at == '\0' && value <= FAR;
}

static const char *text_of(csv_t *csv, column_e column, apr_size_t min,
                           apr_size_t max)
{
    const char *text = field_of(csv, column);

    if (text == NULL || !yk_hall_is_text(text, min, max)) {
        yk_hall_fault(csv->draft,
                      "line %d: %s is not a text of %" APR_SIZE_T_FMT
                      " to %" APR_SIZE_T_FMT " bytes",
                      csv->line, column_names[column][0], min, max);
        return NULL;
    }
    return text;
}

/* Lines of a row may stand anywhere in the file. */
static uint32_t row_of(csv_t *csv, uint32_t section_no, const char *label)
{
    const char *key = apr_psprintf(csv->draft->p, "%u %s", section_no, label);
    uintptr_t row =
        (uintptr_t)apr_hash_get(csv->rows, key, APR_HASH_KEY_STRING);

    if (row == 0) {
        row = (uintptr_t)yk_hall_draft_row(csv->draft) + 1;
        apr_hash_set(csv->rows, key, APR_HASH_KEY_STRING, (void *)row);
    }
    return (uint32_t)(row - 1);
}

static int find_or_add(yk_hall_draft_t *draft, const char *section)
{
    int no = yk_hall_draft_find_section(draft, section);

    return no >= 0 ? no : yk_hall_draft_section(draft, section);
}

static const char *guid_of(csv_t *csv, const char *section,
                           const yk_plan_place_t *place)
{
    const char *guid = field_of(csv, COLUMN_GUID);

    if (guid != NULL && *guid != '\0') {
        return text_of(csv, COLUMN_GUID, 1, YK_TEXT_KEY);
    }
    guid = apr_pstrcat(csv->draft->p, section, "-", place->row, "-",
                       place->seat, NULL);
    if (strlen(guid) > YK_TEXT_KEY) {
        yk_hall_fault(csv->draft,
                      "line %d: section, row and place are too long for a "
                      "guid; give one of at most %d bytes",
                      csv->line, YK_TEXT_KEY);
        return NULL;
    }
    return guid;
}

static void read_place(csv_t *csv)
{
    yk_hall_draft_t *draft = csv->draft;
    yk_plan_place_t place = {0};
    const char *section = text_of(csv, COLUMN_SECTION, 1, YK_TEXT_NAME);
    apr_status_t rv;

    place.row = text_of(csv, COLUMN_ROW, 0, YK_TEXT_KEY);
    place.seat = text_of(csv, COLUMN_PLACE, 1, YK_TEXT_KEY);
    place.grade = text_of(csv, COLUMN_GRADE, 1, YK_TEXT_KEY);
    if (!number_of(csv, &place.x, COLUMN_EAST) ||
        !number_of(csv, &place.y, COLUMN_SOUTH)) {
        yk_hall_fault(draft, "line %d: x and y are not two numbers", csv->line);
        return;
    }
    if (section == NULL || place.row == NULL || place.seat == NULL ||
        place.grade == NULL) {
        return;
    }
    place.guid = guid_of(csv, section, &place);
    if (place.guid == NULL) {
        return;
    }
    place.section_no = (uint32_t)find_or_add(draft, section);
    yk_hall_draft_grade(draft, place.grade, "");
    rv = yk_hall_draft_place(draft, &place,
                             row_of(csv, place.section_no, place.row));
    if (rv == APR_EEXIST) {
        yk_hall_fault(draft, "line %d: the guid %s stands there twice",
                      csv->line, yk_hall_shown(draft, place.guid));
    }
    else if (rv == APR_ENOSPC) {
        yk_hall_fault(draft, "the drawing has more than %d places",
                      YK_PLAN_PLACES_MAX);
        csv->at = csv->end;
    }
}

static int is_blank_line(const csv_t *csv)
{
    return csv->nfields == 0 || (csv->nfields == 1 && *csv->fields[0] == '\0');
}

void yk_hall_parse_csv(yk_hall_draft_t *draft, const char *bytes,
                       apr_size_t len)
{
    csv_t csv = {0};
    int is_first = 1;

    csv.draft = draft;
    csv.at = bytes;
    csv.end = bytes + len;
    csv.comma = comma_of(bytes, csv.end);
    csv.next_line = 1;
    csv.rows = apr_hash_make(draft->p);
    while (record(&csv)) {
        if (is_blank_line(&csv)) {
            continue;
        }
        if (is_first) {
            is_first = 0;
            if (take_names(&csv)) {
                if (draft->nfaults > 0) {
                    return;
                }
                continue;
            }
            if (csv.nfields < COLUMN_GUID) {
                yk_hall_fault(draft,
                              "this is neither a seating plan in JSON nor CSV "
                              "of section,row,place,x,y,grade[,guid]");
                return;
            }
        }
        read_place(&csv);
    }
}
