/* A libnvidia-ml.so.1 that does what the file named by BERTH_FAKE_NVML says, read anew at
 * every call, so that a test can change the machine while the probe runs. Lines:
 *
 *   init STATUS                    nvmlInit's answer
 *   slow FILE                      nvmlInit answers only when nobody has a lock on FILE
 *   driver VERSION
 *   card UUID TOTAL RESERVED USED  (MiB), the next index; BUS is 16 + the index
 *   status INDEX STATUS            what every call about that card answers
 *   load INDEX UTIL CELSIUS        without it: not supported
 *   energy INDEX MILLIJOULES       without it: not supported
 *   watts INDEX W                  the same, W for as long as this machine has run
 *   mode INDEX MODE
 *   name INDEX NAME                without it: Fake GPU INDEX
 *   cc INDEX MAJOR MINOR           without it: not supported
 *   proc INDEX KIND PID MIB        KIND compute, graphics or mps; MIB -1: not reported
 *   crowd INDEX N                  N compute processes, pids from 100000, 1 MiB each
 *   long                           records of 32 bytes, as the driver wrote before 535.98
 *   noprocs INDEX                  process lists are not supported
 *   link INDEX LINK PEER           to the card PEER, or to a switch with PEER -1
 *   hang                           memory is never told
 *   stuck FILE                     the load is never told, and a process that asked for it and
 *                                  is killed ends only when nobody has a lock on FILE
 *   accounting INDEX MODE          0: off, but may be turned on; 2: off, and may not
 *   account INDEX PID MIB RUNNING  what it remembers of a process
 *   remapped INDEX PENDING FAILED  without it: not supported
 *   retired INDEX PENDING          the same, pages of older cards
 *   memory2 STATUS                 nvmlDeviceGetMemoryInfo_v2's answer
 *   memory INDEX STATUS            what both of its functions answer about that card
 *   mig INDEX MODE                 0: the GPU can be divided, 1: it is; without it: it cannot
 *   instance INDEX GI CI UUID PROFILE TOTAL RESERVED USED  (MiB) a part of that GPU. It is
 *                                  known to the lines above by the numbers from 8 on, in the
 *                                  order of these lines; PROFILE "1g.10gb", or "-": the driver
 *                                  does not name it; "2/3": the same, two slices of three
 *   limits FOLDER STATUS           memory limits of cgroups are supported; those that are set
 * stand in the folder, "SOFT HARD" (bytes) in a file CARD,PATH,OF,GROUP; setting one is
 * answered with STATUS
 *   live FOLDER                    a file CARD.PID with MIB in it for each compute process; it
 *                                  counts, as used memory too, while the process is there.
 *                                  CARD.PID.past is the most it had, which an account keeps,
 *                                  and while a process has a CARD.PID.busy the GPU is at work
 *
 * With FAKE_OLD it is a library of NVML's first age: no function with a version in its name,
 * short process records, and neither links nor minor numbers. */
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "alive.h"

#define EXPORT    __attribute__((visibility("default")))
#define WHOLE_MAX 8
#define CARDS_MAX 24 /* including instances, which start at WHOLE_MAX */
#define PROCS_MAX 1024
#define LINKS_MAX 18
#define MIB       (UINT64_C(1) << 20)

enum {
    OK = 0,
    BAD_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NO_PERMISSION = 4,
    NOT_FOUND = 6,
    TOO_SMALL = 7,
    WRONG_VERSION = 25
};

struct card {
    char uuid[80];
    char name[64];
    unsigned long long total, reserved, used;
    int status, memory_status, util, celsius, mode;
    int cc_major, cc_minor;
    bool has_load, no_procs, has_remapped, has_retired;
    int remap_pending, remap_failed, retired_pending;
    unsigned long long energy_mj; /* 0: not supported */
    int accounting;               /* 0: not supported, else the script's mode + 1 */
    int n_links;
    int links[LINKS_MAX];
    int peers[LINKS_MAX];
    int mig;    /* 0: not supported, else the script's mode + 1 */
    int parent; /* of an instance; else -1 */
    unsigned gi, ci, slices, of_slices;
    char profile[40];
};

struct proc {
    int card;
    char kind[16];
    unsigned pid;
    long long mib;
};

static struct {
    int init, memory2, n_cards, n_instances, n_procs;
    bool hang, is_long;
    char limits[2000]; /* "": not supported */
    char stuck[2000];  /* "": not stuck */
    char slow[2000];   /* the same */
    int set_status;
    char driver[64];
    struct card cards[CARDS_MAX];
    struct proc procs[PROCS_MAX];
} world;

static void
add_proc(int card, const char *kind, unsigned pid, long long mib)
{
    struct proc *p = &world.procs[world.n_procs++];

    if (world.n_procs > PROCS_MAX || card < 0 || card >= CARDS_MAX)
        abort();
    p->card = card;
    snprintf(p->kind, sizeof p->kind, "%s", kind);
    p->pid = pid;
    p->mib = mib;
}

static void
add_link(int card, int link, int peer)
{
    struct card *c = &world.cards[card];

    c->links[c->n_links] = link;
    c->peers[c->n_links++] = peer;
}

/* The slices are part of the name, as in the driver's. */
static void
read_profile(struct card *c)
{
    if (sscanf(c->profile, "%u/%u", &c->slices, &c->of_slices) != 2 &&
        sscanf(c->profile, "%uc.%ug", &c->slices, &c->of_slices) != 2) {
        c->slices = (unsigned)strtoul(c->profile, NULL, 10);
        c->of_slices = c->slices ? c->slices : 1;
        c->slices = c->of_slices;
    }
    if (c->profile[0] == '-' || strchr(c->profile, '/'))
        c->profile[0] = '\0';
}

static bool
read_instance_line(const char *line)
{
    struct card *c = &world.cards[WHOLE_MAX + world.n_instances];

    if (sscanf(line, "instance %d %u %u %79s %39s %llu %llu %llu", &c->parent, &c->gi, &c->ci,
               c->uuid, c->profile, &c->total, &c->reserved, &c->used) != 8)
        return false;
    if (WHOLE_MAX + ++world.n_instances > CARDS_MAX)
        abort();
    read_profile(c);
    return true;
}

static bool
read_machine_line(const char *line)
{
    struct card *c = &world.cards[world.n_cards];

    if (strncmp(line, "instance ", 9) == 0)
        return read_instance_line(line);

    if (sscanf(line, "card %79s %llu %llu %llu", c->uuid, &c->total, &c->reserved, &c->used) ==
        4) {
        world.n_cards++;
        return true;
    }
    if (strcmp(line, "nocompiler\n") == 0)
        return true; /* fake_cuda's */
    if (strcmp(line, "long\n") == 0) {
        world.is_long = true;
        return true;
    }
    if (strcmp(line, "hang\n") == 0) {
        world.hang = true;
        return true;
    }
    if (sscanf(line, "limits %1999s %d", world.limits, &world.set_status) == 2 ||
        sscanf(line, "stuck %1999s", world.stuck) == 1 ||
        sscanf(line, "slow %1999s", world.slow) == 1)
        return true;
    return sscanf(line, "init %d", &world.init) == 1 ||
           sscanf(line, "memory2 %d", &world.memory2) == 1 ||
           sscanf(line, "driver %63s", world.driver) == 1;
}

static void
set_remapped(struct card *c, int pending, int failed)
{
    c->has_remapped = true;
    c->remap_pending = pending;
    c->remap_failed = failed;
}

static void
set_retired(struct card *c, int pending)
{
    c->has_retired = true;
    c->retired_pending = pending;
}

static unsigned long long
boot_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (unsigned long long)now.tv_sec * 1000 + (unsigned long long)now.tv_nsec / 1000000;
}

static void
read_card_line(const char *line)
{
    int i, a, b;
    unsigned pid;
    char kind[16], name[64];

    if (sscanf(line, "status %d %d", &i, &a) == 2)
        world.cards[i].status = a;
    else if (sscanf(line, "memory %d %d", &i, &a) == 2)
        world.cards[i].memory_status = a;
    else if (sscanf(line, "remapped %d %d %d", &i, &a, &b) == 3)
        set_remapped(&world.cards[i], a, b);
    else if (sscanf(line, "accounting %d %d", &i, &a) == 2)
        world.cards[i].accounting = a + 1;
    else if (sscanf(line, "account %d %u %d %d", &i, &pid, &a, &b) == 4)
        add_proc(i, b ? "account" : "past", pid, a);
    else if (sscanf(line, "retired %d %d", &i, &a) == 2)
        set_retired(&world.cards[i], a);
    else if (sscanf(line, "mig %d %d", &i, &a) == 2)
        world.cards[i].mig = a + 1;
    else if (sscanf(line, "mode %d %d", &i, &a) == 2)
        world.cards[i].mode = a;
    else if (sscanf(line, "name %d %63[^\n]", &i, name) == 2)
        memcpy(world.cards[i].name, name, sizeof name);
    else if (sscanf(line, "cc %d %d %d", &i, &a, &b) == 3) {
        world.cards[i].cc_major = a;
        world.cards[i].cc_minor = b;
    } else if (sscanf(line, "noprocs %d", &i) == 1)
        world.cards[i].no_procs = true;
    else if (sscanf(line, "link %d %d %d", &i, &a, &b) == 3)
        add_link(i, a, b);
    else if (sscanf(line, "proc %d %15s %u %d", &i, kind, &pid, &a) == 4)
        add_proc(i, kind, pid, a);
    else if (sscanf(line, "load %d %d %d", &i, &a, &b) == 3) {
        world.cards[i].has_load = true;
        world.cards[i].util = a;
        world.cards[i].celsius = b;
    } else if (sscanf(line, "energy %d %d", &i, &a) == 2) {
        world.cards[i].energy_mj = (unsigned long long)a;
    } else if (sscanf(line, "watts %d %d", &i, &a) == 2) {
        world.cards[i].energy_mj = (unsigned long long)a * boot_ms();
    } else if (sscanf(line, "crowd %d %d", &i, &a) == 2) {
        for (int k = 0; k < a; k++)
            add_proc(i, "compute", 100000U + (unsigned)k, 1);
    } else {
        fprintf(stderr, "fake_nvml: what is '%s'?\n", line);
        abort();
    }
}

static void
read_live_mib(int card, unsigned pid, bool is_past, int mib)
{
    if (is_past)
        add_proc(card, is_alive(pid) ? "account" : "past", pid, mib);
    if (is_past || !is_alive(pid))
        return;
    add_proc(card, "compute", pid, mib);
    world.cards[card].used += (unsigned long long)mib;
}

static void
read_live_file(const char *folder, const char *name)
{
    char path[4400];
    int card, mib, length = 0;
    unsigned pid;

    if (sscanf(name, "%d.%u%n", &card, &pid, &length) != 2)
        return;
    bool is_past = strcmp(name + length, ".past") == 0;
    if (strcmp(name + length, ".busy") == 0 && is_alive(pid)) {
        world.cards[card].has_load = true;
        world.cards[card].util = 97;
    }
    if (name[length] && !is_past)
        return;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%d", &mib) == 1)
        read_live_mib(card, pid, is_past, mib);
    if (f)
        fclose(f);
}

static void
read_live(const char *folder)
{
    const struct dirent *entry;
    DIR *dir = opendir(folder);

    if (!dir)
        abort();
    while ((entry = readdir(dir)))
        read_live_file(folder, entry->d_name);
    closedir(dir);
}

static void
read_world(void)
{
    char line[4096], folder[4000] = "";
    const char *path = getenv("BERTH_FAKE_NVML");
    FILE *f = path ? fopen(path, "re") : NULL;

    if (!f)
        abort();
    memset(&world, 0, sizeof world);
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "live %3999s", folder) != 1 && !read_machine_line(line))
            read_card_line(line);
    }
    fclose(f);
    if (*folder)
        read_live(folder);
}

/* A device handle is the address of its card. */
static struct card *
card_of(void *device)
{
    read_world();
    return device;
}

static int
index_of(const struct card *c)
{
    return (int)(c - world.cards);
}

static bool
is_instance(const struct card *c)
{
    return index_of(c) >= WHOLE_MAX;
}

/* The result of every call about it. A removed card has no UUID any more. */
static int
status_of(const struct card *c)
{
    if (!is_instance(c))
        return c->status;
    if (!c->uuid[0] || world.cards[c->parent].mig != 2)
        return BAD_ARGUMENT;
    return c->status ? c->status : world.cards[c->parent].status;
}

/* The same for calls that only a whole GPU supports. */
static int
status_of_whole(const struct card *c)
{
    return is_instance(c) ? NOT_SUPPORTED : c->status;
}

static int
start(void)
{
    read_world();
    int fd = world.slow[0] ? open(world.slow, O_RDONLY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        flock(fd, LOCK_SH);
        close(fd);
    }
    return world.init;
}

EXPORT int nvmlShutdown(void);
EXPORT const char *nvmlErrorString(int status);
EXPORT int nvmlSystemGetDriverVersion(char *out, unsigned size);
EXPORT int nvmlDeviceGetUUID(void *device, char *out, unsigned size);
EXPORT int nvmlDeviceGetName(void *device, char *out, unsigned size);
EXPORT int nvmlDeviceGetMemoryInfo(void *device, unsigned long long *total_free_used);
EXPORT int nvmlDeviceGetUtilizationRates(void *device, unsigned *gpu_memory);
EXPORT int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *out);
EXPORT int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *out);
EXPORT int nvmlDeviceGetComputeMode(void *device, unsigned *out);
EXPORT int nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor);
EXPORT int nvmlDeviceGetRetiredPagesPendingStatus(void *device, unsigned *out);
struct stats {
    unsigned gpu, memory;
    unsigned long long max_memory, time, start;
    unsigned running, reserved[5];
};

EXPORT int nvmlDeviceGetAccountingMode(void *device, unsigned *out);
EXPORT int nvmlDeviceSetAccountingMode(void *device, unsigned mode);
EXPORT int nvmlDeviceGetAccountingPids(void *device, unsigned *n, unsigned *out);
EXPORT int nvmlDeviceGetAccountingStats(void *device, unsigned pid, struct stats *out);
EXPORT int nvmlDeviceGetComputeRunningProcesses(void *device, unsigned *n, void *out);
EXPORT int nvmlDeviceGetGraphicsRunningProcesses(void *device, unsigned *n, void *out);

int
nvmlShutdown(void)
{
    return OK;
}

const char *
nvmlErrorString(int status)
{
    switch (status) {
    case 9:
        return "Driver Not Loaded";
    case 15:
        return "GPU is lost";
    case 18:
        return "Driver/library version mismatch";
    default:
        return "Unknown Error";
    }
}

int
nvmlSystemGetDriverVersion(char *out, unsigned size)
{
    read_world();
    if (!world.driver[0])
        return NOT_SUPPORTED;
    snprintf(out, size, "%s", world.driver);
    return OK;
}

int
nvmlDeviceGetUUID(void *device, char *out, unsigned size)
{
    struct card *c = card_of(device);

    snprintf(out, size, "%s", c->uuid);
    return status_of(c);
}

int
nvmlDeviceGetName(void *device, char *out, unsigned size)
{
    struct card *c = card_of(device);

    const struct card *whole = is_instance(c) ? &world.cards[c->parent] : c;
    char model[64];
    if (whole->name[0])
        memcpy(model, whole->name, sizeof model);
    else
        snprintf(model, sizeof model, "Fake GPU %d", index_of(whole));
    if (c->profile[0])
        snprintf(out, size, "%s MIG %s", model, c->profile);
    else
        snprintf(out, size, "%s", model);
    return status_of(c);
}

int
nvmlDeviceGetMemoryInfo(void *device, unsigned long long *out)
{
    struct card *c = card_of(device);

    while (world.hang)
        pause();
    out[0] = c->total * MIB;
    out[1] = (c->total - c->reserved - c->used) * MIB;
    out[2] = (c->reserved + c->used) * MIB;
    return status_of(c) ? status_of(c) : c->memory_status;
}

/* Holds on to the process, which is about to end, until it has the lock. */
static void
hold_until_unlocked(pid_t pid, const char *path, int ready)
{
    int status = 0, fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || ptrace(PTRACE_SEIZE, pid, NULL, (void *)PTRACE_O_TRACEEXIT) < 0)
        _exit(1);
    close(0);
    close(1);
    if (write(ready, "", 1) != 1)
        _exit(1);
    while (waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status) &&
           status >> 16 != PTRACE_EVENT_EXIT)
        ptrace(PTRACE_CONT, pid, NULL, NULL);
    _exit(flock(fd, LOCK_SH) < 0);
}

/* Like a call that hangs in the kernel, uninterruptible by signals. */
static void
get_stuck(void)
{
    pid_t me = getpid();
    int ready[2];
    char byte;

    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    if (pipe(ready) < 0)
        abort();
    pid_t child = fork();
    if (child == 0)
        hold_until_unlocked(me, world.stuck, ready[1]);
    close(ready[1]);
    if (child < 0 || read(ready[0], &byte, 1) != 1)
        fprintf(stderr, "fake_nvml: no process can be traced here\n");
    for (;;)
        pause();
}

int
nvmlDeviceGetUtilizationRates(void *device, unsigned *out)
{
    struct card *c = card_of(device);

    if (world.stuck[0])
        get_stuck();
    out[0] = (unsigned)c->util;
    out[1] = 0;
    return status_of_whole(c) ? status_of_whole(c) : c->has_load ? OK : NOT_SUPPORTED;
}

int
nvmlDeviceGetTemperature(void *device, int sensor, unsigned *out)
{
    struct card *c = card_of(device);

    *out = (unsigned)c->celsius;
    if (sensor != 0)
        return BAD_ARGUMENT;
    return status_of_whole(c) ? status_of_whole(c) : c->has_load ? OK : NOT_SUPPORTED;
}

int
nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *out)
{
    const struct card *c = card_of(device);

    *out = c->energy_mj;
    return status_of_whole(c) ? status_of_whole(c) : c->energy_mj ? OK : NOT_SUPPORTED;
}

int
nvmlDeviceGetRetiredPagesPendingStatus(void *device, unsigned *out)
{
    const struct card *c = card_of(device);

    *out = (unsigned)c->retired_pending;
    return status_of_whole(c) ? status_of_whole(c) : c->has_retired ? OK : NOT_SUPPORTED;
}

/* Set by a call; kept here because the script is read anew each time. */
static bool turned_on[CARDS_MAX];

int
nvmlDeviceGetAccountingMode(void *device, unsigned *out)
{
    const struct card *c = card_of(device);

    if (is_instance(c))
        return NOT_SUPPORTED;
    *out = c->accounting == 2 || turned_on[index_of(c)];
    return c->accounting ? OK : NOT_SUPPORTED;
}

int
nvmlDeviceSetAccountingMode(void *device, unsigned mode)
{
    const struct card *c = card_of(device);

    if (c->accounting == 3)
        return NO_PERMISSION;
    turned_on[index_of(c)] = mode != 0;
    return OK;
}

static bool
is_account(const struct proc *p, const struct card *c)
{
    return p->card == index_of(c) &&
           (strcmp(p->kind, "account") == 0 || strcmp(p->kind, "past") == 0);
}

int
nvmlDeviceGetAccountingPids(void *device, unsigned *n, unsigned *out)
{
    const struct card *c = card_of(device);
    unsigned room = *n, found = 0;

    for (int i = 0; i < world.n_procs; i++) {
        if (!is_account(&world.procs[i], c))
            continue;
        if (found++ < room)
            out[found - 1] = world.procs[i].pid;
    }
    *n = found;
    return found > room ? TOO_SMALL : OK;
}

int
nvmlDeviceGetAccountingStats(void *device, unsigned pid, struct stats *out)
{
    const struct card *c = card_of(device);

    memset(out, 0, sizeof *out);
    for (int i = 0; i < world.n_procs; i++) {
        const struct proc *p = &world.procs[i];
        if (p->pid != pid || !is_account(p, c))
            continue;
        out->max_memory = (unsigned long long)p->mib * MIB;
        out->running = strcmp(p->kind, "account") == 0;
        return OK;
    }
    return NOT_FOUND;
}

int
nvmlDeviceGetComputeMode(void *device, unsigned *out)
{
    struct card *c = card_of(device);

    *out = (unsigned)c->mode;
    return status_of_whole(c);
}

int
nvmlDeviceGetCudaComputeCapability(void *device, int *major, int *minor)
{
    struct card *c = card_of(device);

    *major = c->cc_major;
    *minor = c->cc_minor;
    return status_of_whole(c) ? status_of_whole(c) : c->cc_major ? OK : NOT_SUPPORTED;
}

static int
list(void *device, const char *kind, size_t stride, unsigned *n, char *out)
{
    struct card *c = card_of(device);
    unsigned room = *n, found = 0;

    if (status_of(c) || c->no_procs)
        return status_of(c) ? status_of(c) : NOT_SUPPORTED;
    if (world.is_long && stride == 24)
        stride = 32;
    for (int i = 0; i < world.n_procs; i++) {
        const struct proc *p = &world.procs[i];
        if (p->card != index_of(c) || strcmp(p->kind, kind) != 0)
            continue;
        if (found++ >= room)
            continue;
        uint64_t bytes = p->mib < 0 ? UINT64_MAX : (uint64_t)p->mib * MIB;
        char *record = out + (found - 1) * stride;
        memset(record, 0xff, stride);
        memcpy(record, &p->pid, sizeof p->pid);
        memcpy(record + 8, &bytes, sizeof bytes);
        if (stride > 16 && is_instance(c)) {
            memcpy(record + 16, &c->gi, sizeof c->gi);
            memcpy(record + 20, &c->ci, sizeof c->ci);
        }
        if (stride == 32)
            memset(record + 24, 0, 8);
    }
    *n = found;
    return found > room ? TOO_SMALL : OK;
}

int
nvmlDeviceGetComputeRunningProcesses(void *device, unsigned *n, void *out)
{
    return list(device, "compute", 16, n, out);
}

int
nvmlDeviceGetGraphicsRunningProcesses(void *device, unsigned *n, void *out)
{
    return list(device, "graphics", 16, n, out);
}

static int
count(unsigned *out)
{
    read_world();
    *out = (unsigned)world.n_cards;
    return OK;
}

static int
handle(unsigned index, void **out)
{
    read_world();
    *out = &world.cards[index];
    return world.cards[index].status;
}

#ifdef FAKE_OLD

EXPORT int nvmlInit(void);
EXPORT int nvmlDeviceGetCount(unsigned *out);
EXPORT int nvmlDeviceGetHandleByIndex(unsigned index, void **out);

int
nvmlInit(void)
{
    return start();
}

int
nvmlDeviceGetCount(unsigned *out)
{
    return count(out);
}

int
nvmlDeviceGetHandleByIndex(unsigned index, void **out)
{
    return handle(index, out);
}

#else

struct pci {
    char legacy[16];
    unsigned domain, bus, device, ids[2];
    char bus_id[32];
};

struct memory2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};

EXPORT int nvmlInit_v2(void);
EXPORT int nvmlDeviceGetCount_v2(unsigned *out);
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **out);
EXPORT int nvmlDeviceGetMinorNumber(void *device, unsigned *out);
EXPORT int nvmlDeviceGetNumaNodeId(void *device, unsigned *out);
EXPORT int nvmlDeviceGetPciInfo_v3(void *device, struct pci *out);
EXPORT int nvmlDeviceGetMemoryInfo_v2(void *device, struct memory2 *out);
EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *n, void *out);
EXPORT int nvmlDeviceGetGraphicsRunningProcesses_v3(void *device, unsigned *n, void *out);
EXPORT int nvmlDeviceGetMPSComputeRunningProcesses_v2(void *device, unsigned *n, void *out);
EXPORT int nvmlDeviceGetRemappedRows(void *device, unsigned *corrected, unsigned *uncorrected,
                                     unsigned *pending, unsigned *failed);
struct set_limits {
    const char *group;
    unsigned long long soft, hard;
};
struct get_limits {
    const char *group;
    unsigned long long soft, hard, used;
};
EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, void **out);
struct attributes {
    unsigned multiprocessors, engines[5], gpu_slices, compute_slices;
    unsigned long long memory_mib;
};
EXPORT int nvmlDeviceGetMigMode(void *device, unsigned *now, unsigned *pending);
EXPORT int nvmlDeviceGetMaxMigDeviceCount(void *device, unsigned *out);
EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(void *device, unsigned index, void **out);
EXPORT int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void *device, void **out);
EXPORT int nvmlDeviceGetGpuInstanceId(void *device, unsigned *out);
EXPORT int nvmlDeviceGetComputeInstanceId(void *device, unsigned *out);
EXPORT int nvmlDeviceGetAttributes_v2(void *device, struct attributes *out);
EXPORT int nvmlDeviceSetMemoryLimits_v1(void *device, struct set_limits *in);
EXPORT int nvmlDeviceGetMemoryLimits_v1(void *device, struct get_limits *inout);
EXPORT int nvmlDeviceGetNvLinkState(void *device, unsigned link, unsigned *active);
EXPORT int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *device, unsigned link, struct pci *out);
EXPORT int nvmlDeviceGetNvLinkRemoteDeviceType(void *device, unsigned link, unsigned *out);

int
nvmlInit_v2(void)
{
    return start();
}

int
nvmlDeviceGetCount_v2(unsigned *out)
{
    return count(out);
}

int
nvmlDeviceGetHandleByIndex_v2(unsigned index, void **out)
{
    return handle(index, out);
}

/* Not the index, so that a test can tell them apart. */
int
nvmlDeviceGetMinorNumber(void *device, unsigned *out)
{
    struct card *c = card_of(device);

    *out = (unsigned)(7 - index_of(c));
    return status_of_whole(c);
}

int
nvmlDeviceGetNumaNodeId(void *device, unsigned *out)
{
    struct card *c = card_of(device);

    *out = 3;
    return status_of_whole(c);
}

static void
fill_pci(struct pci *out, unsigned bus)
{
    memset(out, 0, sizeof *out);
    out->bus = bus;
    snprintf(out->bus_id, sizeof out->bus_id, "00000000:%02X:00.0", bus);
}

int
nvmlDeviceGetPciInfo_v3(void *device, struct pci *out)
{
    struct card *c = card_of(device);

    fill_pci(out, 16 + (unsigned)index_of(c));
    return status_of_whole(c);
}

int
nvmlDeviceGetMemoryInfo_v2(void *device, struct memory2 *out)
{
    struct card *c = card_of(device);

    while (world.hang)
        pause();
    if (out->version != (sizeof *out | 2U << 24))
        return WRONG_VERSION;
    if (world.memory2 || c->memory_status)
        return world.memory2 ? world.memory2 : c->memory_status;
    out->total = c->total * MIB;
    out->reserved = c->reserved * MIB;
    out->used = c->used * MIB;
    out->free = (c->total - c->reserved - c->used) * MIB;
    return status_of(c);
}

int
nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *n, void *out)
{
    return list(device, "compute", 24, n, out);
}

int
nvmlDeviceGetGraphicsRunningProcesses_v3(void *device, unsigned *n, void *out)
{
    return list(device, "graphics", 24, n, out);
}

int
nvmlDeviceGetMPSComputeRunningProcesses_v2(void *device, unsigned *n, void *out)
{
    return list(device, "mps", 24, n, out);
}

int
nvmlDeviceGetRemappedRows(void *device, unsigned *corrected, unsigned *uncorrected,
                          unsigned *pending, unsigned *failed)
{
    const struct card *c = card_of(device);

    *corrected = *uncorrected = 1;
    *pending = (unsigned)c->remap_pending;
    *failed = (unsigned)c->remap_failed;
    return status_of_whole(c) ? status_of_whole(c) : c->has_remapped ? OK : NOT_SUPPORTED;
}

int
nvmlDeviceGetHandleByUUID(const char *uuid, void **out)
{
    read_world();
    for (int i = 0; i < CARDS_MAX; i++) {
        if (strcmp(world.cards[i].uuid, uuid) == 0) {
            *out = &world.cards[i];
            return status_of(&world.cards[i]);
        }
    }
    return NOT_FOUND;
}

int
nvmlDeviceGetMigMode(void *device, unsigned *now, unsigned *pending)
{
    const struct card *c = card_of(device);

    *now = *pending = c->mig == 2;
    return status_of_whole(c) ? status_of_whole(c) : c->mig ? OK : NOT_SUPPORTED;
}

int
nvmlDeviceGetMaxMigDeviceCount(void *device, unsigned *out)
{
    const struct card *c = card_of(device);

    *out = c->mig == 2 ? 7 : 0;
    return status_of_whole(c);
}

/* Numbers do not start at 0, as real ones may have gaps. */
int
nvmlDeviceGetMigDeviceHandleByIndex(void *device, unsigned index, void **out)
{
    const struct card *c = card_of(device);
    unsigned at = 1;

    if (status_of_whole(c) || c->mig != 2)
        return c->status ? c->status : NOT_SUPPORTED;
    for (int i = WHOLE_MAX; i < WHOLE_MAX + world.n_instances; i++) {
        if (world.cards[i].parent != index_of(c) || at++ != index)
            continue;
        *out = &world.cards[i];
        return OK;
    }
    return NOT_FOUND;
}

int
nvmlDeviceGetDeviceHandleFromMigDeviceHandle(void *device, void **out)
{
    const struct card *c = card_of(device);

    *out = is_instance(c) ? &world.cards[c->parent] : NULL;
    return is_instance(c) ? status_of(c) : BAD_ARGUMENT;
}

int
nvmlDeviceGetGpuInstanceId(void *device, unsigned *out)
{
    const struct card *c = card_of(device);

    *out = c->gi;
    return is_instance(c) ? status_of(c) : NOT_SUPPORTED;
}

int
nvmlDeviceGetComputeInstanceId(void *device, unsigned *out)
{
    const struct card *c = card_of(device);

    *out = c->ci;
    return is_instance(c) ? status_of(c) : NOT_SUPPORTED;
}

int
nvmlDeviceGetAttributes_v2(void *device, struct attributes *out)
{
    const struct card *c = card_of(device);

    *out = (struct attributes){
        .gpu_slices = c->of_slices, .compute_slices = c->slices, .memory_mib = c->total};
    return is_instance(c) ? status_of(c) : NOT_SUPPORTED;
}

static void
limit_file(const struct card *c, const char *group, char *out, size_t size)
{
    int n = snprintf(out, size, "%s/%d", world.limits, index_of(c));

    snprintf(out + n, size - (size_t)n, "%s", group);
    for (char *s = out + n; *s; s++)
        if (*s == '/')
            *s = ',';
}

int
nvmlDeviceSetMemoryLimits_v1(void *device, struct set_limits *in)
{
    const struct card *c = card_of(device);
    char path[4400];

    if (!world.limits[0] || status_of_whole(c) || world.set_status)
        return status_of_whole(c) ? status_of_whole(c)
               : world.set_status ? world.set_status
                                  : NOT_SUPPORTED;
    if (geteuid() != 0)
        return NO_PERMISSION;
    /* As in the driver: the group must exist, even to lift its limit. */
    if (access(in->group, F_OK) < 0)
        return NOT_FOUND;
    limit_file(c, in->group, path, sizeof path);
    if (in->soft == 0 && in->hard == UINT64_MAX)
        return unlink(path) == 0 ? OK : BAD_ARGUMENT;
    FILE *f = fopen(path, "we");
    if (!f)
        abort();
    fprintf(f, "%llu %llu\n", in->soft, in->hard);
    fclose(f);
    return OK;
}

/* The processes listed by the script whose pids are in the group. */
static unsigned long long
used_by_group(const struct card *c, const char *group)
{
    char path[4400];
    unsigned long long mib = 0;
    unsigned pid;

    snprintf(path, sizeof path, "%s/cgroup.procs", group);
    FILE *f = fopen(path, "re");
    while (f && fscanf(f, "%u", &pid) == 1)
        for (int i = 0; i < world.n_procs; i++)
            if (world.procs[i].card == index_of(c) && world.procs[i].pid == pid)
                mib += (unsigned long long)world.procs[i].mib;
    if (f)
        fclose(f);
    return mib * MIB;
}

int
nvmlDeviceGetMemoryLimits_v1(void *device, struct get_limits *inout)
{
    const struct card *c = card_of(device);
    char path[4400];

    if (!world.limits[0] || status_of_whole(c))
        return status_of_whole(c) ? status_of_whole(c) : NOT_SUPPORTED;
    inout->soft = 0;
    inout->hard = UINT64_MAX;
    inout->used = used_by_group(c, inout->group);
    limit_file(c, inout->group, path, sizeof path);
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%llu %llu", &inout->soft, &inout->hard) != 2)
        abort();
    if (f)
        fclose(f);
    return OK;
}

/* The far end of a link; false if there is no such link. */
static bool
find_peer(const struct card *c, unsigned link, int *peer)
{
    for (int i = 0; i < c->n_links; i++) {
        if (c->links[i] == (int)link) {
            *peer = c->peers[i];
            return true;
        }
    }
    return false;
}

int
nvmlDeviceGetNvLinkState(void *device, unsigned link, unsigned *active)
{
    int peer;

    *active = find_peer(card_of(device), link, &peer);
    return link < LINKS_MAX ? OK : BAD_ARGUMENT;
}

int
nvmlDeviceGetNvLinkRemotePciInfo_v2(void *device, unsigned link, struct pci *out)
{
    int peer;

    if (!find_peer(card_of(device), link, &peer))
        return NOT_SUPPORTED;
    fill_pci(out, peer < 0 ? 200 : 16 + (unsigned)peer);
    return OK;
}

int
nvmlDeviceGetNvLinkRemoteDeviceType(void *device, unsigned link, unsigned *out)
{
    int peer;

    if (!find_peer(card_of(device), link, &peer))
        return NOT_SUPPORTED;
    *out = peer < 0 ? 2 : 0;
    return OK;
}

#endif
