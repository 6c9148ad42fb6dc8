/* The table of GPUs; see gpu_table.h. "n/a" means not reported, which differs from 0. */
#include "cli/table/gpu_table.h"

#include <limits.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/text.h"
#include "cli/ask/answer.h"
#include "cli/common/cli.h"
#include "cli/table/gpu_columns.h"
#include "cli/table/table.h"
#include "gpu/xid.h"

#define WIDE_COLUMNS 110 /* enough for every column */

static void
add_words(struct buf *out, const char *before, const char *words)
{
    if (!words[0])
        return;
    buf_adds(out, before);
    text_add_safe(out, words, strlen(words), 0);
}

/* Adds "for 3h05m". */
static void
add_since(struct buf *out, const json_t *gpu)
{
    int64_t since_us = answer_time_us(gpu, "state_since");
    char span[24];

    if (since_us > 0)
        buf_addf(out, " for %s", format_duration((clock_wall_us() - since_us) / 1000, span));
}

void
gpu_table_add_state(const json_t *gpu, struct buf *out)
{
    const char *state = answer_str(gpu, "state");
    const char *note = answer_str(gpu, "note");
    const char *by = answer_str(gpu, "state_by");
    bool is_out = strcmp(state, "lost") == 0 || strcmp(state, "sick") == 0;
    const struct xid *xid = xid_find((int)answer_int(gpu, "xid", 0));
    int index = (int)answer_int(gpu, "index", 0);

    if (is_out || answer_bool(gpu, "paused")) {
        buf_addf(out, "gpu %d: ", index);
        text_add_safe(out, state, strlen(state), 0);
        if (!is_out)
            add_words(out, " by ", by);
        add_since(out, gpu);
        if (is_out)
            add_words(out, ", paused by ", by);
        add_words(out, ": ", answer_str(gpu, "state_text"));
        if (is_out && xid->advice)
            add_words(out, "; ", xid->advice);
        buf_addc(out, '\n');
    }
    if (note[0]) {
        buf_addf(out, "gpu %d: ", index);
        add_words(out, "", note);
        buf_addc(out, '\n');
    }
}

void
gpu_table_add_excess(const json_t *gpu, struct buf *out)
{
    size_t i;
    json_t *hold;

    json_array_foreach(json_object_get(gpu, "holds"), i, hold)
    {
        int64_t asked = answer_int(hold, "vram_mib", -1), now = answer_int(hold, "now_mib", -1);
        char has[24], wanted[24];

        if (asked <= 0 || now * 10 <= asked * 11)
            continue;
        buf_addf(out, "gpu %lld: job ", (long long)answer_int(gpu, "index", 0));
        answer_add_holder(out, hold);
        buf_addf(out,
                 " uses %s and requested %s: other jobs on this GPU may run out of memory\n",
                 format_mib(now, has), format_mib(asked, wanted));
    }
}

/* Adds the amount counted as used outside Berth, which makes jobs wait, if it exceeds what the
 * processes use. */
static void
add_counted(struct buf *out, const json_t *gpu, int64_t used_mib)
{
    int64_t counted_mib = answer_int(gpu, "external_mib", 0);
    char size[24];

    if (used_mib > 0 && counted_mib > used_mib)
        buf_addf(out,
                 "gpu %lld: %s counted as used outside Berth: the peak of these processes with "
                 "a reserve, or memory that belongs to no known process\n",
                 (long long)answer_int(gpu, "index", 0), format_mib(counted_mib, size));
}

static void
add_strangers(struct buf *out, const json_t *gpu)
{
    size_t i;
    int64_t used_mib = 0;
    json_t *p;

    json_array_foreach(json_object_get(gpu, "strangers"), i, p)
    {
        int64_t since_us = answer_time_us(p, "since");
        const char *user = answer_str(p, "user");
        char size[24];
        char span[24];

        buf_addf(out, "gpu %lld: pid %lld (", (long long)answer_int(gpu, "index", 0),
                 (long long)answer_int(p, "pid", 0));
        text_add_safe(out, user[0] ? user : "n/a", strlen(user[0] ? user : "n/a"), 40);
        buf_addf(out, ") uses %s", format_mib(answer_int(p, "mib", -1), size));
        if (since_us > 0)
            buf_addf(out, ", seen for %s",
                     format_duration((clock_wall_us() - since_us) / 1000, span));
        buf_adds(out, "; not a Berth job\n");
        used_mib += answer_int(p, "mib", 0);
    }
    add_counted(out, gpu, used_mib);
}

void
gpu_table_add_states(const json_t *result, struct buf *out)
{
    size_t i;
    json_t *gpu;

    json_array_foreach(json_object_get(result, "gpus"), i, gpu)
    {
        gpu_table_add_state(gpu, out);
        gpu_table_add_excess(gpu, out);
    }
}

static void
add_rows(const json_t *gpus, const struct gpu_columns *columns, const struct term *term,
         struct buf *out)
{
    struct column shapes[GPU_COLUMNS_MAX];
    size_t i;
    json_t *gpu;

    for (int k = 0; k < columns->n; k++)
        shapes[k] = *gpu_column_shape(columns->at[k]);
    auto_table struct table *t = table_new(shapes, columns->n);
    json_array_foreach(gpus, i, gpu)
    {
        for (int k = 0; k < columns->n; k++)
            gpu_column_draw(columns->at[k], t, columns->named || term->tty, gpu);
    }
    if (columns->named)
        table_show_all(t);
    if (table_rows(t) > 0)
        table_print(t, term, out);
}

void
gpu_table_add_columns(const json_t *result, const struct gpu_columns *columns,
                      const struct term *term, struct buf *out)
{
    add_rows(json_object_get(result, "gpus"), columns, term, out);
}

void
gpu_table_add_unknown(const json_t *result, struct buf *out)
{
    const json_t *since = json_object_get(result, "unknown_since");

    if (!json_is_object(since) || json_array_size(json_object_get(result, "gpus")) == 0)
        return;
    buf_addf(out, "the GPUs have not answered since %s", answer_str(since, "rfc3339"));
    add_words(out, ": ", answer_str(result, "probe_error"));
    buf_adds(out, "; these are the last known values, and new GPU jobs wait");
}

void
gpu_table_add(const json_t *result, const struct term *term, bool strangers, struct buf *out)
{
    const json_t *gpus = json_object_get(result, "gpus");
    bool narrow = term->columns > 0 && term->columns < WIDE_COLUMNS;
    struct gpu_columns columns;
    auto_buf struct buf unknown = BUF_INIT;
    size_t i;
    json_t *gpu;

    gpu_table_add_unknown(result, &unknown);
    if (unknown.len)
        buf_addf(out, "%s\n", buf_str(&unknown));
    gpu_columns_default(narrow, &columns);
    if (json_array_size(gpus) > 0 && narrow) { /* name the GPUs once, above the table */
        gpu_table_add_summary(gpus, out);
        buf_addc(out, '\n');
    }
    add_rows(gpus, &columns, term, out);
    gpu_table_add_states(result, out);
    if (!strangers)
        return;
    json_array_foreach(gpus, i, gpu) add_strangers(out, gpu);
}

void
gpu_table_add_none(const json_t *result, struct buf *out)
{
    const char *why = answer_str(result, "probe_error");

    buf_adds(out, "no GPUs");
    if (!why[0])
        return;
    buf_adds(out, ": ");
    text_add_safe(out, why, strlen(why), INT_MAX);
}

void
gpu_table_say_missing(const json_t *gpus, uint64_t asked)
{
    auto_buf struct buf there = BUF_INIT;
    size_t n = json_array_size(gpus), i;
    uint64_t known = 0;
    const json_t *gpu;

    /* Not always 0 to n - 1: the number of a GPU that was replaced is not used again. */
    json_array_foreach(gpus, i, gpu)
    {
        int64_t index = answer_int(gpu, "index", 0);
        known |= UINT64_C(1) << (index & 63);
        buf_addf(&there, "%s%lld", i == 0 ? "" : ", ", (long long)index);
    }
    if (n > 1 && known >> n == 0) {
        buf_clear(&there);
        buf_addf(&there, "0-%zu", n - 1);
    }
    if ((asked & ~known) && n == 0)
        cli_say("there are no GPUs");
    else if (asked & ~known)
        cli_say("there is no gpu %d; there %s %s", __builtin_ctzll(asked & ~known),
                n == 1 ? "is only" : "are", buf_str(&there));
}

void
gpu_table_add_summary(const json_t *gpus, struct buf *out)
{
    size_t n = json_array_size(gpus);
    const json_t *first = json_array_get(gpus, 0);
    bool same = true;
    size_t i;
    json_t *gpu;
    char size[24];

    if (n == 0) {
        buf_adds(out, "no GPUs");
        return;
    }
    json_array_foreach(gpus, i, gpu) same =
        same && strcmp(answer_str(gpu, "name"), answer_str(first, "name")) == 0 &&
        answer_int(gpu, "total_mib", 0) == answer_int(first, "total_mib", 0);
    buf_addf(out, "%zu GPU%s (", n, n == 1 ? "" : "s");
    text_add_safe(out, answer_str(first, "name"), strlen(answer_str(first, "name")), 40);
    buf_addf(out, ", %s%s)", format_mib(answer_int(first, "total_mib", -1), size),
             same ? "" : ", and others");
}
