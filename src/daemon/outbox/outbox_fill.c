/* Decides which events lead to hooks: see outbox_fill.h. A job's own hooks and those of the
 * settings are separate deliveries: the job's run as its user, the settings' as an account
 * that the administrator chooses. Called by turn.c; outbox.c delivers. */
#include "daemon/outbox/outbox_fill.h"

#include <string.h>

#include "base/err.h"
#include "base/request.h"
#include "core/queue/job.h"
#include "core/queue/queue.h"
#include "daemon/common/instance.h"
#include "daemon/common/user_names.h"
#include "daemon/outbox/outbox_priv.h"
#include "store/store.h"
#include "sys/helpers.h"

enum moment { NOTHING, STARTED, ENDED, REQUEUED };

static enum moment
moment_of(const char *kind)
{
    return strcmp(kind, "started") == 0    ? STARTED
           : strcmp(kind, "ended") == 0    ? ENDED
           : strcmp(kind, "requeued") == 0 ? REQUEUED
                                           : NOTHING;
}

/* Failed by itself rather than by request. */
static bool
has_failed(const struct job *job)
{
    return job_state_is_final(job->state) && job->state != JOB_COMPLETED &&
           job->state != JOB_CANCELLED;
}

bool
hooks_concern(const struct config *c, const struct job *job, const char *kind)
{
    if (!job || (!job->req.hooks && !c->on_start[0] && !c->on_end[0] && !c->on_fail[0] &&
                 !c->webhook[0]))
        return false;
    return moment_of(kind) != NOTHING;
}

struct telling {
    struct courier *courier;
    const struct job *job;
    const char *line;
};

/* site: requested by the settings, not by the job. */
static void
post_letter(const struct telling *t, const char *kind, const char *target, bool site)
{
    courier_post(t->courier, &(struct store_letter){.job = t->job->id,
                                                    .uid = t->job->uid,
                                                    .kind = kind,
                                                    .target = target,
                                                    .event = t->line,
                                                    .site = site});
}

/* For the job's own hooks. */
static void
post(const struct telling *t, const char *kind, const char *target)
{
    if (target && target[0])
        post_letter(t, kind, target, false);
}

/* For the settings' hooks. */
static void
post_for_site(const struct telling *t, const char *kind, const char *target)
{
    if (target[0])
        post_letter(t, kind, target, true);
}

/* --- mail --- */

/* An array sends one mail when its first task (lowest number) starts, and one when it has
 * ended; or mails for each task, if requested. */
static bool
is_mail_of(const struct courier *c, const struct job *job, uint32_t types, enum moment m)
{
    if (types & MAIL_ARRAY_TASKS)
        return !job->tasks;
    if (!job->array)
        return true;
    const struct job *array = queue_get(c->inst->queue, job->array);
    return m == STARTED && job->attempts == 1 && array && array->req.array.n > 0 &&
           array->req.array.ranges[0].first == job->task;
}

static bool
is_mail_wanted(const struct job *job, uint32_t types, enum moment m)
{
    switch (m) {
    case STARTED:
        return types & MAIL_BEGIN;
    case REQUEUED:
        return types & MAIL_REQUEUE;
    case ENDED:
        return types & MAIL_END || (types & MAIL_FAIL && has_failed(job)) ||
               (types & MAIL_TIME_LIMIT && job->state == JOB_TIMEOUT);
    case NOTHING:
        break;
    }
    return false;
}

static void
post_mail(const struct telling *t, const struct hooks *h, enum moment m)
{
    uint32_t types = hooks_mail_types(h);
    if (types && is_mail_wanted(t->job, types, m) && is_mail_of(t->courier, t->job, types, m))
        post(t, "mail", h->mail_user ? h->mail_user : daemon_owner_name(t->job));
}

/* --- posting --- */

void
hooks_post(struct courier *c, const struct job *job, const char *kind, const char *line)
{
    static const struct hooks none;
    const struct hooks *h = job->req.hooks ? job->req.hooks : &none;
    const struct config *config = &c->inst->config;
    const struct telling t = {.courier = c, .job = job, .line = line};
    enum moment m = moment_of(kind);
    if (m == STARTED) {
        post(&t, "on_start", h->on_start);
        post_for_site(&t, "on_start", config->on_start);
    } else if (m == ENDED) {
        post(&t, "on_end", h->on_end);
        post_for_site(&t, "on_end", config->on_end);
        post(&t, "on_fail", has_failed(job) ? h->on_fail : NULL);
        post_for_site(&t, "on_fail", has_failed(job) ? config->on_fail : "");
    }
    post(&t, "webhook", h->webhook);
    post_for_site(&t, "webhook", config->webhook);
    post_mail(&t, h, m);
}

char *
hooks_missing(const struct config *c, const struct job *job)
{
    const struct hooks *h = job->req.hooks;
    if (!h)
        return NULL;
    if (hooks_mail_types(h) && !helper_sendmail(c->sendmail))
        return xasprintf(
            "this machine cannot send mail, because it has no sendmail%s%s; install one "
            "(postfix, msmtp-mta), or set its path with the setting sendmail",
            c->sendmail[0] ? " at " : "", c->sendmail);
    if (h->webhook && !helper_curl())
        return xasprintf(
            "this machine cannot post webhooks, because it has no curl; install it");
    return NULL;
}
