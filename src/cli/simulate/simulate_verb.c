/* `berth simulate`: runs a workload through the scheduler in virtual time, under one or
 * several policies. It uses no daemon. src/sim and src/core simulate; this file turns options
 * into a machine and a workload. */
#include "cli/simulate/simulate_verb.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/text.h"
#include "cli/common/cli.h"
#include "cli/common/opt.h"
#include "cli/simulate/compare.h"
#include "gpu/sim_spec.h"
#include "sim/schedule_output.h"

#define AGING_MS  (INT64_C(24) * 3600 * 1000) /* the daemon's default of aging_s */
#define SCALE_MAX 1e6
#define DRAWS_MAX 100000
#define SEED_MAX  (INT64_C(1) << 31)

enum {
    OPT_GPUS,
    OPT_POLICY,
    OPT_COMPARE,
    OPT_DRAWS,
    OPT_SEED,
    OPT_ONE_USER,
    OPT_BATCH,
    OPT_SCALE,
    OPT_MARGIN,
    OPT_AGING,
    OPT_RESERVATIONS,
    OPT_HORIZON,
    OPT_DURATION,
    OPT_HISTORY,
    OPT_FORMAT,
    OPT_DUMP,
    OPT_SVG,
};

static const struct opt options[] = {
    {"gpus", 0, "SPEC", "the machine: 8x24G (the default), 2x24G,1x80G"},
    {"policy", 0, "P,...", "policies (balanced; --compare: the daemon's); 'all', 'list'"},
    {"compare", 0, NULL, "compare policies over one file or several"},
    {"draws", 0, "N", "with --compare: over N random workloads like each file"},
    {"seed", 0, "S", "seed of the first of these, the next is S + 1 (1)"},
    {"one-user", 0, NULL, "ignore who submitted the jobs"},
    {"batch", 0, NULL, "all jobs arrive at the start"},
    {"scale", 0, "X", "arrivals X times as far apart; 0.5 doubles the load"},
    {"margin", 0, "M", "VRAM kept free on a shared GPU (512)"},
    {"aging", 0, "T", "waiting adds one to the priority each T (1d); 0: never"},
    {"reservations", 0, "N", "starts promised at a time (1; short: 0)"},
    {"reservation-horizon", 0, "T",
     "how far ahead a start is promised (1h; 0: any time, as balanced)"},
    {"duration", 0, "T", "run time of jobs-file lines without a time limit"},
    {"history", 0, NULL, "take run times of jobs-file lines from the daemon's history"},
    {"format", 0, "F", "csv, swf or jobs (default: by the file's name)"},
    {"dump", 0, "FILE", "write the schedule: job_id,start,end,g0;g1;..."},
    {"svg", 0, "FILE", "draw the schedule; with --compare: the policies' waits"},
    {NULL, 0, NULL, NULL},
};

static const struct page page = {
    .usage = "berth simulate FILE... [options]",
    .about =
        "Run a workload in virtual time and print how long jobs wait. FILE is a CSV (columns\n"
        "arrival_s, duration_s, est_s, gpus, vram_mib, user), a log in the Standard Workload\n"
        "Format (*.swf), or a jobs file.",
    .options = options,
};

/* Options. */

static int
unknown_policy(const char *name, struct err *e)
{
    const char *names[POLICIES_MAX + 1] = {NULL};
    struct engine p;
    for (size_t i = 0; i < POLICIES_MAX && engine_at(i, &p); i++)
        names[i] = p.name;
    const char *near = text_nearest(name, names);
    return err_set(e, ERR_USAGE, "unknown policy '%.40s'%s%s%s; '--policy list' lists all",
                   name, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static int
add_policy(struct simulation *sim, const struct engine *p, struct err *e)
{
    if (sim->n_policies == POLICIES_MAX)
        return err_set(e, ERR_USAGE, "more than %d policies", POLICIES_MAX);
    sim->policies[sim->n_policies++] = *p;
    return 0;
}

static int
read_policies(const char *text, struct simulation *sim, struct err *e)
{
    auto_free char *copy = xstrdup(text);
    char *next = copy, *name;
    sim->n_policies = 0;
    while ((name = strsep(&next, ","))) {
        struct engine p;
        if (strcmp(name, "all") == 0) {
            for (size_t i = 0; engine_at(i, &p); i++) {
                if (add_policy(sim, &p, e) < 0)
                    return -1;
            }
        } else if (!engine_find(name, &p)) {
            return unknown_policy(name, e);
        } else if (add_policy(sim, &p, e) < 0) {
            return -1;
        }
    }
    return 0;
}

static int
read_format(const char *text, enum format *out, struct err *e)
{
    static const char *const names[] = {"csv", "swf", "jobs"};
    for (int i = 0; i < FORMAT_NONE; i++) {
        if (strcmp(text, names[i]) == 0) {
            *out = (enum format)i;
            return 0;
        }
    }
    return err_set(e, ERR_USAGE, "'%.40s' is not a format; write csv, swf or jobs", text);
}

static int
read_margin(const char *text, int32_t *out, struct err *e)
{
    int64_t mib = 0;
    if (strcmp(text, "0") != 0 && parse_size_mib(text, &mib, e) < 0)
        return -1;
    if (mib > VRAM_MAX_MIB)
        return err_set(e, ERR_USAGE, "'%.40s' is more than a GPU can have", text);
    *out = (int32_t)mib;
    return 0;
}

static int
read_duration(const char *text, int64_t *out_s, struct err *e)
{
    int64_t ms;
    if (parse_duration_ms(text, 1000, &ms, e) < 0)
        return -1;
    *out_s = (ms + 999) / 1000;
    return 0;
}

static int
read_span(const char *text, int64_t *out_ms, struct err *e)
{
    *out_ms = 0;
    return strcmp(text, "0") == 0 ? 0 : parse_duration_ms(text, 1000, out_ms, e);
}

static int
read_option(int opt, const char *value, struct simulation *sim, struct err *e)
{
    switch (opt) {
    case OPT_GPUS:
        sim->gpus = value;
        return 0;
    case OPT_POLICY:
        return read_policies(value, sim, e);
    case OPT_COMPARE:
        sim->compare = true;
        return 0;
    case OPT_DRAWS:
        return parse_int(value, 1, DRAWS_MAX, &sim->draws, e);
    case OPT_SEED:
        return parse_int(value, 1, SEED_MAX, &sim->seed, e);
    case OPT_ONE_USER:
        sim->one_user = true;
        return 0;
    case OPT_BATCH:
        sim->batch = true;
        return 0;
    case OPT_SCALE:
        return parse_double(value, 0, SCALE_MAX, &sim->scale, e);
    case OPT_MARGIN:
        return read_margin(value, &sim->machine.margin_mib, e);
    case OPT_AGING:
        return read_span(value, &sim->aging_ms, e);
    case OPT_RESERVATIONS:
        return parse_int(value, 0, PROMISES_MAX, &sim->reservations, e);
    case OPT_HORIZON:
        return read_span(value, &sim->horizon_ms, e);
    case OPT_DURATION:
        return read_duration(value, &sim->duration_s, e);
    case OPT_HISTORY:
        sim->history = true;
        return 0;
    case OPT_FORMAT:
        return read_format(value, &sim->format, e);
    case OPT_DUMP:
        sim->dump = value;
        return 0;
    case OPT_SVG:
        sim->svg = value;
        return 0;
    default:
        err_abort("option %d has no reader", opt);
    }
}

static int
set_machine(struct simulation *sim, struct err *e)
{
    struct sim_spec spec;
    if (sim_spec_parse(sim->gpus, &spec, e) < 0)
        return err_prefix(e, "--gpus");
    for (int i = 0; i < spec.n; i++)
        if (spec.profile[i])
            return err_set(e, ERR_USAGE, "--gpus: MIG instances (+mig) are not simulated here");
    sim->machine.n = spec.n;
    memcpy(sim->machine.total_mib, spec.total_mib, sizeof spec.total_mib);
    return 0;
}

/* Results. */

int
simulate_write_file(const char *path, const struct buf *b, struct err *e)
{
    auto_fclose FILE *f = fopen(path, "we");
    if (!f)
        return err_errno(e, ERR_FAILED, errno, "cannot write %s", path);
    bool is_written = fwrite(buf_str(b), 1, b->len, f) == b->len && fflush(f) == 0;
    return is_written ? 0 : err_errno(e, ERR_FAILED, errno, "cannot write %s", path);
}

static int
write_files(const struct simulation *sim, const struct engine *p, const struct schedule *s,
            struct err *e)
{
    auto_buf struct buf out = BUF_INIT;
    if (sim->dump) {
        dump_schedule(&sim->workload, s, &out);
        if (simulate_write_file(sim->dump, &out, e) < 0)
            return -1;
    }
    if (!sim->svg)
        return 0;
    const char *slash = strrchr(sim->file, '/');
    auto_free char *title = xasprintf("%s on %s: %s (%s)", slash ? slash + 1 : sim->file,
                                      sim->gpus, p->name, p->help);
    buf_clear(&out);
    if (svg_schedule(&sim->workload, &sim->machine, s, title, &out, e) < 0)
        return -1;
    return simulate_write_file(sim->svg, &out, e);
}

int32_t
simulate_reservations(const struct simulation *sim, const struct engine *p)
{
    return sim->reservations < 0 ? p->reservations : (int32_t)sim->reservations;
}

int64_t
simulate_horizon_ms(const struct simulation *sim, const struct engine *p)
{
    return sim->horizon_ms < 0 ? p->horizon_ms : sim->horizon_ms;
}

static int
run_policy(const struct simulation *sim, const struct engine *p, struct trial *out,
           struct err *e)
{
    auto_schedule struct schedule s = {0};
    int64_t began_us = clock_boot_us();
    struct engine engine = *p;
    engine.aging_ms = sim->aging_ms;
    engine.reservations = simulate_reservations(sim, p);
    engine.horizon_ms = simulate_horizon_ms(sim, p);
    engine_run(&engine, &sim->workload, &sim->machine, &s);
    out->policy = p;
    out->elapsed_us = clock_boot_us() - began_us;
    out->events = s.events;
    metrics_compute(&sim->workload, &sim->machine, &s, &out->metrics);
    return write_files(sim, p, &s, e);
}

static int
list_policies(void)
{
    auto_buf struct buf out = BUF_INIT;
    struct engine p;
    for (size_t i = 0; engine_at(i, &p); i++)
        buf_addf(&out, "%-12s %s\n", p.name, p.help);
    return cli_put(&out);
}

static int
simulate(const struct cli *cli, struct simulation *sim)
{
    struct trial trials[POLICIES_MAX];
    struct err e;
    if (set_machine(sim, &e) < 0 || simulate_read(cli, sim, &e) < 0)
        return cli_fail(&e);
    sim->bound = bound_makespan(&sim->workload, &sim->machine);
    for (int i = 0; i < sim->n_policies; i++) {
        if (run_policy(sim, &sim->policies[i], &trials[i], &e) < 0)
            return cli_fail(&e);
    }
    return cli->json ? simulate_print_json(sim, trials) : simulate_print_table(sim, trials);
}

/* Uses the policies of `text` if the user named none. */
static int
default_policies(struct simulation *sim, const char *text, struct err *e)
{
    return sim->n_policies > 0 ? 0 : read_policies(text, sim, e);
}

static int
compare(const struct cli *cli, struct simulation *sim, const struct opt_reader *r)
{
    struct err e;
    if (sim->dump)
        return cli_usage("simulate: --dump writes one schedule; omit --compare");
    if (r->n_words == 0)
        return cli_usage("simulate: name one FILE or several to compare policies on");
    if (set_machine(sim, &e) < 0 ||
        default_policies(sim, "queue,short,longest,balanced", &e) < 0)
        return cli_fail(&e);
    sim->seed += sim->seed == 0;
    return simulate_compare(cli, sim, r->words, r->n_words);
}

int
cmd_simulate(struct cli *cli, int argc, char **argv)
{
    struct simulation sim = {.gpus = "8x24G",
                             .aging_ms = AGING_MS,
                             .reservations = -1,
                             .horizon_ms = -1,
                             .format = FORMAT_NONE,
                             .scale = 1,
                             .machine = {.margin_mib = 512}};
    struct opt_reader r;
    struct err e;
    int opt;

    opt_begin(&r, cli, &page, argc, argv);
    while ((opt = opt_next(&r)) >= 0) {
        if (opt == OPT_POLICY && strcmp(r.value, "list") == 0)
            return list_policies();
        if (read_option(opt, r.value, &sim, &e) < 0)
            return cli_usage("simulate: --%s: %s", options[opt].name, e.text);
    }
    if (opt == OPT_EXIT)
        return r.status;
    if (sim.compare)
        return compare(cli, &sim, &r);
    if (sim.draws || sim.seed)
        return cli_usage("simulate: --%s belongs to --compare", sim.draws ? "draws" : "seed");
    if (r.n_words != 1)
        return cli_usage("simulate: name one FILE: a CSV, a *.swf or a jobs file");
    if (sim.n_policies > 1 && (sim.dump || sim.svg))
        return cli_usage(
            "simulate: --dump and --svg show one policy; select one with --policy");
    if (default_policies(&sim, "balanced", &e) < 0)
        return cli_fail(&e);
    sim.file = r.words[0];
    int status = simulate(cli, &sim);
    workload_free(&sim.workload);
    return status;
}
