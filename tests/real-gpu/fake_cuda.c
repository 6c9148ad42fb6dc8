/* A libcuda.so.1 without a GPU, for tests/e2e/real_gpu.bats. Its devices are the `card` lines
 * of the file named by BERTH_FAKE_NVML; what a process has allocated is a file CARD.PID, with
 * MiB in it, in the folder of that file's `live` line, where the fake NVML and fake_live_smi
 * read it.
 *
 * As the real one does: CUDA_VISIBLE_DEVICES masks and orders; without
 * CUDA_DEVICE_ORDER=PCI_BUS_ID the order is another one (here: reversed); a context takes
 * memory; a program has one MIG instance, by its UUID, or else the first; a full card is out of
 * memory, no matter what filled it; memory of a process that is gone is free. So is what a
 * limit of the fake NVML's on the process's cgroup leaves none of, or, for a client of MPS,
 * that of its environment. The one kernel that it knows is cuda_job's; where that writes to no
 * memory, the kernel's log gets the driver's line (BERTH_KMSG). What a process had stays in
 * CARD.PID.past, and CARD.PID.busy is there once it has run a kernel. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "../gpu/alive.h"

#define EXPORT      __attribute__((visibility("default")))
#define MIB         ((size_t)1 << 20)
#define CARDS_MAX   8
#define BLOCKS_MAX  4096
#define CONTEXT_MIB 300
#define CONTEXT     ((void *)1)

enum {
    OK = 0,
    INVALID = 1,
    OUT_OF_MEMORY = 2,
    NO_DEVICE = 100,
    NO_COMPILER = 221,
    ILLEGAL_ADDRESS = 700
};

struct card {
    char uuid[80];
    size_t total, reserved, used;
    bool divided; /* by MIG: its instances are used in its place */
};

static struct card cards[2 * CARDS_MAX]; /* instances from CARDS_MAX on, as in the fake NVML */
static int n_cards, n_instances, visible[CARDS_MAX], n_visible;
static char folder[4000], limits[4000];
static bool can_compile = true;
static unsigned computed;
static int fault;     /* error that every later call returns */
static int card = -1; /* of the context */
static size_t own_mib, blocks[BLOCKS_MAX];

EXPORT int cuInit(unsigned flags);
EXPORT int cuGetErrorName(int error, const char **name);
EXPORT int cuDeviceGetCount(int *n);
EXPORT int cuDeviceGet(int *device, int ordinal);
EXPORT int cuDeviceGetUuid(unsigned char *uuid, int device);
EXPORT int cuDeviceGetUuid_v2(unsigned char *uuid, int device);
EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int device);
EXPORT int cuCtxCreate_v2(void **context, unsigned flags, int device);
EXPORT int cuCtxDestroy_v2(void *context);
EXPORT int cuCtxSynchronize(void);
EXPORT int cuMemAlloc_v2(unsigned long long *out, size_t bytes);
EXPORT int cuMemFree_v2(unsigned long long memory);
EXPORT int cuMemsetD8_v2(unsigned long long memory, unsigned char value, size_t n);
EXPORT int cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes);
EXPORT int cuModuleLoadData(void **module, const void *image);
EXPORT int cuModuleGetFunction(void **function, void *module, const char *name);
EXPORT int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                          unsigned block_x, unsigned block_y, unsigned block_z,
                          unsigned shared_bytes, void *stream, void **parameters, void **extra);
EXPORT int cuMemcpyDtoH_v2(void *to, unsigned long long from, size_t n);

static void
read_line(const char *line)
{
    struct card *c = &cards[n_cards], *i = &cards[CARDS_MAX + n_instances];
    int index, mode;

    if (n_cards < CARDS_MAX &&
        sscanf(line, "card %79s %zu %zu %zu", c->uuid, &c->total, &c->reserved, &c->used) == 4)
        n_cards++;
    else if (n_instances < CARDS_MAX &&
             sscanf(line, "instance %d %*d %*d %79s %*s %zu %zu %zu", &index, i->uuid,
                    &i->total, &i->reserved, &i->used) == 5)
        n_instances++;
    else if (sscanf(line, "mig %d %d", &index, &mode) == 2 && index >= 0 && index < CARDS_MAX)
        cards[index].divided = mode == 1;
    else if (strcmp(line, "nocompiler\n") == 0)
        can_compile = false;
    else if (sscanf(line, "limits %3999s", limits) != 1)
        sscanf(line, "live %3999s", folder);
}

static void
read_cards(void)
{
    char line[4096];
    const char *path = getenv("BERTH_FAKE_NVML");
    FILE *f = path ? fopen(path, "re") : NULL;

    if (!f)
        abort();
    while (fgets(line, sizeof line, f))
        read_line(line);
    fclose(f);
}

/* A device node in the folder represents the GPU; if the process may not open it, the GPU is
 * hidden. */
static bool
may_open(int index)
{
    char path[4400];

    snprintf(path, sizeof path, "%s/nvidia%d", folder, index);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        close(fd);
    return fd >= 0 || errno != EPERM;
}

/* The first instance represents all of a partitioned machine. */
static void
show_all(bool by_bus)
{
    for (int i = 0; i < n_cards; i++) {
        int next = by_bus ? i : n_cards - 1 - i;
        if (!cards[next].divided && may_open(next))
            visible[n_visible++] = next;
    }
    if (n_visible == 0 && n_instances > 0)
        visible[n_visible++] = CARDS_MAX;
}

/* The index of the GPU that a word of CUDA_VISIBLE_DEVICES names; -1 if none. */
static int
card_of_word(const char *word, bool by_bus)
{
    char *end;
    long i = strtol(word, &end, 10);

    if (!*end && *word)
        return i < 0 || i >= n_cards ? -1 : by_bus ? (int)i : n_cards - 1 - (int)i;
    for (i = 0; i < CARDS_MAX + n_instances; i++) {
        if (strncasecmp(cards[i].uuid, word, strlen(word)) == 0 && *word)
            return (int)i;
    }
    return -1;
}

static void
show_cards(void)
{
    const char *order = getenv("CUDA_DEVICE_ORDER"), *mask = getenv("CUDA_VISIBLE_DEVICES");
    bool by_bus = order && strcmp(order, "PCI_BUS_ID") == 0;
    char words[1024], *rest = words, *word;

    n_visible = 0;
    if (!mask) {
        show_all(by_bus);
        return;
    }
    snprintf(words, sizeof words, "%s", mask);
    while ((word = strsep(&rest, ",")) && n_visible < CARDS_MAX) {
        int i = card_of_word(word, by_bus);
        if (i < 0)
            return; /* words after an invalid name are ignored as well */
        visible[n_visible++] = i;
    }
}

int
cuInit(unsigned flags)
{
    (void)flags;
    read_cards();
    show_cards();
    return n_visible ? OK : NO_DEVICE;
}

int
cuGetErrorName(int error, const char **name)
{
    *name = error == OUT_OF_MEMORY     ? "CUDA_ERROR_OUT_OF_MEMORY"
            : error == NO_DEVICE       ? "CUDA_ERROR_NO_DEVICE"
            : error == ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                                       : "CUDA_ERROR_INVALID_VALUE";
    return OK;
}

int
cuDeviceGetCount(int *n)
{
    *n = n_visible;
    return OK;
}

int
cuDeviceGet(int *device, int ordinal)
{
    *device = ordinal;
    return ordinal >= 0 && ordinal < n_visible ? OK : INVALID;
}

int
cuDeviceGetUuid(unsigned char *uuid, int device)
{
    const char *p = cards[visible[device]].uuid + strlen("GPU-");

    for (int i = 0; i < 16; i++, p += 2) {
        unsigned byte;
        p += *p == '-';
        if (sscanf(p, "%2x", &byte) != 1)
            return INVALID;
        uuid[i] = (unsigned char)byte;
    }
    return OK;
}

int
cuDeviceGetUuid_v2(unsigned char *uuid, int device)
{
    return cuDeviceGetUuid(uuid, device);
}

int
cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    const struct card *c = &cards[visible[device]];

    *bytes = (c->total - c->reserved) * MIB;
    return OK;
}

/* Memory of other live processes on the GPU. */
static size_t
others_mib(void)
{
    char path[4400];
    const struct dirent *entry;
    size_t sum = 0;
    DIR *dir = opendir(folder);

    if (!dir)
        abort();
    while ((entry = readdir(dir))) {
        size_t mib;
        long pid;
        int index, length = 0;

        if (sscanf(entry->d_name, "%d.%ld%n", &index, &pid, &length) != 2 ||
            entry->d_name[length] || index != card || pid == getpid())
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        FILE *f = fopen(path, "re");
        if (f && fscanf(f, "%zu", &mib) == 1 && is_alive(pid))
            sum += mib;
        if (f)
            fclose(f);
    }
    closedir(dir);
    return sum;
}

static int
lock(void)
{
    char path[4400];

    snprintf(path, sizeof path, "%s/lock", folder);
    int fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0 || flock(fd, LOCK_EX) < 0)
        abort();
    return fd;
}

/* In place, with one write of fixed length: replacing a file can make a concurrent reader of
 * the folder see its name twice, and count it twice. */
static void
write_file(const char *suffix, size_t mib)
{
    char path[4400], text[32];

    snprintf(path, sizeof path, "%s/%d.%ld%s", folder, card, (long)getpid(), suffix);
    int n = snprintf(text, sizeof text, "%8zu\n", mib);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0 || pwrite(fd, text, (size_t)n, 0) != n)
        abort();
    close(fd);
}

static void
write_own(void)
{
    static size_t most_mib;

    write_file("", own_mib);
    if (own_mib > most_mib)
        most_mib = own_mib;
    write_file(".past", most_mib);
}

/* The process's memory, if it is in that group; 0 if the file is gone. */
static size_t
mib_of(long pid)
{
    char path[4400];
    size_t mib = 0;

    snprintf(path, sizeof path, "%s/%d.%ld", folder, card, pid);
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%zu", &mib) != 1)
        mib = 0;
    if (f)
        fclose(f);
    return mib;
}

/* What the group may still allocate. Unlimited if it is not one of ours. */
static size_t
group_leaves(const char *group, size_t hard_mib)
{
    char path[4400];
    size_t used = own_mib;
    bool is_ours = false;
    long pid;

    snprintf(path, sizeof path, "%s/cgroup.procs", group);
    FILE *f = fopen(path, "re");
    while (f && fscanf(f, "%ld", &pid) == 1) {
        is_ours |= pid == getpid();
        if (pid != getpid() && is_alive((unsigned)pid))
            used += mib_of(pid);
    }
    if (f)
        fclose(f);
    return !is_ours ? SIZE_MAX : used > hard_mib ? 0 : hard_mib - used;
}

/* From the fake NVML's files: CARD,PATH,OF,GROUP. */
static size_t
limits_leave(void)
{
    char path[4400];
    const struct dirent *entry;
    size_t least = SIZE_MAX;
    DIR *dir = limits[0] ? opendir(limits) : NULL;

    while (dir && (entry = readdir(dir))) {
        unsigned long long hard;
        int index, at = 0;
        if (sscanf(entry->d_name, "%d%n", &index, &at) != 1 || index != card)
            continue;
        snprintf(path, sizeof path, "%s/%s", limits, entry->d_name);
        FILE *f = fopen(path, "re");
        if (f && fscanf(f, "%*u %llu", &hard) == 1) {
            char group[300];
            snprintf(group, sizeof group, "%s", entry->d_name + at);
            for (char *c = group; *c; c++)
                *c = *c == ',' ? '/' : *c;
            size_t left = group_leaves(group, hard / MIB);
            least = left < least ? left : least;
        }
        if (f)
            fclose(f);
    }
    if (dir)
        closedir(dir);
    return least;
}

/* An MPS client's limit is in its environment: "0=4400M". */
static size_t
mps_leaves(void)
{
    char server[4400];
    size_t mib;
    const char *pipe = getenv("CUDA_MPS_PIPE_DIRECTORY");
    const char *limit = getenv("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT");

    snprintf(server, sizeof server, "%s/server", pipe ? pipe : "/none");
    if (!limit || sscanf(limit, "0=%zuM", &mib) != 1 || access(server, F_OK) < 0)
        return SIZE_MAX;
    return own_mib > mib ? 0 : mib - own_mib;
}

static size_t
free_mib(void)
{
    const struct card *c = &cards[card];
    size_t used = c->reserved + c->used + others_mib() + own_mib;

    return used > c->total ? 0 : c->total - used;
}

static int
grow(size_t mib)
{
    int fd = lock();
    bool fits = free_mib() >= mib && limits_leave() >= mib && mps_leaves() >= mib;

    if (fits) {
        own_mib += mib;
        write_own();
    }
    close(fd);
    return fits ? OK : OUT_OF_MEMORY;
}

int
cuCtxCreate_v2(void **context, unsigned flags, int device)
{
    (void)flags;
    card = visible[device];
    *context = CONTEXT;
    return grow(CONTEXT_MIB);
}

int
cuCtxDestroy_v2(void *context)
{
    char path[4400];

    if (context != CONTEXT)
        return INVALID;
    snprintf(path, sizeof path, "%s/%d.%ld", folder, card, (long)getpid());
    return unlink(path) == 0 ? OK : INVALID;
}

int
cuCtxSynchronize(void)
{
    return fault;
}

/* An address is a block's number, from 1, in the upper half. */
int
cuMemAlloc_v2(unsigned long long *out, size_t bytes)
{
    size_t mib = (bytes + MIB - 1) / MIB;

    for (unsigned i = 0; i < BLOCKS_MAX; i++) {
        if (blocks[i])
            continue;
        int error = grow(mib);
        if (error == OK)
            blocks[i] = mib;
        *out = (i + 1ULL) << 40;
        return error;
    }
    return INVALID;
}

static size_t *
block_of(unsigned long long memory)
{
    unsigned long long i = (memory >> 40) - 1;

    return i < BLOCKS_MAX && blocks[i] ? &blocks[i] : NULL;
}

int
cuMemFree_v2(unsigned long long memory)
{
    size_t *block = block_of(memory);

    if (!block)
        return INVALID;
    int fd = lock();
    own_mib -= *block;
    *block = 0;
    write_own();
    close(fd);
    return OK;
}

int
cuMemsetD8_v2(unsigned long long memory, unsigned char value, size_t n)
{
    const size_t *block = block_of(memory);

    (void)value;
    return block && n <= *block * MIB ? OK : INVALID;
}

int
cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes)
{
    *free_bytes = free_mib() * MIB;
    *total_bytes = (cards[card].total - cards[card].reserved) * MIB;
    return OK;
}

int
cuModuleLoadData(void **module, const void *image)
{
    *module = CONTEXT;
    return !can_compile ? NO_COMPILER : strstr(image, ".entry spin(") ? OK : INVALID;
}

int
cuModuleGetFunction(void **function, void *module, const char *name)
{
    *function = module;
    return strcmp(name, "spin") == 0 ? OK : INVALID;
}

/* The driver's log line for a write to unmapped memory. */
static void
report_fault(void)
{
    struct timespec now;
    const char *path = getenv("BERTH_KMSG");
    FILE *f = path ? fopen(path, "ae") : NULL;

    fault = ILLEGAL_ADDRESS;
    if (!f)
        return;
    clock_gettime(CLOCK_BOOTTIME, &now);
    fprintf(f,
            "3,%ld,0,-;NVRM: Xid (PCI:0000:%02x:00): 31, pid=%ld, name=cuda_job, Ch 00000008, "
            "intr 00000000. MMU Fault: ENGINE GRAPHICS GPC0 faulted @ 0x0_00000000\n",
            (long)now.tv_sec * 1000 + now.tv_nsec / 1000000, 16 + (unsigned)card,
            (long)getpid());
    fclose(f);
}

int
cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
               unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
               void *stream, void **parameters, void **extra)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    unsigned rounds = *(unsigned *)parameters[1];

    if (function != CONTEXT || grid_x * grid_y * grid_z * block_x * block_y * block_z != 1 ||
        shared_bytes || stream || extra)
        return INVALID;
    if (!block_of(*(unsigned long long *)parameters[0])) {
        report_fault();
        return OK;
    }
    for (computed = 1; rounds > 0; rounds--)
        computed = computed * 1664525U + 1013904223U;
    write_file(".busy", 1);
    nanosleep(&pause, NULL);
    return OK;
}

int
cuMemcpyDtoH_v2(void *to, unsigned long long from, size_t n)
{
    if (!block_of(from) || n != sizeof computed)
        return INVALID;
    memcpy(to, &computed, n);
    return OK;
}
