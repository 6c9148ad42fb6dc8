/* Limits on entry: see admit.h. Called by method_submit.c and method_file.c before they
 * change anything. */
#include "daemon/request/admit.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/parse.h"
#include "core/plan/limits.h"
#include "core/queue/job.h"
#include "core/queue/queue.h"
#include "daemon/request/budget.h"
#include "daemon/request/file_sync.h"
#include "daemon/state/state.h"
#include "spec/config.h"
#include "store/store.h"

#define ENVS_USER_MAX (INT64_C(256) << 20) /* bytes of environments, in the database */
#define KEPT_PARTS    16                   /* 1/16 of keep_mib for one user's jobs files */
#define TEXT_USER_MAX (INT64_C(128) << 20) /* bytes of text of one user's live jobs */

/* Without a default time limit, jobs without one get the maximum. */
int
admit_time(const struct admission *a, struct request *r, struct err *e)
{
    int64_t max_ms = a->config->time_max_s * 1000, usual_ms = a->config->time_default_s * 1000;
    char asked[24], most[24];
    if (r->limit_ms == 0) {
        r->limit_ms = usual_ms > 0 && (max_ms == 0 || usual_ms < max_ms) ? usual_ms : max_ms;
        return 0;
    }
    if (max_ms == 0 || r->limit_ms <= max_ms)
        return 0;
    return err_set(e, ERR_REFUSED,
                   "its time limit of %s is above the maximum of %s (time_max_s)",
                   format_duration(r->limit_ms, asked), format_duration(max_ms, most));
}

/* Text explicitly set to "" means none, and is stored as NULL from here on. */
static void
default_text(char **field, const char *usual)
{
    if (!*field && usual && usual[0])
        *field = xstrdup(usual);
    if (*field && !(*field)[0]) {
        free(*field);
        *field = NULL;
    }
}

void
admit_unsaid(const struct admission *a, struct request *r)
{
    if (r->grace_ms < 0)
        r->grace_ms = a->config->grace_ms;
    if (r->oom_retries < 0)
        r->oom_retries = (int32_t)a->config->oom_retries;
    default_text(&r->env_setup, r->container ? "" : a->config->env_setup);
    default_text(&r->conda, r->container ? "" : a->config->conda);
}

/* Root's own jobs are limited only if the settings name root. */
static int64_t
own_pending_max(const struct admission *a, uint32_t uid)
{
    const struct limit *own = limits_of(a->state->limits, uid);
    bool is_free = a->state->system && uid == 0 && own == &a->state->limits->each;
    return is_free ? 0 : own->pending;
}

/* For the whole queue; a tenth more for root, so that users cannot lock root out. */
static int64_t
all_pending_max(const struct admission *a, uint32_t uid)
{
    int64_t most = a->state->limits->all.pending;
    return a->state->system && uid == 0 ? most + most / 10 : most;
}

/* Includes what the files being applied will still add. */
static void
count_waiting(const struct admission *a, uint32_t uid, int64_t *all, int64_t *own)
{
    *all = queue_n_waiting(a->state->queue);
    *own = queue_n_waiting_of(a->state->queue, uid);
    for (const struct sync *s = a->syncs; s; s = s->next) {
        *all += s->n_more;
        *own += s->uid == uid ? s->n_more : 0;
    }
}

int
admit_pending(const struct admission *a, uint32_t uid, int64_t n, struct err *e)
{
    int64_t all, own;
    int64_t all_max = all_pending_max(a, uid), own_max = own_pending_max(a, uid);
    const char *s = n == 1 ? "" : "s";
    count_waiting(a, uid, &all, &own);
    if (n > 0 && own_max > 0 && own + n > own_max)
        return err_set(e, ERR_REFUSED,
                       "%s has %lld of at most %lld pending jobs: %lld job%s more would be too "
                       "many (user_max_pending)",
                       a->state->around->user_name(uid), (long long)own, (long long)own_max,
                       (long long)n, s);
    if (n > 0 && all_max > 0 && all + n > all_max)
        return err_set(e, ERR_REFUSED,
                       "the queue is full: %lld of at most %lld jobs are pending "
                       "(pending_max), and this would add %lld job%s",
                       (long long)all, (long long)all_max, (long long)n, s);
    return 0;
}

int64_t
admit_room(const struct admission *a, uint32_t uid)
{
    int64_t all, own, room = INT64_MAX, own_max = own_pending_max(a, uid);
    count_waiting(a, uid, &all, &own);
    if (a->state->limits->all.pending > 0)
        room = all_pending_max(a, uid) - all;
    if (own_max > 0 && own_max - own < room)
        room = own_max - own;
    return room < 0 ? 0 : room;
}

/* Live jobs are kept in memory; a user who could fill it would end the daemon for all. */
int
admit_text(const struct admission *a, uint32_t uid, int64_t bytes, struct err *e)
{
    int64_t all = bytes + queue_text_of(a->state->queue, uid);
    for (const struct sync *s = a->syncs; s; s = s->next)
        all += s->uid == uid && s->more_text > 0 ? s->more_text : 0;
    if (!budget_binds(a->budget, uid) || bytes <= 0 || all <= TEXT_USER_MAX)
        return 0;
    return err_set(e, ERR_REFUSED,
                   "the commands and other text of %s's jobs would take %lld MiB; the maximum "
                   "is %lld; put long ones into files",
                   a->state->around->user_name(uid), (long long)(all >> 20),
                   (long long)(TEXT_USER_MAX >> 20));
}

int64_t
admit_kept_max(const struct admission *a)
{
    return (a->config->keep_mib << 20) / KEPT_PARTS;
}

/* The outcome of a line is kept for good, or the line would run twice. So the limit applies on
 * entry; jobs already in the queue may still exceed it, once each. */
int
admit_lines(const struct admission *a, uint32_t uid, struct err *e)
{
    int64_t most = admit_kept_max(a), kept = store_kept_bytes(a->store, uid, e);
    if (kept < 0)
        return -1;
    if (most == 0 || kept < most)
        return 0;
    return err_set(
        e, ERR_REFUSED,
        "Berth remembers the ended lines of %s's jobs files, and they take %lld KiB; "
        "the maximum is %lld (1/%d of keep_mib). 'berth run --fresh FILE' forgets "
        "those of FILE; to run none of them again, empty FILE first",
        a->state->around->user_name(uid), (long long)(kept >> 10), (long long)(most >> 10),
        KEPT_PARTS);
}

/* Environments cannot be pruned with the history while their jobs wait or run. */
int
admit_env(const struct admission *a, uint32_t uid, int64_t bytes, struct err *e)
{
    int64_t all = bytes + queue_envs_of(a->state->queue, uid);
    if (!budget_binds(a->budget, uid) || bytes <= 0 || all <= ENVS_USER_MAX)
        return 0;
    return err_set(e, ERR_REFUSED,
                   "the environments of %s's jobs would take %lld MiB; the maximum is %lld; "
                   "pass on fewer variables with --export",
                   a->state->around->user_name(uid), (long long)(all >> 20),
                   (long long)(ENVS_USER_MAX >> 20));
}

int
admit_jobs(const struct admission *a, uint32_t uid, struct job *const *jobs, size_t n,
           struct err *e)
{
    int64_t tasks = 0, text = 0;
    for (size_t i = 0; i < n; i++) {
        struct request *r = &jobs[i]->req;
        if (admit_time(a, r, e) < 0 || state_check_limits(a->state, uid, &r->demand, e) < 0)
            return n > 1 ? err_prefix(e, "job %zu of %zu", i + 1, n) : -1;
        text += request_text_bytes(r);
        tasks += r->array.n > 0 ? task_set_count(&r->array) : 1;
    }
    return admit_text(a, uid, text, e) ? -1 : admit_pending(a, uid, tasks, e);
}
