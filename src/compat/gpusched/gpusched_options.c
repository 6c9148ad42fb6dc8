/* gpusched's options, parsed as by argparse. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "compat/compat.h"
#include "compat/gpusched/gpusched.h"
#include "compat/py/pyarg.h"
#include "compat/py/pytext.h"

static const struct pyarg args[] = {
    PYARG_HELP_ROW,
    {"--gpus", PYARG_STR, PYARG_INTO(struct gs_options, gpus),
     .help = "comma-separated GPU indices to use (default: all visible)", .metavar = "0,1,3"},
    {"--idle-threshold", PYARG_INT, PYARG_INTO(struct gs_options, idle_mib),
     .help = "GPU counts as idle below this usage, for undeclared jobs (default: 200)",
     .metavar = "MIB", .standard = "200"},
    {"--margin", PYARG_INT, PYARG_INTO(struct gs_options, margin_mib),
     .help = "safety margin added to every vram declaration (default: 512)", .metavar = "MIB",
     .standard = "512"},
    {"--tolerance", PYARG_FLOAT, PYARG_INTO(struct gs_options, tolerance),
     .help = "relative band before flagging over/under-declaration (default: "
             "0.10)",
     .metavar = "FRAC", .standard = "0.10"},
    {"--poll", PYARG_FLOAT, PYARG_INTO(struct gs_options, poll_s),
     .help = "seconds between two looks at running jobs (default: 5); starts and ends "
             "do not wait for them",
     .metavar = "SEC", .standard = "5"},
    {"--spike-buffer", PYARG_FLOAT, PYARG_INTO(struct gs_options, spike_buffer),
     .help = "headroom over the observed VRAM maxima of fluctuating processes "
             "(default: 0.10)",
     .metavar = "FRAC", .standard = "0.10"},
    {"--exclusive", PYARG_FLAG, PYARG_INTO(struct gs_options, exclusive),
     .help = "one scheduled job per GPU, even if declarations fit"},
    {"--log-dir", PYARG_STR, PYARG_INTO(struct gs_options, log_dir),
     .help = "logs of the jobs, journal and status board (default: gpusched_logs)",
     .standard = "gpusched_logs"},
    {"--watch", PYARG_FLAG, PYARG_INTO(struct gs_options, watch),
     .help = "stay after the queue drains, for lines to come"},
    {"--oom-retries", PYARG_INT, PYARG_INTO(struct gs_options, oom_retries),
     .help = "CUDA-OOM auto-retries of jobs that say fewer (default: 0)", .metavar = "N",
     .standard = "0"},
    {"--fresh", PYARG_FLAG, PYARG_INTO(struct gs_options, fresh),
     .help = "remove the journal first: re-run everything"},
    {"--verbose", PYARG_FLAG, PYARG_INTO(struct gs_options, verbose),
     .help = "say live per-job VRAM usage as peaks grow", .letter = "-v"},
    {"--sim", PYARG_INT, PYARG_INTO(struct gs_options, sim),
     .help = "run on N simulated 24 GB GPUs; pair with 'python -m gpusched.simjob'",
     .metavar = "N_GPUS"},
    {"--version", PYARG_VERSION, .help = "show program's version number and exit",
     .metavar = "gpusched " GS_VERSION},
    {"jobs_file", PYARG_STR, PYARG_INTO(struct gs_options, jobs_path),
     .help = "file with one shell command per line"},
    {0},
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
read_gpus(struct gs_options *o)
{
    auto_free char *copy = xstrdup(o->gpus);
    char *rest = copy, *piece;

    while ((piece = strsep(&rest, ","))) {
        int64_t index;

        if (!py_int(piece, &index))
            return compat_fail(1, "gpusched",
                               "--gpus: '%s' is no list of GPU indices; write 0,1,3", o->gpus);
        if (index >= 0 && index < GPU_MAX)
            o->devices |= UINT64_C(1) << index;
    }
    o->gpus_said = true;
    return 0;
}

static int
check_options(struct gs_options *o)
{
    o->log_dir = o->log_dir[0] ? o->log_dir : ".";
    if (o->margin_mib < 0 || o->margin_mib > VRAM_MAX_MIB || o->idle_mib > VRAM_MAX_MIB)
        return compat_fail(2, "gpusched",
                           "--margin and --idle-threshold are MiB of a GPU, from 0 to %d",
                           VRAM_MAX_MIB);
    if (!(o->poll_s >= 0) || o->poll_s > 1e6)
        return compat_fail(2, "gpusched", "--poll is a number of seconds");
    if (isnan(o->tolerance) || isnan(o->spike_buffer))
        return compat_fail(2, "gpusched",
                           "--tolerance and --spike-buffer are fractions, as 0.10");
    if (o->sim.text && (o->sim.i < 1 || o->sim.i > GPU_MAX))
        return compat_fail(2, "gpusched", "--sim simulates 1 to %d GPUs", GPU_MAX);
    return o->gpus && o->gpus[0] ? read_gpus(o) : 0;
}

int
gs_read_options(struct gs_options *o, int argc, char **argv)
{
    int status;

    if (pyarg_read(&parser, argc, argv, o, &status) == PYARG_EXIT)
        return status;
    status = check_options(o);
    return status == 0 ? -1 : status;
}
