/* See job_mps.h. Called by launch.c and by the files that prepare what it launches, and by
 * samples.c, so that an MPS server's memory does not count as a foreign process's. Where the
 * driver attributes its clients' memory to the server, leaving that out makes memory without a
 * known user, which is charged to the GPU's jobs (core/ledger/ledger_vram.c).
 *
 * A job in a container is not a client: its programs do not find the control daemon. */
#include "daemon/attempt/job_mps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "core/ledger/ledger.h"
#include "core/queue/job.h"
#include "daemon/attempt/attempts.h"
#include "daemon/attempt/env_block.h"
#include "daemon/attempt/job_confines.h"
#include "daemon/common/instance.h"
#include "daemon/nursery/nursery_link.h"
#include "sys/confine.h"
#include "sys/mps_place.h"
#include "sys/nursery_packets.h"

#define PROGRAM "nvidia-cuda-mps-control"
#define LOOK_US INT64_C(10000000)

int
mps_card_of(const struct instance *inst, const struct job *job)
{
    const struct attempt *run = job->run;
    if (!run || job->req.container)
        return -1;
    return ledger_mps_card(inst->ledger, &job->req.demand, run->gpus, run->n_gpus);
}

static char *
folder_of(const struct instance *inst, int card)
{
    return xasprintf("%s/%s", inst->places.mps, ledger_card(inst->ledger, card)->info.uuid);
}

static int64_t
user_of(const struct instance *inst, const struct job *job)
{
    return inst->places.system ? job->uid : getuid();
}

void
mps_put(const struct instance *inst, const struct job *job, struct buf *out)
{
    int card = mps_card_of(inst, job);
    if (card < 0)
        return;
    auto_free char *folder = folder_of(inst, card);
    auto_free char *own = xasprintf("%s/%lld", folder, (long long)user_of(inst, job));
    auto_free char *pipe = xasprintf("%s/pipe", own), *log = xasprintf("%s/log", own);
    int32_t mib = ledger_mps_mib(inst->ledger, &job->req.demand, card);
    int32_t share = job->req.demand.share_permille;
    envblock_put(out, "CUDA_MPS_PIPE_DIRECTORY", pipe);
    envblock_put(out, "CUDA_MPS_LOG_DIRECTORY", log);
    if (mib > 0) {
        char limit[24];
        snprintf(limit, sizeof limit, "0=%dM", mib); /* device 0: the job's only GPU */
        envblock_put(out, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", limit);
    }
    if (share > 0)
        envblock_put_int(out, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", (share + 9) / 10);
}

bool
mps_is_stale(const struct instance *inst, const struct buf *theirs, const char *var)
{
    static const char PIPE[] = "CUDA_MPS_PIPE_DIRECTORY=", ALL[] = "CUDA_MPS_";
    size_t n = strlen(inst->places.mps);
    if (strncmp(var, ALL, sizeof ALL - 1) != 0)
        return false;
    for (const char *p = theirs->data; p < theirs->data + theirs->len; p += strlen(p) + 1)
        if (strncmp(p, PIPE, sizeof PIPE - 1) == 0 &&
            strncmp(p + sizeof PIPE - 1, inst->places.mps, n) == 0)
            return true;
    return false;
}

void
mps_write(const struct instance *inst, const struct job *job, struct jsonw *w)
{
    int card = mps_card_of(inst, job);
    if (card < 0)
        return;
    auto_free char *folder = folder_of(inst, card);
    jsonw_kobject(w, "mps");
    jsonw_kstr(w, "dir", folder);
    jsonw_kint(w, "uid", user_of(inst, job));
    jsonw_kint(w, "since_us", clock_boot_us());
    jsonw_end_object(w);
}

static const char *
named_program(void)
{
    const char *named = getenv("BERTH_MPS_CONTROL");
    return named && named[0] ? named : NULL;
}

/* A control daemon to be kept: for which user, on which GPU. */
struct wanted {
    int card;
    int64_t uid;
    const char *user; /* account name; NULL: unknown */
    bool mend;        /* only clean up after a killed keeper */
};

static void
write_order(const struct attempts *a, const struct wanted *want, const char *folder,
            struct jsonw *w)
{
    const char *named = named_program();
    const char *uuid = ledger_card(a->inst->ledger, want->card)->info.uuid;
    const char *base = nursery_place(a->nursery)->base;
    jsonw_object(w);
    jsonw_kstr(w, "uuid", uuid);
    jsonw_kstr(w, "program", named ? named : PROGRAM);
    jsonw_kstr(w, "dir", folder);
    jsonw_kint(w, "uid", want->uid);
    jsonw_kbool(w, "mend", want->mend);
    if (a->inst->places.system) {
        jsonw_kbool(w, "become", true);
        jsonw_kstr(w, "user", want->user);
        confines_write_account(a->inst, w);
    }
    if (base) {
        auto_free char *group = xasprintf("%s/mps-%s.%lld", base, uuid, (long long)want->uid);
        jsonw_kstr(w, "cgroup", group);
    }
    jsonw_kint(w, "max_processes", a->inst->config.job_max_processes);
    jsonw_end_object(w);
}

static int
make_folder(const struct instance *inst, const char *folder, struct err *e)
{
    mode_t old = umask(inst->places.system ? 022 : 077);
    int rc = file_mkdirs(folder, inst->places.system ? 0711 : 0700, e);
    umask(old);
    return rc;
}

static int
ask_for(struct attempts *a, const struct wanted *want, struct err *e)
{
    auto_buf struct buf text = BUF_INIT;
    struct jsonw w;
    auto_free char *folder = folder_of(a->inst, want->card);
    if (make_folder(a->inst, folder, e) < 0)
        return -1;
    auto_close int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    jsonw_init(&w, &text);
    write_order(a, want, folder, &w);
    auto_close int order = file_in_memory("berth-mps", text.data, text.len);
    if (dir < 0 || order < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot ask for MPS in %s", folder);
    return nursery_call(a->nursery, NURSERY_MPS, order, dir, e);
}

int
mps_begin(struct attempts *a, const struct job *job, struct err *e)
{
    const struct wanted want = {
        .card = mps_card_of(a->inst, job), .uid = user_of(a->inst, job), .user = job->user};
    return ask_for(a, &want, e);
}

static int
open_keeper(const struct instance *inst, int card)
{
    auto_free char *folder = folder_of(inst, card);
    auto_free char *name = xasprintf("%s/" MPS_KEEPER, folder);
    return open(name, O_RDONLY | O_CLOEXEC);
}

bool
mps_said(const struct instance *inst, int card, struct mps_state *out)
{
    auto_close int fd = open_keeper(inst, card);
    return fd >= 0 && mps_state_read(fd, out);
}

static bool
is_executable(const char *program)
{
    static const char PATH[] = MPS_PATH;
    if (strchr(program, '/'))
        return access(program, X_OK) == 0;
    for (const char *at = PATH; *at; at += *at == ':') {
        size_t n = strcspn(at, ":");
        auto_free char *path = xasprintf("%.*s/%s", (int)n, at, program);
        if (access(path, X_OK) == 0)
            return true;
        at += n;
    }
    return false;
}

/* On simulated GPUs, MPS is available only with a program named for it. */
void
mps_look(struct attempts *a)
{
    const char *named = named_program(), *program = named ? named : PROGRAM;
    char why[120] = "";
    a->mps_looked_us = clock_boot_us();
    if (!ledger_mps(a->inst->ledger))
        return;
    if (!named && ledger_sets(a->inst->ledger)->vendors[GPU_VENDOR_NVIDIA] == 0)
        snprintf(why, sizeof why, "there is no GPU of NVIDIA's");
    else if (!is_executable(program))
        snprintf(why, sizeof why, "there is no %s", program);
    ledger_set_mps_missing(a->inst->ledger, why);
}

/* True if the last keeper was killed: its lock is free, but its state says that it had
 * not finished. */
static bool
has_left(const struct instance *inst, int card, struct mps_state *said)
{
    auto_close int fd = open_keeper(inst, card);
    return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) == 0 && mps_state_read(fd, said) &&
           said->left;
}

static void
mend(struct attempts *a)
{
    for (int card = 0; card < ledger_n_cards(a->inst->ledger); card++) {
        struct mps_state said;
        struct err e = {0};
        if (!has_left(a->inst, card, &said))
            continue;
        const struct wanted want = {.card = card, .uid = said.left_uid, .mend = true};
        auto_close int keeper = ask_for(a, &want, &e);
        if (keeper < 0)
            log_warn("gpu=%d event=mps-left %s", card, e.text);
        else
            log_info("gpu=%d event=mps-left uid=%lld", card, (long long)said.left_uid);
    }
}

void
mps_look_at_times(struct attempts *a)
{
    if (a->mps_looked_us && clock_boot_us() - a->mps_looked_us <= LOOK_US)
        return;
    mps_look(a);
    if (a->inst->ready && !a->inst->leaving)
        mend(a);
}
