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

/* "+nvlink", "+cap" or both, in any order. */
static int
read_features(char *words, const char *text, bool *linked, bool *capped, struct err *e)
{
    char *word;

    while ((word = strsep(&words, "+"))) {
        if (strcmp(word, "nvlink") == 0)
            *linked = true;
        else if (strcmp(word, "cap") == 0)
            *capped = true;
        else
            return bad_spec(text, "only +nvlink and +cap may follow a group", e);
    }
    return 0;
}

/* One group, without the comma: COUNT[xSIZE][+nvlink][+cap]. */
static int
add_group(char *group, const char *text, struct sim_spec *out, struct err *e)
{
    int64_t count, mib = SIM_CARD_DEFAULT_MIB;
    bool linked = false, capped = false;
    struct err why;

    char *plus = strchr(group, '+');
    if (plus) {
        *plus = '\0';
        if (read_features(plus + 1, text, &linked, &capped, e) < 0)
            return -1;
    }
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
        out->capped[out->n] = capped;
        out->linked[out->n] = linked && i % 2 == 0 && i + 1 < count;
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
