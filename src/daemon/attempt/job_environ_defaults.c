/* Defaults for frameworks: the rendezvous of torch.distributed, and how much of a shared GPU
 * JAX and TensorFlow take. They are a convenience, so variables exported by the user always
 * win. A job that submits another passes on its environment, including these values, which
 * would be wrong there. So BERTH_DEFAULTS lists what Berth set ("K=V K=V"; no value contains a
 * space), to tell it from what a user set. Called by job_environ.c. */
#include "daemon/attempt/job_environ_defaults.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "core/ledger/ledger.h"
#include "core/queue/job.h"
#include "daemon/attempt/env_block.h"
#include "daemon/common/instance.h"

#define LIST "BERTH_DEFAULTS"

struct defaults {
    const struct buf *theirs;
    struct buf *out;
    struct buf list; /* what was set */
};

bool
environ_was_default(const struct buf *theirs, const char *var)
{
    const char *list = envblock_find(theirs, LIST);
    size_t n = strlen(var);
    for (const char *at = list; at && (at = strstr(at, var)) != NULL; at++)
        if ((at == list || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0'))
            return true;
    return false;
}

static bool
is_theirs(const struct buf *theirs, const char *name)
{
    const char *value = envblock_find(theirs, name);
    return value && !environ_was_default(theirs, value - strlen(name) - 1);
}

static void
put_default(struct defaults *x, const char *name, const char *value)
{
    if (is_theirs(x->theirs, name))
        return;
    envblock_put(x->out, name, value);
    buf_addf(&x->list, "%s%s=%s", x->list.len ? " " : "", name, value);
}

/* A port on which nothing listens now; the ports tried differ from job to job. */
static int
free_port(uint32_t job)
{
    for (int i = 0; i < 64; i++) {
        int port = 20000 + (int)((job * 64 + (uint32_t)i) % 12000);
        auto_close int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        struct sockaddr_in a = {.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        if (fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof a) == 0)
            return port;
    }
    return 29500;
}

/* Sets both or none, because torch.distributed reads both: a mix of the user's and ours would
 * lead nowhere. */
static void
put_meeting_point(struct defaults *x, uint32_t job)
{
    char port[16];
    if (is_theirs(x->theirs, "MASTER_ADDR") || is_theirs(x->theirs, "MASTER_PORT"))
        return;
    snprintf(port, sizeof port, "%d", free_port(job));
    put_default(x, "MASTER_ADDR", "127.0.0.1");
    put_default(x, "MASTER_PORT", port);
}

/* The fraction of its GPU's memory that the job may fill; 0: all, or unknown. A share without
 * a VRAM demand means the same fraction of memory. Under a cap by NVIDIA's driver, a program
 * sees the cap as the GPU's size. */
static double
part_of_memory(const struct instance *inst, const struct job *job)
{
    const struct attempt *run = job->run;
    const struct gpu_info *info = &ledger_card(inst->ledger, run->gpus[0])->info;
    int64_t total = info->total_mib;
    if (run->cap_mib > 0 && info->cap != GPU_CAP_DMEM)
        return (double)demand_vram_mib(&job->req.demand, total) / run->cap_mib;
    if (run->vram_mib > 0 && total > 0)
        return (double)run->vram_mib / (double)total;
    return run->vram_mib ? 0 : job->req.demand.share_permille / 1000.0;
}

static void
put_memory(struct defaults *x, const struct instance *inst, const struct job *job)
{
    char text[32];
    double part = part_of_memory(inst, job);
    if (part > 0) {
        snprintf(text, sizeof text, "%.3f", part);
        put_default(x, "XLA_PYTHON_CLIENT_MEM_FRACTION", text);
    }
    put_default(x, "TF_FORCE_GPU_ALLOW_GROWTH", "true");
}

void
environ_add_defaults(const struct instance *inst, const struct job *job,
                     const struct buf *theirs, struct buf *out)
{
    const char *list = envblock_find(theirs, LIST);
    struct defaults x = {.theirs = theirs, .out = out, .list = BUF_INIT};
    if (list && strcmp(list, "off") == 0)
        return; /* stays off for the jobs that this one submits */
    if (job->run->n_gpus >= 2)
        put_meeting_point(&x, job->id);
    if (job->run->n_gpus > 0 && !demand_is_whole(&job->req.demand))
        put_memory(&x, inst, job);
    envblock_put(out, LIST, buf_str(&x.list));
    buf_free(&x.list);
}
