/* Reads a simulated machine's spec, "2x24G+nvlink,1x80G". Pure. */
#include "gpu/sim_spec.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/parse.h"

static int
bad_spec(const char *text, const char *why, struct err *e)
{
    return err_set(e, ERR_USAGE,
                   "'%.80s' does not describe simulated GPUs (%s); write 2, 4x80G or "
                   "2x24G,1x80G",
                   text, why);
}

/* What the cards of one group have. */
struct features {
    bool linked, capped;
    int32_t numa;
    int32_t cc;
};

/* "nvlink", "cap", "numa1", "cc8.6". */
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
    else
        return bad_spec(text, "only +nvlink, +cap, +numaN and +ccN may follow a group", e);
    return 0;
}

/* One group, without the comma: COUNT[xSIZE] and features in any order. */
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
    if (out->n + count > GPU_MAX)
        return bad_spec(text, "the maximum is 64 GPUs", e);
    for (int64_t i = 0; i < count; i++) {
        out->capped[out->n] = f.capped;
        out->numa[out->n] = f.numa;
        out->cc[out->n] = f.cc;
        out->linked[out->n] = f.linked && i % 2 == 0 && i + 1 < count;
        out->total_mib[out->n++] = (int32_t)mib;
    }
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
