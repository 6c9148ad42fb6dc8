/* A CUDA program for tests/real-gpu/run that needs the NVIDIA driver and nothing else: it loads
 * libcuda.so.1 with dlopen and declares the few functions of the driver's interface that it
 * uses.
 *
 *   cuda_job devices
 *       print "INDEX UUID MIB" for each device that CUDA shows, in CUDA's order; a MIG
 *       instance's UUID too begins with GPU-
 *   cuda_job hold MIB [--ready FILE] [--until FILE] [--detach]
 *       allocate MIB on CUDA's first device, write to all of it, create the file READY with the
 *       process id in it, wait until the file UNTIL exists, free the memory and exit.
 *       --detach: first become a child of init in a session of its own; the caller exits at
 *       once
 *   cuda_job spin [--ready FILE] --until FILE
 *       keep the device at work with a small kernel, and compare what it computes; otherwise as
 *       hold
 *   cuda_job fault [--ready FILE] [--until FILE]
 *       make the kernel write where there is no memory, which the driver reports as XID 31 or
 *       13; otherwise as hold. Only the program itself suffers, unless it is a client of MPS
 *
 * Exit codes: 0, 1 for any error (out of memory is reported in PyTorch's words), 2 for a wrong
 * command line, 77 if there is no driver or no device, or the driver compiles no kernels. */
#include <dlfcn.h>
#include <stdbool.h>
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
#define NO_COMPILER   221        /* CUDA_ERROR_JIT_COMPILER_NOT_FOUND, as in many containers */
#define ROUNDS        (1U << 22) /* loop count of the kernel: some ten milliseconds */
#define NO_GPU        77

/* As in cuda.h; that header maps the names without _v2 to these. */
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
    int (*load)(void **module, const void *image);
    int (*function)(void **function, void *module, const char *name);
    int (*launch)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                  unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                  void *stream, void **parameters, void **extra);
    int (*copy_out)(void *to, device_pointer from, size_t n);
} cuda;

static const struct {
    const char *name;
    void *function; /* where its address is stored */
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
    {"cuModuleLoadData", &cuda.load},
    {"cuModuleGetFunction", &cuda.function},
    {"cuLaunchKernel", &cuda.launch},
    {"cuMemcpyDtoH_v2", &cuda.copy_out},
};

static void
load(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);

    if (!library) {
        fprintf(stderr, "cuda_job: no NVIDIA driver: %s\n", dlerror());
        exit(NO_GPU);
    }
    /* For a MIG instance the first gives the whole GPU's UUID. Drivers since 11.4 have the
     * second. */
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

/* PyTorch's text, which Berth looks for in a failed job's output. */
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

/* Written completely before it gets its name, so that no reader sees half a number. */
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

/* Double fork, as daemons do: the process becomes a child of init in a session of its own. */
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
        /* There is no context yet in which to query the free memory. */
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

/* --- a kernel --- */

/* Chained multiplications, which no compiler can shorten; every driver compiles this text for
 * its own GPU. */
static const char PTX[] = ".version 6.0\n"
                          ".target sm_50\n"
                          ".address_size 64\n"
                          ".visible .entry spin(.param .u64 out, .param .u32 rounds)\n"
                          "{\n"
                          "    .reg .pred %p<2>;\n"
                          "    .reg .b32 %r<3>;\n"
                          "    .reg .b64 %rd<3>;\n"
                          "    ld.param.u64 %rd1, [out];\n"
                          "    ld.param.u32 %r1, [rounds];\n"
                          "    cvta.to.global.u64 %rd2, %rd1;\n"
                          "    mov.u32 %r2, 1;\n"
                          "again:\n"
                          "    mad.lo.u32 %r2, %r2, 1664525, 1013904223;\n"
                          "    sub.u32 %r1, %r1, 1;\n"
                          "    setp.ne.u32 %p1, %r1, 0;\n"
                          "    @%p1 bra again;\n"
                          "    st.global.u32 [%rd2], %r2;\n"
                          "    ret;\n"
                          "}\n";

static unsigned
spun(unsigned rounds)
{
    unsigned x = 1;

    while (rounds-- > 0)
        x = x * 1664525U + 1013904223U;
    return x;
}

static void *
open_kernel(void)
{
    void *context, *module, *kernel;
    int device;

    open_driver();
    must("cuDeviceGet", cuda.device(&device, 0));
    must("cuCtxCreate", cuda.context_create(&context, 0, device));
    int error = cuda.load(&module, PTX);
    if (error == NO_COMPILER) {
        fprintf(stderr,
                "cuda_job: the driver's compiler (libnvidia-ptxjitcompiler) is missing\n");
        exit(NO_GPU);
    }
    must("cuModuleLoadData", error);
    must("cuModuleGetFunction", cuda.function(&kernel, module, "spin"));
    return kernel;
}

/* The error of the device or the launch. */
static int
run_kernel(void *kernel, device_pointer out, unsigned rounds)
{
    void *parameters[] = {&out, &rounds};
    int error = cuda.launch(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL);

    return error ? error : cuda.synchronize();
}

static void
spin(const char *ready, const char *until)
{
    device_pointer out;
    unsigned seen = 0;
    void *kernel = open_kernel();

    must("cuMemAlloc", cuda.allocate(&out, sizeof seen));
    must("the kernel", run_kernel(kernel, out, ROUNDS));
    must("cuMemcpyDtoH", cuda.copy_out(&seen, out, sizeof seen));
    if (seen != spun(ROUNDS)) {
        fprintf(stderr, "cuda_job: the kernel computed %u, not %u\n", seen, spun(ROUNDS));
        exit(1);
    }
    if (ready)
        say_ready(ready);
    while (until && access(until, F_OK) < 0)
        must("the kernel", run_kernel(kernel, out, ROUNDS));
}

static void
fault(const char *ready, const char *until)
{
    int error = run_kernel(open_kernel(), 16, 1);

    if (error == 0) {
        fprintf(stderr, "cuda_job: a write to address 16 was no error\n");
        exit(3);
    }
    if (ready)
        say_ready(ready);
    if (until)
        wait_for_file(until);
    must("a write to address 16", error);
}

/* --- its arguments --- */

static int
usage(void)
{
    fprintf(stderr, "usage: cuda_job devices\n"
                    "       cuda_job hold MIB [--ready FILE] [--until FILE] [--detach]\n"
                    "       cuda_job spin|fault [--ready FILE] [--until FILE]\n");
    return 2;
}

struct options {
    const char *ready, *until;
};

/* Parses options from there on; 0, or -1 for an unknown option. */
static int
read_options(int argc, char **argv, int at, bool may_detach, struct options *out)
{
    for (int i = at; i < argc; i++) {
        if (may_detach && strcmp(argv[i], "--detach") == 0)
            detach();
        else if (strcmp(argv[i], "--ready") == 0 && i + 1 < argc)
            out->ready = argv[++i];
        else if (strcmp(argv[i], "--until") == 0 && i + 1 < argc)
            out->until = argv[++i];
        else
            return -1;
    }
    return 0;
}

static int
hold_as_told(int argc, char **argv)
{
    struct options o = {NULL, NULL};
    char *end;
    long mib = strtol(argv[2], &end, 10);

    if (*end || mib < 1 || mib > MIB_MAX || read_options(argc, argv, 3, true, &o) < 0)
        return usage();
    hold(mib, o.ready, o.until);
    return 0;
}

int
main(int argc, char **argv)
{
    struct options o = {NULL, NULL};

    if (argc == 2 && strcmp(argv[1], "devices") == 0) {
        print_devices();
        return 0;
    }
    if (argc >= 3 && strcmp(argv[1], "hold") == 0)
        return hold_as_told(argc, argv);
    if (argc < 2 || read_options(argc, argv, 2, false, &o) < 0)
        return usage();
    if (strcmp(argv[1], "spin") == 0)
        spin(o.ready, o.until);
    else if (strcmp(argv[1], "fault") == 0)
        fault(o.ready, o.until);
    else
        return usage();
    return 0;
}
