/* Keeps GPUs and state file in step. The daemon knows which GPUs are paused and what jobs
 * hold; the file shows this to all users, and changes of its paused_gpus are applied. The last
 * agreed state is the base: any difference from it is a user's request, no matter which
 * program wrote the file. */
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "cli/ask/answer.h"
#include "compat/engine/compat_cards.h"
#include "compat/scheduler/scheduler.h"
#include "wire/client.h"

#define TORN_US 3000000

static void
add_hold(struct sched_state *out, int64_t index, const json_t *gpu, const json_t *hold,
         const struct sched_job *ours)
{
    const json_t *mib = json_object_get(hold, "vram_mib");
    double total = (double)answer_int(gpu, "total_mib", 0);
    double part = ours ? ours->spec.need : -1;

    if (part < 0)
        part = json_is_integer(mib) && total > 0 ? (double)json_integer_value(mib) / total : 1;
    out->alloc[index] = fmin(1, out->alloc[index] + (part < 1 ? part : 1));
}

/* Exact shares of GPUs that jobs hold. */
static void
add_holds(const struct sched *s, const json_t *gpus, struct sched_state *out)
{
    size_t i, k;
    json_t *gpu, *hold;

    json_array_foreach(gpus, i, gpu)
    {
        int64_t index = answer_int(gpu, "index", -1);

        if (index < 0 || index >= GPU_MAX)
            continue;
        json_array_foreach(json_object_get(gpu, "holds"), k, hold) add_hold(
            out, index, gpu, hold, compat_job_of(&s->session, answer_int(hold, "job", 0)));
    }
}

char *
sched_pause_reason(const char *tag)
{
    return xasprintf("paused by a scheduler's state file (%s)", tag);
}

/* Bit set of GPUs paused in the daemon; by: only for this reason (NULL: any). */
static uint64_t
paused_there(const json_t *gpus, const char *by)
{
    uint64_t bits = 0;
    size_t i;
    json_t *gpu;

    json_array_foreach(gpus, i, gpu)
    {
        int64_t index = answer_int(gpu, "index", -1);

        if (index >= 0 && index < GPU_MAX && answer_bool(gpu, "paused") &&
            (!by || strcmp(answer_str(gpu, "state_text"), by) == 0))
            bits |= UINT64_C(1) << index;
    }
    return bits;
}

int
sched_cards_read(struct sched *s, struct err *e)
{
    struct compat_cards cards;

    compat_cards_init(&cards);
    if (compat_cards_read(&cards, s->session.link.client, e) < 0)
        return -1;
    s->exist = cards.listed;
    if (s->exist == 0)
        return err_set(e, ERR_FAILED, "no GPU can be used: %s; BERTH_SIM=2 simulates two",
                       cards.why_none);
    s->managed = s->exist;
    if (s->config.n_gpus > 0 && s->config.n_gpus < GPU_MAX)
        s->managed &= (UINT64_C(1) << s->config.n_gpus) - 1;
    if (s->managed == 0)
        s->managed = s->exist;
    return 0;
}

/* On another user's daemon we may not pause GPUs, so the pause is kept here and our jobs avoid
 * these GPUs. A concurrent `add` waits for the lock of the state file: it either sees the
 * pause, or its job is already listed here. */
static int
pause_alone(struct sched *s, uint64_t bits, bool pause, struct err *e)
{
    uint64_t was = s->paused_alone, now = pause ? was | bits : was & ~bits;

    if (now == was)
        return 0;
    if (s->config.is_10x && s->is_ready && sched_list_added(s, e) < 0)
        return -1;
    s->paused_alone = now;
    sched_tell_about(s);
    sched_tell_all(s);
    return sched_hold_paused(s, e);
}

static int
set_paused(struct sched *s, uint64_t bits, bool pause, struct err *e)
{
    auto_free char *reason = sched_pause_reason(s->tag);
    json_t *list, *params;
    int rc;

    if (bits == 0)
        return 0;
    for (int i = 0; i < GPU_MAX; i++) {
        if (bits >> i & 1)
            sched_log(&s->log, SCHED_INFO, json_pack("{s:[i]}", "gpu_ids", i), "GPU %d %s", i,
                      pause ? "paused" : "resumed");
    }
    if (!pause && pause_alone(s, bits, false, e) < 0)
        return -1;
    list = json_array();
    for (int i = 0; i < GPU_MAX; i++) {
        if (bits >> i & 1)
            json_array_append_new(list, json_integer(i));
    }
    params = json_pack("{s:o}", "gpus", list);
    if (pause)
        json_object_set_new(params, "reason", json_string(reason));
    rc = compat_call(&s->session, pause ? "gpu.pause" : "gpu.resume", params, NULL, e);
    if (rc < 0 && e->code == ERR_PERMISSION)
        return pause_alone(s, bits, pause, e);
    if (rc == 0 || e->code == ERR_UNREACHABLE || e->code == ERR_NO_SPACE)
        return rc;
    /* A lost GPU, for example, is not resumed; the file will show it as paused again. */
    sched_log(&s->log, SCHED_WARNING, NULL, "%s", e->text);
    return 0;
}

static bool
says_the_same(const struct sched_state *a, const struct sched_state *b)
{
    if (a->there != b->there || a->n != b->n || a->paused != b->paused)
        return false;
    for (int i = 0; i < a->n; i++) {
        if (fabs(a->alloc[i] - b->alloc[i]) > 1e-5)
            return false;
    }
    return true;
}

/* Apply requests in the file: its differences from the base. An unreadable file has none, nor
 * has one deleted while we run; a file deleted before our start means a reset. 1: GPUs were
 * paused or resumed. */
static int
take_wishes(struct sched *s, const struct sched_state *file, uint64_t there, bool first,
            struct err *e)
{
    uint64_t pause = file->paused & ~s->paused & s->managed & ~there & ~s->paused_alone;
    uint64_t resume = s->paused & ~file->paused & (there | s->paused_alone);

    if ((!file->there && !first) || !(pause | resume))
        return 0;
    return set_paused(s, pause, true, e) < 0 || set_paused(s, resume, false, e) < 0 ? -1 : 1;
}

static bool
is_being_written(const char *path)
{
    auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);

    return fd >= 0 && file_has_writers(fd);
}

/* A program that writes the file in place leaves it incomplete for a moment, and we must not
 * overwrite it then. True once it is closed, as far as we can see, and unchanged for
 * TORN_US. */
static bool
is_to_be_mended(struct sched *s, const char *why)
{
    int64_t now = clock_boot_us();

    if (!s->torn_us || is_being_written(s->config.state_file))
        s->torn_us = now;
    if (now < s->torn_us + TORN_US) {
        s->look_due_us = s->torn_us + TORN_US;
        return false;
    }
    sched_log(&s->log, SCHED_WARNING, NULL, "%s; it is written anew", why);
    return true;
}

/* mark: the file as it was read. If it changed since, read it again before writing. */
static void
write_state(struct sched *s, const struct sched_state *now, struct run_file *mark)
{
    struct err e = {0};

    if (run_file_has_changed(mark)) {
        s->look_due_us = clock_boot_us();
    } else if (sched_state_write(s->config.state_file, now, &e) == 0) {
        s->paused = now->paused;
    } else if (sched_say_once(s, e.text)) {
        sched_log(&s->log, SCHED_ERROR, NULL, "%s; it is tried again with every look", e.text);
    }
}

static void
fill_state(struct sched *s, const json_t *gpus, struct sched_state *out)
{
    *out = (struct sched_state){.there = true, .n = 64 - __builtin_clzll(s->managed)};
    out->paused = (paused_there(gpus, NULL) | s->paused_alone) & s->managed;
    add_holds(s, gpus, out);
}

static int
look_locked(struct sched *s, const json_t *gpus, bool first, struct err *e)
{
    auto_json json_t *after = NULL;
    struct run_file mark = {.shown = s->config.state_file};
    struct sched_state file, now;
    struct err why = {0};
    int asked;

    (void)run_file_has_changed(&mark);
    if (sched_state_read(s->config.state_file, &file, &why) < 0) {
        if (!is_to_be_mended(s, why.text))
            return 0;
    } else {
        asked = take_wishes(s, &file, paused_there(gpus, NULL), first, e);
        if (asked < 0 || (asked && compat_call(&s->session, "gpus", NULL, &after, e) < 0))
            return -1;
    }
    s->torn_us = 0;
    fill_state(s, after ? json_object_get(after, "gpus") : gpus, &now);
    if (says_the_same(&file, &now))
        s->paused = now.paused;
    else
        write_state(s, &now, &mark);
    return 0;
}

int
sched_cards_look(struct sched *s, struct err *e)
{
    auto_close int lock = sched_state_lock(s->config.state_file, e);
    auto_json json_t *result = NULL;
    bool first = !s->began_look;

    s->look_due_us = 0;
    if (lock < 0 || compat_call(&s->session, "gpus", NULL, &result, e) < 0)
        return -1;
    if (first) {
        auto_free char *reason = sched_pause_reason(s->tag);

        /* GPUs that an earlier run paused for this file. */
        s->began_look = true;
        s->paused = paused_there(json_object_get(result, "gpus"), reason) & s->managed;
    }
    /* An added job may be pending again after a failure. */
    if (sched_hold_paused(s, e) < 0)
        return -1;
    return look_locked(s, json_object_get(result, "gpus"), first, e);
}
