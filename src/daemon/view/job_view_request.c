/* The fields of a job's object that say what was requested beyond GPUs and memory: tasks,
 * dependencies, tags, what its time limit does. A field that is written as its attribute's row
 * says is only named here, for its place among the others; the rest have functions. */
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/jsonw.h"
#include "base/request.h"
#include "core/queue/array.h"
#include "daemon/attempt/log_names.h"
#include "daemon/common/caller.h"
#include "daemon/common/event_words.h"
#include "daemon/request/roles.h"
#include "daemon/view/job_view.h"
#include "daemon/view/views.h"
#include "spec/attr.h"
#include "spec/attr_hooks.h"

#define FIELD(name) static void field_##name(const struct jobjson *x, struct jsonw *w)
#define REQ(x)      (&(x)->job->req)

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
    jsonw_kint_or_null(w, "max", REQ(x)->array_max, REQ(x)->array_max > 0);
    jsonw_kint(w, "waiting", array_n_pending(x->job));
    jsonw_kint(w, "active", t->active);
    jsonw_kint(w, "left", t->live); /* tasks that are jobs of their own, active or not */
    jsonw_kobject(w, "ended");
    for (int s = 0; s < JOB_STATES; s++)
        if (t->ended[s])
            jsonw_kint(w, job_state_name((enum job_state)s), t->ended[s]);
    jsonw_end_object(w);
    jsonw_end_object(w);
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
    jsonw_knum(w, "unix", (double)at / 1e6);
    jsonw_kstr(w, "rfc3339", clock_rfc3339(at, text));
    jsonw_end_object(w);
}

/* The name for `screen -r`, while there is a session. */
FIELD(screen_session)
{
    const struct attempt *run = x->job->run;
    auto_buf struct buf name = BUF_INIT;
    if (!run || run->screen_pid <= 0 || !job_state_is_active(x->job->state) ||
        roles_is_hidden(x->views->roles, x->job->uid)) {
        jsonw_null(w);
        return;
    }
    buf_addf(&name, "%d.", run->screen_pid);
    launch_screen_name(x->views->inst, x->job, &name);
    jsonw_str(w, buf_str(&name));
}

FIELD(requeues)
{
    jsonw_int(w, x->job->requeues_used);
}

FIELD(warn_ms)
{
    jsonw_int_or_null(w, REQ(x)->warn_ms, REQ(x)->warn_signal > 0);
}

FIELD(estimate_ms)
{
    jsonw_int_or_null(w, x->job->estimate_ms, x->job->estimate_ms > 0);
}

FIELD(span_ms)
{
    jsonw_int_or_null(w, x->job->span_ms, x->job->span_ms > 0);
}

FIELD(fingerprint)
{
    bool hidden =
        roles_is_hidden(x->views->roles, x->job->uid); /* it would reveal the command */
    jsonw_str(w, hidden ? NULL : x->job->fingerprint);
}

FIELD(auto_runs)
{
    jsonw_int_or_null(w, x->job->auto_runs, REQ(x)->vram_auto);
}

/* Variables often hold tokens, and a webhook's address is often its only protection. */
static bool
is_own(const struct jobjson *x)
{
    const struct caller *c = x->views->roles->caller;
    return c && roles_may_touch(c, x->job);
}

FIELD(mail_type)
{
    auto_buf struct buf text = BUF_INIT;
    if (REQ(x)->hooks && is_own(x))
        hooks_add_types(hooks_mail_types(REQ(x)->hooks), &text);
    jsonw_str(w, text.len ? buf_str(&text) : NULL);
}

static bool
is_shown(const struct attr *a, const struct jobjson *x)
{
    switch (a->sight) {
    case ATTR_ALL_SEE:
        return true;
    case ATTR_PRIVATE:
    case ATTR_CUT:
        return !roles_is_hidden(x->views->roles, x->job->uid);
    case ATTR_MINE:
        return is_own(x);
    }
    return false;
}

static void
write_text(const struct attr *a, const struct jobjson *x, struct jsonw *w)
{
    const char *text = is_shown(a, x) ? attr_text(a, REQ(x)) : NULL;
    bool is_cut = a->sight == ATTR_CUT && !roles_sees_whole(x->views->roles, x->job->uid);
    if (text && is_cut)
        jsonw_strn(w, text, events_cut(text, strlen(text), ROLES_OTHERS_TEXT_MAX));
    else
        jsonw_str(w, text);
}

static void
write_number(const struct attr *a, const struct jobjson *x, struct jsonw *w)
{
    if (!a->always && !attr_is_said(a, REQ(x)))
        jsonw_null(w);
    else if (a->kind == ATTR_PERMILLE)
        jsonw_num(w, (double)attr_number(a, REQ(x)) / 1000.0);
    else if (a->kind == ATTR_TENTHS)
        jsonw_num(w, (double)attr_number(a, REQ(x)) / 10.0);
    else
        jsonw_int(w, attr_number(a, REQ(x)));
}

void
jobjson_attr(const struct attr *a, const struct jobjson *x, struct jsonw *w)
{
    switch (a->kind) {
    case ATTR_INT:
    case ATTR_MIB:
    case ATTR_PERMILLE:
    case ATTR_TENTHS:
    case ATTR_MS:
    case ATTR_US:
        write_number(a, x, w);
        break;
    case ATTR_TEXT:
    case ATTR_HOOK:
    case ATTR_TYPE:
        write_text(a, x, w);
        break;
    case ATTR_LIST:
        if (is_shown(a, x)) {
            attr_write(a, REQ(x), w);
        } else {
            jsonw_array(w);
            jsonw_end_array(w);
        }
        break;
    case ATTR_NOTHING:
    case ATTR_FLAG:
    case ATTR_CHOICE:
    case ATTR_MAIL:
    case ATTR_CARDS:
    case ATTR_IDS:
    case ATTR_TASKS:
    case ATTR_DEPS:
        attr_write(a, REQ(x), w);
        break;
    }
}

#define ENTRY(name)                                                                            \
    {                                                                                          \
#name, field_##name, NULL                                                              \
    }
#define OF_ROW(name)                                                                           \
    {                                                                                          \
#name, NULL, NULL                                                                      \
    }

/* clang-format off */
const struct jobjson_entry jobjson_request[] = {
    ENTRY(array_job),
    ENTRY(array_task),
    ENTRY(array),
    OF_ROW(share),
    OF_ROW(min_vram_mib),
    OF_ROW(gpu_type),
    OF_ROW(gpu_cc),
    OF_ROW(max_used),
    OF_ROW(max_load),
    OF_ROW(margin_mib),
    OF_ROW(gpu_ids),
    OF_ROW(after),
    OF_ROW(tags),
    ENTRY(begin),
    OF_ROW(unique),
    OF_ROW(preemptible),
    OF_ROW(requeue),
    OF_ROW(on_timeout),
    OF_ROW(max_requeues),
    ENTRY(requeues),
    OF_ROW(warn_signal),
    ENTRY(warn_ms),
    OF_ROW(grace_ms),
    ENTRY(estimate_ms),
    ENTRY(span_ms),
    OF_ROW(idle_mib),
    OF_ROW(placement),
    OF_ROW(vram_cap),
    OF_ROW(on_exceed),
    OF_ROW(cpu_bind),
    OF_ROW(llm),
    ENTRY(fingerprint),
    OF_ROW(interactive),
    OF_ROW(pty),
    OF_ROW(env_setup),
    OF_ROW(conda),
    OF_ROW(login),
    OF_ROW(vram_auto),
    ENTRY(auto_runs),
    OF_ROW(screen),
    ENTRY(screen_session),
    OF_ROW(on_start),
    OF_ROW(on_end),
    OF_ROW(on_fail),
    OF_ROW(webhook),
    OF_ROW(mail_user),
    ENTRY(mail_type),
    OF_ROW(devices),
    OF_ROW(open_mode),
    OF_ROW(warn_batch),
    OF_ROW(comment),
    OF_ROW(submitted_as),
    OF_ROW(slurm_env),
    OF_ROW(env),
    OF_ROW(container),
    OF_ROW(container_mounts),
    {NULL, NULL, NULL},
};
/* clang-format on */

/* --- all that is needed to submit the job again, elsewhere or with another scheduler --- */

/* The request as clients send it (docs/protocol.md), the folder and the umask. The
 * environment, which many jobs share, is a number here; the method `environment` returns its
 * contents. Only for the job's owner and admins; null for others. */
void
jobjson_submission(const struct jobjson *x, struct jsonw *w)
{
    const struct job *job = x->job;
    const struct attr *a;

    if (!x->views->roles->caller || !roles_may_touch(x->views->roles->caller, job)) {
        jsonw_null(w);
        return;
    }
    jsonw_object(w);
    jsonw_kobject(w, "request");
    for (size_t i = 0; (a = attr_at(i)); i++) {
        if (!a->key || !(a->is_said ? a->is_said(&job->req) : attr_is_said(a, &job->req)))
            continue;
        jsonw_key(w, a->key);
        attr_write(a, &job->req, w);
    }
    jsonw_end_object(w);
    jsonw_kstr(w, "cwd", job->cwd);
    jsonw_kint(w, "umask", job->umask_bits);
    jsonw_kint(w, "environment", job->env);
    jsonw_end_object(w);
}
