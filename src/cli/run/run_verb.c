/* `berth run`: runs a file of commands to its end. This file parses the options, loads the
 * files, finds or starts the daemon and sends it the lines; run_verb.h lists the other
 * files. */
#include "cli/run/run_verb.h"

#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/request.h"
#include "base/text.h"
#include "cli/ask/answer.h"
#include "cli/ask/model_table.h"
#include "cli/ask/request_write.h"
#include "cli/ask/sim_match.h"
#include "cli/ask/submit_env.h"
#include "cli/common/cli.h"
#include "cli/common/opt.h"
#include "cli/table/gpu_table.h"
#include "spec/models.h"
#include "wire/client.h"

#define TRIES 5 /* attempts to send the same request */

enum {
    OPT_WATCH,
    OPT_FRESH,
    OPT_DRY_RUN,
    OPT_DETACH,
    OPT_OOM,
    OPT_ON,
    OPT_PACK,
    OPT_SIM,
    OPT_CONFIG,
    OPT_MODELS,
    OPT_VERBOSE,
    OPT_QUIET,
};

static const struct opt options[] = {
    {"watch", 'w', NULL, "wait for new lines; the file may be empty"},
    {"fresh", 0, NULL, "run every line again, including ended ones"},
    {"dry-run", 'n', NULL, "show what would start where; queue nothing"},
    {"detach", 'd', NULL, "queue the lines and exit"},
    {"oom-retries", 0, "N", "after CUDA out of memory, retry N times with 1.25 x the VRAM"},
    {"on", 0, "ENGINE", "where all lines run: here, or slurm"},
    {"pack", 0, NULL, "on Slurm, run them side by side in allocations of whole GPUs"},
    {"sim", 0, "SPEC", "simulated GPUs, if this starts the daemon: 2, 4x80G"},
    {"config", 0, "FILE", "settings file, if this starts the daemon"},
    {"models", 0, "FILE", "table of what models (--llm NAME in a command) need"},
    {"verbose", 'v', NULL, "show VRAM as it grows"},
    {"quiet", 'q', NULL, "print only problems and the summary"},
    {0},
};

static const struct page page = {
    .usage = "berth run FILE... [options]",
    .about =
        "Run the lines of a file, follow them and exit with the highest of their statuses\n"
        "(except lines with 'cancel'). The file may be edited meanwhile. '-': stdin.",
    .options = options,
    .notes =
        "A line: [vram=18G gpus=1 timeout=2h oom-retries=1 priority=5] python train.py\n"
        "Ctrl-C detaches (exit 130; jobs continue; the same command returns to them); twice\n"
        "within two seconds cancels them.",
};

static int
read_options(struct opt_reader *r, struct run_options *o)
{
    struct err e = {0};
    int opt;

    o->oom_retries = -1;
    while ((opt = opt_next(r)) >= 0) {
        bool *const flags[] = {
            [OPT_WATCH] = &o->watch,     [OPT_FRESH] = &o->fresh, [OPT_DRY_RUN] = &o->dry_run,
            [OPT_DETACH] = &o->detach,   [OPT_OOM] = NULL,        [OPT_SIM] = NULL,
            [OPT_CONFIG] = NULL,         [OPT_MODELS] = NULL,     [OPT_ON] = NULL,
            [OPT_VERBOSE] = &o->verbose, [OPT_QUIET] = &o->quiet, [OPT_PACK] = &o->pack,
        };

        if (flags[opt]) {
            *flags[opt] = true;
        } else if (opt == OPT_SIM) {
            o->daemon.sim = r->value;
        } else if (opt == OPT_MODELS) {
            o->models = r->value;
        } else if (opt == OPT_ON) {
            o->on = r->value;
        } else if (opt == OPT_CONFIG) {
            o->daemon.config = r->value;
        } else if (parse_int(r->value, 0, RETRIES_MAX, &o->oom_retries, &e) < 0) {
            r->status = cli_usage("--oom-retries: %s", e.text);
            return OPT_EXIT;
        }
    }
    return opt;
}

/* The daemon's name for the file: its folder with links resolved, and its own name, which may
 * be a link, because that is what people regard as the same file. */
static char *
absolute_path(const char *shown)
{
    auto_free char *for_dir = xstrdup(shown);
    auto_free char *for_name = xstrdup(shown);
    auto_free char *folder = realpath(dirname(for_dir), NULL);

    if (!folder)
        return xstrdup(shown);
    return xasprintf("%s/%s", strcmp(folder, "/") == 0 ? "" : folder, basename(for_name));
}

static char *
safe_name(const char *name)
{
    auto_buf struct buf out = BUF_INIT;

    text_add_safe(&out, name, strlen(name), 0);
    return xstrdup(buf_str(&out));
}

static int
load_models(struct run *run)
{
    struct err e = {0};

    if (!run->opt.models)
        return 0;
    run->models = modeltable_read(run->opt.models, &e);
    return run->models ? 0 : cli_fail(&e);
}

static int
load_files(struct run *run, char **names, int n)
{
    struct err e = {0};
    int status = 0;

    run->n_files = n;
    run->files = xcalloc((unsigned long)n, sizeof *run->files);
    for (int i = 0; i < n; i++) {
        struct run_file *f = &run->files[i];

        f->shown = names[i];
        f->is_stdin = strcmp(names[i], "-") == 0;
        f->words = safe_name(f->is_stdin ? "standard input" : names[i]);
        /* Each standard input is a separate file, never shared. */
        f->path = f->is_stdin ? xasprintf("/dev/stdin/%ld-%lld", (long)getpid(),
                                          (long long)clock_wall_us())
                              : absolute_path(names[i]);
        f->models = run->models;
        f->on = run->opt.on;
        f->pack = run->opt.pack;
        if (run_file_load(f, true, &e) < 0)
            status = cli_fail(&e);
    }
    return status;
}

bool
run_line_is_on_slurm(const struct jobsfile_line *line)
{
    return line->req.demand.engine == ENGINE_SLURM;
}

static bool
takes_gpu(const struct jobsfile_line *line)
{
    return line->req.demand.gpus > 0 && !run_line_is_on_slurm(line);
}

size_t
run_count_lines(const struct run *run, bool (*is)(const struct jobsfile_line *))
{
    size_t n = 0;

    for (int i = 0; i < run->n_files; i++) {
        for (size_t k = 0; k < run->files[i].parsed.n_lines; k++)
            n += !is || is(&run->files[i].parsed.lines[k]);
    }
    return n;
}

/* An empty file is valid with --fresh, which forgets the daemon's state of its lines. */
static int
check_pack(const struct run *run)
{
    if (!run->opt.pack || run_count_lines(run, run_line_is_on_slurm) > 0 ||
        run_count_lines(run, NULL) == 0)
        return 0;
    return cli_usage("--pack is for jobs on Slurm: add --on slurm, or on=slurm to lines");
}

static int
check_empty(const struct run *run)
{
    if (run->opt.watch || run->opt.fresh || run_count_lines(run, NULL) > 0)
        return 0;
    return cli_usage("%s has no commands; write one per line, or use --watch to wait for them",
                     run->files[0].words);
}

/* Reconnects after the i-th lost answer, restarting a daemon that died. */
static int
come_back(struct run *run, int i, struct err *e)
{
    if (e->code != ERR_UNREACHABLE || i == TRIES)
        return -1;
    run->client = connect_back(run->cli, &run->opt.daemon, run->client, e);
    if (!run->client)
        return -1;
    client_listen(run->client, run_on_notify, NULL, run);
    return 0;
}

/* Prints what will run on which GPUs; refuses jobs for GPUs if there are none. */
static int
greet(struct run *run)
{
    auto_json json_t *gpus = NULL;
    auto_buf struct buf line = BUF_INIT;
    struct err e = {0};
    size_t n = run_count_lines(run, NULL), there = run_count_lines(run, run_line_is_on_slurm);

    for (int i = 1; client_call(run->client, "gpus", NULL, &gpus, &e) < 0; i++)
        if (come_back(run, i, &e) < 0)
            return cli_fail(&e);
    if (json_array_size(json_object_get(gpus, "gpus")) == 0 &&
        run_count_lines(run, takes_gpu) > 0) {
        const char *why = answer_str(gpus, "probe_error");

        cli_say("no GPU for these jobs: %s", why[0] ? why : "this machine has none");
        cli_say("'berth doctor' checks the machine; --sim 2 simulates two GPUs; [gpus=0] "
                "requests none");
        return 1;
    }
    buf_addf(&line, "%zu job%s from %s", n, n == 1 ? "" : "s", run->files[0].words);
    if (run->n_files > 1)
        buf_addf(&line, " and %d more", run->n_files - 1);
    if (there > 0 && there == n)
        buf_adds(&line, "; on Slurm");
    else if (there > 0)
        buf_addf(&line, "; %zu on Slurm", there);
    if (there == 0 || there < n) {
        buf_adds(&line, "; ");
        gpu_table_add_summary(json_object_get(gpus, "gpus"), &line);
    }
    if (!run->opt.quiet)
        cli_say("%s", buf_str(&line));
    return 0;
}

/* Repeats the sync with a new daemon, which continues named files where the previous one
 * stopped. */
static int
sync_first(struct run *run, struct run_file *f, struct err *e)
{
    for (int i = 1; run_file_sync(run, f, run->opt.fresh, e) < 0; i++)
        if (come_back(run, i, e) < 0)
            return -1;
    return 0;
}

static int
sync_files(struct run *run)
{
    struct err e = {0};
    int64_t widest = 1;

    run->first_sync = true;
    for (int i = 0; i < run->n_files; i++) {
        if (sync_first(run, &run->files[i], &e) < 0)
            return cli_fail(&e);
    }
    run->first_sync = false;
    for (size_t i = 0; i < run->jobs.n; i++)
        widest = run->jobs.all[i].id > widest ? run->jobs.all[i].id : widest;
    for (run->id_width = 1; widest >= 10; widest /= 10)
        run->id_width++;
    return 0;
}

static int
detach(struct run *run)
{
    auto_buf struct buf out = BUF_INIT;
    struct run_counts c;

    run_jobs_count(&run->jobs, &c);
    buf_addf(&out, "%zu job%s queued", c.total - c.done - c.running,
             c.total - c.done - c.running == 1 ? "" : "s");
    if (c.running)
        buf_addf(&out, ", %zu running", c.running);
    if (c.done)
        buf_addf(&out, ", %zu ended", c.done);
    buf_adds(&out, ". To follow: ");
    run_add_way_back(run, &out);
    buf_addc(&out, '\n');
    int status = cli_put(&out);
    return c.infeasible ? err_exit_status(ERR_REFUSED) : status;
}

static int
attach(struct run *run)
{
    struct err e = {0};

    if (run_show_running(run, &e) < 0 || run_subscribe(run, &e) < 0 ||
        run_reconcile(run, &e) < 0) {
        if (e.code != ERR_UNREACHABLE)
            return cli_fail(&e);
    } else {
        run_say_before(run);
    }
    run->progress = (struct progress){
        .on = run->term.tty, .columns = run->term.columns, .begun_us = clock_boot_us()};
    return run_follow(run, &e);
}

static int
begin(struct run *run)
{
    struct err e = {0};
    int status;

    run->cwd = jobreq_current_folder(&e);
    if (!run->cwd)
        return cli_fail(&e);
    env_say_unsendable(NULL);
    run->client = sim_match_connect(run->cli, &run->opt.daemon, &e);
    if (!run->client)
        return cli_fail(&e);
    client_listen(run->client, run_on_notify, NULL, run);
    status = greet(run);
    if (status != 0)
        return status;
    if (run->opt.dry_run)
        return run_plan(run);
    /* Before the sync, so that no later edit is missed. */
    run->watch = watch_new();
    for (int i = 0; i < run->n_files; i++) {
        if (!run->files[i].is_stdin)
            watch_file(run->watch, i, run->files[i].shown);
    }
    status = sync_files(run);
    if (status != 0)
        return status;
    return run->opt.detach ? detach(run) : attach(run);
}

static void
release(struct run *run)
{
    for (int i = 0; i < run->n_files; i++)
        run_file_free(&run->files[i]);
    free(run->files);
    models_free(run->models);
    free(run->cwd);
    client_free(run->client);
    run_jobs_free(&run->jobs);
    watch_free(run->watch);
    json_decref(run->queue);
    buf_free(&run->out);
}

int
cmd_run(struct cli *cli, int argc, char **argv)
{
    struct run run = {.cli = cli, .term = term_of_stdout(), .argv = argv, .argc = argc};
    struct opt_reader r;
    int status;

    opt_begin(&r, cli, &page, argc, argv);
    if (read_options(&r, &run.opt) == OPT_EXIT)
        return r.status;
    if (cli->json && !run.opt.dry_run)
        return cli_usage("'berth run' has JSON output only with --dry-run; to follow its jobs: "
                         "'berth run --detach' and 'berth events -f'");
    if (r.n_words == 0)
        return cli_usage("run which file? For example: berth run jobs.txt");
    run.queue = json_array();
    status = load_models(&run);
    if (status == 0)
        status = load_files(&run, r.words, r.n_words);
    if (status == 0)
        status = check_empty(&run);
    if (status == 0)
        status = check_pack(&run);
    if (status == 0)
        status = begin(&run);
    release(&run);
    return status;
}
