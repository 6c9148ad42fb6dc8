/* `berth simjob`: imitates a training program on simulated GPUs. It allocates memory step by
 * step, keeps it, and frees it; if a GPU is full, it prints PyTorch's error and exits with 1.
 * Between two changes it sleeps on a timer. It uses only the folder of simulated GPUs
 * (gpu/sim_table.h), so it runs with or without a daemon. */
#include "cli/simulate/simjob_verb.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/parse.h"
#include "cli/common/cli.h"
#include "cli/common/opt.h"
#include "gpu/sim_table.h"

#define STEP_US     50000
#define SPIKE_US    200000
#define SECONDS_MAX 1e7
#define NO_EVENT    INT64_MAX

enum {
    OPT_VRAM,
    OPT_RAMP,
    OPT_HOLD,
    OPT_UTIL,
    OPT_EXIT_CODE,
    OPT_OOM_ONCE,
    OPT_SPIKE,
    OPT_GPU,
};

static const struct opt options[] = {
    {"vram", 0, "M", "memory on each GPU: 8000 (MiB), 8G"},
    {"ramp", 0, "S", "seconds until it has grown to that (0.5)"},
    {"hold", 0, "S", "seconds to hold it (1)"},
    {"util", 0, "P", "load of the GPUs, in percent (90)"},
    {"exit-code", 0, "N", "exit code (0)"},
    {"oom-once", 0, "MARKER", "run out of memory once, and create this file"},
    {"spike", 0, "M@S", "use M more for 0.2 s, S seconds after the start"},
    {"gpu", 0, "N", "run on this GPU (or 0,2), not on the given ones"},
    {NULL, 0, NULL, NULL},
};

static const struct page page = {
    .usage = "berth simjob --vram M [options]",
    .about = "Simulate a GPU program on the GPUs of a daemon that was started with --sim.",
    .options = options,
    .notes = "Jobs use the GPUs they were given. To simulate a program that is not a job:\n"
             "BERTH_SIM_DIR=DIR/sim berth simjob --gpu N ...",
    .no_json = "it is a program to try jobs with",
};

/* The command line. */
struct simjob {
    int32_t vram_mib;
    int64_t ramp_us;
    int64_t hold_us;
    int32_t util;
    int exit_code;
    const char *marker; /* NULL: none */
    int32_t spike_mib;  /* 0: none */
    int64_t spike_us;
    const char *gpu; /* NULL: CUDA_VISIBLE_DEVICES */
    uint64_t cards;
    int first_card; /* the program's device 0 */
};

static int
read_mib(const char *text, int32_t *out, struct err *e)
{
    int64_t mib;

    if (parse_size_mib(text, &mib, e) < 0)
        return -1;
    if (mib > VRAM_MAX_MIB)
        return err_set(e, ERR_USAGE, "'%.40s' is more than the 16T a card can have", text);
    *out = (int32_t)mib;
    return 0;
}

static int
read_seconds(const char *text, int64_t *us, struct err *e)
{
    double seconds;

    if (parse_double(text, 0, SECONDS_MAX, &seconds, e) < 0)
        return -1;
    *us = (int64_t)(seconds * 1e6);
    return 0;
}

static int
read_int(const char *text, int64_t max, int *out, struct err *e)
{
    int64_t value;

    if (parse_int(text, 0, max, &value, e) < 0)
        return -1;
    *out = (int)value;
    return 0;
}

/* "4000@2.5" */
static int
read_spike(const char *text, struct simjob *job, struct err *e)
{
    const char *at = strchr(text, '@');

    if (!at)
        return err_set(e, ERR_USAGE, "'%.40s' is not a spike; write MEMORY@SECONDS, 4000@2",
                       text);
    auto_free char *mib = xstrndup(text, (size_t)(at - text));
    return read_mib(mib, &job->spike_mib, e) < 0 ? -1 : read_seconds(at + 1, &job->spike_us, e);
}

static int
read_option(int opt, const char *value, struct simjob *job, struct err *e)
{
    switch (opt) {
    case OPT_VRAM:
        return read_mib(value, &job->vram_mib, e);
    case OPT_RAMP:
        return read_seconds(value, &job->ramp_us, e);
    case OPT_HOLD:
        return read_seconds(value, &job->hold_us, e);
    case OPT_UTIL:
        return read_int(value, 100, &job->util, e);
    case OPT_EXIT_CODE:
        return read_int(value, 255, &job->exit_code, e);
    case OPT_OOM_ONCE:
        job->marker = value;
        return 0;
    case OPT_SPIKE:
        return read_spike(value, job, e);
    case OPT_GPU:
        job->gpu = value;
        return 0;
    default:
        err_abort("option %d has no reader", opt);
    }
}

/* The GPU that an entry of CUDA_VISIBLE_DEVICES names: an index, or a UUID or its prefix. -1:
 * none. */
static int
find_card(const struct sim_table *t, const char *entry)
{
    int n = sim_table_spec(t)->n, found = -1;
    int64_t index;
    char uuid[SIM_UUID_MAX];

    if (parse_int(entry, 0, n - 1, &index, NULL) == 0)
        return (int)index;
    for (int i = 0; i < n && entry[0]; i++) {
        sim_table_uuid(t, i, uuid);
        if (strcmp(uuid, entry) == 0)
            return i;
        if (strncmp(uuid, entry, strlen(entry)) == 0)
            found = found < 0 ? i : n;
    }
    return found < n ? found : -1;
}

/* If CUDA_VISIBLE_DEVICES is unset, a program sees every GPU and uses the first; otherwise it
 * uses those named. */
static int
choose_cards(struct simjob *job, const struct sim_table *t, struct err *e)
{
    const char *list = job->gpu ? job->gpu : getenv("CUDA_VISIBLE_DEVICES");
    auto_free char *copy = xstrdup(list ? list : "0");
    char *next = copy, *entry;

    if (!copy[0])
        return err_set(e, ERR_FAILED,
                       "CUDA_VISIBLE_DEVICES is empty: no CUDA-capable device is detected");
    job->first_card = -1;
    while ((entry = strsep(&next, ","))) {
        int card = find_card(t, entry);
        if (card < 0)
            return err_set(e, job->gpu ? ERR_USAGE : ERR_FAILED,
                           "%s: '%.40s' is not one of the %d simulated GPUs (%s)",
                           job->gpu ? "--gpu" : "CUDA_VISIBLE_DEVICES", entry,
                           sim_table_spec(t)->n, sim_table_spec_text(t));
        if (job->first_card < 0)
            job->first_card = card;
        job->cards |= UINT64_C(1) << card;
    }
    return 0;
}

static struct sim_table *
open_cards(struct err *e)
{
    const char *dir = getenv("BERTH_SIM_DIR");

    if (dir && dir[0])
        return sim_table_open(dir, e);
    err_set(e, ERR_FAILED,
            "simjob runs only on simulated GPUs, and BERTH_SIM_DIR is not set; run it as a job "
            "of a daemon with --sim, for example: berth run --sim 2 jobs.txt");
    return NULL;
}

/* Joins the group of the attempt that this process belongs to; none outside a job. */
static void
join_group(struct sim_table *t)
{
    const char *job = getenv("BERTH_JOB_ID"), *attempt = getenv("BERTH_ATTEMPT");

    if (!job || !attempt)
        return;
    auto_free char *group = xasprintf("job-%s.%s", job, attempt);
    sim_table_join(t, group);
}

/* Memory the program holds t after its start. */
static int32_t
memory_at(const struct simjob *job, int64_t t_us)
{
    int32_t mib = job->vram_mib;

    if (t_us < job->ramp_us) {
        int64_t step_us = t_us - t_us % STEP_US;
        mib = (int32_t)((double)step_us / (double)job->ramp_us * job->vram_mib);
    }
    if (job->spike_mib && t_us >= job->spike_us && t_us < job->spike_us + SPIKE_US)
        mib += job->spike_mib;
    return mib;
}

/* The next time after t at which that may change, or the end. */
static int64_t
next_change(const struct simjob *job, int64_t t_us)
{
    int64_t end_us = job->ramp_us + job->hold_us;
    int64_t times[] = {
        t_us < job->ramp_us ? (t_us / STEP_US + 1) * STEP_US : NO_EVENT,
        job->ramp_us,
        job->spike_mib ? job->spike_us : NO_EVENT,
        job->spike_mib ? job->spike_us + SPIKE_US : NO_EVENT,
    };

    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        if (times[i] > t_us && times[i] < end_us)
            end_us = times[i];
    }
    return end_us;
}

static void
sleep_until(int64_t boot_us)
{
    struct timespec when = {.tv_sec = boot_us / 1000000, .tv_nsec = boot_us % 1000000 * 1000};

    while (clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &when, NULL) == EINTR)
        ;
}

/* Prints the error that PyTorch users, and Berth, recognise. */
static int
out_of_memory(struct sim_table *t, int card, int32_t wanted_mib, int32_t free_mib)
{
    fprintf(stderr,
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate %d MiB. GPU %d has "
            "a total capacity of %d MiB of which %d MiB is free.\n",
            wanted_mib, card, sim_table_capacity_mib(t, card), free_mib);
    sim_table_leave(t, NULL);
    return 1;
}

/* Returns 0 to continue, else the exit status. */
static int
hold_memory(const struct simjob *job, struct sim_table *t, int32_t mib, int32_t had_mib)
{
    int full;
    int32_t free_mib;
    struct err e;

    int result = sim_table_take(t, job->cards, mib, job->util, &full, &free_mib, &e);
    if (result < 0)
        return cli_fail(&e);
    if (result > 0)
        return out_of_memory(t, full, mib - had_mib, free_mib - had_mib);
    return 0;
}

/* True if this call created the marker file, which succeeds only once. */
static bool
marker_is_new(const char *marker, struct err *e)
{
    auto_close int fd = open(marker, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

    if (fd < 0 && errno != EEXIST)
        err_errno(e, ERR_FAILED, errno, "cannot make the marker %s", marker);
    return fd >= 0;
}

static int
play(const struct simjob *job, struct sim_table *t)
{
    int64_t start_us = clock_boot_us(), end_us = job->ramp_us + job->hold_us, now_us = 0;
    struct err e = {.code = ERR_NONE};
    int32_t mib = -1;

    bool fails = job->marker && marker_is_new(job->marker, &e);
    if (e.code)
        return cli_fail(&e);
    for (;;) {
        int32_t wanted = memory_at(job, now_us);
        int status = wanted == mib ? 0 : hold_memory(job, t, wanted, mib < 0 ? 0 : mib);
        if (status)
            return status;
        mib = wanted;
        /* Fails as a program would: with its memory allocated, at the next batch. */
        if (fails && now_us >= job->ramp_us)
            return out_of_memory(t, job->first_card, mib, 0);
        if (now_us >= end_us)
            break;
        now_us = next_change(job, now_us);
        sleep_until(start_us + now_us);
    }
    return sim_table_leave(t, &e) < 0 ? cli_fail(&e) : job->exit_code;
}

static int
run_on_cards(struct simjob *job)
{
    struct err e;
    struct sim_table *t = open_cards(&e);

    if (!t)
        return cli_fail(&e);
    join_group(t);
    int status = choose_cards(job, t, &e) < 0 ? cli_fail(&e) : play(job, t);
    sim_table_close(t);
    return status;
}

int
cmd_simjob(int argc, char **argv)
{
    struct simjob job = {.ramp_us = 500000, .hold_us = 1000000, .util = 90};
    struct cli cli = {.dir = NULL};
    struct opt_reader r;
    struct err e;
    int opt;

    opt_begin(&r, &cli, &page, argc, argv);
    while ((opt = opt_next(&r)) >= 0) {
        if (read_option(opt, r.value, &job, &e) < 0)
            return cli_usage("simjob: --%s: %s", options[opt].name, e.text);
    }
    if (opt == OPT_EXIT)
        return r.status;
    if (r.n_words > 0)
        return cli_usage("simjob: unexpected argument '%s'", r.words[0]);
    if (job.vram_mib == 0)
        return cli_usage("simjob: --vram is missing; write --vram 8000 (MiB) or --vram 8G");
    return run_on_cards(&job);
}
