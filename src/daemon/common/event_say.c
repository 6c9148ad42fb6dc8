/* See event_say.h. */
#include "daemon/common/event_say.h"

#include <stdio.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/jsonw.h"
#include "base/libc.h"
#include "base/parse.h"
#include "core/queue/job.h"
#include "daemon/common/event_words.h"
#include "daemon/common/instance.h"
#include "daemon/common/user_names.h"
#include "daemon/state/changes.h"
#include "daemon/state/state.h"

#define COMMAND_IN_EVENT 200

struct jsonw *
event_begin(struct instance *inst, struct change *x, const char *kind, const struct job *job)
{
    struct jsonw *w = &inst->event;
    snprintf(x->kind, sizeof x->kind, "%s", kind);
    jsonw_init(w, &x->json);
    jsonw_object(w);
    if (x->is_asked) /* the user who did it and the job's user, as the kernel names them */
        jsonw_kint(w, "by_uid", x->by_uid);
    if (!job)
        return w;
    jsonw_kstr(w, "user", daemon_owner_name(job));
    if (job->req.name)
        jsonw_kstr(w, "name", job->req.name);
    jsonw_key(w, "command");
    events_write_command(w, job, COMMAND_IN_EVENT);
    if (job->line)
        jsonw_kint(w, "line", job->line);
    if (job->array) {
        jsonw_kint(w, "array_job", job->array);
        jsonw_kint(w, "array_task", job->task);
    }
    return w;
}

struct jsonw *
turn_event(struct instance *inst, const char *kind, const struct job *job)
{
    return event_begin(inst, state_note(inst->state, CHANGE_SAID, job), kind, job);
}

void
turn_event_end(struct instance *inst)
{
    jsonw_end_object(&inst->event);
}

void
event_warned(struct instance *inst, const struct job *job)
{
    char before[24];
    const char *name = libc_signal_name(job->req.warn_signal);
    auto_free char *text =
        xasprintf("sent %s, %s before its time limit", name ? name : "its warning signal",
                  format_duration(job->req.warn_ms, before));
    struct jsonw *w = turn_event(inst, "warning", job);
    jsonw_kint(w, "signal", job->req.warn_signal);
    jsonw_kint(w, "before_ms", job->req.warn_ms);
    jsonw_kstr(w, "text", text);
    turn_event_end(inst);
}

void
event_signalled(struct instance *inst, const struct job *job, int sig, const char *by)
{
    struct jsonw *w = turn_event(inst, "signal", job);
    jsonw_kint(w, "signal", sig);
    jsonw_kstr(w, "by", by);
    turn_event_end(inst);
}

/* The supervisor reports it; no request to the daemon causes it. */
void
event_attached(struct instance *inst, const struct job *job, bool came, uint32_t uid,
               bool types)
{
    struct jsonw *w = turn_event(inst, came ? "attached" : "detached", job);
    jsonw_kint(w, "by_uid", uid);
    jsonw_kstr(w, "by", daemon_user_name(uid));
    jsonw_kbool(w, "input", types);
    turn_event_end(inst);
}
