/* Measuring on a node: see measure.h. Uses the probe as the daemon does on its own machine. A
 * process counts for the attempt whose supervisor it descends from. Processes on one GPU add
 * up; of several GPUs the fullest counts, because VRAM is declared per GPU. Called by
 * stand_in.c and allocation.c. */
#include "shepherd/slurm/measure.h"

#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "sys/procs.h"
#include "sys/self.h"
#include "sys/spawn.h"

#define SAMPLE_US (2 * INT64_C(1000000))
#define READ_SIZE 16384
#define DEPTH_MAX (1 << 22) /* upper bound on the kernel's number of processes */

static bool
has_gpu(void)
{
    const char *cuda = getenv("CUDA_VISIBLE_DEVICES"), *amd = getenv("ROCR_VISIBLE_DEVICES");
    return (cuda && cuda[0]) || (amd && amd[0]);
}

static pid_t
start_probe(int theirs)
{
    enum spawn_stage stage = SPAWN_OK;
    struct spawn s = SPAWN_INIT;
    int errnum = 0;
    char backend[] = "--backend", automatic[] = "auto";
    auto_free char *program = self_sibling("berth-probe");
    char *argv[] = {program, backend, automatic, NULL};
    auto_close int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nothing < 0)
        return -1;
    s.argv = argv;
    s.envp = environ;
    s.fds[0] = s.fds[1] = theirs;
    s.fds[2] = nothing;
    s.n_fds = 3;
    s.new_session = true;
    s.death_signal = SIGKILL;
    return spawn_process(&s, &errnum, &stage);
}

void
measure_begin(struct measure *m)
{
    int pair[2];
    *m = (struct measure){.fd = -1};
    frame_init(&m->in, FRAME_MAX_PEER);
    if (!has_gpu() || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return;
    auto_close int theirs = pair[1];
    auto_close int ours = pair[0];
    pid_t pid = start_probe(theirs);
    if (pid < 0)
        return;
    m->probe = pid;
    m->fd = TAKE_FD(ours);
}

void
measure_end(struct measure *m)
{
    if (m->fd >= 0)
        close(TAKE_FD(m->fd)); /* the probe then exits */
    frame_free(&m->in);
}

void
measure_add(struct measure *m, struct measured *x, pid_t root)
{
    *x = (struct measured){.root = root, .peak_mib = -1, .next = m->list};
    m->list = x;
}

void
measure_drop(struct measure *m, const struct measured *x)
{
    for (struct measured **at = &m->list; *at; at = &(*at)->next)
        if (*at == x) {
            *at = x->next;
            return;
        }
}

/* --- the probe's answers --- */

/* The measured attempt from which the process descends; NULL: none. */
static struct measured *
owner_of(const struct measure *m, json_int_t pid)
{
    struct proc p;
    for (int depth = 0; pid > 1 && pid <= INT32_MAX && depth < DEPTH_MAX; depth++) {
        for (struct measured *x = m->list; x; x = x->next)
            if (x->root == pid)
                return x;
        if (proc_read((pid_t)pid, &p) < 0)
            return NULL;
        pid = p.ppid;
    }
    return NULL;
}

static void
take_gpu(const struct measure *m, const json_t *gpu)
{
    const json_t *proc;
    struct measured *x;
    size_t i;
    for (x = m->list; x; x = x->next)
        x->sum_mib = -1;
    json_array_foreach(json_object_get(gpu, "procs"), i, proc)
    {
        const json_t *mib = json_object_get(proc, "mib");
        x = json_is_integer(mib) ? owner_of(m, json_integer_value(json_object_get(proc, "pid")))
                                 : NULL;
        if (x)
            x->sum_mib = (x->sum_mib < 0 ? 0 : x->sum_mib) + json_integer_value(mib);
    }
    for (x = m->list; x; x = x->next)
        if (x->sum_mib > x->peak_mib && x->sum_mib <= INT32_MAX)
            x->peak_mib = (int32_t)x->sum_mib;
}

static void
take_hello(struct measure *m, const json_t *gpus)
{
    const json_t *gpu;
    size_t i;
    m->n_gpus = 0;
    json_array_foreach(gpus, i, gpu)
    {
        const char *uuid = json_string_value(json_object_get(gpu, "uuid"));
        json_int_t total = json_integer_value(json_object_get(gpu, "total_mib"));
        if (m->n_gpus == GPU_MAX)
            return;
        struct measured_gpu *g = &m->gpus[m->n_gpus++];
        *g = (struct measured_gpu){.used_mib = -1};
        snprintf(g->uuid, sizeof g->uuid, "%s", uuid ? uuid : "");
        g->total_mib = total > 0 && total <= VRAM_MAX_MIB ? (int32_t)total : 0;
    }
}

static void
take_first_use(struct measure *m, const json_t *gpus)
{
    const json_t *gpu;
    size_t i;
    json_array_foreach(gpus, i, gpu)
    {
        const char *uuid = json_string_value(json_object_get(gpu, "uuid"));
        const json_t *used = json_object_get(gpu, "used_mib");
        for (int k = 0; uuid && json_is_integer(used) && k < m->n_gpus; k++)
            if (strcmp(m->gpus[k].uuid, uuid) == 0)
                m->gpus[k].used_mib = json_integer_value(used);
    }
}

static void
take_line(struct measure *m, const char *line, size_t len)
{
    json_t *msg = json_loadb(line, len, 0, NULL);
    const json_t *gpus = json_object_get(msg, "gpus"), *gpu;
    size_t i;
    if (json_object_get(msg, "hello"))
        take_hello(m, gpus);
    if (json_object_get(msg, "sample")) {
        if (m->samples++ == 0)
            take_first_use(m, gpus);
        json_array_foreach(gpus, i, gpu) take_gpu(m, gpu);
    }
    json_decref(msg);
}

void
measure_read(struct measure *m)
{
    size_t at = 0, len = 0;
    const char *line;
    char *room = frame_room(&m->in, READ_SIZE);
    ssize_t n = room ? read(m->fd, room, READ_SIZE) : -1;
    if (n <= 0) {
        close(TAKE_FD(m->fd));
        return;
    }
    frame_filled(&m->in, (size_t)n);
    while ((line = frame_next(&m->in, &at, &len)))
        take_line(m, line, len);
    frame_done(&m->in, at);
}

int
measure_ask(struct measure *m)
{
    char words[40];
    int64_t now = clock_boot_us();
    if (m->fd < 0)
        return -1;
    if (now >= m->next_us) {
        int n = snprintf(words, sizeof words, "sample %lld\n", (long long)++m->seq);
        (void)send(m->fd, words, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
        m->next_us = now + SAMPLE_US;
    }
    return (int)((m->next_us - now) / 1000) + 1;
}
