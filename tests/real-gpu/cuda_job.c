/* A CUDA program for tests/real-gpu/run that needs the NVIDIA driver and nothing else: it loads
 * libcuda.so.1 with dlopen and declares the few functions of the driver's interface that it
 * uses.
 *
 *   cuda_job devices
 *       print "INDEX UUID MIB" for each device that CUDA shows, in CUDA's order; a MIG
 * instance's UUID too begins with GPU- cuda_job hold MIB [--ready FILE] [--until FILE]
 * [--detach] allocate MIB on CUDA's first device, write to all of it, create the file READY
 * with the process id in it, wait until the file UNTIL exists, free the memory and exit.
 *       --detach: first become a child of init in a session of its own; the caller exits at
 * once
 *
 * Exit codes: 0, 1 for any error (out of memory is reported in PyTorch's words), 2 for a wrong
 * command line, 77 if there is no driver or no device. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MIB           ((size_t)1 << 20)
#define CHUNK         (256 * MIB)
#define CHUNKS_MAX    4096
#define MIB_MAX       ((long)CHUNKS_MAX * 256)
#define OUT_OF_MEMORY 2
#define NO_GPU        77

/* As in cuda.h; the names with _v2 are what that header makes of those without. */
typedef unsigned long long device_pointer;

struct uuid {
    unsigned char bytes[16];
};

static struct {
    int (*init)(unsigned flags);
    int (*error_name)(int error, const char **name);
    int (*device_count)(int *n);
    int (*device)(int *device, int ordinal);
    int (*device_uuid)(struct uuid *uuid, int device);
    int (*device_total)(size_t *bytes, int device);
    int (*context_create)(void **context, unsigned flags, int device);
    int (*context_destroy)(void *context);
    int (*synchronize)(void);
    int (*allocate)(device_pointer *out, size_t bytes);
    int (*release)(device_pointer memory);
    int (*set)(device_pointer memory, unsigned char value, size_t n);
    int (*info)(size_t *free_bytes, size_t *total_bytes);
} cuda;

static const struct {
    const char *name;
    void *function; /* where its address goes */
} symbols[] = {
    {"cuInit", &cuda.init},
    {"cuGetErrorName", &cuda.error_name},
    {"cuDeviceGetCount", &cuda.device_count},
    {"cuDeviceGet", &cuda.device},
    {"cuDeviceGetUuid", &cuda.device_uuid},
    {"cuDeviceTotalMem_v2", &cuda.device_total},
    {"cuCtxCreate_v2", &cuda.context_create},
    {"cuCtxDestroy_v2", &cuda.context_destroy},
    {"cuCtxSynchronize", &cuda.synchronize},
    {"cuMemAlloc_v2", &cuda.allocate},
    {"cuMemFree_v2", &cuda.release},
    {"cuMemsetD8_v2", &cuda.set},
    {"cuMemGetInfo_v2", &cuda.info},
};

static void
load(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);

    if (!library) {
        fprintf(stderr, "cuda_job: no NVIDIA driver: %s\n", dlerror());
        exit(NO_GPU);
    }
    /* Of a MIG instance the first gives the whole GPU's. Drivers since 11.4 have the second. */
    void *address_v2 = dlsym(library, "cuDeviceGetUuid_v2");
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        void *address = dlsym(library, symbols[i].name);
        if (!address) {
            fprintf(stderr, "cuda_job: %s\n", dlerror());
            exit(1);
        }
        memcpy(symbols[i].function, &address, sizeof address);
    }
    if (address_v2)
        memcpy(&cuda.device_uuid, &address_v2, sizeof address_v2);
}

static const char *
name_of(int error)
{
    const char *name;

    return cuda.error_name(error, &name) == 0 && name ? name : "unknown error";
}

static void
must(const char *what, int error)
{
    if (error == 0)
        return;
    fprintf(stderr, "cuda_job: %s: %s (%d)\n", what, name_of(error), error);
    exit(1);
}

static int
open_driver(void)
{
    int n = 0;

    load();
    int error = cuda.init(0);
    if (error == 0)
        error = cuda.device_count(&n);
    if (error == 0 && n > 0)
        return n;
    fprintf(stderr, "cuda_job: CUDA shows no GPU: %s\n", error ? name_of(error) : "none found");
    exit(NO_GPU);
}

static void
print_devices(void)
{
    int n = open_driver();

    for (int i = 0; i < n; i++) {
        struct uuid uuid;
        size_t total;
        int device;

        must("cuDeviceGet", cuda.device(&device, i));
        must("cuDeviceGetUuid", cuda.device_uuid(&uuid, device));
        must("cuDeviceTotalMem", cuda.device_total(&total, device));
        printf("%d GPU-", i);
        for (int k = 0; k < 16; k++)
            printf("%s%02x", k == 4 || k == 6 || k == 8 || k == 10 ? "-" : "", uuid.bytes[k]);
        printf(" %zu\n", total / MIB);
    }
}

/* PyTorch's words, which Berth looks for in what a failed job has written. */
static void
die_out_of_memory(long mib)
{
    size_t left = 0, total = 0;

    must("cuMemGetInfo", cuda.info(&left, &total));
    fprintf(
        stderr,
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate %ld MiB. GPU 0 has "
        "a total capacity of %zu MiB of which %zu MiB is free.\n",
        mib, total / MIB, left / MIB);
    exit(1);
}

static int
take(long mib, device_pointer *chunks)
{
    int n = 0;

    for (size_t left = (size_t)mib * MIB; left > 0; n++) {
        size_t size = left < CHUNK ? left : CHUNK;
        int error = cuda.allocate(&chunks[n], size);
        if (error == OUT_OF_MEMORY)
            die_out_of_memory(mib);
        must("cuMemAlloc", error);
        must("cuMemsetD8", cuda.set(chunks[n], 1, size));
        left -= size;
    }
    must("cuCtxSynchronize", cuda.synchronize());
    return n;
}

static void
give_back(device_pointer *chunks, int n)
{
    while (n > 0)
        must("cuMemFree", cuda.release(chunks[--n]));
}

/* Written whole before it gets its name, so that nobody reads half a number. */
static void
say_ready(const char *file)
{
    char draft[4096];

    snprintf(draft, sizeof draft, "%s.%ld", file, (long)getpid());
    FILE *f = fopen(draft, "w");
    if (!f || fprintf(f, "%ld\n", (long)getpid()) < 0 || fclose(f) != 0 ||
        rename(draft, file) < 0) {
        perror(file);
        exit(1);
    }
}

static void
wait_for_file(const char *file)
{
    const struct timespec pause = {.tv_nsec = 50000000};

    while (access(file, F_OK) < 0)
        nanosleep(&pause, NULL);
}

/* Two forks, as daemons do: the process is nobody's child and in a session of its own. */
static void
detach(void)
{
    for (int i = 0; i < 2; i++) {
        pid_t pid = fork();
        if (pid < 0) {
            perror("fork");
            exit(1);
        }
        if (pid > 0)
            _exit(0);
        if (i == 0)
            setsid();
    }
}

static void
hold(long mib, const char *ready, const char *until)
{
    static device_pointer chunks[CHUNKS_MAX];
    void *context;
    int device;

    open_driver();
    must("cuDeviceGet", cuda.device(&device, 0));
    int error = cuda.context_create(&context, 0, device);
    if (error == OUT_OF_MEMORY) {
        /* There is no context yet to ask how much is free. */
        fprintf(stderr,
                "torch.cuda.OutOfMemoryError: CUDA out of memory. No room for a context.\n");
        exit(1);
    }
    must("cuCtxCreate", error);
    int n = take(mib, chunks);
    if (ready)
        say_ready(ready);
    if (until)
        wait_for_file(until);
    give_back(chunks, n);
    must("cuCtxDestroy", cuda.context_destroy(context));
}

static int
usage(void)
{
    fprintf(stderr, "usage: cuda_job devices\n"
                    "       cuda_job hold MIB [--ready FILE] [--until FILE] [--detach]\n");
    return 2;
}

int
main(int argc, char **argv)
{
    const char *ready = NULL, *until = NULL;
    char *end;

    if (argc == 2 && strcmp(argv[1], "devices") == 0) {
        print_devices();
        return 0;
    }
    if (argc < 3 || strcmp(argv[1], "hold") != 0)
        return usage();
    long mib = strtol(argv[2], &end, 10);
    if (*end || mib < 1 || mib > MIB_MAX)
        return usage();
    for (int i = 3; i < argc; i++) {
        if (strcmp(argv[i], "--detach") == 0)
            detach();
        else if (strcmp(argv[i], "--ready") == 0 && i + 1 < argc)
            ready = argv[++i];
        else if (strcmp(argv[i], "--until") == 0 && i + 1 < argc)
            until = argv[++i];
        else
            return usage();
    }
    hold(mib, ready, until);
    return 0;
}
