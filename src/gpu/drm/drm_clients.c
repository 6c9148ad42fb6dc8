/* Processes on the DRM backend's GPUs, from the kernel's information about their open files of
 * /dev/dri. A descriptor that was duplicated, inherited or passed to another process is still
 * one client: it counts once, for the first process found with it. See drm.h. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/parse.h"
#include "gpu/drm/drm.h"

#define FDINFO_MAX_BYTES 65536

/* Limits, because any user may have a million files open in each process. Programs open their
 * GPUs early, so those descriptors have low numbers, which readdir returns first; and a sample
 * that takes longer than LONGEST_US is useless. */
#define FILES_MAX  8192
#define LONGEST_US INT64_C(1000000)

/* Load of one class of engines, in permille of its capacity. */
struct load {
    char name[FDINFO_NAME_MAX];
    uint64_t permille;
};

struct loads {
    bool blind; /* a client does not report its load */
    int n;
    struct load list[FDINFO_ENGINES_MAX];
};

/* One sampling. */
struct walk {
    struct drm *drm;
    int64_t now_us;
    bool all;      /* every process was readable */
    bool too_long; /* the time limit was reached before all were read */
    struct loads loads[GPU_MAX];
    int64_t kib[GPU_MAX]; /* of the current process; -1: no client on that GPU */
    bool silent[GPU_MAX]; /* one of its clients does not report memory */
    struct backend_sample *out;
};

static int
card_of(const struct drm *drm, const struct fdinfo *info)
{
    for (int i = 0; i < drm->n; i++) {
        if (strcmp(drm->cards[i].bus_id, info->bus_id) == 0)
            return i;
    }
    return -1;
}

static struct drm_client *
client_of(struct drm *drm, int card, uint64_t id)
{
    const struct drm_client_key key = {.id = id, .card = (uint64_t)card};
    struct drm_client *c;

    /* The analyzer does not see that all bytes of the key are set:
     * NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult) */
    HASH_FIND(hh, drm->clients, &key, sizeof key, c);
    if (c)
        return c;
    c = xcalloc(1, sizeof *c);
    c->key = key;
    HASH_ADD(hh, drm->clients, key, sizeof c->key, c);
    return c;
}

static void
add_load(struct loads *loads, const char *name, uint64_t permille)
{
    for (int i = 0; i < loads->n; i++) {
        if (strcmp(loads->list[i].name, name) == 0) {
            loads->list[i].permille += permille;
            return;
        }
    }
    if (loads->n == FDINFO_ENGINES_MAX)
        return;
    struct load *l = &loads->list[loads->n++];
    memcpy(l->name, name, sizeof l->name);
    l->permille = permille;
}

/* Adds the client's work since the last sample, relative to the engines' own clock if they
 * have one. Counters that went backwards are ignored. */
static void
add_client_load(const struct walk *walk, const struct drm_client *before,
                const struct fdinfo *now, struct loads *loads)
{
    uint64_t passed_ns = (uint64_t)(walk->now_us - walk->drm->sampled_us) * 1000;

    for (int i = 0; i < now->n_engines; i++) {
        const struct fdinfo_engine *e = &now->engines[i], *old = NULL;
        for (int j = 0; j < before->n_engines && !old; j++) {
            if (strcmp(before->engines[j].name, e->name) == 0)
                old = &before->engines[j];
        }
        if (!old || e->busy < old->busy || e->total < old->total)
            continue;
        uint64_t of = e->total > 0 ? e->total - old->total : passed_ns;
        double part = of > 0 ? (double)(e->busy - old->busy) / (double)of / e->capacity : 0;
        part = part > 1 ? 1 : part; /* in case the counters are inconsistent */
        add_load(loads, e->name, (uint64_t)(part * 1000));
    }
}

static void
take_client(struct walk *walk, const struct fdinfo *info)
{
    struct drm *drm = walk->drm;
    int card = card_of(drm, info);

    if (card < 0 || !info->has_client)
        return;
    struct drm_client *c = client_of(drm, card, info->client);
    if (c->seen == drm->samplings)
        return;
    if (c->seen > 0)
        add_client_load(walk, c, info, &walk->loads[card]);
    if (info->n_engines == 0)
        walk->loads[card].blind = true;
    c->seen = drm->samplings;
    c->n_engines = info->n_engines;
    memcpy(c->engines, info->engines, sizeof c->engines);
    if (walk->kib[card] < 0)
        walk->kib[card] = 0;
    if (info->vram_kib < 0)
        walk->silent[card] = true;
    else
        walk->kib[card] += info->vram_kib;
}

/* True for descriptors of /dev/dri; only for these fdinfo is read. */
static bool
is_drm_file(int fds, const char *name)
{
    static const char folder[] = "/dev/dri/";
    char target[sizeof folder];

    return readlinkat(fds, name, target, sizeof target) >= (ssize_t)sizeof folder - 1 &&
           memcmp(target, folder, sizeof folder - 1) == 0;
}

static void
take_files(struct walk *walk, DIR *fds, const char *process)
{
    auto_buf struct buf text = BUF_INIT;
    const struct dirent *entry;
    struct fdinfo info;

    for (int n = 0; n < FILES_MAX && (entry = readdir(fds)); n++) {
        if (!is_drm_file(dirfd(fds), entry->d_name))
            continue;
        auto_free char *path = xasprintf("%s/fdinfo/%s", process, entry->d_name);
        if (file_read(path, FDINFO_MAX_BYTES, &text, NULL) == 0 &&
            fdinfo_parse(buf_str(&text), &info) == 0)
            take_client(walk, &info);
    }
}

/* A process that has a GPU open but uses no memory there does not count as a user of it: a
 * desktop's programs open every GPU. */
static void
take_process(struct walk *walk, const char *process, int32_t pid)
{
    auto_free char *path = xasprintf("%s/fd", process);
    auto_dir DIR *fds = opendir(path);

    if (!fds) {
        walk->all = walk->all && errno != EACCES && errno != EPERM;
        return;
    }
    for (int i = 0; i < walk->drm->n; i++) {
        walk->kib[i] = -1;
        walk->silent[i] = false;
    }
    take_files(walk, fds, process);
    for (int i = 0; i < walk->drm->n; i++) {
        if (walk->silent[i])
            backend_usage_add(&walk->out->use[i], pid, -1);
        else if (walk->kib[i] > 0)
            backend_usage_add(&walk->out->use[i], pid, (walk->kib[i] + 1023) / 1024);
    }
}

void
drm_clients_forget(struct drm *drm, uint64_t before)
{
    struct drm_client *c, *next;

    HASH_ITER(hh, drm->clients, c, next)
    {
        if (c->seen >= before)
            continue;
        HASH_DEL(drm->clients, c);
        free(c);
    }
}

/* Sets the load to that of the busiest class, as drivers' own figures do. Needs two
 * samples. */
static void
put_load(const struct walk *walk, const struct loads *loads, struct backend_usage *u)
{
    uint64_t most = 0;

    if ((u->valid & CARD_HAS_UTIL) || walk->drm->sampled_us == 0 || !walk->all || loads->blind)
        return;
    for (int i = 0; i < loads->n; i++)
        most = loads->list[i].permille > most ? loads->list[i].permille : most;
    u->util = most >= 1000 ? 100 : (int32_t)((most + 5) / 10);
    u->valid |= CARD_HAS_UTIL;
}

/* For Intel's drivers, which report no memory use: the sum over the processes, if all were
 * readable. AMD's drivers report it, and these sums would lack what KFD runs. */
static void
put_sums(const struct walk *walk, int card)
{
    struct backend_usage *u = &walk->out->use[card];
    int64_t sum = 0;

    if (walk->too_long)
        return;
    u->valid |= CARD_HAS_PROCS;
    if (walk->drm->cards[card].driver == DRM_AMDGPU)
        return;
    put_load(walk, &walk->loads[card], u);
    for (int i = 0; i < u->n_procs; i++) {
        if (u->procs[i].mib < 0)
            return;
        sum += u->procs[i].mib;
    }
    if (!walk->all)
        return;
    u->used_mib = sum;
    u->valid |= CARD_HAS_USED;
}

void
drm_clients_add(struct drm *drm, struct backend_sample *out)
{
    auto_free char *root = xstrdup(drm_proc_root(drm));
    auto_dir DIR *d = opendir(root);
    auto_free struct walk *walk = xcalloc(1, sizeof *walk);
    const struct dirent *entry;
    int64_t pid;

    walk->drm = drm;
    walk->now_us = clock_boot_us();
    walk->all = true;
    walk->out = out;
    drm->samplings++;
    if (!d)
        return;
    while (!walk->too_long && (entry = readdir(d))) {
        if (parse_int(entry->d_name, 1, INT32_MAX, &pid, NULL) < 0)
            continue;
        auto_free char *process = xasprintf("%s/%s", root, entry->d_name);
        take_process(walk, process, (int32_t)pid);
        walk->too_long = clock_boot_us() - walk->now_us > LONGEST_US;
    }
    for (int i = 0; i < drm->n; i++) {
        if (out->use[i].present)
            put_sums(walk, i);
    }
    drm_clients_forget(drm, drm->samplings);
    drm->sampled_us = walk->now_us;
}
