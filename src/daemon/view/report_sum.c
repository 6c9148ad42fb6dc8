/* Sums up ended jobs: by user, by command, by cause, over time; see report_data.h. */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "daemon/common/instance.h"
#include "daemon/common/user_names.h"
#include "daemon/view/report_data.h"

const int64_t report_wait_ms[REPORT_WAIT_CLASSES - 1] = {1000,    10000,    60000,   600000,
                                                         3600000, 21600000, 86400000};

bool
report_is_hidden(const struct report *r, uint32_t owner)
{
    const struct instance *inst = r->inst;
    return inst->places.system && inst->config.private && !r->admin && r->uid != owner;
}

bool
report_counts(const struct report *r, uint32_t uid, const char *user)
{
    const char *name = daemon_name_of(uid, user); /* so report_json.c finds it by uid */
    return !r->user || strcmp(r->user, name) == 0;
}

int64_t
report_bin_us(const struct report *r)
{
    int64_t span = r->until_us - r->from_us;
    return span > r->bins ? (span + r->bins - 1) / r->bins : 1;
}

/* From the earliest possible start to the actual one; -1: it never started. */
static int64_t
wait_ms(const struct store_ended *x)
{
    int64_t from_us = x->begin_us > x->submitted_us ? x->begin_us : x->submitted_us;
    if (!x->started_us)
        return -1;
    return x->started_us > from_us ? (x->started_us - from_us) / 1000 : 0;
}

/* Compares declared with measured VRAM of a completed job. */
static void
add_usage(const struct report *r, struct report_sums *s, const struct store_ended *x)
{
    int32_t tolerance = (int32_t)(r->inst->config.tolerance * 1000 + 0.5);
    if (x->n_cards == 0)
        return;
    s->gpu_jobs++;
    s->verdicts[account_verdict(x->vram_mib, x->peak_mib, tolerance)]++;
    if (x->peak_mib >= 0)
        spread_add(&s->peaks, x->peak_mib);
    if (x->vram_mib <= 0)
        return;
    if (!s->asked_mib)
        s->asked_mib = x->vram_mib;
    if (!s->asked_least_mib || x->vram_mib < s->asked_least_mib)
        s->asked_least_mib = x->vram_mib;
    if (x->peak_mib >= 0 && x->peak_mib < x->vram_mib)
        s->wasted_mib_ms += (int64_t)(x->vram_mib - x->peak_mib) * x->last_run_ms * x->n_cards;
}

/* The next demand is the one that explain and --oom-retries use. */
static void
add_oom(struct report_sums *s, const struct store_ended *x)
{
    int32_t next = account_oom_next_mib(x->peak_mib, x->vram_mib);
    s->oom_jobs++;
    if (x->vram_mib <= 0 || next <= s->oom_next_mib)
        return;
    s->oom_mib = x->vram_mib;
    s->oom_peak_mib = x->peak_mib;
    s->oom_next_mib = next;
}

static void
add(const struct report *r, struct report_sums *s, const struct store_ended *x)
{
    int64_t waited = wait_ms(x);
    s->jobs++;
    s->states[x->state]++;
    s->run_ms += x->run_ms;
    s->gpu_ms += x->gpu_ms;
    s->util_sum += x->util_sum;
    s->util_count += x->util_count;
    if (waited >= 0) {
        s->ran++;
        spread_add(&s->waits, waited);
    }
    if (x->state == JOB_COMPLETED)
        add_usage(r, s, x);
    if (x->state == JOB_OUT_OF_MEMORY && x->oom == OOM_CUDA)
        add_oom(s, x);
}

static struct report_user *
user_of(struct report *r, uint32_t uid)
{
    struct report_user *u;
    HASH_FIND(hh, r->users, &uid, sizeof uid, u);
    if (!u) {
        u = xcalloc(1, sizeof *u);
        u->uid = uid;
        HASH_ADD(hh, r->users, uid, sizeof uid, u);
    }
    return u;
}

/* NULL: the job has no fingerprint, or there are too many commands. */
static struct report_command *
command_of(struct report *r, const struct store_ended *x)
{
    struct report_command *c;
    struct report_command_key key;
    memset(&key, 0, sizeof key);
    key.uid = x->uid;
    memcpy(key.fingerprint, x->fingerprint, sizeof key.fingerprint);
    if (!x->fingerprint[0])
        return NULL;
    HASH_FIND(hh, r->commands, &key, sizeof key, c);
    if (!c && HASH_COUNT(r->commands) < REPORT_COMMANDS_MAX) {
        c = xcalloc(1, sizeof *c);
        c->key = key;
        c->newest = x->id;
        c->gpus = x->gpus;
        HASH_ADD(hh, r->commands, key, sizeof key, c);
    }
    return c;
}

/* Why the job did not complete. number: the exit code or signal. */
static enum report_cause
cause_of(const struct store_ended *x, int32_t *number)
{
    *number = 0;
    if (x->state == JOB_INFEASIBLE)
        return CAUSE_INFEASIBLE;
    if (x->state == JOB_CANCELLED)
        return x->never ? CAUSE_DEPENDENCY : CAUSE_CANCELLED;
    if (x->state == JOB_TIMEOUT)
        return CAUSE_TIMEOUT;
    if (x->state == JOB_PREEMPTED)
        return CAUSE_PREEMPTED;
    if (x->state == JOB_LOST)
        return CAUSE_LOST;
    if (x->state == JOB_OUT_OF_MEMORY)
        return x->oom == OOM_HOST ? CAUSE_HOST_OOM : CAUSE_CUDA_OOM;
    if (x->outcome == OUTCOME_SIGNALED) {
        *number = x->signal;
        return CAUSE_SIGNAL;
    }
    if (x->outcome == OUTCOME_EXCEEDED)
        return CAUSE_EXCEEDED;
    if (x->outcome != OUTCOME_EXITED)
        return CAUSE_NOT_STARTED;
    *number = x->code;
    return CAUSE_EXIT;
}

static void
add_failure(struct report *r, const struct store_ended *x)
{
    int32_t number;
    enum report_cause cause = cause_of(x, &number);
    int i = 0;
    while (i < r->n_failures &&
           (r->failures[i].cause != cause || r->failures[i].number != number))
        i++;
    if (i == REPORT_CAUSES_MAX) {
        r->failures_left_out++;
        return;
    }
    if (i == r->n_failures)
        r->failures[r->n_failures++] =
            (struct report_failure){.cause = cause, .number = number, .newest = x->id};
    r->failures[i].jobs++;
    r->failures[i].gpu_ms += x->gpu_ms;
}

static void
add_wait(struct report *r, const struct store_ended *x)
{
    int64_t waited = wait_ms(x), at = (x->started_us - r->from_us) / report_bin_us(r);
    int class = 0;
    if (waited < 0)
        return;
    while (class < REPORT_WAIT_CLASSES - 1 && waited >= report_wait_ms[class])
        class ++;
    r->wait_classes[class]++;
    if (at < 0 || at >= r->bins)
        return;
    struct report_wait_bin *bin = &r->wait_bins[at];
    bin->jobs++;
    bin->sum_ms += waited;
    bin->max_ms = waited > bin->max_ms ? waited : bin->max_ms;
}

static void
add_point(struct report *r, const struct store_ended *x)
{
    if (x->state != JOB_COMPLETED || x->vram_mib <= 0 || x->peak_mib < 0 ||
        r->n_scatter >= r->points)
        return;
    if (!r->scatter)
        r->scatter = xcalloc((unsigned long)r->points, sizeof *r->scatter);
    r->scatter[r->n_scatter++] = (struct report_point){x->vram_mib, x->peak_mib, x->id, x->uid};
}

void
report_add_ended(struct report *r, const struct store_ended *x)
{
    if (x->ended_us >= r->until_us || !report_counts(r, x->uid, x->user))
        return;
    struct report_command *command = command_of(r, x);
    add(r, &r->total, x);
    add(r, &user_of(r, x->uid)->sums, x);
    if (command)
        add(r, &command->sums, x);
    else
        r->commands_left_out++;
    if (x->state != JOB_COMPLETED)
        add_failure(r, x);
    add_wait(r, x);
    add_point(r, x);
}

static void
sums_free(struct report_sums *s)
{
    spread_free(&s->waits);
    spread_free(&s->peaks);
}

void
report_free(struct report *r)
{
    struct report_user *user, *next_user;
    struct report_command *command, *next_command;
    HASH_ITER(hh, r->users, user, next_user)
    {
        HASH_DEL(r->users, user);
        sums_free(&user->sums);
        free(user);
    }
    HASH_ITER(hh, r->commands, command, next_command)
    {
        HASH_DEL(r->commands, command);
        sums_free(&command->sums);
        free(command);
    }
    sums_free(&r->total);
    for (int i = 0; i < r->n_cards; i++)
        free(r->cards[i].bins);
    free(r->cards);
    free(r->scatter);
    free(r->user);
}
