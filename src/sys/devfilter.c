/* The device filter: see devfilter.h. A BPF program of type CGROUP_DEVICE sees the kind, major
 * and minor number at each open and mknod by a process of the group, and returns 1 to allow
 * it. It is attached so that filters of parent groups (systemd's, a container's) run too: it
 * can only take access away. The shepherd attaches it before the command enters the group. */
#include "sys/devfilter.h"

#include <errno.h>
#include <linux/bpf.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "sys/cgroup.h"

/* Documentation/admin-guide/devices.txt */
#define NVIDIA_MAJOR 195
#define DRM_MAJOR    226
#define CARDS_MAX    254 /* above: 254 nvidia-modeset, 255 nvidiactl, which all jobs need */
#define MINORS_MAX   64
#define DENIED_MAX   128
#define MIG_MAX      128
#define FIXED_INSNS  14
#define MIG_GUARDS   2 /* below the instances: 1 and 2 manage and monitor MIG, for root only */

static struct bpf_insn
load_word(unsigned reg, int16_t offset)
{
    return (struct bpf_insn){.code = BPF_LDX | BPF_MEM | BPF_W,
                             .dst_reg = reg & 15,
                             .src_reg = BPF_REG_1,
                             .off = offset};
}

static struct bpf_insn
jump_if(unsigned how, unsigned reg, int32_t value, size_t from, size_t to)
{
    return (struct bpf_insn){.code = (uint8_t)(BPF_JMP | how | BPF_K),
                             .dst_reg = reg & 15,
                             .imm = value,
                             .off = (int16_t)(to - from - 1)};
}

static struct bpf_insn
answer(int32_t value)
{
    return (struct bpf_insn){
        .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = value};
}

/* The program. NVIDIA devices, and MIG instances if filtered: allow the listed ones, deny the
 * rest. /dev/dri: deny the listed ones, allow the rest. Anything else: allow. Returns the
 * number of instructions. */
static size_t
assemble(const struct devfilter *f, struct bpf_insn *out)
{
    const struct bpf_insn leave = {.code = BPF_JMP | BPF_EXIT};
    const size_t mig = 7 + f->n_minors, drm = mig + 2 + f->n_mig_minors;
    const size_t yes = drm + f->n_denied, no = yes + 2;
    const int32_t major = f->mig_major > 0 ? f->mig_major : DRM_MAJOR; /* else no match */
    size_t at = 0;
    out[at++] = load_word(BPF_REG_2, offsetof(struct bpf_cgroup_dev_ctx, major));
    out[at++] = load_word(BPF_REG_3, offsetof(struct bpf_cgroup_dev_ctx, minor));
    out[at] = jump_if(BPF_JEQ, BPF_REG_2, DRM_MAJOR, at, drm), at++;
    out[at] = jump_if(BPF_JEQ, BPF_REG_2, major, at, mig), at++;
    out[at] = jump_if(BPF_JNE, BPF_REG_2, NVIDIA_MAJOR, at, yes), at++;
    out[at] = jump_if(BPF_JGE, BPF_REG_3, CARDS_MAX, at, yes), at++;
    for (size_t i = 0; i < f->n_minors; i++)
        out[at] = jump_if(BPF_JEQ, BPF_REG_3, f->minors[i], at, yes), at++;
    out[at] = jump_if(BPF_JNE, BPF_REG_2, DRM_MAJOR, at, no), at++;
    out[at] = jump_if(BPF_JLE, BPF_REG_3, MIG_GUARDS, at, yes), at++;
    for (size_t i = 0; i < f->n_mig_minors; i++)
        out[at] = jump_if(BPF_JEQ, BPF_REG_3, f->mig_minors[i], at, yes), at++;
    out[at] = jump_if(BPF_JNE, BPF_REG_2, DRM_MAJOR, at, no), at++;
    for (size_t i = 0; i < f->n_denied; i++)
        out[at] = jump_if(BPF_JEQ, BPF_REG_3, f->denied[i], at, no), at++;
    out[at++] = answer(1);
    out[at++] = leave;
    out[at++] = answer(0);
    out[at++] = leave;
    return at;
}

static int
bpf(int what, union bpf_attr *attr)
{
    return (int)syscall(SYS_bpf, what, attr, sizeof *attr);
}

/* Before Linux 5.11, BPF programs count against root's locked-memory limit. */
static int
load_without_limit(union bpf_attr *attr)
{
    const struct rlimit none = {RLIM_INFINITY, RLIM_INFINITY};
    struct rlimit before;
    if (getrlimit(RLIMIT_MEMLOCK, &before) < 0 || setrlimit(RLIMIT_MEMLOCK, &none) < 0)
        return -1;
    int fd = bpf(BPF_PROG_LOAD, attr);
    int why = errno;
    (void)setrlimit(RLIMIT_MEMLOCK, &before);
    errno = why;
    return fd;
}

static int
load(const struct devfilter *filter, struct err *e)
{
    struct bpf_insn program[FIXED_INSNS + MINORS_MAX + DENIED_MAX + MIG_MAX];
    if (filter->n_minors > MINORS_MAX || filter->n_denied > DENIED_MAX ||
        filter->n_mig_minors > MIG_MAX)
        return err_set(e, ERR_FAILED, "the device filter supports at most %d GPUs", MINORS_MAX);
    union bpf_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
    attr.insn_cnt = (uint32_t)assemble(filter, program);
    attr.insns = (uintptr_t)program;
    attr.license = (uintptr_t) "Dual MIT/GPL";
    int fd = bpf(BPF_PROG_LOAD, &attr);
    if (fd < 0 && errno == EPERM)
        fd = load_without_limit(&attr);
    if (fd < 0)
        return err_errno(e, ERR_FAILED, errno, "the kernel does not accept a device filter");
    return fd;
}

static int
attach(int how, int program, int cgroup_fd, struct err *e)
{
    union bpf_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.target_fd = (uint32_t)cgroup_fd;
    attr.attach_bpf_fd = (uint32_t)program;
    attr.attach_type = BPF_CGROUP_DEVICE;
    attr.attach_flags = how == BPF_PROG_ATTACH ? BPF_F_ALLOW_MULTI : 0;
    if (bpf(how, &attr))
        return err_errno(e, ERR_FAILED, errno, "cannot attach a device filter to the cgroup");
    return 0;
}

int
devfilter_attach(int cgroup_fd, const struct devfilter *filter, struct err *e)
{
    auto_close int program = load(filter, e);
    return program < 0 ? -1 : attach(BPF_PROG_ATTACH, program, cgroup_fd, e);
}

int
devfilter_try(const char *cgroup, struct err *e)
{
    const struct devfilter none = {.minors = NULL};
    auto_close int program = load(&none, e);
    auto_close int fd = cgroup_open(cgroup);
    if (program < 0)
        return -1;
    if (fd < 0)
        return err_errno(e, ERR_FAILED, errno, "cannot open the cgroup %s", cgroup);
    if (attach(BPF_PROG_ATTACH, program, fd, e) < 0)
        return -1;
    return attach(BPF_PROG_DETACH, program, fd, e);
}
