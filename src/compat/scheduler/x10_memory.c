/* Enforces scheduler_10x's memory limit from within the job (sched_job.c) by polling the
 * memory of the processes below it. Berth's `mem` would reserve memory, so that jobs wait for
 * it; this is only a limit. Pages that processes share (after a fork, or of data loaders)
 * should count once. The kernel's cheap figures count them per process, so the exact figures
 * are read only when the cheap sum is above the limit. */
#include "compat/scheduler/x10_memory.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "sys/procs.h"

#define EVERY_US    1000000
#define COST_PART   20 /* at most 1/20 of the time goes into polling */
#define KIB_PER_MIB 1024
#define FILE_MAX    65536

void
memory_watch_begin(struct memory_watch *w, int64_t limit_mib)
{
    *w = (struct memory_watch){.limit_mib = limit_mib};
    if (limit_mib <= 0)
        return;
    /* Become subreaper, so that orphans stay below us and count. */
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    w->due_us = clock_boot_us() + EVERY_US;
}

/* Sum of two named values in a /proc file of the process; -1: neither is there. */
static int64_t
read_kib(pid_t pid, const char *file, const char *const names[2])
{
    auto_free char *path = xasprintf("/proc/%d/%s", (int)pid, file);
    auto_buf struct buf text = BUF_INIT;
    int64_t sum = -1;

    if (file_read(path, FILE_MAX, &text, NULL) < 0)
        return -1;
    for (int i = 0; i < 2; i++) {
        const char *at = strstr(buf_str(&text), names[i]);

        if (at)
            sum = (sum < 0 ? 0 : sum) + strtoll(at + strlen(names[i]), NULL, 10);
    }
    return sum;
}

static int64_t
resident_kib(pid_t pid)
{
    int64_t kib = read_kib(pid, "status", (const char *const[]){"\nRssAnon:", "\nRssShmem:"});

    return kib > 0 ? kib : 0;
}

/* Proportional share of shared pages. Falls back to the resident size on old kernels, or if
 * not readable. */
static int64_t
part_kib(pid_t pid)
{
    int64_t kib =
        read_kib(pid, "smaps_rollup", (const char *const[]){"\nPss_Anon:", "\nPss_Shmem:"});

    return kib >= 0 ? kib : resident_kib(pid);
}

static int64_t
sum_kib(const struct procs *ps, int64_t (*kib_of)(pid_t pid))
{
    int64_t sum = 0;

    for (size_t i = 0; i < ps->n; i++)
        sum += kib_of(ps->v[i].pid);
    return sum;
}

static bool
is_over(const struct procs *ps, int64_t limit_kib)
{
    return sum_kib(ps, resident_kib) > limit_kib && sum_kib(ps, part_kib) > limit_kib;
}

void
memory_watch_look(struct memory_watch *w)
{
    auto_procs struct procs ps = PROCS_INIT;
    int64_t now = clock_boot_us(), cost;

    if (w->limit_mib <= 0 || now < w->due_us)
        return;
    if (procs_read_descendants(getpid(), &ps) == 0 &&
        is_over(&ps, w->limit_mib * KIB_PER_MIB)) {
        w->is_over = true;
        for (size_t i = 0; i < ps.n; i++)
            (void)proc_signal(&ps.v[i], SIGKILL);
    }
    cost = (clock_boot_us() - now) * COST_PART;
    w->due_us = clock_boot_us() + (cost > EVERY_US ? cost : EVERY_US);
}

int
memory_watch_wait_ms(const struct memory_watch *w)
{
    int64_t left = w->due_us - clock_boot_us();

    if (w->limit_mib <= 0)
        return -1;
    return left > 0 ? (int)((left + 999) / 1000) : 0;
}
