/* The cards as a table; see gpu_table.h. "n/a" is not reported, which is not 0. */
#include "cli/gpu_table.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/parse.h"
#include "base/text.h"
#include "cli/answer.h"
#include "cli/render.h"
#include "cli/table.h"
#include "gpu/xid.h"

#define BAR_COLUMNS  12
#define WIDE_COLUMNS 110 /* with room for every column */

static const struct column columns[] = {
    {"GPU", true, false},  {"NAME", false, false}, {"STATE", false, false},
    {"USED", true, false}, {"TOTAL", true, false}, {"", false, true},
    {"HELD", true, false}, {"SHARE", true, true},  {"FREE", true, false},
    {"LOAD", true, false}, {"TEMP", true, true},   {"JOBS", false, false},
};
#define COLUMN_NAME 1
#define COLUMN_HELD 6
#define N_COLUMNS   ((int)(sizeof columns / sizeof columns[0]))

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

/* "####====....": used, held beyond what is used, free. */
static void
cell_bar(struct table *t, const struct term *term, const json_t *gpu)
{
    int64_t total = answer_int(gpu, "total_mib", 0);
    int64_t used = answer_int(gpu, "used_mib", 0);
    int64_t taken = total - answer_int(gpu, "free_mib", total);
    char bar[BAR_COLUMNS + 1];

    if (!term->tty || total <= 0) {
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

/* Of the card's compute, what jobs hold in parts; whole cards show in HELD. */
static void
cell_share(struct table *t, const json_t *gpu)
{
    double share = json_number_value(json_object_get(gpu, "share_held"));
    char text[16] = "";

    if (share > 0)
        snprintf(text, sizeof text, "%.4g", share);
    table_cell(t, STYLE_NONE, text);
}

/* As people call them; a daemon that does not say who holds what says at least who is there. */
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
add_words(struct buf *out, const char *before, const char *words)
{
    if (!words[0])
        return;
    buf_adds(out, before);
    text_add_safe(out, words, strlen(words), 0);
}

/* "3h05m": for how long. */
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

static void
add_strangers(struct buf *out, const json_t *gpu)
{
    size_t i;
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
        buf_adds(out, "; not a job of Berth\n");
    }
}

void
gpu_table_add_states(const json_t *result, struct buf *out)
{
    size_t i;
    json_t *gpu;

    json_array_foreach(json_object_get(result, "gpus"), i, gpu) gpu_table_add_state(gpu, out);
}

void
gpu_table_add(const json_t *result, const struct term *term, bool strangers, struct buf *out)
{
    const json_t *gpus = json_object_get(result, "gpus");
    auto_table struct table *t = table_new(columns, N_COLUMNS);
    bool narrow = term->columns > 0 && term->columns < WIDE_COLUMNS;
    size_t i;
    json_t *gpu;

    if (narrow) { /* the bar shows what is held, and the cards' name is `berth status`'s to tell
                   */
        table_hide(t, COLUMN_NAME);
        table_hide(t, COLUMN_HELD);
    }

    json_array_foreach(gpus, i, gpu)
    {
        const char *state = answer_str(gpu, "state");

        cell_number(t, gpu, "index", "");
        table_cell(t, STYLE_NONE, answer_str(gpu, "name"));
        table_cell(t, render_gpu_style(state), state);
        cell_mib(t, gpu, "used_mib");
        cell_mib(t, gpu, "total_mib");
        cell_bar(t, term, gpu);
        cell_mib(t, gpu, "held_mib");
        cell_share(t, gpu);
        cell_mib(t, gpu, "free_mib");
        cell_number(t, gpu, "util", " %");
        cell_number(t, gpu, "temperature_c", " C");
        cell_jobs(t, gpu);
    }
    if (table_rows(t) > 0 && narrow) { /* what they are is said once */
        gpu_table_add_summary(gpus, out);
        buf_addc(out, '\n');
    }
    if (table_rows(t) > 0)
        table_print(t, term, out);
    gpu_table_add_states(result, out);
    if (!strangers)
        return;
    json_array_foreach(gpus, i, gpu) add_strangers(out, gpu);
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
