/* Helpers for all files of this folder: table lookups, when the engine looks again, keys, stop
 * requests. Calls none of those files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "core/queue/queue.h"
#include "daemon/common/folder_name.h"
#include "daemon/common/instance.h"
#include "daemon/slurm/slurm_engine.h"
#include "daemon/slurm/slurm_priv.h"
#include "slurm/haste.h"

#define TICK_MS        250
#define POLL_FIRST_US  S_US
#define AGAIN_FIRST_US (5 * S_US) /* after a failed call; doubles */
#define AGAIN_MAX_US   (60 * S_US)
#define CLOCKS_US      S_US /* tolerated difference between Slurm's and a node's clock */

void
slurm_wake(struct slurm *s)
{
    if (!uv_is_active((uv_handle_t *)&s->tick))
        uv_timer_start(&s->tick, s->on_tick, 0, TICK_MS);
}

/* No sooner than the cost of the last answer allows. */
void
slurm_poll_soon(struct slurm *s)
{
    int64_t at = clock_boot_us() + POLL_FIRST_US;
    at = at > s->poll_rest_us ? at : s->poll_rest_us;
    s->poll_pause_us = POLL_FIRST_US;
    if (s->poll_us == 0 || s->poll_us > at)
        s->poll_us = at;
    slurm_wake(s);
}

struct job *
slurm_job_of(const struct slurm *s, const struct remote *r)
{
    struct job *job = queue_get(s->inst->queue, r->job);
    return job && job->run && job->run->number == r->attempt ? job : NULL;
}

struct remote *
slurm_member(const struct slurm *s, const char *key, int32_t index)
{
    struct lot *lot;
    HASH_FIND_STR(s->lots, key, lot);
    return lot && index >= 0 && index < lot->n ? lot->members[index] : NULL;
}

bool
slurm_is_to_send(const struct remote *r)
{
    return !r->is_sent && !r->ended && !r->stop_asked;
}

bool
slurm_is_packed(const struct remote *r)
{
    return !r->lot;
}

bool
slurm_is_its_run(const struct remote *r, const struct job *job)
{
    int64_t mark_us = job->run->started_us;
    bool is_later = r->phase == SLURM_WAITS || r->start_s * S_US > mark_us + CLOCKS_US;
    return !mark_us || !is_later;
}

struct alloc *
slurm_alloc_of(const struct slurm *s, const char *key)
{
    struct alloc *a;
    HASH_FIND_STR(s->allocs, key, a);
    return a;
}

bool
slurm_alloc_is_dead(const struct alloc *a)
{
    return a->is_over || a->was_refused || (a->gone_us && a->gone_polls >= 2);
}

int64_t
slurm_pause_us(int64_t *pause_us)
{
    *pause_us = *pause_us ? *pause_us * 2 : slurm_haste(AGAIN_FIRST_US);
    if (*pause_us > slurm_haste(AGAIN_MAX_US))
        *pause_us = slurm_haste(AGAIN_MAX_US);
    return *pause_us;
}

void
slurm_make_key(char *out, size_t size)
{
    uint8_t bytes[8];
    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        err_abort("the kernel gives no random numbers");
    for (size_t i = 0; i < sizeof bytes && 2 * i + 2 < size; i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

bool
slurm_lot_has_one_name(const struct slurm *s, const struct lot *lot)
{
    const struct job *first = NULL;
    for (int32_t i = 0; i < lot->n; i++) {
        const struct job *job = lot->members[i] ? slurm_job_of(s, lot->members[i]) : NULL;
        const char *name = job && job->req.name ? job->req.name : "";
        if (!job)
            continue;
        first = first ? first : job;
        if (strcmp(name, first->req.name ? first->req.name : "") != 0)
            return false;
    }
    return true;
}

void
slurm_write_word(const struct slurm *s, struct remote *r)
{
    char name[32], path[64];
    struct err e;
    if (!r->word)
        return;
    snprintf(path, sizeof path, "%s/stop", folder_name(r->job, r->attempt, name));
    if (file_write_atomic_at(shared_folder_fd(s->inst), path, r->word, strlen(r->word), 0600,
                             false, &e) == 0)
        free(TAKE(r->word));
    else if (!r->word_failed)
        log_error("job=%u event=stop-not-written %s", r->job, e.text);
    r->word_failed = r->word != NULL;
}
