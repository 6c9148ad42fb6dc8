/* gpusched's options, as argparse reads them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "compat/compat.h"
#include "compat/gpusched/gpusched.h"
#include "compat/py/pyarg.h"
#include "compat/py/pytext.h"

enum {
    ARG_HELP,
    ARG_GPUS,
    ARG_IDLE,
    ARG_MARGIN,
    ARG_TOLERANCE,
    ARG_POLL,
    ARG_SPIKE,
    ARG_EXCLUSIVE,
    ARG_LOG_DIR,
    ARG_WATCH,
    ARG_OOM,
    ARG_FRESH,
    ARG_VERBOSE,
    ARG_SIM,
    ARG_VERSION,
    ARG_FILE,
    ARGS
};

static const struct pyarg args[] = {
    [ARG_HELP] = PYARG_HELP_ROW,
    [ARG_GPUS] = {"--gpus", PYARG_STR,
                  .help = "comma-separated GPU indices to use (default: all visible)",
                  .metavar = "0,1,3"},
    [ARG_IDLE] = {"--idle-threshold", PYARG_INT,
                  .help =
                      "GPU counts as idle below this usage, for undeclared jobs (default: 200)",
                  .metavar = "MIB", .standard = "200"},
    [ARG_MARGIN] = {"--margin", PYARG_INT,
                    .help = "safety margin added to every vram declaration (default: 512)",
                    .metavar = "MIB", .standard = "512"},
    [ARG_TOLERANCE] = {"--tolerance", PYARG_FLOAT,
                       .help = "relative band before flagging over/under-declaration (default: "
                               "0.10)",
                       .metavar = "FRAC", .standard = "0.10"},
    [ARG_POLL] = {"--poll", PYARG_FLOAT,
                  .help =
                      "seconds between two looks at running jobs (default: 5); starts and ends "
                      "do not wait for them",
                  .metavar = "SEC", .standard = "5"},
    [ARG_SPIKE] = {"--spike-buffer", PYARG_FLOAT,
                   .help = "headroom over the observed VRAM maxima of fluctuating processes "
                           "(default: 0.10)",
                   .metavar = "FRAC", .standard = "0.10"},
    [ARG_EXCLUSIVE] = {"--exclusive", PYARG_FLAG,
                       .help = "one scheduled job per GPU, even if declarations fit"},
    [ARG_LOG_DIR] = {"--log-dir", PYARG_STR,
                     .help =
                         "logs of the jobs, journal and status board (default: gpusched_logs)",
                     .standard = "gpusched_logs"},
    [ARG_WATCH] = {"--watch", PYARG_FLAG,
                   .help = "stay after the queue drains, for lines to come"},
    [ARG_OOM] = {"--oom-retries", PYARG_INT,
                 .help = "CUDA-OOM auto-retries of jobs that say fewer (default: 0)",
                 .metavar = "N", .standard = "0"},
    [ARG_FRESH] = {"--fresh", PYARG_FLAG,
                   .help = "remove the journal first: re-run everything"},
    [ARG_VERBOSE] = {"--verbose", PYARG_FLAG,
                     .help = "say live per-job VRAM usage as peaks grow", .letter = "-v"},
    [ARG_SIM] = {"--sim", PYARG_INT,
                 .help = "run on N simulated 24 GB GPUs; pair with 'python -m gpusched.simjob'",
                 .metavar = "N_GPUS"},
    [ARG_VERSION] = {"--version", PYARG_VERSION,
                     .help = "show program's version number and exit",
                     .metavar = "gpusched " GS_VERSION},
    [ARG_FILE] = {"jobs_file", PYARG_STR, .help = "file with one shell command per line"},
    [ARGS] = {0},
};

static const struct pyarg_parser parser = {
    .prog = "gpusched",
    .about = "VRAM-aware GPU job scheduler, served by Berth. One shell command per line; "
             "'[vram=18G] python train.py' declares the most VRAM that a job needs, '[vram=30G "
             "gpus=2] torchrun ...' several GPUs. Declared jobs share GPUs with room for them, "
             "others get an idle GPU.",
    .args = args,
};

/* --- options --- */

static int
read_gpus(const char *text, struct gs_options *o)
{
    auto_free char *copy = xstrdup(text);
    char *rest = copy, *piece;

    while ((piece = strsep(&rest, ","))) {
        int64_t index;

        if (!py_int(piece, &index))
            return compat_fail(1, "gpusched",
                               "--gpus: '%s' is no list of GPU indices; write 0,1,3", text);
        if (index >= 0 && index < GPU_MAX)
            o->devices |= UINT64_C(1) << index;
    }
    o->gpus_said = true;
    return 0;
}

static int
take_options(const struct pyarg_value *v, struct gs_options *o)
{
    *o = (struct gs_options){
        .jobs_path = v[ARG_FILE].text,
        .log_dir = v[ARG_LOG_DIR].text[0] ? v[ARG_LOG_DIR].text : ".",
        .idle_mib = v[ARG_IDLE].i,
        .margin_mib = v[ARG_MARGIN].i,
        .oom_retries = v[ARG_OOM].i,
        .tolerance = v[ARG_TOLERANCE].f,
        .poll_s = v[ARG_POLL].f,
        .spike_buffer = v[ARG_SPIKE].f,
        .exclusive = v[ARG_EXCLUSIVE].text,
        .watch = v[ARG_WATCH].text,
        .fresh = v[ARG_FRESH].text,
        .verbose = v[ARG_VERBOSE].text,
        .simulated = v[ARG_SIM].text,
        .sim = v[ARG_SIM].i,
    };
    if (o->margin_mib < 0 || o->margin_mib > VRAM_MAX_MIB || o->idle_mib > VRAM_MAX_MIB)
        return compat_fail(2, "gpusched",
                           "--margin and --idle-threshold are MiB of a GPU, from 0 to %d",
                           VRAM_MAX_MIB);
    if (!(o->poll_s >= 0) || o->poll_s > 1e6)
        return compat_fail(2, "gpusched", "--poll is a number of seconds");
    if (isnan(o->tolerance) || isnan(o->spike_buffer))
        return compat_fail(2, "gpusched",
                           "--tolerance and --spike-buffer are fractions, as 0.10");
    if (o->simulated && (o->sim < 1 || o->sim > GPU_MAX))
        return compat_fail(2, "gpusched", "--sim simulates 1 to %d GPUs", GPU_MAX);
    return v[ARG_GPUS].text && v[ARG_GPUS].text[0] ? read_gpus(v[ARG_GPUS].text, o) : 0;
}

int
gs_read_options(struct gs_options *o, int argc, char **argv)
{
    struct pyarg_value v[ARGS];
    int status;

    if (pyarg_read(&parser, argc, argv, v, NULL, &status) == PYARG_EXIT)
        return status;
    status = take_options(v, o);
    return status == 0 ? -1 : status;
}
