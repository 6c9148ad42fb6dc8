/* `python3 -m gpusched.simjob`: gpusched's pretend GPU program, played on Berth's simulated
 * cards by `berth simjob`. Reads its options as the original does; what it prints when it is to
 * fail once is what the original prints.  */
#include "cli/simjob.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "cli/cli.h"
#include "cli/compat/compat.h"
#include "cli/compat/pyarg.h"

enum { ARG_HELP, ARG_VRAM, ARG_RAMP, ARG_HOLD, ARG_EXIT_CODE, ARG_OOM_ONCE, ARGS };

static const struct pyarg args[] = {
    [ARG_HELP] = PYARG_HELP_ROW,
    [ARG_VRAM] = {"--vram", NULL, PYARG_INT, NULL, "peak fake VRAM per GPU (MiB)", NULL, false},
    [ARG_RAMP] = {"--ramp", NULL, PYARG_FLOAT, NULL, "seconds to ramp 0 -> peak", NULL, false},
    [ARG_HOLD] = {"--hold", NULL, PYARG_FLOAT, NULL, "seconds to hold at peak", NULL, false},
    [ARG_EXIT_CODE] = {"--exit-code", NULL, PYARG_INT, NULL, NULL, NULL, false},
    [ARG_OOM_ONCE] = {"--oom-once", NULL, PYARG_STR, "MARKER",
                      "fail with a CUDA OOM message unless MARKER file exists (created on the "
                      "failing run)",
                      NULL, false},
    [ARGS] = {0},
};

/* 1: the marker is new, so this run fails; 0: it was there; -1. */
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

int
compat_simjob(int argc, char **argv)
{
    static const struct pyarg_parser parser = {.prog = "simjob.py", .args = args};
    struct pyarg_value v[ARGS];
    char *with[10] = {argv[0]};
    int status, n = 1;

    if (pyarg_read(&parser, argc, argv, v, NULL, &status) == PYARG_EXIT)
        return status;
    if (!v[ARG_VRAM].text)
        return pyarg_error(&parser, "the following arguments are required: --vram");
    if (v[ARG_OOM_ONCE].text && (status = fail_once(v[ARG_OOM_ONCE].text)) != 0)
        return status;
    for (int i = ARG_VRAM; i <= ARG_EXIT_CODE; i++) {
        if (!v[i].text)
            continue;
        with[n++] = (char *)args[i].name;
        with[n++] = (char *)v[i].text;
    }
    return cmd_simjob(n, with);
}
