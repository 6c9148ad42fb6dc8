/* The table of job attributes and the checks between them. Called by the jobs file's
 * parser, by the command line (which also makes its options and help from the table) and by
 * the daemon for what comes over the socket. A request that request_validate has passed is
 * one that the scheduler can take as it is. */
#include "spec/attr.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/request.h"
#include "base/text.h"

#define GPUS_UNSAID  (-1)
#define CPUS_MAX     65536
#define GRACE_MAX_MS (24LL * 3600 * 1000)
#define LIMIT_MAX_MS (36500LL * 24 * 3600 * 1000) /* as parse_duration_ms has it */
#define BOTH_DOORS   (ATTR_JOBS_FILE | ATTR_COMMAND_LINE)

static int
parse_int32(const char *value, int64_t min, int64_t max, int32_t *out, struct err *e)
{
    int64_t v;

    if (parse_int(value, min, max, &v, e) != 0)
        return -1;
    *out = (int32_t)v;
    return 0;
}

static int
parse_memory(const char *value, int32_t *out, struct err *e)
{
    int64_t mib;

    if (parse_size_mib(value, &mib, e) != 0)
        return -1;
    if (mib > VRAM_MAX_MIB)
        return err_set(e, ERR_USAGE, "'%.60s' is more than %dT, which is the most", value,
                       VRAM_MAX_MIB / (1024 * 1024));
    *out = (int32_t)mib;
    return 0;
}

/* Text that ends up in tables, file names and environments: UTF-8 without control bytes. */
static int
check_text(const char *value, size_t max, struct err *e)
{
    size_t n = strlen(value);

    if (n == 0)
        return err_set(e, ERR_USAGE, "must not be empty");
    if (n > max)
        return err_set(e, ERR_USAGE, "is %zu bytes long; the most is %zu", n, max);
    if (!text_is_utf8(value, n, NULL))
        return err_set(e, ERR_USAGE, "is not UTF-8 text");
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)value[i] < 0x20 || value[i] == 0x7f)
            return err_set(e, ERR_USAGE, "holds a control character");
    return 0;
}

static int
set_text(char **field, const char *value, size_t max, struct err *e)
{
    if (check_text(value, max, e) != 0)
        return -1;
    free(*field);
    *field = xstrdup(value);
    return 0;
}

static int
set_vram(struct request *r, const char *value, struct err *e)
{
    return parse_memory(value, &r->demand.vram_mib, e);
}

static int
set_gpus(struct request *r, const char *value, struct err *e)
{
    auto_buf struct buf shown = BUF_INIT;

    if (parse_int32(value, 0, GPU_MAX, &r->demand.gpus, NULL) == 0)
        return 0;
    text_add_safe(&shown, value, strlen(value), 60);
    return err_set(e, ERR_USAGE, "'%s' will not do; gpus takes a whole number from 0 to %d",
                   buf_str(&shown), GPU_MAX);
}

static int
set_gpu_ids(struct request *r, const char *value, struct err *e)
{
    uint8_t ids[REQUEST_IDS_MAX] = {0};
    int n = parse_index_list(value, ids, REQUEST_IDS_MAX, e);

    if (n < 0)
        return -1;
    memcpy(r->demand.ids, ids, sizeof(ids));
    r->demand.n_ids = (uint8_t)n;
    return 0;
}

static int
set_devices(struct request *r, const char *value, struct err *e)
{
    return parse_index_set(value, &r->demand.devices, e);
}

static int
set_exclusive(struct request *r, const char *value, struct err *e)
{
    bool yes;

    if (parse_bool(value, &yes, e) != 0)
        return -1;
    r->demand.exclusive = yes;
    return 0;
}

static int
set_cpus(struct request *r, const char *value, struct err *e)
{
    return parse_int32(value, 1, CPUS_MAX, &r->demand.cpus, e);
}

static int
set_mem(struct request *r, const char *value, struct err *e)
{
    return parse_memory(value, &r->demand.mem_mib, e);
}

static int
set_time(struct request *r, const char *value, struct err *e)
{
    return parse_duration_ms(value, 1000, &r->limit_ms, e);
}

static int
set_grace(struct request *r, const char *value, struct err *e)
{
    int64_t ms = 0;

    if (strcmp(value, "0") != 0 && parse_duration_ms(value, 1000, &ms, e) != 0)
        return -1;
    if (ms > GRACE_MAX_MS)
        return err_set(e, ERR_USAGE, "'%.60s' is longer than 24h, which is the most", value);
    r->grace_ms = ms;
    return 0;
}

static int
set_priority(struct request *r, const char *value, struct err *e)
{
    return parse_int32(value, PRIORITY_MIN, PRIORITY_MAX, &r->priority, e);
}

static int
set_retries(struct request *r, const char *value, struct err *e)
{
    return parse_int32(value, 0, RETRIES_MAX, &r->retries, e);
}

static int
set_oom_retries(struct request *r, const char *value, struct err *e)
{
    return parse_int32(value, 0, RETRIES_MAX, &r->oom_retries, e);
}

static int
set_name(struct request *r, const char *value, struct err *e)
{
    return set_text(&r->name, value, NAME_MAX_BYTES, e);
}

static int
set_log(struct request *r, const char *value, struct err *e)
{
    return set_text(&r->log, value, LOG_MAX_BYTES, e);
}

static int
set_hold(struct request *r, const char *value, struct err *e)
{
    return parse_bool(value, &r->hold, e);
}

static int
set_cancel(struct request *r, const char *value, struct err *e)
{
    return parse_bool(value, &r->cancel, e);
}

static int
set_requeue(struct request *r, const char *value, struct err *e)
{
    return parse_bool(value, &r->requeue, e);
}

static const struct attr attrs[] = {
    {"vram",
     {NULL},
     '\0',
     BOTH_DOORS,
     "SIZE",
     "GPU memory on each GPU (18G, 8192M; a bare number is MiB); shares the GPU",
     set_vram},
    {"gpus", {NULL}, 'G', BOTH_DOORS, "N", "how many GPUs, 0 to 64 (default 1)", set_gpus},
    {"gpu-ids",
     {NULL},
     '\0',
     BOTH_DOORS,
     "LIST",
     "exactly these GPUs, in this order (3,1)",
     set_gpu_ids},
    {"devices", {NULL}, '\0', BOTH_DOORS, "LIST", "any of these GPUs (0-3,6)", set_devices},
    {"exclusive",
     {NULL},
     '\0',
     BOTH_DOORS,
     NULL,
     "no other job beside it on its GPUs",
     set_exclusive},
    {"cpus", {NULL}, 'c', BOTH_DOORS, "N", "CPU cores to book", set_cpus},
    {"mem", {NULL}, '\0', BOTH_DOORS, "SIZE", "host memory to book (32G)", set_mem},
    {"time",
     {"timeout", "limit"},
     't',
     BOTH_DOORS,
     "TIME",
     "time limit (90s, 15m, 2h, 1d12h, 12:30:00; a bare number is seconds)",
     set_time},
    {"grace",
     {NULL},
     '\0',
     BOTH_DOORS,
     "TIME",
     "between TERM and KILL (default 10s)",
     set_grace},
    {"priority",
     {NULL},
     'p',
     BOTH_DOORS,
     "N",
     "-1000 to 1000, higher first (default 0)",
     set_priority},
    {"retries",
     {NULL},
     '\0',
     ATTR_COMMAND_LINE,
     "N",
     "run again after a failure, N times",
     set_retries},
    {"oom-retries",
     {NULL},
     '\0',
     ATTR_COMMAND_LINE,
     "N",
     "run again with more VRAM after a CUDA out-of-memory, N times",
     set_oom_retries},
    {"oom-retries",
     {"retries"},
     '\0',
     ATTR_JOBS_FILE,
     "N",
     "run again with more VRAM after a CUDA out-of-memory, N times",
     set_oom_retries},
    {"requeue",
     {NULL},
     '\0',
     BOTH_DOORS,
     NULL,
     "run again when it was lost (its supervisor died, the machine went down)",
     set_requeue},
    {"hold",
     {NULL},
     '\0',
     BOTH_DOORS,
     NULL,
     "queue it held; `berth release` lets it go",
     set_hold},
    {"cancel", {NULL}, '\0', ATTR_JOBS_FILE, NULL, "stop it, or never start it", set_cancel},
    {"name", {NULL}, 'J', BOTH_DOORS, "NAME", "a name for tables and selectors", set_name},
    {"log",
     {NULL},
     '\0',
     BOTH_DOORS,
     "FILE",
     "where output goes; %j is the job's number",
     set_log},
};
#define ATTRS (sizeof(attrs) / sizeof(attrs[0]))

const struct attr *
attr_at(size_t i)
{
    return i < ATTRS ? &attrs[i] : NULL;
}

/* Equal but for case and for `_` in the place of `-`. */
static bool
same_name(const char *said, const char *name)
{
    for (; *said && *name; said++, name++) {
        char a = *said == '_' ? '-' : *said;
        if (a != *name && (a < 'A' || a > 'Z' || a - 'A' + 'a' != *name))
            return false;
    }
    return *said == *name;
}

const struct attr *
attr_find(const char *name, enum attr_door door)
{
    for (size_t i = 0; i < ATTRS; i++) {
        const struct attr *a = &attrs[i];
        if (!(a->doors & door))
            continue;
        if (same_name(name, a->name))
            return a;
        for (size_t j = 0; j < ATTR_ALIASES_MAX && a->aliases[j]; j++)
            if (same_name(name, a->aliases[j]))
                return a;
    }
    return NULL;
}

void
request_begin(struct request *r)
{
    request_init(r);
    r->demand.gpus = GPUS_UNSAID;
}

/* Unknown: the nearest known name, else all of them. */
static int
refuse_name(const char *name, enum attr_door door, struct err *e)
{
    const char *known[ATTRS * (ATTR_ALIASES_MAX + 1) + 1];
    auto_buf struct buf shown = BUF_INIT, list = BUF_INIT;
    const char *nearest;
    size_t n = 0;

    for (size_t i = 0; i < ATTRS; i++) {
        if (!(attrs[i].doors & door))
            continue;
        buf_addf(&list, "%s%s", n ? ", " : "", attrs[i].name);
        known[n++] = attrs[i].name;
        for (size_t j = 0; j < ATTR_ALIASES_MAX && attrs[i].aliases[j]; j++)
            known[n++] = attrs[i].aliases[j];
    }
    known[n] = NULL;
    nearest = text_nearest(name, known);
    text_add_safe(&shown, name, strlen(name), 60);
    if (nearest)
        return err_set(e, ERR_USAGE, "'%s' is not an attribute; did you mean '%s'?",
                       buf_str(&shown), nearest);
    return err_set(e, ERR_USAGE, "'%s' is not an attribute; there are %s", buf_str(&shown),
                   buf_str(&list));
}

int
attr_set(struct request *r, const char *name, const char *value, enum attr_door door,
         struct err *e)
{
    const struct attr *a = attr_find(name, door);

    if (!a)
        return refuse_name(name, door, e);
    if (!value && a->metavar)
        return err_set(e, ERR_USAGE, "%s needs a value: %s=%s", a->name, a->name, a->metavar);
    if (a->set(r, value ? value : "yes", e) != 0)
        return err_prefix(e, "%s", a->name);
    return 0;
}

/* What asks for no GPU may not ask for one of a kind. */
static int
check_no_gpu(const struct demand *d, struct err *e)
{
    const char *other = d->vram_mib    ? "vram"
                        : d->devices   ? "devices"
                        : d->exclusive ? "exclusive"
                                       : NULL;

    if (other)
        return err_set(e, ERR_USAGE,
                       "gpus=0 asks for no GPU, so %s means nothing; leave one of them out",
                       other);
    return 0;
}

static int
check_ids(const struct demand *d, struct err *e)
{
    uint64_t seen = 0;

    if (d->n_ids > REQUEST_IDS_MAX)
        return err_set(e, ERR_USAGE, "gpu-ids names %d GPUs; the most is %d", d->n_ids,
                       REQUEST_IDS_MAX);
    for (int i = 0; i < d->n_ids; i++) {
        if (d->ids[i] >= GPU_MAX)
            return err_set(e, ERR_USAGE, "gpu-ids names GPU %d; the highest index is %d",
                           d->ids[i], GPU_MAX - 1);
        if (seen & UINT64_C(1) << d->ids[i])
            return err_set(e, ERR_USAGE, "gpu-ids names GPU %d twice", d->ids[i]);
        seen |= UINT64_C(1) << d->ids[i];
    }
    if (d->n_ids && d->devices)
        return err_set(e, ERR_USAGE,
                       "gpu-ids says which GPUs, so devices has nothing to choose from; leave "
                       "one of them out");
    if (d->n_ids && d->gpus != d->n_ids)
        return err_set(e, ERR_USAGE, "gpus=%d, but gpu-ids names %d; leave gpus out", d->gpus,
                       d->n_ids);
    return 0;
}

static int
check_range(const char *what, int64_t v, int64_t min, int64_t max, struct err *e)
{
    if (v >= min && v <= max)
        return 0;
    return err_set(e, ERR_USAGE, "%s=%lld is out of range; it goes from %lld to %lld", what,
                   (long long)v, (long long)min, (long long)max);
}

static int
check_ranges(const struct request *r, struct err *e)
{
    const struct demand *d = &r->demand;

    if (check_range("gpus", d->gpus, 0, GPU_MAX, e) != 0 ||
        check_range("vram (MiB)", d->vram_mib, 0, VRAM_MAX_MIB, e) != 0 ||
        check_range("cpus", d->cpus, 0, CPUS_MAX, e) != 0 ||
        check_range("mem (MiB)", d->mem_mib, 0, VRAM_MAX_MIB, e) != 0 ||
        check_range("priority", r->priority, PRIORITY_MIN, PRIORITY_MAX, e) != 0 ||
        check_range("retries", r->retries, 0, RETRIES_MAX, e) != 0 ||
        check_range("oom-retries", r->oom_retries, -1, RETRIES_MAX, e) != 0 ||
        check_range("time (ms)", r->limit_ms, 0, LIMIT_MAX_MS, e) != 0)
        return -1;
    return check_range("grace (ms)", r->grace_ms, 0, GRACE_MAX_MS, e);
}

static int
check_texts(const struct request *r, struct err *e)
{
    if (!r->command == !r->argv)
        return err_set(e, ERR_USAGE,
                       r->command ? "a command and an argv; give one of them"
                                  : "there is no command to run");
    if (r->argv && !r->argv[0])
        return err_set(e, ERR_USAGE, "there is no command to run");
    if (r->command && !r->command[strspn(r->command, " \t\r\n")])
        return err_set(e, ERR_USAGE, "the command is empty");
    if (r->name && check_text(r->name, NAME_MAX_BYTES, e) != 0)
        return err_prefix(e, "name");
    if (r->log && check_text(r->log, LOG_MAX_BYTES, e) != 0)
        return err_prefix(e, "log");
    return 0;
}

int
request_validate(struct request *r, struct err *e)
{
    struct demand *d = &r->demand;

    if (d->gpus == GPUS_UNSAID)
        d->gpus = d->n_ids ? d->n_ids : 1;
    if (check_ranges(r, e) != 0 || check_ids(d, e) != 0 || check_texts(r, e) != 0)
        return -1;
    if (d->gpus == 0)
        return check_no_gpu(d, e);
    if (d->devices && __builtin_popcountll(d->devices) < d->gpus)
        return err_set(e, ERR_USAGE, "gpus=%d, but devices names only %d", d->gpus,
                       __builtin_popcountll(d->devices));
    return 0;
}
