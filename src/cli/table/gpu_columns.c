/* The columns of the table of GPUs; see gpu_columns.h. "n/a" means not reported, which differs
 * from 0. */
#include "cli/table/gpu_columns.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/text.h"
#include "cli/ask/answer.h"
#include "cli/common/term.h"
#include "cli/table/render.h"

#define BAR_COLUMNS 12

static void
cell_mib(struct table *t, const json_t *gpu, const char *key)
{
    char size[24];

    table_cell(t, STYLE_NONE, format_mib(answer_int(gpu, key, -1), size));
}

static void
cell_number(struct table *t, const json_t *gpu, const char *key, const char *unit)
{
    char text[32];
    int64_t v = answer_int(gpu, key, -1);

    snprintf(text, sizeof text, "%lld%s", (long long)v, unit);
    table_cell(t, STYLE_NONE, v < 0 ? "n/a" : text);
}

static void
cell_tenths(struct table *t, const json_t *gpu, const char *key)
{
    char text[32];
    double v = json_number_value(json_object_get(gpu, key));

    snprintf(text, sizeof text, "%.1f", v);
    table_cell(t, STYLE_NONE, v > 0 ? text : "n/a");
}

/* "####====....": used, held in addition to that, free. */
static void
cell_bar(struct table *t, bool bars, const json_t *gpu)
{
    int64_t total = answer_int(gpu, "total_mib", 0);
    int64_t used = answer_int(gpu, "used_mib", 0);
    int64_t taken = total - answer_int(gpu, "free_mib", total);
    char bar[BAR_COLUMNS + 1];

    if (!bars || total <= 0) {
        table_cell(t, STYLE_NONE, "");
        return;
    }
    for (int i = 0; i < BAR_COLUMNS; i++) {
        int64_t at = total * (2 * i + 1) / (2 * BAR_COLUMNS);

        bar[i] = at < used ? '#' : at < taken ? '=' : '.';
    }
    bar[BAR_COLUMNS] = '\0';
    table_cell(t, used * 10 > total * 9 ? STYLE_WARN : STYLE_GOOD, bar);
}

/* The part of the GPU's compute that jobs hold as shares; jobs with the whole GPU show in
 * HELD. */
static void
cell_share(struct table *t, const json_t *gpu)
{
    double share = json_number_value(json_object_get(gpu, "share_held"));
    char text[16] = "";

    if (share > 0)
        snprintf(text, sizeof text, "%.4g", share);
    table_cell(t, STYLE_NONE, text);
}

/* Job ids as users write them; a daemon that does not report holders at least lists the
 * jobs. */
static void
cell_jobs(struct table *t, const json_t *gpu)
{
    const json_t *holds = json_object_get(gpu, "holds");
    auto_buf struct buf names = BUF_INIT;
    size_t i;
    json_t *hold;

    json_array_foreach(holds, i, hold)
    {
        if (i > 0)
            buf_addc(&names, ',');
        answer_add_holder(&names, hold);
    }
    if (!holds)
        answer_add_gpus(&names, json_object_get(gpu, "jobs"));
    table_cell(t, STYLE_NONE, buf_str(&names));
}

static void
cell_list(struct table *t, const json_t *gpu, const char *key)
{
    auto_buf struct buf numbers = BUF_INIT;

    answer_add_gpus(&numbers, json_object_get(gpu, key));
    table_cell(t, STYLE_NONE, buf_str(&numbers));
}

/* --- the columns --- */

enum kind { NUMBER, TENTHS, MIB, PERCENT, CELSIUS, TEXT, STATE, BAR, SHARE, JOBS, LIST };

static const struct {
    const char *name;
    struct column shape;
    enum kind kind;
    const char *key; /* in the GPU's object; --sort compares it too */
} columns[] = {
    {"index", {"GPU", true, false}, NUMBER, "index"},
    {"name", {"NAME", false, false}, TEXT, "name"},
    {"state", {"STATE", false, false}, STATE, "state"},
    {"used", {"USED", true, false}, MIB, "used_mib"},
    {"total", {"TOTAL", true, false}, MIB, "total_mib"},
    {"bar", {"", false, true}, BAR, "used_mib"},
    {"held", {"HELD", true, false}, MIB, "held_mib"},
    {"share", {"SHARE", true, true}, SHARE, "share_held"},
    {"free", {"FREE", true, false}, MIB, "free_mib"},
    {"load", {"LOAD", true, false}, PERCENT, "util"},
    {"temp", {"TEMP", true, true}, CELSIUS, "temperature_c"},
    {"jobs", {"JOBS", false, false}, JOBS, "jobs"},
    {"external", {"OTHERS", true, false}, MIB, "external_mib"},
    {"uuid", {"UUID", false, false}, TEXT, "uuid"},
    {"cap", {"CAP", false, false}, TEXT, "cap"},
    {"mps", {"MPS", false, false}, TEXT, "mps"},
    {"vendor", {"VENDOR", false, false}, TEXT, "vendor"},
    {"numa", {"NUMA", true, false}, NUMBER, "numa_node"},
    {"cpus", {"CPUS", false, false}, TEXT, "cpu_list"},
    {"cc", {"CC", true, false}, TENTHS, "compute_capability"},
    {"nvlink", {"NVLINK", false, false}, LIST, "nvlink"},
};
#define N_COLUMNS ((int)(sizeof columns / sizeof columns[0]))
#define N_USUAL   12
_Static_assert(N_COLUMNS <= GPU_COLUMNS_MAX, "GPU_COLUMNS_MAX is too small");

void
gpu_columns_default(bool narrow, struct gpu_columns *out)
{
    *out = (struct gpu_columns){0};
    for (int i = 0; i < N_USUAL; i++) {
        /* The bar shows what is held, and a line above the table names the GPUs. */
        if (!narrow ||
            (strcmp(columns[i].name, "name") != 0 && strcmp(columns[i].name, "held") != 0))
            out->at[out->n++] = i;
    }
}

const struct column *
gpu_column_shape(int column)
{
    return &columns[column].shape;
}

void
gpu_column_draw(int column, struct table *t, bool bars, const json_t *gpu)
{
    const char *key = columns[column].key;
    const char *text = answer_str(gpu, key);

    switch (columns[column].kind) {
    case NUMBER:
        cell_number(t, gpu, key, "");
        break;
    case TENTHS:
        cell_tenths(t, gpu, key);
        break;
    case MIB:
        cell_mib(t, gpu, key);
        break;
    case PERCENT:
        cell_number(t, gpu, key, " %");
        break;
    case CELSIUS:
        cell_number(t, gpu, key, " C");
        break;
    case TEXT:
        table_cell(t, STYLE_NONE, text);
        break;
    case STATE:
        table_cell(t, render_gpu_style(text), text);
        break;
    case BAR:
        cell_bar(t, bars, gpu);
        break;
    case SHARE:
        cell_share(t, gpu);
        break;
    case JOBS:
        cell_jobs(t, gpu);
        break;
    case LIST:
        cell_list(t, gpu, key);
        break;
    }
}

/* --- choosing columns --- */

static int
find_column(const char *name, size_t n, struct err *e)
{
    const char *names[N_COLUMNS + 1] = {0};
    auto_buf struct buf word = BUF_INIT, all = BUF_INIT;
    const char *near;

    for (int i = 0; i < N_COLUMNS; i++) {
        names[i] = columns[i].name;
        if (strlen(names[i]) == n && memcmp(names[i], name, n) == 0)
            return i;
        buf_addf(&all, " %s", names[i]);
    }
    text_add_safe(&word, name, n, 40);
    near = text_nearest(buf_str(&word), names);
    return err_set(e, ERR_USAGE, "unknown column '%s'%s%s%s; the columns are:%s",
                   buf_str(&word), near ? ", did you mean '" : "", near ? near : "",
                   near ? "'?" : "", buf_str(&all));
}

int
gpu_columns_read(const char *list, struct gpu_columns *out, struct err *e)
{
    *out = (struct gpu_columns){.named = true};
    for (const char *s = list; *s;) {
        size_t n = strcspn(s, ", ");
        int column = n ? find_column(s, n, e) : 0;

        if (column < 0)
            return -1;
        if (n && out->n == GPU_COLUMNS_MAX)
            return err_set(e, ERR_USAGE, "at most %d columns", GPU_COLUMNS_MAX);
        if (n)
            out->at[out->n++] = column;
        s += n + (s[n] != '\0');
    }
    return out->n > 0 ? 0 : err_set(e, ERR_USAGE, "name at least one column: index,state,used");
}

int
gpu_sort_read(const char *text, struct gpu_sort *out, struct err *e)
{
    bool down = *text == '-';

    *out = (struct gpu_sort){.down = down};
    out->column = find_column(text + down, strlen(text + down), e);
    return out->column < 0 ? -1 : 0;
}

/* --- sorting --- */

static double
number_of(const json_t *v)
{
    return json_is_array(v) ? (double)json_array_size(v) : json_number_value(v);
}

static int
compare(const void *a, const void *b, void *arg)
{
    const struct gpu_sort *sort = arg;
    const json_t *one = *(json_t *const *)a, *two = *(json_t *const *)b;
    const json_t *x = json_object_get(one, columns[sort->column].key);
    const json_t *y = json_object_get(two, columns[sort->column].key);
    int order;

    if (json_is_null(x) != json_is_null(y)) /* unknown values are always last */
        return json_is_null(x) ? 1 : -1;
    if (json_is_string(x) && json_is_string(y))
        order = strcmp(json_string_value(x), json_string_value(y));
    else
        order = (number_of(x) > number_of(y)) - (number_of(x) < number_of(y));
    if (order)
        return sort->down ? -order : order;
    return answer_int(one, "index", 0) < answer_int(two, "index", 0) ? -1 : 1;
}

void
gpu_sort_apply(const struct gpu_sort *sort, json_t *gpus)
{
    size_t n = json_array_size(gpus);
    json_t **all = xcalloc(n + 1, sizeof *all);

    for (size_t i = 0; i < n; i++)
        all[i] = json_incref(json_array_get(gpus, i));
    qsort_r(all, n, sizeof *all, compare, (void *)(uintptr_t)sort);
    json_array_clear(gpus);
    for (size_t i = 0; i < n; i++)
        json_array_append_new(gpus, all[i]);
    free(all);
}
