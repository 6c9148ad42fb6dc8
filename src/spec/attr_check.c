/* Checks what no single attribute can: contradictions between attributes, and all ranges again
 * for requests from the wire. The scheduler can accept any request that passes
 * request_validate. Every door calls it last. */
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/request.h"
#include "base/text.h"
#include "spec/attr.h"
#include "spec/slurm/attr_slurm.h"
#include "spec/value.h"

#define GPUS_UNSAID (-1)

void
request_begin(struct request *r)
{
    request_init(r);
    r->demand.gpus = GPUS_UNSAID;
}

int
attr_check_signal(int signal, struct err *e)
{
    if (signal == SIGKILL || signal == SIGSTOP)
        return err_set(
            e, ERR_USAGE,
            "%s cannot be caught, so it cannot be a warning; write USR2@60 or TERM@60",
            signal == SIGKILL ? "KILL" : "STOP");
    return 0;
}

/* The first attribute set that concerns GPUs; NULL: none. */
static const char *
about_gpus(const struct request *r)
{
    const struct demand *d = &r->demand;

    return d->vram_mib            ? "vram"
           : r->vram_auto         ? "vram"
           : d->share_permille    ? "share"
           : d->devices           ? "devices"
           : d->exclusive         ? "exclusive"
           : d->gpu_type[0]       ? "gpu-type"
           : d->min_vram_mib      ? "min-vram"
           : d->min_cc            ? "gpu-cc"
           : d->max_used_permille ? "max-used"
           : d->max_load_permille ? "max-load"
           : d->margin_mib != -1  ? "margin"
           : d->idle_mib          ? "idle"
           : d->placement         ? "placement"
           : d->vram_cap          ? "vram-cap"
           : r->on_exceed         ? "on-exceed"
           : d->cpu_bind          ? "cpu-bind"
                                  : NULL;
}

/* A request without a GPU may not ask for properties of one. */
static int
check_no_gpu(const struct request *r, struct err *e)
{
    const char *other = about_gpus(r);

    if (other)
        return err_set(e, ERR_USAGE,
                       "gpus=0 requests no GPU, so %s has no effect; omit one of them", other);
    return 0;
}

static int
check_ids(const struct demand *d, struct err *e)
{
    uint64_t seen = 0;

    if (d->n_ids > REQUEST_IDS_MAX)
        return err_set(e, ERR_USAGE, "gpu-ids names %d GPUs; the maximum is %d", d->n_ids,
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
                       "gpu-ids and devices exclude each other; omit one of them");
    if (d->n_ids && d->gpus != d->n_ids)
        return err_set(e, ERR_USAGE, "gpus=%d, but gpu-ids names %d; omit gpus", d->gpus,
                       d->n_ids);
    return 0;
}

static int
check_share(const struct demand *d, struct err *e)
{
    if (d->share_permille && d->gpus > 1)
        return err_set(e, ERR_USAGE,
                       "a share is of one GPU, but gpus=%d; omit share for whole GPUs, or use "
                       "vram to share several",
                       d->gpus);
    if (d->share_permille && d->exclusive)
        return err_set(e, ERR_USAGE,
                       "share and exclusive exclude each other; omit one of them");
    return 0;
}

static const char *
unit_of(const struct attr *a)
{
    return a->kind == ATTR_MIB        ? " (MiB)"
           : a->kind == ATTR_PERMILLE ? " (thousandths)"
           : a->kind == ATTR_TENTHS   ? " (tenths)"
           : a->kind == ATTR_MS       ? " (ms)"
           : a->kind == ATTR_US       ? " (us)"
                                      : "";
}

/* Accepts the default explicitly, even if it lies outside the range. */
static int
check_range(const struct attr *a, const struct request *r, struct err *e)
{
    int64_t v = attr_number(a, r), unsaid = attr_default(a);
    int64_t min = unsaid < a->min ? unsaid : a->min;

    if (v >= min && v <= a->max)
        return 0;
    return err_set(e, ERR_USAGE, "%s%s=%lld is out of range; it goes from %lld to %lld",
                   a->name ? a->name : a->key, unit_of(a), (long long)v, (long long)min,
                   (long long)a->max);
}

/* Checks a field against its row. */
static int
check_field(const struct attr *a, const struct request *r, struct err *e)
{
    const char *text;

    switch (a->kind) {
    case ATTR_INT:
    case ATTR_MIB:
    case ATTR_PERMILLE:
    case ATTR_TENTHS:
    case ATTR_MS:
    case ATTR_US:
        return check_range(a, r, e);
    case ATTR_TEXT:
    case ATTR_HOOK:
        text = attr_text(a, r);
        if (text && ((a->bytes && value_check_text(text, a->bytes, e) < 0) ||
                     (a->check && a->check(text, e) < 0)))
            return err_prefix(e, "%s", a->name);
        return 0;
    case ATTR_NOTHING:
    case ATTR_FLAG:
    case ATTR_CHOICE:
    case ATTR_LIST:
    case ATTR_MAIL:
    case ATTR_CARDS:
    case ATTR_IDS:
    case ATTR_TYPE:
    case ATTR_TASKS:
    case ATTR_DEPS:
        return 0;
    }
    return 0;
}

static int
check_fields(const struct request *r, struct err *e)
{
    const struct attr *a;

    for (size_t i = 0; (a = attr_at(i)); i++)
        if (check_field(a, r, e) < 0)
            return -1;
    return 0;
}

/* NCCL uses USR1 itself, so USR1 is allowed only where the sender chose it knowingly: in
 * Slurm's scripts, and where only the command's own process receives it. */
static int
check_warning(const struct request *r, struct err *e)
{
    if (!r->warn_signal)
        return 0;
    if (attr_check_signal(r->warn_signal, e) < 0)
        return err_prefix(e, "signal");
    if (r->warn_signal == SIGUSR1 && !r->slurm_env && !r->warn_batch)
        return err_set(e, ERR_USAGE, "signal: USR1 is NCCL's own; write USR2@60");
    if (r->limit_ms && r->warn_ms >= r->limit_ms)
        return err_set(e, ERR_USAGE,
                       "signal: the warning would come %lld s before a limit of %lld s; warn "
                       "later, or raise time",
                       (long long)(r->warn_ms / 1000), (long long)(r->limit_ms / 1000));
    return 0;
}

static int
check_deps(const struct request *r, struct err *e)
{
    if (r->n_deps > DEPS_MAX)
        return err_set(e, ERR_USAGE, "after names %d jobs; the maximum is %d", r->n_deps,
                       DEPS_MAX);
    for (int i = 0; i < r->n_deps; i++) {
        const struct dep *d = &r->deps[i];
        if (!d->job == !d->name || d->task < -1 || d->task >= ARRAY_MAX ||
            (d->name && d->task >= 0))
            return err_set(e, ERR_USAGE,
                           "after: each is a job's number, a task of it, or a "
                           "name");
        if (d->name && value_check_text(d->name, NAME_MAX_BYTES, e) < 0)
            return err_prefix(e, "after: a job's name");
        for (int j = 0; j < i; j++) {
            const struct dep *o = &r->deps[j];
            if (o->type != d->type && d->job && o->job == d->job && o->task == d->task &&
                o->type != DEP_ANY && d->type != DEP_ANY)
                return err_set(e, ERR_USAGE,
                               "it cannot run both after job %u has completed and after it has "
                               "failed; use after-any",
                               d->job);
        }
    }
    return 0;
}

/* An array's tasks share one name, so a singleton array runs one task at a time. */
static int
check_singleton(struct request *r, struct err *e)
{
    if (r->singleton && !r->name)
        return err_set(e, ERR_USAGE,
                       "singleton: it runs alone among jobs of its name, but has no name; add "
                       "a name");
    if (r->singleton && r->array.n)
        r->array_max = 1;
    return 0;
}

/* An interactive job has a user at its terminal, who can attend to one job at a time. */
static int
check_interactive(struct request *r, struct err *e)
{
    if (r->screen && r->interactive && !r->pty)
        return err_set(e, ERR_USAGE,
                       "a job in a screen session is on a terminal: use pty instead of "
                       "interactive, or omit one of them");
    if (r->error && (r->interactive || r->pty || r->screen))
        return err_set(e, ERR_USAGE,
                       "error: %s has one stream for output and errors; omit error, or "
                       "redirect in the command: 2> FILE",
                       r->screen ? "a screen session" : "an interactive job");
    r->interactive |= r->pty;
    if (r->interactive && r->array.n)
        return err_set(e, ERR_USAGE,
                       "an array's tasks cannot be %s; submit one of them without --array",
                       r->pty ? "on a terminal (pty)" : "interactive");
    return 0;
}

/* A set-up may have several lines, so only its size and encoding are checked. */
static int
check_setup(const struct request *r, struct err *e)
{
    size_t n = r->env_setup ? strlen(r->env_setup) : 0;

    if (n > SETUP_MAX_BYTES)
        return err_set(e, ERR_USAGE, "env-setup is %zu bytes long; the maximum is %d", n,
                       SETUP_MAX_BYTES);
    if (n > 0 && !text_is_utf8(r->env_setup, n, NULL))
        return err_set(e, ERR_USAGE, "env-setup is not UTF-8 text");
    if (!r->conda || !r->conda[0])
        return 0;
    if (value_check_text(r->conda, CONDA_MAX_BYTES, e) < 0)
        return err_prefix(e, "conda");
    if (r->conda[0] == '-')
        return err_set(e, ERR_USAGE, "conda: '%.60s' is not the name of an environment",
                       r->conda);
    return 0;
}

/* These variables are added to the submitter's environment, so their sum has its own limit. */
static int
check_env(const struct request *r, struct err *e)
{
    size_t sum = 0;

    for (char *const *entry = r->env; entry && *entry; entry++) {
        if (value_check_env(*entry, e) < 0)
            return err_prefix(e, "env");
        sum += strlen(*entry) + 1;
    }
    if (sum > ENV_MAX_BYTES)
        return err_set(e, ERR_USAGE, "env: %zu bytes in total; the maximum is %d", sum,
                       ENV_MAX_BYTES);
    return 0;
}

/* A set-up is shell text of this machine, whose paths do not exist in the image. */
static int
check_container(const struct request *r, struct err *e)
{
    const char *other = r->env_setup && r->env_setup[0] ? "env-setup"
                        : r->conda && r->conda[0]       ? "conda"
                        : r->login                      ? "login"
                                                        : NULL;

    if (!r->container)
        return r->container_mounts
                   ? err_set(e, ERR_USAGE, "container-mount has no effect without container")
                   : 0;
    if (other)
        return err_set(e, ERR_USAGE,
                       "container and %s exclude each other: an image has its own environment; "
                       "omit %s, or do it in the command",
                       other, other);
    for (char *const *mount = r->container_mounts; mount && *mount; mount++)
        if (value_check_mount(*mount, e) < 0)
            return err_prefix(e, "container-mount");
    return 0;
}

static int
check_command(const struct request *r, struct err *e)
{
    if (!r->command == !r->argv)
        return err_set(e, ERR_USAGE,
                       r->command ? "both a command and an argv; give one of them"
                                  : "there is no command to run");
    if (r->argv && !r->argv[0])
        return err_set(e, ERR_USAGE, "there is no command to run");
    if (r->command && !r->command[strspn(r->command, " \t\r\n")])
        return err_set(e, ERR_USAGE, "the command is empty");
    return check_env(r, e);
}

int
request_validate(struct request *r, struct err *e)
{
    struct demand *d = &r->demand;

    if (d->gpus == GPUS_UNSAID)
        d->gpus = d->n_ids ? d->n_ids : 1;
    if (check_fields(r, e) < 0 || check_ids(d, e) < 0 || check_share(d, e) < 0 ||
        check_warning(r, e) < 0 || check_deps(r, e) < 0 || check_singleton(r, e) < 0 ||
        check_interactive(r, e) < 0 || check_setup(r, e) < 0 || check_container(r, e) < 0 ||
        check_command(r, e) < 0)
        return -1;
    if (d->engine == ENGINE_SLURM && slurm_check(r, e) < 0)
        return -1;
    if (d->gpus == 0)
        return check_no_gpu(r, e);
    if (r->vram_auto && d->vram_mib > 0)
        return err_set(e, ERR_USAGE,
                       "vram=auto and vram_mib exclude each other; omit one of them");
    if (d->devices && __builtin_popcountll(d->devices) < d->gpus)
        return err_set(e, ERR_USAGE, "gpus=%d, but devices names only %d", d->gpus,
                       __builtin_popcountll(d->devices));
    return 0;
}

const char *
request_idle_option(const struct request *r, const char **why)
{
    bool requeues = r->on_timeout == ON_TIMEOUT_REQUEUE;
    bool bounds = r->max_requeues != REQUEUES_DEFAULT;

    *why = "a job without a time limit gets no warning";
    if (r->warn_signal && !r->limit_ms)
        return "signal";
    *why = "a job without a time limit is never queued again for it";
    if ((requeues || bounds) && !r->limit_ms)
        return requeues ? "on-timeout" : "max-requeues";
    *why = "a job is queued again at its time limit only with on-timeout=requeue";
    return bounds && !requeues ? "max-requeues" : NULL;
}
