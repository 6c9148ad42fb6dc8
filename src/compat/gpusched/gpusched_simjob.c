/* `python3 -m gpusched.simjob`: gpusched's simulated GPU program, run on Berth's simulated
 * GPUs by `berth simjob`. Options are read as by the original, and --oom-once prints the
 * original's message. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "cli/common/cli.h"
#include "cli/simulate/simjob_verb.h"
#include "compat/compat.h"
#include "compat/gpusched/gpusched.h"
#include "compat/py/pyarg.h"
#include "compat/py/pytext.h"

#define SECONDS_MAX 1e7

struct simjob {
    struct pyarg_value vram;
    double ramp, hold;
    int64_t exit_code;
    const char *oom_once;
};

static const struct pyarg args[] = {
    PYARG_HELP_ROW,
    {"--vram", PYARG_INT, PYARG_INTO(struct simjob, vram),
     .help = "peak fake VRAM per GPU (MiB)"},
    {"--ramp", PYARG_FLOAT, PYARG_INTO(struct simjob, ramp),
     .help = "seconds to ramp 0 -> peak", .standard = "0.5"},
    {"--hold", PYARG_FLOAT, PYARG_INTO(struct simjob, hold), .help = "seconds to hold at peak",
     .standard = "1"},
    {"--exit-code", PYARG_INT, PYARG_INTO(struct simjob, exit_code), .standard = "0"},
    {"--oom-once", PYARG_STR, PYARG_INTO(struct simjob, oom_once),
     .help = "fail with a CUDA OOM message unless MARKER file exists (created on the "
             "failing run)",
     .metavar = "MARKER"},
    {0},
};

/* 1: the marker was created, so this run fails; 0: it existed; -1 with e. */
static int
make_marker(const char *path, struct err *e)
{
    auto_free char *copy = xstrdup(path);
    auto_close int fd = -1;

    if (access(path, F_OK) == 0)
        return 0;
    if (file_mkdirs(dirname(copy), 0777, e) < 0)
        return -1;
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot make the marker %s", path);
    return 1;
}

static int
fail_once(const char *marker)
{
    static const char words[] =
        "RuntimeError: CUDA out of memory. Tried to allocate 2.50 GiB\n";
    struct err e = {0};
    int rc = make_marker(marker, &e);

    if (rc < 0)
        return cli_fail(&e);
    if (rc > 0)
        (void)cli_write(words, sizeof words - 1);
    return rc;
}

static double
seconds(double s)
{
    return s > 0 ? s < SECONDS_MAX ? s : SECONDS_MAX : 0; /* NaN: 0 */
}

/* Without simulated GPUs, as when run by hand, only take the time. */
static int
play_without_cards(double s, int code)
{
    struct timespec left = {.tv_sec = (time_t)s, .tv_nsec = (long)((s - floor(s)) * 1e9)};

    while (nanosleep(&left, &left) < 0 && errno == EINTR)
        continue;
    return code;
}

int
compat_simjob(int argc, char **argv)
{
    static const struct pyarg_parser parser = {.prog = "simjob.py", .args = args};
    struct simjob j = {0};
    char vram[24], ramp[32], hold[32], code[8];
    char *with[] = {argv[0],  "--vram", vram,          "--ramp", ramp,
                    "--hold", hold,     "--exit-code", code,     NULL};
    int status;

    if (pyarg_read(&parser, argc, argv, &j, &status) == PYARG_EXIT)
        return status;
    if (!j.vram.text)
        return pyarg_error(&parser, "the following arguments are required: --vram");
    if (j.oom_once && (status = fail_once(j.oom_once)) != 0)
        return status;
    status = (int)(j.exit_code & 255);
    if (!getenv("BERTH_SIM_DIR") || j.vram.i <= 0)
        return play_without_cards(seconds(j.ramp) + seconds(j.hold), status);
    snprintf(vram, sizeof vram, "%lld", (long long)j.vram.i);
    snprintf(ramp, sizeof ramp, "%.6f", seconds(j.ramp));
    snprintf(hold, sizeof hold, "%.6f", seconds(j.hold));
    snprintf(code, sizeof code, "%d", status);
    return cmd_simjob((int)(sizeof with / sizeof with[0]) - 1, with);
}

/* --- as a module --- */

/* A Python package named gpusched for jobs of a simulated run; its one module runs `berth
 * compat gpusched.simjob`. It is first in PYTHONPATH, so that lines written for the original
 * work unchanged, whether or not the original is installed. */
static int
put(int dir, const char *name, const struct buf *text, struct err *e)
{
    return file_write_atomic_at(dir, name, text->data, text->len, 0644, false, e);
}

static int
write_package(const char *package, struct err *e)
{
    auto_free char *self = realpath("/proc/self/exe", NULL);
    auto_buf struct buf init = BUF_INIT, module = BUF_INIT;
    auto_close int dir = -1;

    if (!self)
        return err_errno(e, ERR_FAILED, errno, "cannot tell where this program lies");
    if (file_mkdirs(package, 0777, e) < 0)
        return -1;
    dir = open(package, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot open %s", package);
    buf_addf(&init, "__version__ = \"%s\"\n", GS_VERSION);
    buf_adds(&module, "# Written by berth: the pretend GPU program on its simulated cards.\n"
                      "import os\nimport sys\n\n\ndef main():\n    os.execv(");
    py_add_repr(&module, self);
    buf_adds(&module, ", [\"gpusched.simjob\"] + sys.argv[1:])\n\n\n"
                      "if __name__ == \"__main__\":\n    main()\n");
    return put(dir, "__init__.py", &init, e) || put(dir, "simjob.py", &module, e) < 0 ? -1 : 0;
}

int
gs_offer_module(const char *dir, struct err *e)
{
    auto_free char *package = xasprintf("%s/gpusched", dir);
    const char *old = getenv("PYTHONPATH");
    auto_free char *path = xasprintf("%s%s%s", dir, old && old[0] ? ":" : "", old ? old : "");

    if (write_package(package, e) < 0)
        return -1;
    setenv("PYTHONPATH", path, 1);
    return 0;
}
