/* The attempts sent to Slurm: see slurm_engine.h. Each belongs to a lot by the key that was
 * committed with it: its key and its index in the lot identify it in Slurm's lists, whatever
 * was lost in between. This file keeps the tables and receives the daemon's requests;
 * slurm_calls.c runs Slurm's commands, slurm_settle.c reads the folders, which alone determine
 * how an attempt ended. */
#include "daemon/slurm/slurm_engine.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/crash.h"
#include "base/file.h"
#include "base/log.h"
#include "core/queue/queue.h"
#include "daemon/common/folder_name.h"
#include "daemon/common/instance.h"
#include "daemon/slurm/slurm_command.h"
#include "daemon/slurm/slurm_priv.h"
#include "daemon/state/changes.h"
#include "daemon/state/state.h"
#include "slurm/allocation_options.h"
#include "slurm/sent_options.h"
#include "sys/nursery_packets.h"
#include "sys/slurm_find.h"

static void
on_tick(uv_timer_t *timer)
{
    struct slurm *s = timer->data;
    if (slurm_folder_is_there(s)) {
        slurm_allocs_follow(s);
        slurm_scan(s);
        slurm_grow(s);
    }
    slurm_folder_follow(s);
    slurm_pump(s);
    if (!s->remotes && !s->allocs && !s->folder_us && !s->are_allocs_unread && !s->is_away)
        uv_timer_stop(timer);
}

struct slurm *
slurm_new(struct instance *inst)
{
    struct slurm *s = xcalloc(1, sizeof *s);
    s->inst = inst;
    s->round = 1; /* new entries have round 0: not read yet */
    s->allocs_fd = s->gpu_mib = -1;
    s->on_tick = on_tick;
    uv_timer_init(inst->loop, &s->tick);
    s->tick.data = s;
    return s;
}

void
slurm_close(struct slurm *s)
{
    struct lot *lot = TAKE(s->sending);
    slurm_abandon(TAKE(s->command));
    if (lot)
        slurm_let_go(s, lot);
    uv_close((uv_handle_t *)&s->tick, NULL);
}

int
slurm_is_usable(const struct instance *inst, struct err *e)
{
    if (inst->places.system)
        return err_set(e, ERR_REFUSED,
                       "the machine's daemon sends nothing to Slurm; jobs for it go through a "
                       "daemon of your own: use berth --dir DIR");
    auto_free char *sbatch = slurm_find(inst->config.slurm_commands, "sbatch", e);
    return sbatch ? 0 : -1;
}

/* --- the tables --- */

static struct remote *
find(const struct slurm *s, uint32_t job)
{
    struct remote *r;
    HASH_FIND(hh, s->remotes, &job, sizeof job, r);
    return r;
}

static struct lot *
lot_of(struct slurm *s, const char *key)
{
    struct lot *lot;
    HASH_FIND_STR(s->lots, key, lot);
    if (lot)
        return lot;
    lot = xcalloc(1, sizeof *lot);
    snprintf(lot->key, sizeof lot->key, "%s", key);
    HASH_ADD_STR(s->lots, key, lot);
    return lot;
}

static struct remote *
enter(struct slurm *s, const struct job *job)
{
    const struct sent *sent = &job->run->sent;
    struct remote *r = xcalloc(1, sizeof *r);
    r->job = job->id;
    r->attempt = job->run->number;
    HASH_ADD(hh, s->remotes, job, sizeof r->job, r);
    slurm_wake(s);
    if (strcmp(sent->key, PACKED_KEY) == 0) {
        s->waiting_is_old = true;
        return r;
    }
    r->index = sent->index;
    r->lot = lot_of(s, sent->key);
    if (r->index >= r->lot->n) {
        r->lot->members =
            xrealloc(r->lot->members, (size_t)(r->index + 1) * sizeof *r->lot->members);
        while (r->lot->n <= r->index)
            r->lot->members[r->lot->n++] = NULL;
    }
    r->lot->members[r->index] = r;
    r->lot->live++;
    return r;
}

void
slurm_let_go(struct slurm *s, struct lot *lot)
{
    if (--lot->live > 0)
        return;
    HASH_DEL(s->lots, lot);
    free(lot->members);
    free(lot);
}

static void
drop(struct slurm *s, struct remote *r)
{
    struct lot *lot = r->lot;
    if (lot)
        lot->members[r->index] = NULL;
    slurm_packed_let_go(r);
    HASH_DEL(s->remotes, r);
    free(r->word);
    free(r);
    if (lot)
        slurm_let_go(s, lot);
}

void
slurm_free(struct slurm *s)
{
    struct remote *r, *next;
    HASH_ITER(hh, s->remotes, r, next)
    drop(s, r);
    slurm_allocs_free(s);
    slurm_waiting_free(s);
    buf_free(&s->backlog);
    buf_free(&s->words);
    free(s);
}

/* --- which attempts are sent together --- */

/* An array has one name in Slurm. Sending a job for each of a thousand names would take a
 * thousand seconds, so with more than this many lots, names do not separate jobs. */
#define NAMES_MAX 8

struct forming {
    struct forming *next;
    char key[sizeof((struct sent *)NULL)->key];
    struct buf options;
    int32_t n;
};

static struct forming *
forming_of(struct forming **all, struct buf *options, int32_t most)
{
    struct forming *f;
    for (f = *all; f; f = f->next)
        if (f->n < most && f->options.len == options->len &&
            memcmp(f->options.data, options->data, options->len) == 0)
            return f;
    f = xcalloc(1, sizeof *f);
    f->options = *options;
    *options = (struct buf)BUF_INIT;
    slurm_make_key(f->key, sizeof f->key);
    f->next = *all;
    *all = f;
    return f;
}

static void
free_forming(struct forming *all)
{
    for (struct forming *next; all; all = next) {
        next = all->next;
        buf_free(&all->options);
        free(all);
    }
}

static bool
is_new_here(const struct job *job)
{
    return (job->unsaved & SAVE_ATTEMPT_NEW) && job->req.demand.engine == ENGINE_SLURM;
}

/* False, with some keys already assigned: more than `most` are needed. */
static bool
form(const struct instance *inst, bool with_names, int most)
{
    const struct changes *c = &inst->state->changes;
    struct forming *all = NULL;
    int n = 0;
    for (size_t i = 0; i < c->n_unsaved && n <= most; i++) {
        struct job *job = c->unsaved[i];
        if (!is_new_here(job) || slurm_is_to_pack(&job->req.demand, &inst->config))
            continue;
        auto_buf struct buf options = BUF_INIT;
        slurm_add_options(&job->req, with_names, &inst->config, &options);
        struct forming *f = forming_of(&all, &options, (int32_t)inst->config.slurm_array_max);
        n += f->n == 0;
        memcpy(job->run->sent.key, f->key, sizeof f->key);
        job->run->sent.index = f->n++;
    }
    free_forming(all);
    return n <= most;
}

void
slurm_prepare(const struct instance *inst)
{
    const struct changes *c = &inst->state->changes;
    for (size_t i = 0; i < c->n_unsaved; i++) {
        struct job *job = c->unsaved[i];
        if (is_new_here(job) && slurm_is_to_pack(&job->req.demand, &inst->config))
            snprintf(job->run->sent.key, sizeof job->run->sent.key, PACKED_KEY);
    }
    if (!form(inst, true, NAMES_MAX))
        (void)form(inst, false, INT_MAX);
}

int32_t
slurm_room(const struct slurm *s)
{
    const struct lot *lot;
    if (s->is_away || s->folder_us)
        return 0;
    for (lot = s->lots; lot; lot = lot->hh.next)
        if (lot->waits && !lot->is_limited)
            return 0;
    int64_t n = s->inst->config.slurm_max_jobs - (int64_t)HASH_COUNT(s->remotes);
    /* Waits until a tenth of the maximum is free; otherwise a call would follow each job that
     * ends. */
    return n > 0 && n >= s->inst->config.slurm_max_jobs / 10 ? (int32_t)n : 0;
}

void
slurm_launch(struct slurm *s, const struct job *job)
{
    crash_point("slurm-committed");
    struct remote *r = enter(s, job);
    if (r->lot)
        r->lot->waits = true;
}

/* Writes the stop request that the supervisor reads on the node. */
static void
leave_word(const struct slurm *s, struct remote *r, const struct job *job, const char *why,
           const char *by)
{
    auto_buf struct buf text = BUF_INIT;
    nursery_add_cancel(&text, why, by, job_grace_ms(job));
    free(r->word);
    r->word = xstrdup(buf_str(&text));
    slurm_write_word(s, r);
}

/* An earlier daemon may have died before it wrote the request; its own would name the user who
 * requeued. */
static void
leave_word_again(const struct slurm *s, struct remote *r, const struct job *job)
{
    char name[32], path[64];
    snprintf(path, sizeof path, "%s/stop", folder_name(r->job, r->attempt, name));
    if (faccessat(shared_folder_fd(s->inst), path, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return;
    if (job->cancel_asked)
        leave_word(s, r, job, NULL, job->cancelled_by);
    else
        leave_word(s, r, job, "requeue", NULL);
}

/* If the batch script does not end the attempt in time, Slurm must. */
static void
ask_stop(struct slurm *s, struct remote *r, const struct job *job)
{
    r->stop_asked = true;
    r->stops++;
    r->look_us = 0;
    s->waiting_is_old = true;
    r->stop_us = clock_boot_us();
    r->kill_us = r->stop_us + (job_grace_ms(job) + 60000) * 1000;
}

void
slurm_recover(struct slurm *s, const struct job *job)
{
    struct remote *r = enter(s, job);
    r->is_sent = r->lot != NULL; /* or it was not: squeue, and then the folder, will tell */
    r->sends = 1;
    r->pulse_us = clock_boot_us();
    if (job->cancel_asked || job->requeue_asked) {
        leave_word_again(s, r, job);
        ask_stop(s, r, job);
    }
    slurm_poll_soon(s);
}

void
slurm_take_up(struct slurm *s)
{
    s->are_allocs_unread = true;
    if (!shared_folder_is_apart(s->inst))
        slurm_allocs_recover(s);
    else if (!slurm_folder_is_there(s))
        slurm_wake(s); /* until the folder is there */
}

void
slurm_settled(struct slurm *s, uint32_t job, int32_t attempt)
{
    struct remote *r = find(s, job);
    if (r && r->attempt == attempt)
        drop(s, r);
}

/* --- stops --- */

void
slurm_read_change(struct slurm *s, const struct change *change)
{
    struct remote *r = find(s, change->job);
    const struct job *job = r && !r->ended ? slurm_job_of(s, r) : NULL;
    if (!job)
        return;
    s->waiting_is_old |= change->type == CHANGE_PRIORITY;
    if (change->type == CHANGE_CANCEL || change->type == CHANGE_CANCEL_MORE)
        leave_word(s, r, job, NULL, job->cancelled_by);
    else if (change->type == CHANGE_REQUEUE)
        leave_word(s, r, job, "requeue", change->by);
    else
        return;
    ask_stop(s, r, job);
    slurm_wake(s);
}

/* Appends, because earlier signals may not have been read yet. */
bool
slurm_signal(struct slurm *s, const struct job *job, int sig)
{
    const struct remote *r = find(s, job->id);
    char name[32], path[64], text[48];
    if (!r || r->ended || !r->began)
        return false;
    snprintf(path, sizeof path, "%s/signals", folder_name(r->job, r->attempt, name));
    auto_close int fd = openat(shared_folder_fd(s->inst), path,
                               O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    int n = snprintf(text, sizeof text, "{\"op\":\"signal\",\"signal\":%d}\n", sig);
    return fd >= 0 && file_write_all(fd, text, (size_t)n) == 0;
}

/* --- status text --- */

const char *
slurm_trouble(const struct slurm *s)
{
    const struct lot *lot = s->lots;
    if (s->folder_trouble.code)
        return s->folder_trouble.text;
    if (s->trouble.code)
        return s->trouble.text;
    while (lot && !lot->trouble.code)
        lot = lot->hh.next;
    return lot ? lot->trouble.text : s->pack_trouble.code ? s->pack_trouble.text : NULL;
}

static const char *
why_unsent(const struct slurm *s, const struct lot *lot)
{
    return lot->trouble.code ? lot->trouble.text
           : s->trouble.code ? s->trouble.text
                             : "it is about to be sent to Slurm";
}

static void
add_words(const struct slurm *s, const struct remote *r, const struct job *job, struct buf *out)
{
    const char *words = slurm_reason_words(r->reason);
    if (slurm_is_packed(r)) {
        slurm_add_packed_words(s, r, out);
        return;
    }
    if (!r->is_sent) {
        buf_adds(out, why_unsent(s, r->lot));
        return;
    }
    if (!r->is_known && job->run->sent.id[0])
        buf_addf(out, "it was sent as Slurm's job %s", job->run->sent.id);
    else if (!r->is_known)
        buf_adds(out, "it is being sent to Slurm");
    else if (r->phase == SLURM_WAITS)
        buf_addf(out, "%s%s%s (Slurm's job %s)", r->reason, words ? ": " : "",
                 words ? words : "", job->run->sent.id);
    else
        buf_addf(out, "Slurm's job %s is %s%s%s", job->run->sent.id, r->state,
                 r->node[0] ? " on " : "", r->node);
    if (!r->is_known && r->lot->trouble.code)
        buf_addf(out, "; %s", r->lot->trouble.text);
    if (s->trouble.code)
        buf_addf(out, "; Slurm does not answer now: %s", s->trouble.text);
}

const char *
slurm_tell(struct slurm *s, const struct job *job)
{
    const struct remote *r = find(s, job->id);
    buf_clear(&s->words);
    if (r && job->run && r->attempt == job->run->number)
        add_words(s, r, job, &s->words);
    if (s->words.len && s->is_away)
        buf_addf(&s->words, "; %s", s->folder_trouble.text);
    return buf_str(&s->words);
}
