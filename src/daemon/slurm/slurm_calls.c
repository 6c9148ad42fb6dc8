/* Slurm's commands: one at a time, and at most one per second, however many jobs there are.
 * The most urgent comes first: requested ends, then lots that wait to be sent, then squeue,
 * which is delayed by at most POLL_LATE_US. squeue runs often while something changes and
 * seldom otherwise, because starts and ends are seen in the folders. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/crash.h"
#include "base/log.h"
#include "base/text.h"
#include "core/queue/queue.h"
#include "daemon/common/folder_name.h"
#include "daemon/common/instance.h"
#include "daemon/common/turn_due.h"
#include "daemon/slurm/slurm_command.h"
#include "daemon/slurm/slurm_priv.h"
#include "daemon/state/state.h"
#include "slurm/haste.h"
#include "slurm/sent_options.h"
#include "sys/slurm_find.h"

#define PACE_US       S_US
#define DEADLINE_MS   60000
#define POLL_FIRST_US S_US
#define POLL_MAX_US   (10 * S_US)
#define POLL_LATE_US  (5 * S_US)
#define POLL_COST     20 /* pause after squeue as a multiple of its duration, up to: */
#define REST_MAX_US   (30 * S_US)

static const char *const names[] = {
    [CALL_SBATCH] = "sbatch", [CALL_SQUEUE] = "squeue", [CALL_SCANCEL] = "scancel"};

static void on_done(void *arg, struct buf *out, struct buf *errors, bool late);

/* Trouble is logged when it begins or changes, and when it is over. Errors of sbatch belong to
 * the lot or the allocations, all others to the engine. */
static void
set_trouble(struct err *trouble, const char *name, const char *words)
{
    struct err e = {0};
    err_set(&e, ERR_FAILED, "%s: %.*s", name, (int)strcspn(words, "\n"), words);
    if (strcmp(e.text, trouble->text) != 0)
        log_warn("event=slurm-trouble %s", e.text);
    *trouble = e;
}

static void
clear_trouble(struct err *trouble)
{
    if (trouble->code)
        log_info("event=slurm-answers");
    *trouble = (struct err){0};
}

static struct err *
trouble_of(struct slurm *s, enum slurm_call call)
{
    if (call != CALL_SBATCH)
        return &s->trouble;
    return s->sending ? &s->sending->trouble : &s->pack_trouble;
}

int
slurm_start_call(struct slurm *s, enum slurm_call call, struct buf *args,
                 const struct buf *input)
{
    struct err e = {0};
    size_t n = 1;
    int64_t now = clock_boot_us();
    auto_free char *program = slurm_find(s->inst->config.slurm_commands, names[call], &e);
    s->next_call_us = now + PACE_US;
    for (size_t i = 0; i < args->len; i++)
        n += args->data[i] == '\0';
    auto_free char **argv = xcalloc(n + 1, sizeof *argv);
    argv[0] = program;
    n = 1;
    for (char *a = args->data; a && a < args->data + args->len; a += strlen(a) + 1)
        argv[n++] = a;
    if (!program ||
        slurm_start(s->inst->loop, argv, input, DEADLINE_MS, on_done, s, &s->command, &e) < 0) {
        set_trouble(trouble_of(s, call), names[call], e.text);
        return -1;
    }
    s->call = call;
    s->call_began_us = now;
    return 0;
}

/* --- sbatch --- */

/* The batch script runs our own program with the folder of the attempt. A task of an array
 * selects its folder by its number. */
static int
write_script(const struct slurm *s, const struct lot *lot, struct buf *out, struct err *e)
{
    auto_free char *program = places_program("berth-shepherd", e);
    auto_free char *jobs = shared_folder_path(s->inst, "jobs");
    char name[32];
    if (!program)
        return -1;
    buf_adds(out, "#!/bin/sh\nset --");
    for (int32_t i = 0; i < lot->n; i++) {
        const struct remote *r = lot->members[i];
        buf_addf(out, " %s", r ? folder_name(r->job, r->attempt, name) : "-");
    }
    buf_adds(out, "\nshift \"${SLURM_ARRAY_TASK_ID:-0}\"\nexec ");
    text_add_quoted(out, program);
    buf_adds(out, " --slurm ");
    text_add_quoted(out, jobs);
    buf_adds(out, "/\"$1\"\n");
    return 0;
}

/* The index after the last member included in this send. */
static int32_t
send_end(const struct lot *lot)
{
    int32_t i = 0, n = 0;
    for (; i < lot->n && (lot->most == 0 || n < lot->most); i++)
        n += lot->members[i] && slurm_is_to_send(lot->members[i]);
    return i;
}

static int32_t
count_unsent(const struct lot *lot)
{
    int32_t n = 0;
    for (int32_t i = 0; i < lot->n; i++)
        n += lot->members[i] && slurm_is_to_send(lot->members[i]);
    return n;
}

static void
add_array(const struct lot *lot, struct buf *out)
{
    const char *before = "--array=";
    int32_t end = send_end(lot);
    if (lot->n == 1)
        return;
    for (int32_t i = 0; i < end; i++) {
        int32_t first = i;
        while (i < end && lot->members[i] && slurm_is_to_send(lot->members[i]))
            i++;
        if (i == first)
            continue;
        buf_addf(out, i - first > 1 ? "%s%d-%d" : "%s%d", before, first, i - 1);
        before = ",";
    }
    buf_addc(out, '\0');
}

static const struct job *
first_to_send(const struct slurm *s, const struct lot *lot)
{
    const struct job *job = NULL;
    for (int32_t i = 0; i < lot->n && !job; i++)
        if (lot->members[i] && slurm_is_to_send(lot->members[i]))
            job = slurm_job_of(s, lot->members[i]);
    return job;
}

static void
add_sbatch(const struct slurm *s, const char *key, struct buf *out)
{
    auto_free char *comment = xasprintf("--comment=" SLURM_MARK "%s", key);
    auto_free char *logs = shared_folder_logs(s->inst, s->inst->shared.number);
    auto_free char *output = xasprintf("--output=%s/slurm.log", logs);
    buf_addz(out, "--parsable");
    buf_addz(out, comment);
    buf_addz(out, "--export=ALL"); /* with a list, nodes would run a login shell */
    buf_addz(out, "--chdir=/");
    buf_addz(out, output);
    buf_addz(out, "--open-mode=append");
}

/* Schedules a retry after a backoff, no sooner than already scheduled. */
static void
again(struct lot *lot)
{
    int64_t at = clock_boot_us() + slurm_pause_us(&lot->pause_us);
    lot->due_us = lot->waits && lot->due_us > at ? lot->due_us : at;
    lot->waits = true;
}

/* Marks the members of this send as sent before it is tried: from then on only squeue can show
 * that they were not. */
static void
set_sent(struct lot *lot)
{
    int64_t now = clock_boot_us();
    int32_t end = send_end(lot);
    for (int32_t i = 0; i < lot->n; i++) {
        struct remote *r = lot->members[i];
        if (!r)
            continue;
        r->sent_us = 0; /* from an earlier send */
        if (i >= end || !slurm_is_to_send(r))
            continue;
        r->is_sent = true;
        r->sent_us = r->pulse_us = now;
        r->sends++;
        r->gone_us = 0;
        r->gone_polls = 0;
    }
}

/* Reverts set_sent when Slurm certainly took none of them. */
static void
set_unsent(struct lot *lot)
{
    for (int32_t i = 0; i < lot->n; i++) {
        struct remote *r = lot->members[i];
        if (!r || r->sent_us == 0 || r->began)
            continue;
        r->is_sent = false;
        r->sent_us = 0;
        r->sends--;
        r->gone_us = 0;
        r->gone_polls = 0;
    }
}

static void
send_lot(struct slurm *s, struct lot *lot)
{
    auto_buf struct buf args = BUF_INIT, script = BUF_INIT;
    struct err e = {0};
    const struct job *job = first_to_send(s, lot);
    lot->waits = false;
    if (!job)
        return;
    if (write_script(s, lot, &script, &e) < 0) {
        set_trouble(&lot->trouble, "sbatch", e.text);
        again(lot);
        return;
    }
    add_sbatch(s, lot->key, &args);
    slurm_add_options(&job->req, slurm_lot_has_one_name(s, lot), &s->inst->config, &args);
    add_array(lot, &args);
    crash_point("slurm-before-sbatch");
    set_sent(lot);
    s->sending = lot;
    if (slurm_start_call(s, CALL_SBATCH, &args, &script) < 0) {
        s->sending = NULL;
        set_unsent(lot);
        again(lot);
        return;
    }
    lot->live++;
    crash_point("slurm-sbatch-started");
}

static void
send_alloc(struct slurm *s, struct alloc *a)
{
    auto_buf struct buf args = BUF_INIT, script = BUF_INIT;
    struct err e = {0};
    add_sbatch(s, a->key, &args);
    crash_point("slurm-before-sbatch");
    if (slurm_send_alloc(s, a, &args, &script, &e) < 0)
        set_trouble(&s->pack_trouble, "sbatch", e.text);
    if (e.code || slurm_start_call(s, CALL_SBATCH, &args, &script) < 0) {
        a->is_sent = false;
        a->due_us = clock_boot_us() + slurm_pause_us(&a->pause_us);
        return;
    }
    s->sending_alloc = a;
    crash_point("slurm-sbatch-started");
}

static void
set_id(struct slurm *s, struct remote *r, const char *id, bool is_task)
{
    struct job *job = slurm_job_of(s, r);
    char text[sizeof job->run->sent.id];
    if (!job || r->ended)
        return;
    snprintf(text, sizeof text, is_task ? "%.11s_%d" : "%.11s", id, r->index);
    if (strcmp(text, job->run->sent.id) == 0)
        return;
    memcpy(job->run->sent.id, text, sizeof text);
    state_save(s->inst->state, job, SAVE_ATTEMPT);
}

static void
each_just_sent(struct slurm *s, struct lot *lot,
               void (*fn)(struct slurm *, struct remote *, void *), void *arg)
{
    for (int32_t i = 0; i < lot->n; i++)
        if (lot->members[i] && lot->members[i]->sent_us != 0 && lot->members[i]->is_sent)
            fn(s, lot->members[i], arg);
}

static void
on_accepted(struct slurm *s, struct remote *r, void *id)
{
    set_id(s, r, id, r->lot->n > 1);
}

static void
on_refused(struct slurm *s, struct remote *r, void *words)
{
    slurm_refuse(s, r, words);
}

/* Tries half as many next, of which Slurm may take some, without increasing the backoff. */
static void
send_fewer(struct lot *lot, int32_t n)
{
    lot->is_limited = true;
    if (n > 1)
        lot->pause_us = 0;
    lot->most = n > 1 ? n / 2 : 1;
}

/* Schedules the rest, twice as many at a time, because the limit may be gone. */
static void
set_taken(struct lot *lot)
{
    bool more = lot->most > 0 && count_unsent(lot) > 0;
    lot->pause_us = 0;
    lot->is_limited = false;
    clear_trouble(&lot->trouble);
    lot->most = more ? lot->most * 2 : 0;
    if (more) {
        lot->waits = true;
        lot->due_us = 0;
    }
}

static int32_t
count_just_sent(const struct lot *lot)
{
    int32_t n = 0;
    for (int32_t i = 0; i < lot->n; i++)
        n += lot->members[i] && lot->members[i]->sent_us != 0;
    return n;
}

static void
take_sbatch_of_lot(struct slurm *s, struct lot *lot, const char *id, enum slurm_refusal why,
                   char *words)
{
    if (id) {
        log_info("event=sent key=%s slurm_job=%s jobs=%d", lot->key, id, count_just_sent(lot));
        set_taken(lot);
        each_just_sent(s, lot, on_accepted, (void *)(uintptr_t)id);
        return;
    }
    log_warn("event=not-sent key=%s %.*s", lot->key, (int)strcspn(words, "\n"), words);
    if (why == SLURM_NEVER) {
        lot->pause_us = 0; /* it answers */
        each_just_sent(s, lot, on_refused, words);
    } else {
        set_trouble(&lot->trouble, "sbatch", words);
    }
    if (why == SLURM_LATER) {
        lot->is_limited = false;
        if (slurm_is_limit(words))
            send_fewer(lot, count_just_sent(lot));
        set_unsent(lot);
    }
    if (count_unsent(lot) > 0) /* also members beyond this send */
        again(lot);
}

static void
take_sbatch(struct slurm *s, struct lot *lot, struct alloc *alloc, struct buf *out,
            struct buf *errors, bool late)
{
    char nothing[] = "", silent[] = "it does not answer";
    const char *id = late ? NULL : slurm_read_id(out->data ? out->data : nothing);
    char *words = errors->len ? errors->data : silent;
    enum slurm_refusal why = late || !errors->len ? SLURM_UNKNOWN : slurm_refusal_of(words);
    crash_point("slurm-sbatch-answered");
    s->are_ids_old |= !id && why != SLURM_NEVER && !slurm_is_limit(words);
    if (alloc && id)
        clear_trouble(&s->pack_trouble);
    else if (alloc && why != SLURM_NEVER)
        set_trouble(&s->pack_trouble, "sbatch", words);
    char *at = why == SLURM_NEVER ? strstr(words, "Batch job submission failed: ") : NULL;
    words = at ? strchr(at, ':') + 2 : words;
    if (alloc)
        slurm_alloc_sent(s, alloc, id, why, words);
    else
        take_sbatch_of_lot(s, lot, id, why, words);
}

/* --- squeue --- */

static void
ask_squeue(struct slurm *s)
{
    auto_buf struct buf args = BUF_INIT;
    auto_free char *user = xasprintf("--user=%u", (unsigned)getuid());
    buf_addz(&args, "--array");
    buf_addz(&args, "--states=all");
    buf_addz(&args, user);
    buf_addz(&args, "--format=" SLURM_FORMAT);
    s->poll_us = 0;
    if (slurm_start_call(s, CALL_SQUEUE, &args, NULL) < 0) {
        s->are_ids_old = true;
        s->polled_us = clock_boot_us();
        s->poll_us = s->polled_us + POLL_MAX_US;
    }
}

static int
liveliness(enum slurm_phase phase)
{
    return phase == SLURM_RUNS ? 2 : phase == SLURM_WAITS ? 1 : 0;
}

/* True for the record that Slurm lists of an array without tasks left, which looks like a
 * single job. */
static bool
is_empty_array(const struct remote *r, const struct job *job, const struct slurm_job *j)
{
    size_t n = strlen(j->array);
    const char *id = job->run->sent.id;
    return !j->is_task && (r->lot->n > 1 || (strncmp(id, j->array, n) == 0 && id[n] == '_'));
}

/* An uncertain send can make two jobs of one attempt: the one that may still run counts. */
static void
take_job(struct slurm *s, const struct slurm_job *j)
{
    struct remote *r = slurm_member(s, j->key, j->index);
    struct job *job = r ? slurm_job_of(s, r) : NULL;
    enum slurm_phase phase = slurm_phase_of(j->state);
    if (!job || !r->is_sent || is_empty_array(r, job, j))
        return;
    if (r->is_known && liveliness(r->phase) >= liveliness(phase))
        return;
    if (r->phase != phase)
        s->poll_pause_us = POLL_FIRST_US;
    r->is_known = r->was_listed = true;
    r->phase = phase;
    if (strcmp(j->state, "RUNNING") == 0 && strcmp(r->state, "RUNNING") != 0)
        r->pulse_us = clock_boot_us(); /* it was silent while Slurm had it suspended */
    snprintf(r->state, sizeof r->state, "%s", j->state);
    snprintf(r->reason, sizeof r->reason, "%s", j->reason);
    snprintf(r->node, sizeof r->node, "%s", j->node);
    r->start_s = j->start_s;
    if (r->node[0] && slurm_is_its_run(r, job))
        snprintf(job->run->sent.node, sizeof job->run->sent.node, "%s", j->node);
    set_id(s, r, j->array, j->is_task);
}

static void
take_lines(struct slurm *s, char *text)
{
    for (char *end; (end = strchr(text, '\n')); text = end + 1) {
        struct slurm_job j;
        *end = '\0';
        if (!slurm_read_job(text, &j))
            continue;
        take_job(s, &j);
        slurm_alloc_listed(s, &j);
    }
}

static void
take_squeue(struct slurm *s, struct buf *out, const struct buf *errors, bool late)
{
    int64_t now = clock_boot_us();
    s->polled_us = s->call_began_us;
    s->are_ids_old = true;
    if (late || strncmp(buf_str(out), SLURM_HEADER, strlen(SLURM_HEADER)) != 0) {
        set_trouble(&s->trouble, "squeue",
                    errors->len ? buf_str(errors) : "it does not answer");
        s->poll_us = now + POLL_MAX_US;
        return;
    }
    clear_trouble(&s->trouble);
    s->are_ids_old = false;
    struct remote *r;
    for (r = s->remotes; r; r = r->hh.next)
        r->is_known = r->is_known && slurm_is_packed(r);
    slurm_allocs_unlist(s);
    take_lines(s, out->data);
    slurm_allocs_polled(s, now);
    for (r = s->remotes; r; r = r->hh.next) {
        bool runs = r->is_known && !r->began && strcmp(r->state, "RUNNING") == 0;
        r->runs_us = !runs ? 0 : r->runs_us ? r->runs_us : now;
        bool lives = r->is_known && r->phase != SLURM_IS_OVER;
        if (!r->is_sent || r->sent_us > s->call_began_us)
            continue;
        r->gone_polls = lives ? 0 : r->gone_polls + 1;
        r->gone_us = lives ? 0 : r->gone_us ? r->gone_us : now;
        if (!lives)
            s->poll_pause_us = POLL_FIRST_US;
    }
    /* The duration of the answer measures its cost to Slurm. */
    int64_t pause = (now - s->call_began_us) * POLL_COST;
    pause = pause < slurm_haste(REST_MAX_US) ? pause : slurm_haste(REST_MAX_US);
    s->poll_rest_us = now + pause;
    pause = pause > s->poll_pause_us ? pause : s->poll_pause_us;
    s->poll_pause_us =
        s->poll_pause_us * 3 / 2 < POLL_MAX_US ? s->poll_pause_us * 3 / 2 : POLL_MAX_US;
    s->poll_us = now + pause;
}

/* --- the most urgent command --- */

/* An error saying that a job is over or ending counts as an answer. */
static void
take_scancel(struct slurm *s, const struct buf *errors, bool late)
{
    const char *words = errors->len ? errors->data : NULL;
    if (words)
        log_info("event=scancel %.*s", (int)strcspn(words, "\n"), words);
    s->are_ids_old |=
        late ||
        (words && (slurm_refusal_of(words) != SLURM_NEVER || strstr(words, "Invalid job id")));
}

static void
on_done(void *arg, struct buf *out, struct buf *errors, bool late)
{
    struct slurm *s = arg;
    enum slurm_call call = s->call;
    struct lot *lot = TAKE(s->sending);
    struct alloc *alloc = TAKE(s->sending_alloc);
    s->command = NULL;
    s->call = CALL_NONE;
    if (call == CALL_SBATCH) {
        take_sbatch(s, lot, alloc, out, errors, late);
        if (lot)
            slurm_let_go(s, lot);
        slurm_poll_soon(s);
    } else if (call == CALL_SQUEUE) {
        take_squeue(s, out, errors, late);
    } else {
        take_scancel(s, errors, late);
    }
    turn_touch(s->inst); /* there may be room for more jobs */
}

static struct lot *
next_lot(const struct slurm *s, int64_t now)
{
    struct lot *lot;
    for (lot = s->lots; lot && (!lot->waits || lot->due_us > now);)
        lot = lot->hh.next;
    return lot;
}

/* Jobs are ended a few at a time: between two scancels any other due command runs. */
void
slurm_pump(struct slurm *s)
{
    int64_t now = clock_boot_us();
    if (s->command || s->next_call_us > now || (!s->remotes && !s->allocs))
        return;
    struct lot *lot = s->is_away ? NULL : next_lot(s, now);
    struct alloc *alloc = s->is_away ? NULL : slurm_next_alloc(s, now);
    bool polls = s->poll_us && s->poll_us <= now;
    bool others = s->has_just_stopped && (alloc || lot || polls);
    s->has_just_stopped = false;
    if (!others && slurm_ask_stops(s))
        s->has_just_stopped = true;
    else if (polls && s->poll_us + POLL_LATE_US <= now)
        ask_squeue(s);
    else if (alloc)
        send_alloc(s, alloc);
    else if (lot)
        send_lot(s, lot);
    else if (polls)
        ask_squeue(s);
}
