/* Reads the workloads' CSV. A million lines must take a fraction of a second, so digits are
 * parsed in place; anything else is passed to the strict parser for its error message. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/parse.h"
#include "sim/workload/read.h"

#define COLUMNS_MAX 64

enum field {
    FIELD_ID,
    FIELD_ARRIVAL,
    FIELD_DURATION,
    FIELD_ESTIMATE,
    FIELD_GPUS,
    FIELD_VRAM,
    FIELD_USER, /* a word; the other fields are numbers */
};
#define FIELDS (FIELD_USER + 1)

static const struct {
    const char *name;
    int64_t min, max;
} fields[FIELDS] = {
    [FIELD_ID] = {"job_id", 0, INT64_MAX},
    [FIELD_ARRIVAL] = {"arrival_s", 0, WORKLOAD_TIME_MAX},
    [FIELD_DURATION] = {"duration_s", 0, WORKLOAD_TIME_MAX},
    [FIELD_ESTIMATE] = {"est_s", 0, WORKLOAD_TIME_MAX},
    [FIELD_GPUS] = {"gpus", 1, GPU_MAX},
    [FIELD_VRAM] = {"vram_mib", 0, VRAM_MAX_MIB},
    [FIELD_USER] = {.name = "user"},
};

/* Users by name, numbered from 0 as they appear: open addressing. The names point into the
 * text. */
struct users {
    const char **names; /* owned array */
    uint32_t *numbers;
    size_t n, n_buckets;
};

struct csv {
    const char *file;
    char *at, *end;
    uint32_t line;
    int columns[COLUMNS_MAX]; /* field of each column; -1: ignored */
    int n_columns;
    bool has[FIELDS];
    struct users users;
};

static size_t
find_user(const struct users *u, const char *name)
{
    uint64_t h = UINT64_C(14695981039346656037);
    for (const char *c = name; *c; c++)
        h = (h ^ (uint8_t)*c) * UINT64_C(1099511628211);
    size_t at = (size_t)(h ^ h >> 29) & (u->n_buckets - 1);
    while (u->names[at] && strcmp(u->names[at], name) != 0)
        at = (at + 1) & (u->n_buckets - 1);
    return at;
}

static void
grow_users(struct users *u)
{
    struct users old = *u;
    u->n_buckets = old.n_buckets ? old.n_buckets * 2 : 64;
    u->names = xcalloc(u->n_buckets, sizeof *u->names);
    u->numbers = xcalloc(u->n_buckets, sizeof *u->numbers);
    for (size_t i = 0; i < old.n_buckets; i++) {
        if (!old.names[i])
            continue;
        size_t at = find_user(u, old.names[i]);
        u->names[at] = old.names[i];
        u->numbers[at] = old.numbers[i];
    }
    free(old.names);
    free(old.numbers);
}

static uint32_t
number_of_user(struct users *u, const char *name)
{
    if (u->n * 2 >= u->n_buckets)
        grow_users(u);
    size_t at = find_user(u, name);
    if (!u->names[at]) {
        u->names[at] = name;
        u->numbers[at] = (uint32_t)u->n++;
    }
    return u->numbers[at];
}

/* Terminates the cell at *at with a NUL, and moves *at past its comma. */
static char *
next_cell(char **at)
{
    char *cell = *at, *p = cell;
    if (*p == '"') {
        /* No field that is read needs quotes, so quoted cells are only skipped. */
        for (p++; *p && (*p != '"' || p[1] == '"'); p++)
            p += *p == '"';
    }
    while (*p && *p != ',')
        p++;
    *at = *p ? p + 1 : NULL;
    *p = '\0';
    return cell;
}

/* The next non-empty line, without its line end; NULL: none. */
static char *
next_line(struct csv *c)
{
    while (c->at < c->end) {
        char *line = c->at;
        char *end = memchr(line, '\n', (size_t)(c->end - line));
        if (!end)
            end = c->end;
        c->at = end + 1;
        c->line++;
        if (end > line && end[-1] == '\r')
            end[-1] = '\0';
        *end = '\0';
        if (*line)
            return line;
    }
    return NULL;
}

static int
refuse(const struct csv *c, const char *line, const char *cell, const char *what, struct err *e)
{
    return err_set(e, ERR_USAGE, "%s:%u:%d: %s", c->file, c->line, (int)(cell - line) + 1,
                   what);
}

static int
read_header(struct csv *c, char *line, struct err *e)
{
    char *at = line;
    while (at) {
        const char *cell = next_cell(&at);
        if (c->n_columns == COLUMNS_MAX)
            return refuse(c, line, cell, "more than 64 columns", e);
        int *column = &c->columns[c->n_columns++];
        *column = -1;
        for (int i = 0; i < FIELDS; i++) {
            if (strcmp(cell, fields[i].name) == 0)
                *column = i;
        }
        if (*column >= 0 && c->has[*column])
            return refuse(c, line, cell, "this column is given twice", e);
        if (*column >= 0)
            c->has[*column] = true;
    }
    if (c->has[FIELD_ARRIVAL] && c->has[FIELD_DURATION])
        return 0;
    return err_set(e, ERR_USAGE,
                   "%s:%u:1: the header has no column %s; it should look like "
                   "job_id,arrival_s,duration_s,est_s,gpus,vram_mib",
                   c->file, c->line, c->has[FIELD_ARRIVAL] ? "duration_s" : "arrival_s");
}

static int
read_number(const struct csv *c, const char *line, const char *cell, int field, int64_t *out,
            struct err *e)
{
    int64_t v = 0;
    size_t n = 0;
    struct err why;
    for (; n < 18 && cell[n] >= '0' && cell[n] <= '9'; n++)
        v = v * 10 + (cell[n] - '0');
    if (n == 0 || cell[n] || v < fields[field].min || v > fields[field].max) {
        if (parse_int(cell, fields[field].min, fields[field].max, &v, &why) < 0)
            return err_set(e, ERR_USAGE, "%s:%u:%d: %s: %s", c->file, c->line,
                           (int)(cell - line) + 1, fields[field].name, why.text);
    }
    *out = v;
    return 0;
}

static int
read_record(struct csv *c, char *line, int64_t *values, struct err *e)
{
    char *at = line;
    int n = 0;
    for (; at; n++) {
        const char *cell = next_cell(&at);
        if (n == c->n_columns)
            return refuse(c, line, cell, "more cells than the header has columns", e);
        if (c->columns[n] == FIELD_USER)
            values[FIELD_USER] = number_of_user(&c->users, cell);
        else if (c->columns[n] >= 0 &&
                 read_number(c, line, cell, c->columns[n], &values[c->columns[n]], e) < 0)
            return -1;
    }
    if (n == c->n_columns)
        return 0;
    return err_set(e, ERR_USAGE, "%s:%u:1: %d cell%s; the header has %d columns", c->file,
                   c->line, n, n == 1 ? "" : "s", c->n_columns);
}

static void
add_record(const struct csv *c, const int64_t *values, struct workload *w)
{
    struct sim_job job = {
        .id = c->has[FIELD_ID] ? values[FIELD_ID] : (int64_t)w->n,
        .arrival = values[FIELD_ARRIVAL],
        .duration = values[FIELD_DURATION],
        .estimate = c->has[FIELD_ESTIMATE] ? values[FIELD_ESTIMATE] : values[FIELD_DURATION],
        .line = c->line,
        .user = (uint32_t)values[FIELD_USER],
    };
    struct shape shape = {
        .allowed = UINT64_MAX,
        .vram_mib = (int32_t)values[FIELD_VRAM],
        .n = c->has[FIELD_GPUS] ? (uint8_t)values[FIELD_GPUS] : 1,
        .alone = !c->has[FIELD_VRAM],
    };
    workload_add(w, &job, &shape);
}

static int
read_records(struct csv *c, struct workload *w, struct err *e)
{
    int64_t values[FIELDS] = {0};
    char *line = next_line(c);
    if (!line)
        return err_set(e, ERR_USAGE, "%s:1:1: the file is empty; it should begin with a header",
                       c->file);
    if (read_header(c, line, e) < 0)
        return -1;
    while ((line = next_line(c))) {
        if (read_record(c, line, values, e) < 0)
            return -1;
        if (w->n == WORKLOAD_JOBS_MAX)
            return refuse(c, line, line, "more than 100 million jobs", e);
        add_record(c, values, w);
    }
    return 0;
}

int
read_csv(const char *file, char *text, size_t len, struct workload *w, struct err *e)
{
    struct csv c = {.file = file, .at = text, .end = text + len};
    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) /* written by spreadsheet programs */
        c.at += 3;
    int result = read_records(&c, w, e);
    free(c.users.names);
    free(c.users.numbers);
    return result;
}
