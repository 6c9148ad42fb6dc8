/* `berth run --dry-run`: what would start where if the file were queued now. */
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/text.h"
#include "cli/ask/answer.h"
#include "cli/common/cli.h"
#include "cli/run/run_verb.h"
#include "cli/table/render.h"
#include "cli/table/table.h"
#include "wire/client.h"

static const struct column columns[] = {
    {"LINE", true, false}, {"WOULD", false, false},   {"GPU", false, false},
    {"VRAM", true, false}, {"COMMAND", false, false}, {"WHY", false, true},
};
/* On a terminal, to leave room for the reason after the command. */
#define COMMAND_COLUMNS 40

#define N_COLUMNS ((int)(sizeof columns / sizeof columns[0]))

static const char *
would(const char *state, bool on_slurm, enum style *style)
{
    *style = render_state_style(state);
    if (strcmp(state, "STARTING") == 0)
        return on_slurm ? "be sent" : "start";
    if (strcmp(state, "PENDING") == 0)
        return "wait";
    if (strcmp(state, "HELD") == 0)
        return "stay held";
    if (strcmp(state, "INFEASIBLE") == 0)
        return "be refused";
    if (strcmp(state, "RUNNING") == 0)
        return "go on";
    if (strcmp(state, "CANCELLED") == 0)
        return "be cancelled";
    return render_state_is_final(state) ? "be skipped" : state;
}

static void
add_row(const struct run *run, struct table *t, const struct jobsfile_line *line,
        const json_t *answer)
{
    const struct demand *d = &line->req.demand;
    auto_buf struct buf cell = BUF_INIT;
    const char *text = answer_str(answer, "text");
    bool on_slurm = d->engine == ENGINE_SLURM;
    enum style style;
    const char *word = would(answer_str(answer, "state"), on_slurm, &style);
    char size[24];

    table_cell_int(t, line->line);
    table_cell(t, style, word);
    answer_add_gpus(&cell, json_object_get(answer, "gpus"));
    table_cell(t, STYLE_NONE, on_slurm ? "slurm" : d->gpus == 0 ? "cpu" : buf_str(&cell));
    buf_clear(&cell);
    int64_t vram_mib = answer_int(answer, "vram_mib", d->vram_mib);
    if (line->req.vram_auto)
        buf_adds(&cell, "auto ");
    if (vram_mib > 0)
        buf_adds(&cell, format_mib(vram_mib, size));
    else if (d->share_permille > 0)
        buf_addf(&cell, "%g", d->share_permille / 1000.0);
    else
        buf_adds(&cell, "whole");
    table_cell(t, STYLE_NONE, d->gpus == 0 ? "" : buf_str(&cell));
    buf_clear(&cell);
    text_add_safe(&cell, line->req.command, strlen(line->req.command),
                  run->term.tty ? COMMAND_COLUMNS : 0);
    table_cell(t, STYLE_NONE, buf_str(&cell));
    buf_clear(&cell);
    buf_adds(&cell, answer_str(answer, "reason"));
    if (strncmp(text, buf_str(&cell), cell.len) == 0)
        buf_clear(&cell); /* the text begins with the reason */
    if (text[0])
        buf_addf(&cell, "%s%s", cell.len ? ": " : "", text);
    render_expected_start(&cell, answer);
    if (on_slurm && !text[0]) {
        buf_adds(&cell, answer_bool(answer, "packed") ? "allocation " : "sbatch ");
        answer_add_options(&cell, json_object_get(answer, "sbatch"));
    }
    table_cell(t, STYLE_NONE, buf_str(&cell));
}

static int
plan_file(struct run *run, struct run_file *f)
{
    auto_buf struct buf out = BUF_INIT;
    auto_json json_t *result = NULL;
    auto_table struct table *t = NULL;
    struct err e = {0};
    json_t *answer;
    size_t at = 0;
    size_t i;

    if (run_file_call(run, f, "file.plan", run->opt.fresh, &result, &e) < 0)
        return cli_fail(&e);
    if (run->cli->json)
        return cli_put_answer(result);
    t = table_new(columns, N_COLUMNS);
    json_array_foreach(json_object_get(result, "lines"), i, answer)
    {
        while (at < f->parsed.n_lines &&
               strcmp(f->parsed.lines[at].key, answer_str(answer, "key")) != 0)
            at++;
        if (at < f->parsed.n_lines)
            add_row(run, t, &f->parsed.lines[at++], answer);
    }
    table_print(t, &run->term, &out);
    return cli_put(&out);
}

int
run_plan(struct run *run)
{
    int most = 0;

    for (int i = 0; i < run->n_files; i++) {
        int status = plan_file(run, &run->files[i]);

        most = status > most ? status : most;
    }
    return most;
}
