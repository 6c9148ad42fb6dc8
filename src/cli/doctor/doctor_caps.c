/* Checks of `berth doctor`: which GPUs can hold a job to the VRAM that it declared, and to
 * which nearby CPUs jobs are bound. The daemon reports both, from its probe and from where
 * jobs run. */
#include <string.h>

#include "base/buf.h"
#include "cli/ask/answer.h"
#include "cli/doctor/doctor_verb.h"
#include "core/ledger/cards.h"

static const char *
mechanism(const char *cap)
{
    return strcmp(cap, "nvml") == 0   ? "the driver's memory limits"
           : strcmp(cap, "dmem") == 0 ? "the kernel's dmem controller"
                                      : "the simulator";
}

/* This GPU and those after it that have the same value under key. */
static uint64_t
alike(const json_t *gpus, size_t first, const char *key)
{
    const char *word = answer_str(json_array_get(gpus, first), key);
    uint64_t set = 0;

    for (size_t i = first; i < json_array_size(gpus) && i < 64; i++)
        if (strcmp(answer_str(json_array_get(gpus, i), key), word) == 0)
            set |= UINT64_C(1) << (answer_int(json_array_get(gpus, i), "index", 0) & 63);
    return set;
}

static void
say_cards(struct doctor *d, const json_t *gpu, uint64_t set)
{
    auto_buf struct buf cards = BUF_INIT;
    const char *cap = answer_str(gpu, "cap");

    gpu_set_text(set, &cards);
    if (cap[0])
        doctor_say(d, DOCTOR_OK, "vram", "%s: jobs that share it are held to their VRAM by %s",
                   buf_str(&cards), mechanism(cap));
    else
        doctor_say(d, DOCTOR_OK, "vram", "%s: the VRAM of jobs is measured, not enforced: %s",
                   buf_str(&cards), answer_str(gpu, "cap_why"));
}

static void
say_nodes(struct doctor *d, const json_t *gpu, uint64_t set)
{
    auto_buf struct buf cards = BUF_INIT;
    const char *why = answer_str(gpu, "bind_why"), *cpus = answer_str(gpu, "cpu_list");

    gpu_set_text(set, &cards);
    if (why[0])
        doctor_say(d, DOCTOR_OK, "cpu-bind", "%s: jobs run on any CPU: %s", buf_str(&cards),
                   why);
    else if (cpus[0])
        doctor_say(d, DOCTOR_OK, "cpu-bind",
                   "%s: jobs that book cores (--cpus) run on %s %s, NUMA node %lld",
                   buf_str(&cards), strpbrk(cpus, ",-") ? "CPUs" : "CPU", cpus,
                   (long long)answer_int(gpu, "numa_node", -1));
}

static void
say_mps(struct doctor *d, const json_t *gpu, uint64_t set)
{
    auto_buf struct buf cards = BUF_INIT;
    const char *why = answer_str(gpu, "mps_why");

    gpu_set_text(set, &cards);
    if (why[0])
        doctor_say(d, DOCTOR_WARN, "mps", "%s: jobs do not get the MPS of the settings: %s",
                   buf_str(&cards), why);
    else if (answer_str(gpu, "mps")[0])
        doctor_say(d, DOCTOR_OK, "mps",
                   "%s: jobs that share it do so by MPS, one user at a time", buf_str(&cards));
}

/* Only for the machine's daemon: the folders of others hold only their own user's files. */
static void
say_mps_folders(struct doctor *d, const json_t *gpus)
{
    const json_t *place = json_object_get(d->daemon, "confinement");
    const char *why = answer_str(json_object_get(place, "why"), "folders");
    bool any = false;

    for (size_t i = 0; i < json_array_size(gpus); i++)
        any |= answer_str(json_array_get(gpus, i), "mps")[0] != '\0';
    if (any && d->machines && why[0])
        doctor_say(d, DOCTOR_WARN, "mps",
                   "what users write into their folders of MPS is not limited: %s", why);
}

/* Calls say once for each group of GPUs with the same value under key or, where that is
 * missing, under other. */
static void
say_groups(struct doctor *d, const json_t *gpus, const char *key, const char *other,
           void (*say)(struct doctor *d, const json_t *gpu, uint64_t set))
{
    uint64_t said = 0;

    for (size_t i = 0; i < json_array_size(gpus) && i < 64; i++) {
        const json_t *gpu = json_array_get(gpus, i);
        if (said >> (answer_int(gpu, "index", 0) & 63) & 1 || !json_object_get(gpu, key))
            continue;
        uint64_t set = alike(gpus, i, answer_str(gpu, key)[0] ? key : other);
        said |= set;
        say(d, gpu, set);
    }
}

void
doctor_check_caps(struct doctor *d, const json_t *gpus)
{
    say_groups(d, gpus, "cap", "cap_why", say_cards);
    say_groups(d, gpus, "bind_why", "cpu_list", say_nodes);
    say_groups(d, gpus, "mps", "mps_why", say_mps);
    say_mps_folders(d, gpus);
}
