/* The fields of a job's object that say what was requested beyond cards and memory: tasks,
 * dependencies, tags, what its time limit does. Names are those of a request where there is
 * one. */
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/hook_list.h"
#include "base/jsonw.h"
#include "core/queue/array.h"
#include "daemon/attempt/log_names.h"
#include "daemon/daemon.h"
#include "daemon/request/roles.h"
#include "daemon/rpc/rpc_server.h"
#include "daemon/turn/event_words.h"
#include "daemon/view/job_view.h"
#include "spec/attr_hooks.h"
#include "spec/value.h"

#define FIELD(name) static void field_##name(const struct jobjson *x, struct jsonw *w)
#define REQ(x)      (&(x)->job->req)

static void
permille_or_null(struct jsonw *w, int32_t permille)
{
    if (permille > 0)
        jsonw_num(w, permille / 1000.0);
    else
        jsonw_null(w);
}

FIELD(array_job)
{
    jsonw_int_or_null(w, x->job->array, x->job->array != 0);
}

FIELD(array_task)
{
    jsonw_int_or_null(w, x->job->task, x->job->array != 0);
}

static void
write_set(struct jsonw *w, const char *key, const struct task_set *set)
{
    auto_buf struct buf text = BUF_INIT;
    task_set_text(set, &text);
    jsonw_kstr(w, key, buf_str(&text));
}

FIELD(array)
{
    const struct tasks *t = x->job->tasks;
    if (!t) {
        jsonw_null(w);
        return;
    }
    jsonw_object(w);
    write_set(w, "tasks", &REQ(x)->array);
    write_set(w, "pending", &t->pending);
    jsonw_kint(w, "total", t->total);
    jsonw_key(w, "max");
    jsonw_int_or_null(w, REQ(x)->array_max, REQ(x)->array_max > 0);
    jsonw_kint(w, "waiting", array_n_pending(x->job));
    jsonw_kint(w, "active", t->active);
    jsonw_kint(w, "left", t->live); /* in their own name, active or not */
    jsonw_key(w, "ended");
    jsonw_object(w);
    for (int s = 0; s < JOB_STATES; s++)
        if (t->ended[s])
            jsonw_kint(w, job_state_name((enum job_state)s), t->ended[s]);
    jsonw_end_object(w);
    jsonw_end_object(w);
}

FIELD(share)
{
    permille_or_null(w, REQ(x)->demand.share_permille);
}

FIELD(min_vram_mib)
{
    jsonw_int_or_null(w, REQ(x)->demand.min_vram_mib, REQ(x)->demand.min_vram_mib > 0);
}

FIELD(gpu_type)
{
    jsonw_str(w, REQ(x)->demand.gpu_type[0] ? REQ(x)->demand.gpu_type : NULL);
}

FIELD(max_used)
{
    permille_or_null(w, REQ(x)->demand.max_used_permille);
}

FIELD(max_load)
{
    permille_or_null(w, REQ(x)->demand.max_load_permille);
}

FIELD(margin_mib)
{
    jsonw_int_or_null(w, REQ(x)->demand.margin_mib, REQ(x)->demand.margin_mib >= 0);
}

FIELD(idle_mib)
{
    jsonw_int_or_null(w, REQ(x)->demand.idle_mib, REQ(x)->demand.idle_mib > 0);
}

FIELD(placement)
{
    jsonw_str(w, value_placing_name(REQ(x)->demand.placement));
}

FIELD(devices)
{
    jsonw_array(w);
    for (int i = 0; i < GPU_MAX; i++)
        if (REQ(x)->demand.devices >> i & 1)
            jsonw_int(w, i);
    jsonw_end_array(w);
}

FIELD(gpu_ids)
{
    jsonw_array(w);
    for (int i = 0; i < REQ(x)->demand.n_ids; i++)
        jsonw_int(w, REQ(x)->demand.ids[i]);
    jsonw_end_array(w);
}

FIELD(after)
{
    static const char *const types[] = {
        [DEP_SUCCESS] = "success", [DEP_ANY] = "any", [DEP_FAILED] = "failed"};
    jsonw_array(w);
    for (int i = 0; i < REQ(x)->n_deps; i++) {
        const struct dep *dep = &REQ(x)->deps[i];
        jsonw_object(w);
        jsonw_kstr(w, "type", types[dep->type]);
        jsonw_kint(w, "job", dep->job);
        if (dep->task >= 0)
            jsonw_kint(w, "task", dep->task);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
}

FIELD(tags)
{
    bool hidden = roles_is_hidden(x->daemon, x->job->uid);
    jsonw_array(w);
    for (char **tag = hidden ? NULL : REQ(x)->tags; tag && *tag; tag++)
        jsonw_str(w, *tag);
    jsonw_end_array(w);
}

FIELD(begin)
{
    char text[32];
    int64_t at = x->job->begin_us ? x->job->begin_us : REQ(x)->begin_us;
    if (!at) {
        jsonw_null(w);
        return;
    }
    jsonw_object(w);
    jsonw_key(w, "unix");
    jsonw_num(w, (double)at / 1e6);
    jsonw_kstr(w, "rfc3339", clock_rfc3339(at, text));
    jsonw_end_object(w);
}

FIELD(unique)
{
    jsonw_bool(w, REQ(x)->unique);
}

FIELD(preemptible)
{
    jsonw_bool(w, REQ(x)->preemptible);
}

FIELD(interactive)
{
    jsonw_bool(w, REQ(x)->interactive);
}

FIELD(pty)
{
    jsonw_bool(w, REQ(x)->pty);
}

/* As much a part of what is run as the command is. */
static void
set_up_text(const struct jobjson *x, struct jsonw *w, const char *text)
{
    bool hidden = roles_is_hidden(x->daemon, x->job->uid);
    int max = roles_sees_whole(x->daemon, x->job->uid) ? 0 : ROLES_OTHERS_TEXT_MAX;
    if (hidden || !text)
        jsonw_null(w);
    else
        jsonw_strn(w, text, events_cut(text, strlen(text), max));
}

FIELD(env_setup)
{
    set_up_text(x, w, REQ(x)->env_setup);
}

FIELD(conda)
{
    set_up_text(x, w, REQ(x)->conda);
}

FIELD(open_mode)
{
    jsonw_str(w, REQ(x)->truncate ? "truncate" : "append");
}

FIELD(comment)
{
    jsonw_str(w, roles_is_hidden(x->daemon, x->job->uid) ? NULL : REQ(x)->comment);
}

FIELD(slurm_env)
{
    jsonw_bool(w, REQ(x)->slurm_env);
}

FIELD(login)
{
    jsonw_bool(w, REQ(x)->login);
}

FIELD(screen)
{
    jsonw_bool(w, REQ(x)->screen);
}

/* As `screen -r` takes it, while there is one. */
FIELD(screen_session)
{
    const struct attempt *run = x->job->run;
    auto_buf struct buf name = BUF_INIT;
    if (!run || run->screen_pid <= 0 || !job_state_is_active(x->job->state) ||
        roles_is_hidden(x->daemon, x->job->uid)) {
        jsonw_null(w);
        return;
    }
    buf_addf(&name, "%d.", run->screen_pid);
    launch_screen_name(x->daemon, x->job, &name);
    jsonw_str(w, buf_str(&name));
}

FIELD(requeue)
{
    jsonw_bool(w, REQ(x)->requeue);
}

FIELD(on_timeout)
{
    jsonw_str(w, REQ(x)->on_timeout == ON_TIMEOUT_REQUEUE ? "requeue" : "kill");
}

FIELD(max_requeues)
{
    jsonw_int(w, REQ(x)->max_requeues);
}

FIELD(requeues)
{
    jsonw_int(w, x->job->requeues_used);
}

FIELD(warn_signal)
{
    jsonw_int_or_null(w, REQ(x)->warn_signal, REQ(x)->warn_signal > 0);
}

FIELD(warn_ms)
{
    jsonw_int_or_null(w, REQ(x)->warn_ms, REQ(x)->warn_signal > 0);
}

FIELD(warn_batch)
{
    jsonw_bool(w, REQ(x)->warn_batch);
}

FIELD(grace_ms)
{
    jsonw_int(w, REQ(x)->grace_ms);
}

FIELD(estimate_ms)
{
    jsonw_int_or_null(w, x->job->estimate_ms, x->job->estimate_ms > 0);
}

FIELD(span_ms)
{
    jsonw_int_or_null(w, x->job->span_ms, x->job->span_ms > 0);
}

FIELD(llm)
{
    jsonw_str(w, REQ(x)->llm);
}

FIELD(fingerprint)
{
    bool hidden =
        roles_is_hidden(x->daemon, x->job->uid); /* a command could be guessed by it */
    jsonw_str(w, hidden ? NULL : x->job->fingerprint);
}

FIELD(vram_auto)
{
    jsonw_bool(w, REQ(x)->vram_auto);
}

FIELD(auto_runs)
{
    jsonw_int_or_null(w, x->job->auto_runs, REQ(x)->vram_auto);
}

/* Whom to tell is for nobody else's eyes: a webhook's address is often all that guards it. */
static const struct hooks *
hooks_shown(const struct jobjson *x)
{
    const struct caller *c = x->daemon->caller;
    return c && roles_may_touch(c, x->job) ? REQ(x)->hooks : NULL;
}

/* Tokens are handed to jobs in variables. */
FIELD(env)
{
    const struct caller *c = x->daemon->caller;
    bool shown = c && roles_may_touch(c, x->job);
    jsonw_array(w);
    for (char **entry = shown ? REQ(x)->env : NULL; entry && *entry; entry++)
        jsonw_str(w, *entry);
    jsonw_end_array(w);
}

#define HOOK(name)                                                                             \
    FIELD(name)                                                                                \
    {                                                                                          \
        const struct hooks *h = hooks_shown(x);                                                \
        jsonw_str(w, h ? h->name : NULL);                                                      \
    }
HOOK(on_start)
HOOK(on_end)
HOOK(on_fail)
HOOK(webhook)
HOOK(mail_user)

FIELD(mail_type)
{
    auto_buf struct buf text = BUF_INIT;
    const struct hooks *h = hooks_shown(x);
    if (h)
        hooks_add_types(hooks_mail_types(h), &text);
    jsonw_str(w, text.len ? buf_str(&text) : NULL);
}

#define ENTRY(name)                                                                            \
    {                                                                                          \
#name, field_##name                                                                    \
    }

const struct jobjson_entry jobjson_request[] = {
    ENTRY(array_job),
    ENTRY(array_task),
    ENTRY(array),
    ENTRY(share),
    ENTRY(min_vram_mib),
    ENTRY(gpu_type),
    ENTRY(max_used),
    ENTRY(max_load),
    ENTRY(margin_mib),
    ENTRY(gpu_ids),
    ENTRY(after),
    ENTRY(tags),
    ENTRY(begin),
    ENTRY(unique),
    ENTRY(preemptible),
    ENTRY(requeue),
    ENTRY(on_timeout),
    ENTRY(max_requeues),
    ENTRY(requeues),
    ENTRY(warn_signal),
    ENTRY(warn_ms),
    ENTRY(grace_ms),
    ENTRY(estimate_ms),
    ENTRY(span_ms),
    ENTRY(idle_mib),
    ENTRY(placement),
    ENTRY(llm),
    ENTRY(fingerprint),
    ENTRY(interactive),
    ENTRY(pty),
    ENTRY(env_setup),
    ENTRY(conda),
    ENTRY(login),
    ENTRY(vram_auto),
    ENTRY(auto_runs),
    ENTRY(screen),
    ENTRY(screen_session),
    ENTRY(on_start),
    ENTRY(on_end),
    ENTRY(on_fail),
    ENTRY(webhook),
    ENTRY(mail_user),
    ENTRY(mail_type),
    ENTRY(devices),
    ENTRY(open_mode),
    ENTRY(warn_batch),
    ENTRY(comment),
    ENTRY(slurm_env),
    ENTRY(env),
    {NULL, NULL},
};
