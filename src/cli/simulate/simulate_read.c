/* The file of `berth simulate` as a workload, whatever its format. */
#include <stddef.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "cli/common/cli.h"
#include "cli/simulate/simulate_history.h"
#include "cli/simulate/simulate_verb.h"
#include "cli/submit/submit_options.h"
#include "sim/workload/read.h"
#include "spec/when.h"

#define FILE_MAX (UINT64_C(8) << 30)

static bool
ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && strcasecmp(s + n - m, end) == 0;
}

static void
say_notes(const struct simulation *sim, const struct read_notes *notes)
{
    if (notes->skipped)
        cli_say("%s: %zu of %zu records left out: %s", sim->file, notes->skipped,
                notes->skipped + sim->workload.n,
                sim->format == FORMAT_SWF ? "they have no run time or no processors"
                                          : "they request no GPU, or are held or cancelled");
    if (notes->capped)
        cli_say("%s: %zu job%s more than the machine has and get%s all of it", sim->file,
                notes->capped, notes->capped == 1 ? " requests" : "s request",
                notes->capped == 1 ? "s" : "");
}

static int
parse_jobs(const struct cli *cli, struct simulation *sim, const struct buf *text,
           struct read_notes *notes, struct err *e)
{
    struct past_runs past = {.n = 0};
    struct when_clock clock;
    struct run_times times = {.before = sim->history ? past_runs_duration : NULL,
                              .arg = &past,
                              .clock = &clock,
                              .otherwise_s = sim->duration_s};
    if (sim->history && past_runs_ask(cli, &past, e) < 0)
        return -1;
    submit_read_clock(&clock);
    sim->workload.zero_us = clock.now_us;
    int result = read_jobs(sim->file, text->data, text->len, &sim->machine, &times,
                           &sim->workload, notes, e);
    past_runs_free(&past);
    return result;
}

static int
parse_file(const struct cli *cli, struct simulation *sim, struct buf *text,
           struct read_notes *notes, struct err *e)
{
    struct workload *w = &sim->workload;
    buf_reserve(text, 1);
    if (text->len == 0)
        text->data[0] = '\0';
    switch (sim->format) {
    case FORMAT_CSV:
        return read_csv(sim->file, text->data, text->len, w, e);
    case FORMAT_SWF:
        return read_swf(sim->file, text->data, text->len, &sim->machine, w, notes, e);
    case FORMAT_JOBS:
    case FORMAT_NONE:
        break;
    }
    return parse_jobs(cli, sim, text, notes, e);
}

int
simulate_read(const struct cli *cli, struct simulation *sim, struct err *e)
{
    auto_buf struct buf text = BUF_INIT;
    struct read_notes notes = {0};
    if (sim->format == FORMAT_NONE && ends_with(sim->file, ".csv"))
        sim->format = FORMAT_CSV;
    else if (sim->format == FORMAT_NONE)
        sim->format = ends_with(sim->file, ".swf") ? FORMAT_SWF : FORMAT_JOBS;
    if (file_read(sim->file, FILE_MAX, &text, e) < 0 ||
        parse_file(cli, sim, &text, &notes, e) < 0)
        return -1;
    if (sim->workload.n == 0)
        return err_set(e, ERR_USAGE, "%s: no jobs", sim->file);
    say_notes(sim, &notes);
    if (sim->one_user)
        workload_forget_users(&sim->workload);
    if (sim->batch)
        workload_batch(&sim->workload);
    else if (sim->scale != 1)
        workload_scale(&sim->workload, sim->scale);
    if (workload_sort(&sim->workload, sim->file, e) < 0)
        return -1;
    return workload_check(&sim->workload, &sim->machine, sim->file, e);
}
