/* Which cards hold a job to the VRAM that it declared, as `berth doctor` says it: the daemon
 * knows, from the probe and from where jobs live. */
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

/* The cards that say the same as this one, in that member, and come after it. */
static uint64_t
alike(const json_t *gpus, size_t first, const char *key)
{
    const char *word = answer_str(json_array_get(gpus, first), key);
    uint64_t set = 0;

    for (size_t i = first; i < json_array_size(gpus) && i < 64; i++)
        if (strcmp(answer_str(json_array_get(gpus, i), key), word) == 0)
            set |= UINT64_C(1) << i;
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

void
doctor_check_caps(struct doctor *d, const json_t *gpus)
{
    uint64_t said = 0;

    for (size_t i = 0; i < json_array_size(gpus) && i < 64; i++) {
        const json_t *gpu = json_array_get(gpus, i);
        if (said >> i & 1 || !json_object_get(gpu, "cap"))
            continue;
        uint64_t set = alike(gpus, i, answer_str(gpu, "cap")[0] ? "cap" : "cap_why");
        said |= set;
        say_cards(d, gpu, set);
    }
}
