/* Setters of attributes whose text sets more than one value of the row's kind. Called only
 * through attr.c's table; attr_check.c checks attributes against each other. */
#include "spec/attr_set.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/request.h"
#include "base/text.h"
#include "spec/attr.h"
#include "spec/value.h"
#include "spec/when.h"

#define LEAST_MIB       64    /* as text; less is a typo for GiB */
#define WARN_DEFAULT_MS 60000 /* Slurm's default */

static int
read_int32(const char *value, int64_t min, int64_t max, int32_t *out, struct err *e)
{
    int64_t v;

    if (parse_int(value, min, max, &v, e) < 0)
        return -1;
    *out = (int32_t)v;
    return 0;
}

/* "8" means 8 MiB but was probably meant as 8 GiB; so does "8M" of a GPU, as no program fits
 * into that little memory. */
static int
parse_needed(const char *value, bool with_unit, int32_t *out, struct err *e)
{
    bool has_unit = value[strspn(value, "0123456789.")] != '\0';
    int32_t mib = 0;

    if (value_mib(value, &mib, e) < 0)
        return -1;
    if (mib < LEAST_MIB && with_unit && strpbrk(value, "gGtTkK"))
        return err_set(e, ERR_USAGE, "%d MiB is less than the minimum of %d MiB", mib,
                       LEAST_MIB);
    if (mib < LEAST_MIB && (with_unit || !has_unit))
        return err_set(e, ERR_USAGE, "%d MiB? write %dG%s", mib, mib,
                       with_unit ? "; the minimum is 64 MiB" : "");
    *out = mib;
    return 0;
}

_Static_assert(LEAST_MIB == 64, "as the words above say");

/* --- the GPUs --- */

int
attr_set_vram(struct request *r, const char *value, struct err *e)
{
    if (strcasecmp(value, "auto") == 0) {
        r->vram_auto = true;
        r->demand.vram_mib = 0;
        return 0;
    }
    if (parse_needed(value, true, &r->demand.vram_mib, e) < 0)
        return -1;
    r->vram_auto = false;
    return 0;
}

/* A fraction is a share of one GPU; above 1, only whole GPUs are valid. As in Slurm, a type
 * may precede the number: a100:2. */
int
attr_set_gpus(struct request *r, const char *value, struct err *e)
{
    auto_buf struct buf shown = BUF_INIT;
    const char *colon = strchr(value, ':');
    auto_free char *type =
        colon && colon > value ? xstrndup(value, (size_t)(colon - value)) : NULL;
    double v;

    if (type)
        value = colon + 1;

    if (parse_double(value, 0, GPU_MAX, &v, NULL) < 0 || (v > 0 && v < 0.0005)) {
        text_add_safe(&shown, value, strlen(value), 60);
        return err_set(e, ERR_USAGE,
                       "'%s' is not a number of GPUs; write a whole number from 0 to %d, or a "
                       "fraction of one GPU such as 0.5",
                       buf_str(&shown), GPU_MAX);
    }
    if (r->type_from == TYPE_WITH_GPUS || (r->type_from == TYPE_BY_CONSTRAINT && v == 0))
        memset(r->demand.gpu_type, 0, GPU_TYPE_MAX);
    if (type && attr_set_gpu_type(r, type, e) < 0)
        return -1;
    if (type)
        r->type_from = TYPE_WITH_GPUS;
    int32_t whole = (int32_t)v;
    int32_t permille = (int32_t)((v - whole) * 1000 + 0.5);
    r->gpus_said = true;
    r->gpus_rounded = whole > 0 && v > whole;
    if (r->gpus_shared)
        r->demand.share_permille = 0; /* set by an earlier gpus=0.5 */
    r->gpus_shared = whole == 0 && permille > 0 && permille < 1000;
    if (r->gpus_shared)
        r->demand.share_permille = permille;
    r->demand.gpus = whole + (v > whole);
    return 0;
}

int
attr_set_share(struct request *r, const char *value, struct err *e)
{
    r->gpus_shared = false;
    return value_permille(value, &r->demand.share_permille, e);
}

int
attr_set_gpu_type(struct request *r, const char *value, struct err *e)
{
    char *type = r->demand.gpu_type;

    if (value_check_text(value, GPU_TYPE_MAX - 1, e) < 0)
        return -1;
    r->type_from = TYPE_BY_ITSELF;
    memset(type, 0, GPU_TYPE_MAX);
    for (size_t i = 0; value[i]; i++)
        type[i] = (char)(value[i] >= 'A' && value[i] <= 'Z' ? value[i] - 'A' + 'a' : value[i]);
    return 0;
}

int
attr_set_min_vram(struct request *r, const char *value, struct err *e)
{
    return parse_needed(value, true, &r->demand.min_vram_mib, e);
}

int
attr_set_margin(struct request *r, const char *value, struct err *e)
{
    if (strcmp(value, "0") != 0)
        return value_mib(value, &r->demand.margin_mib, e);
    r->demand.margin_mib = 0;
    return 0;
}

int
attr_set_placement(struct request *r, const char *value, struct err *e)
{
    return value_placing(value, &r->demand.placement, e);
}

/* --- the host --- */

int
attr_set_cpus(struct request *r, const char *value, struct err *e)
{
    return read_int32(value, 1, CPUS_MAX, &r->demand.cpus, e);
}

int
attr_set_mem(struct request *r, const char *value, struct err *e)
{
    return parse_needed(value, false, &r->demand.mem_mib, e);
}

/* --- its time --- */

int
attr_set_time(struct request *r, const char *value, struct err *e)
{
    if (parse_duration_ms(value, 1000, &r->limit_ms, e) < 0)
        return -1;
    r->limit_bare = !value[strspn(value, "0123456789.")];
    return 0;
}

/* USR2@60, USR2@2m, TERM (a minute before the limit); a leading B: sends it only to the
 * command's own process. */
int
attr_set_signal(struct request *r, const char *value, struct err *e)
{
    bool batch = value[0] == 'B' && value[1] == ':';
    const char *words = value + (batch ? 2 : 0), *at = strchr(words, '@');
    auto_free char *name = at ? xstrndup(words, (size_t)(at - words)) : xstrdup(words);
    int64_t ms = WARN_DEFAULT_MS;
    int number;

    if (parse_signal(name, &number, NULL) < 0)
        return parse_refuse(e, value,
                            "names no signal; write USR2@60 (60 seconds before the limit)");
    r->warn_batch = batch;
    if (attr_check_signal(number, e) < 0 || (at && parse_duration_ms(at + 1, 1000, &ms, e) < 0))
        return -1;
    r->warn_signal = number;
    r->warn_ms = ms;
    return 0;
}

/* --- its turn --- */

int
attr_set_priority(struct request *r, const char *value, struct err *e)
{
    struct err wrong;

    if (read_int32(value, PRIORITY_MIN, PRIORITY_MAX, &r->priority, &wrong) == 0)
        return 0;
    if ((value[0] >= 'a' && value[0] <= 'z') || (value[0] >= 'A' && value[0] <= 'Z'))
        return err_set(e, ERR_USAGE, "%s; Slurm's -p (partition) has no meaning here: omit it",
                       wrong.text);
    return err_set(e, wrong.code, "%s", wrong.text);
}

/* Removes dependencies of this type, so that the last assignment wins. */
static void
drop_deps(struct request *r, enum dep_type type)
{
    int n = 0;

    for (int i = 0; i < r->n_deps; i++) {
        if (r->deps[i].type == type)
            free(r->deps[i].name);
        else
            r->deps[n++] = r->deps[i];
    }
    r->n_deps = n;
}

static int
set_deps(struct request *r, enum dep_type type, const char *value, struct err *e)
{
    drop_deps(r, type);
    return value_deps(value, type, &r->deps, &r->n_deps, e);
}

int
attr_set_after(struct request *r, const char *value, struct err *e)
{
    return set_deps(r, DEP_SUCCESS, value, e);
}

int
attr_set_after_any(struct request *r, const char *value, struct err *e)
{
    return set_deps(r, DEP_ANY, value, e);
}

int
attr_set_after_failed(struct request *r, const char *value, struct err *e)
{
    return set_deps(r, DEP_FAILED, value, e);
}

int
attr_set_begin(struct request *r, const char *value, const struct when_clock *clock,
               struct err *e)
{
    if (when_parse(value, clock, &r->begin_us, e) < 0)
        return -1;
    free(r->begin_said);
    r->begin_said = xstrdup(value);
    return 0;
}

int
attr_set_array(struct request *r, const char *value, struct err *e)
{
    task_set_free(&r->array);
    return value_tasks(value, &r->array, &r->array_max, e);
}

/* --- its names --- */

/* -e was --env in 0.1. */
static bool
is_variable(const char *value)
{
    size_t n = strspn(value, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");

    return n > 0 && value[n] == '=';
}

int
attr_set_error(struct request *r, const char *value, struct err *e)
{
    if (is_variable(value))
        return err_set(e, ERR_USAGE,
                       "'%.60s' looks like a variable; write --env for one, or ./%.60s", value,
                       value);
    return attr_read_text(attr_of_key("error"), r, value, e);
}

/* Only a shell expands ~ to a home folder; a folder named ~ is hard to remove safely. */
int
attr_check_file(const char *name, struct err *e)
{
    if (name[0] == '~' && (!name[1] || name[1] == '/'))
        return err_set(e, ERR_USAGE, "'%.60s': ~ is not expanded here; write the whole path",
                       name);
    return 0;
}

/* --- its surroundings --- */

/* Variables accumulate; of equal names the last wins. */
int
attr_set_env(struct request *r, const char *value, struct err *e)
{
    size_t name = strcspn(value, "="), n = 0;

    if (value_check_env(value, e) < 0)
        return -1;
    for (; r->env && r->env[n]; n++) {
        if (strncmp(r->env[n], value, name + 1) != 0)
            continue;
        free(r->env[n]);
        r->env[n] = xstrdup(value);
        return 0;
    }
    r->env = xrealloc(r->env, (n + 2) * sizeof *r->env);
    r->env[n] = xstrdup(value);
    r->env[n + 1] = NULL;
    return 0;
}

/* Adds a mount; duplicates count once. */
int
attr_set_container_mount(struct request *r, const char *value, struct err *e)
{
    size_t n = 0;

    if (value_check_mount(value, e) < 0)
        return -1;
    while (r->container_mounts && r->container_mounts[n])
        if (strcmp(r->container_mounts[n++], value) == 0)
            return 0;
    if (n == MOUNTS_MAX)
        return err_set(e, ERR_USAGE, "more than the maximum of %d mounts", MOUNTS_MAX);
    r->container_mounts = xrealloc(r->container_mounts, (n + 2) * sizeof *r->container_mounts);
    r->container_mounts[n] = xstrdup(value);
    r->container_mounts[n + 1] = NULL;
    return 0;
}

static int
add_tag(struct request *r, const char *tag, struct err *e)
{
    size_t n = 0;

    if (value_check_text(tag, TAG_MAX_BYTES, e) < 0)
        return -1;
    for (; r->tags && r->tags[n]; n++)
        if (strcmp(r->tags[n], tag) == 0)
            return 0;
    if (n == TAGS_MAX)
        return err_set(e, ERR_USAGE, "more than the maximum of %d tags", TAGS_MAX);
    r->tags = xrealloc(r->tags, (n + 2) * sizeof *r->tags);
    r->tags[n] = xstrdup(tag);
    r->tags[n + 1] = NULL;
    return 0;
}

/* Tags accumulate, whether comma-separated or given one by one. */
int
attr_set_tag(struct request *r, const char *value, struct err *e)
{
    auto_free char *copy = xstrdup(value);
    char *rest = copy, *tag;

    while ((tag = strsep(&rest, ",")))
        if (add_tag(r, tag, e) < 0)
            return -1;
    return 0;
}

int
attr_take_gpu_names(struct request *r, char *names, int n, struct err *e)
{
    free(r->gpu_names);
    r->gpu_names = names;
    if (n > REQUEST_IDS_MAX)
        return err_set(e, ERR_USAGE, "names more than the maximum of %d GPUs", REQUEST_IDS_MAX);
    for (int i = 0; i < n; i++)
        r->demand.ids[i] = (uint8_t)i;
    r->demand.n_ids = (uint8_t)n;
    return 0;
}

/* "MIG-1234,0": each word is one GPU, which the daemon resolves. */
int
attr_read_gpu_names(struct request *r, const char *value, struct err *e)
{
    int n = 1;

    for (const char *s = value; *s; s++) {
        bool is_comma = *s == ',';
        n += is_comma;
        if ((is_comma && (s == value || s[1] == ',' || !s[1])) ||
            (!is_comma && *s != '-' && *s != '/' && !isalnum((unsigned char)*s)))
            return err_set(e, ERR_USAGE, "'%.80s' is no list of GPUs: 3,1 or UUIDs", value);
    }
    return attr_take_gpu_names(r, xstrdup(value), n, e);
}
