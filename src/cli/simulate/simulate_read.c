/* Reads the file of `berth simulate` as a workload, in any format; with --history, a jobs file
 * gets its durations from a daemon's history. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file.h"
#include "base/request.h"
#include "base/search.h"
#include "cli/ask/connect.h"
#include "cli/ask/json_scan.h"
#include "cli/common/cli.h"
#include "cli/simulate/simulate_verb.h"
#include "cli/submit/submit_options.h"
#include "sim/workload/read.h"
#include "spec/when.h"
#include "wire/client.h"

#define FILE_MAX (UINT64_C(8) << 30)

/* --- durations from the history --- */

/* Durations of a jobs file's commands, from a daemon's history. */
struct past_runs {
    struct past_run {
        char *command; /* owned */
        int64_t id;
        int64_t run_ms;
    } * v; /* owned; sorted by command, then by id */
    size_t n, cap;
};

enum { IN_ID, IN_STATE, IN_COMMAND, IN_RUN_MS, INS };

static const char *const in_fields[INS] = {"id", "state", "command", "run_ms"};

static void
take_row(void *arg, const struct scan_value *v)
{
    struct past_runs *p = arg;
    auto_buf struct buf command = BUF_INIT;
    int64_t run_ms = scan_int(&v[IN_RUN_MS], -1);
    if (run_ms < 0 || !scan_is(&v[IN_STATE], "COMPLETED"))
        return;
    p->v = xgrow(p->v, p->n, &p->cap, sizeof *p->v);
    scan_add(&command, &v[IN_COMMAND]);
    p->v[p->n++] = (struct past_run){buf_take(&command), scan_int(&v[IN_ID], 0), run_ms};
}

static int
compare_runs(const void *a, const void *b)
{
    const struct past_run *x = a, *y = b;
    int c = strcmp(x->command, y->command);
    return c ? c : (x->id > y->id) - (x->id < y->id);
}

/* Fetches all completed jobs from the daemon that the options name; starts none. */
static int
past_runs_ask(const struct cli *cli, struct past_runs *p, struct err *e)
{
    auto_client struct client *c = connect_kept(cli, e);
    json_t *params = json_object(), *fields = json_array();
    const char *text;
    size_t len;
    *p = (struct past_runs){.n = 0};
    for (int i = 0; i < INS; i++)
        json_array_append_new(fields, json_string(in_fields[i]));
    json_object_set_new(params, "fields", fields);
    json_object_set_new(params, "ended", json_true());
    if (!c) {
        json_decref(params);
        return -1;
    }
    if (client_call_raw(c, "jobs", params, &text, &len, e) < 0)
        return -1;
    scan_rows(text, len, INS, take_row, p);
    if (p->n > 1)
        qsort(p->v, p->n, sizeof *p->v, compare_runs);
    return 0;
}

static void
past_runs_free(struct past_runs *p)
{
    for (size_t i = 0; i < p->n; i++)
        free(p->v[i].command);
    free(p->v);
    *p = (struct past_runs){.n = 0};
}

/* In seconds: the mean of the last two runs of this command; 0: it has not run. A jobs file
 * contains shell text, so only that is compared. */
static int64_t
past_runs_duration(const void *past, const struct request *r)
{
    const struct past_runs *p = past;
    if (!r->command)
        return 0;
    size_t behind = search_first(at, p->n, strcmp(p->v[at].command, r->command) <= 0);
    int64_t sum = 0, n = 0;
    for (; n < 2 && behind > 0 && strcmp(p->v[behind - 1].command, r->command) == 0; n++)
        sum += p->v[--behind].run_ms;
    if (n == 0)
        return 0;
    int64_t seconds = (sum / n + 999) / 1000;
    return seconds > 0 ? seconds : 1;
}

/* --- the file --- */

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
