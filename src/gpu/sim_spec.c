/* Parses a simulated machine's spec, "2x24G+nvlink,1x80G". Pure. */
#include "gpu/sim_spec.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/parse.h"

static const struct sim_profile profiles[] = {
    {1, 7, 8}, {2, 3, 4}, {3, 2, 2}, {4, 1, 2}, {7, 1, 1}};

static int
bad_spec(const char *text, const char *why, struct err *e)
{
    return err_set(e, ERR_USAGE,
                   "'%.80s' does not describe simulated GPUs (%s); write 2, 4x80G or "
                   "2x24G,1x80G",
                   text, why);
}

/* The features of one group. */
struct features {
    bool linked, capped;
    int32_t numa;
    int32_t cc;
    const struct sim_profile *profile;
};

static const struct sim_profile *
find_profile(const char *number)
{
    int64_t n = 0;

    (void)parse_int(number, 1, 7, &n, NULL);
    for (size_t i = 0; i < sizeof profiles / sizeof profiles[0]; i++)
        if (profiles[i].instances == n)
            return &profiles[i];
    return NULL;
}

/* "nvlink", "cap", "numa1", "cc8.6", "mig7". */
static int
read_feature(const char *word, const char *text, struct features *f, struct err *e)
{
    bool is_numa = strncmp(word, "numa", 4) == 0, is_cc = strncmp(word, "cc", 2) == 0;
    double cc;
    int64_t node;

    if (strcmp(word, "nvlink") == 0)
        f->linked = true;
    else if (strcmp(word, "cap") == 0)
        f->capped = true;
    else if (is_numa && parse_int(word + 4, 0, SIM_NODES_MAX - 1, &node, NULL) == 0)
        f->numa = (int32_t)node;
    else if (is_numa)
        return bad_spec(text, "+numa takes the number of a node from 0 to 7, +numa1", e);
    else if (is_cc && parse_double(word + 2, 1, 25, &cc, NULL) == 0)
        f->cc = (int32_t)(cc * 10 + 0.5);
    else if (is_cc)
        return bad_spec(text, "+cc takes a compute capability, +cc8.6", e);
    else if (strncmp(word, "mig", 3) == 0 && (f->profile = find_profile(word + 3)))
        return 0;
    else if (strncmp(word, "mig", 3) == 0)
        return bad_spec(text, "+mig takes a number of instances: 1, 2, 3, 4 or 7, +mig7", e);
    else
        return bad_spec(text, "only +nvlink, +cap, +numaN, +ccN and +migN may follow a group",
                        e);
    return 0;
}

/* Adds one GPU, or its instances instead. */
static void
add_gpu(const struct features *f, int32_t mib, bool linked, struct sim_spec *out)
{
    int32_t gpu = out->n > 0 ? out->gpu[out->n - 1] + 1 : 0;

    for (int32_t i = 0; i < (f->profile ? f->profile->instances : 1); i++) {
        out->capped[out->n] = f->capped;
        out->numa[out->n] = f->numa;
        out->cc[out->n] = f->cc;
        out->linked[out->n] = linked;
        out->gpu[out->n] = gpu;
        out->profile[out->n] = f->profile;
        out->total_mib[out->n++] = f->profile ? mib / 8 * f->profile->eighths : mib;
    }
}

/* Parses one group, without the comma: COUNT[xSIZE] and features in any order. */
static int
add_group(char *group, const char *text, struct sim_spec *out, struct err *e)
{
    int64_t count, mib = SIM_CARD_DEFAULT_MIB;
    struct features f = {.numa = -1};
    struct err why;
    char *words = strchr(group, '+'), *word;

    if (words)
        *words++ = '\0';
    while ((word = strsep(&words, "+")))
        if (read_feature(word, text, &f, e) < 0)
            return -1;
    char *size = strpbrk(group, "xX");
    if (size) {
        *size++ = '\0';
        if (parse_size_mib(size, &mib, &why) < 0)
            return bad_spec(text, why.text, e);
        if (mib > VRAM_MAX_MIB)
            return bad_spec(text, "the maximum of a GPU is 16T", e);
    }
    if (parse_int(group, 1, GPU_MAX, &count, NULL) < 0)
        return bad_spec(text, "each group begins with a count from 1 to 64", e);
    if (out->n + count * (f.profile ? f.profile->instances : 1) > GPU_MAX)
        return bad_spec(text, "the maximum is 64 GPUs", e);
    if (f.profile && (f.linked || f.capped))
        return bad_spec(text, "MIG instances have neither +nvlink nor +cap", e);
    for (int64_t i = 0; i < count; i++)
        add_gpu(&f, (int32_t)mib, f.linked && i % 2 == 0 && i + 1 < count, out);
    return 0;
}

int
sim_spec_parse(const char *text, struct sim_spec *out, struct err *e)
{
    auto_free char *copy = xstrdup(text);
    char *next = copy;

    memset(out, 0, sizeof *out);
    while (next) {
        char *group = strsep(&next, ",");
        if (add_group(group, text, out, e) < 0)
            return -1;
    }
    return 0;
}
