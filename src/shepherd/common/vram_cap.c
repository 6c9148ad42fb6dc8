/* VRAM caps: see vram_cap.h. attempt.c sets one before it starts the command; it is lifted
 * with the group (groups.c), at the end of the attempt or of its sweep. */
#include "shepherd/common/vram_cap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "sys/cgroup.h"
#include "sys/dmem.h"
#include "sys/self.h"
#include "sys/spawn.h"

#define PATIENCE_MS 10000 /* a driver that takes longer is hung */
#define MIB         (INT64_C(1) << 20)

void
vram_cap_read(const json_t *spec, struct cap_wish *out)
{
    const json_t *cap = json_object_get(spec, "cap");
    json_int_t mib = json_integer_value(json_object_get(cap, "mib"));
    *out = (struct cap_wish){.by = json_string_value(json_object_get(cap, "by")),
                             .gpus = json_string_value(json_object_get(cap, "gpus")),
                             .group = json_string_value(json_object_get(cap, "group")),
                             .sim_dir = json_string_value(json_object_get(cap, "sim_dir")),
                             .keys = json_object_get(cap, "keys")};
    if (out->group && (!out->by || out->gpus) && mib > 0 && mib <= INT32_MAX)
        out->mib = (int32_t)mib;
}

/* --- through the kernel --- */

static int
set_dmem(const struct cap_wish *wish, int group_fd, int64_t bytes, struct err *e)
{
    const json_t *key;
    size_t i;
    json_array_foreach(wish->keys, i, key)
    {
        if (dmem_set_max(group_fd, json_string_value(key), bytes) < 0)
            return err_errno(e, ERR_FAILED, errno, "the kernel does not limit %.60s",
                             json_string_value(key));
    }
    return 0;
}

/* --- through the probe --- */

static pid_t
start_probe(const struct cap_wish *wish, const char *mib, int out, struct err *e)
{
    auto_free char *program = self_sibling("berth-probe");
    char *argv[] = {program,
                    "--backend",
                    (char *)wish->by,
                    "--cap",
                    (char *)mib,
                    "--group",
                    (char *)wish->group,
                    "--gpus",
                    (char *)wish->gpus,
                    NULL,
                    NULL,
                    NULL};
    if (wish->sim_dir) {
        argv[9] = "--sim-dir";
        argv[10] = (char *)wish->sim_dir;
    }
    enum spawn_stage stage;
    int errnum = 0;
    struct spawn s = SPAWN_INIT;
    s.argv = argv;
    s.envp = environ;
    s.fds[0] = s.fds[2] = STDERR_FILENO;
    s.fds[1] = out;
    s.n_fds = 3;
    s.death_signal = SIGKILL;
    pid_t pid = spawn_process(&s, &errnum, &stage);
    if (pid < 0)
        err_errno(e, ERR_FAILED, errnum, "cannot start %s", program);
    return pid;
}

/* Reads its output until it ends. False: the deadline passed. */
static bool
hear(int fd, char *text, size_t size)
{
    int64_t until_us = clock_boot_us() + PATIENCE_MS * INT64_C(1000);
    size_t n = 0;
    text[0] = '\0';
    for (;;) {
        int64_t left_ms = (until_us - clock_boot_us()) / 1000;
        char rest[256];
        if (left_ms <= 0 || !file_await(fd, (int)left_ms))
            return false;
        bool is_full = n + 1 >= size;
        ssize_t got = is_full ? read(fd, rest, sizeof rest) : read(fd, text + n, size - 1 - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        if (!is_full)
            n += (size_t)got;
        text[n] = '\0';
    }
    text[strcspn(text, "\n")] = '\0';
    return true;
}

static int
ask_probe(const struct cap_wish *wish, const char *mib, struct err *e)
{
    char text[120];
    int ends[2], status = 0;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot make a pipe");
    auto_close int in = ends[0];
    auto_close int out = ends[1];
    pid_t pid = start_probe(wish, mib, out, e);
    close(TAKE_FD(out));
    if (pid < 0)
        return -1;
    if (!hear(in, text, sizeof text)) {
        kill(pid, SIGKILL); /* reaped later, when the driver lets it go */
        return err_set(e, ERR_FAILED, "the driver has not answered within %d s",
                       PATIENCE_MS / 1000);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    return err_set(e, ERR_FAILED, "%s", text[0] ? text : "berth-probe failed without a word");
}

int
vram_cap_set(const struct cap_wish *wish, int group_fd, struct err *e)
{
    char mib[16];
    if (!wish->sim_dir && group_fd < 0)
        return err_set(e, ERR_FAILED, "its cgroup could not be made");
    if (set_dmem(wish, group_fd, wish->mib * MIB, e) < 0)
        return -1; /* caps already set are lifted with the group */
    snprintf(mib, sizeof mib, "%d", wish->mib);
    return wish->by ? ask_probe(wish, mib, e) : 0;
}

static void
complain(const struct cap_wish *wish, const struct err *e)
{
    fprintf(stderr, "berth-shepherd: the limit on the VRAM of %s stays: %s\n", wish->group,
            e->text);
}

void
vram_cap_clear(const struct cap_wish *wish)
{
    auto_close int fd = json_array_size(wish->keys) > 0 ? cgroup_open(wish->group) : -1;
    struct err e;
    /* Lifts each kind even if the other fails. */
    if (fd >= 0 && set_dmem(wish, fd, -1, &e) < 0)
        complain(wish, &e);
    if (wish->by && ask_probe(wish, "none", &e) < 0)
        complain(wish, &e);
}
