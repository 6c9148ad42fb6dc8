/* Requests as they go over the socket; see request_write.h. What is at its default is not sent,
 * so that the daemon's own defaults hold. */
#include "cli/ask/request_write.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/hook_list.h"
#include "base/jsonw.h"
#include "base/request.h"
#include "base/text.h"
#include "cli/ask/submit_env.h"
#include "spec/attr_hooks.h"
#include "spec/jobsfile.h"
#include "spec/value.h"

static void
add_positive(struct jsonw *w, const char *key, int64_t v)
{
    if (v > 0)
        jsonw_kint(w, key, v);
}

static void
add_flag(struct jsonw *w, const char *key, bool v)
{
    if (v)
        jsonw_kbool(w, key, true);
}

static void
add_text(struct jsonw *w, const char *key, const char *text)
{
    if (text)
        jsonw_kstr(w, key, text);
}

static void
add_ints(struct jsonw *w, const char *key, uint64_t set)
{
    jsonw_key(w, key);
    jsonw_array(w);
    for (int i = 0; i < GPU_MAX; i++) {
        if (set >> i & 1)
            jsonw_int(w, i);
    }
    jsonw_end_array(w);
}

static void
add_texts(struct jsonw *w, const char *key, char *const *texts)
{
    jsonw_key(w, key);
    jsonw_array(w);
    for (; *texts; texts++)
        jsonw_str(w, *texts);
    jsonw_end_array(w);
}

static void
add_ids(struct jsonw *w, const struct demand *d)
{
    jsonw_key(w, "gpu_ids");
    jsonw_array(w);
    for (int i = 0; i < d->n_ids; i++)
        jsonw_int(w, d->ids[i]);
    jsonw_end_array(w);
}

/* The number of GPUs goes along only where somebody said it: the daemon's model table may
 * know better than the default. */
static void
add_demand(struct jsonw *w, const struct request *r)
{
    const struct demand *d = &r->demand;

    if (r->gpus_said || d->gpus != (d->n_ids ? d->n_ids : 1))
        jsonw_kint(w, "gpus", d->gpus);
    add_positive(w, "vram_mib", d->vram_mib);
    add_flag(w, "vram_auto", r->vram_auto);
    add_positive(w, "share_permille", d->share_permille);
    add_flag(w, "exclusive", d->exclusive);
    if (d->devices)
        add_ints(w, "devices", d->devices);
    if (d->n_ids)
        add_ids(w, d);
    if (d->gpu_type[0])
        jsonw_kstr(w, "gpu_type", d->gpu_type);
    add_positive(w, "min_vram_mib", d->min_vram_mib);
    add_positive(w, "max_used_permille", d->max_used_permille);
    add_positive(w, "max_load_permille", d->max_load_permille);
    if (d->margin_mib >= 0)
        jsonw_kint(w, "margin_mib", d->margin_mib);
    add_positive(w, "idle_mib", d->idle_mib);
    if (d->placement)
        jsonw_kstr(w, "placement", value_placing_name(d->placement));
    add_positive(w, "cpus", d->cpus);
    add_positive(w, "mem_mib", d->mem_mib);
}

static void
add_deps(struct jsonw *w, const struct request *r)
{
    jsonw_key(w, "after");
    jsonw_array(w);
    for (int i = 0; i < r->n_deps; i++) {
        const struct dep *d = &r->deps[i];

        jsonw_object(w);
        jsonw_kstr(w, "type", value_dep_name(d->type));
        if (d->name)
            jsonw_kstr(w, "name", d->name);
        else
            jsonw_kint(w, "job", d->job);
        if (d->task >= 0)
            jsonw_kint(w, "task", d->task);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
}

static void
add_array(struct jsonw *w, const struct request *r)
{
    auto_buf struct buf text = BUF_INIT;

    task_set_text(&r->array, &text);
    jsonw_kstr(w, "array", buf_str(&text));
    add_positive(w, "array_max", r->array_max);
}

/* How long, and what comes of the limit. */
static void
add_times(struct jsonw *w, const struct request *r, const struct request *standard)
{
    add_positive(w, "limit_ms", r->limit_ms);
    if (r->grace_ms != standard->grace_ms)
        jsonw_kint(w, "grace_ms", r->grace_ms);
    if (r->on_timeout == ON_TIMEOUT_REQUEUE)
        jsonw_kstr(w, "on_timeout", "requeue");
    if (r->max_requeues != standard->max_requeues)
        jsonw_kint(w, "max_requeues", r->max_requeues);
    add_positive(w, "warn_signal", r->warn_signal);
    if (r->warn_signal)
        jsonw_kint(w, "warn_ms", r->warn_ms);
    add_flag(w, "warn_batch", r->warn_batch);
}

/* When, and how often. */
static void
add_turn(struct jsonw *w, const struct request *r, const struct request *standard)
{
    if (r->priority != standard->priority)
        jsonw_kint(w, "priority", r->priority);
    if (r->oom_retries >= 0)
        jsonw_kint(w, "oom_retries", r->oom_retries);
    add_positive(w, "retries", r->retries);
    add_positive(w, "begin_us", r->begin_us);
    if (r->begin_said)
        jsonw_kstr(w, "begin_said", r->begin_said);
    if (r->array.n)
        add_array(w, r);
    if (r->n_deps)
        add_deps(w, r);
    add_flag(w, "hold", r->hold);
    add_flag(w, "requeue", r->requeue);
    add_flag(w, "unique", r->unique);
    add_flag(w, "preemptible", r->preemptible);
    add_flag(w, "interactive", r->interactive);
    add_flag(w, "pty", r->pty);
    add_positive(w, "rows", r->rows);
    add_positive(w, "columns", r->columns);
    add_flag(w, "login", r->login);
    add_flag(w, "screen", r->screen);
}

static void
add_hooks(struct jsonw *w, const struct hooks *h)
{
    auto_buf struct buf types = BUF_INIT;

    add_text(w, "on_start", h->on_start);
    add_text(w, "on_end", h->on_end);
    add_text(w, "on_fail", h->on_fail);
    add_text(w, "webhook", h->webhook);
    add_text(w, "mail_user", h->mail_user);
    if (h->mail_types) {
        hooks_add_types(h->mail_types, &types);
        jsonw_kstr(w, "mail_type", buf_str(&types));
    }
}

void
jobreq_add_fields(struct jsonw *w, const struct request *r)
{
    struct request standard;

    request_init(&standard);
    if (r->argv)
        add_texts(w, "argv", r->argv);
    else
        jsonw_kstr(w, "command", r->command);
    if (r->name)
        jsonw_kstr(w, "name", r->name);
    if (r->log)
        jsonw_kstr(w, "log", r->log);
    add_text(w, "error", r->error);
    add_positive(w, "log_max_mib", r->log_max_mib);
    if (r->truncate)
        jsonw_kstr(w, "open_mode", "truncate");
    add_text(w, "comment", r->comment);
    add_text(w, "chdir", r->chdir);
    if (r->env)
        add_texts(w, "env", r->env);
    add_flag(w, "slurm_env", r->slurm_env);
    if (r->tags)
        add_texts(w, "tags", r->tags);
    if (r->hooks)
        add_hooks(w, r->hooks);
    if (r->llm)
        jsonw_kstr(w, "llm", r->llm);
    if (r->env_setup)
        jsonw_kstr(w, "env_setup", r->env_setup);
    if (r->conda)
        jsonw_kstr(w, "conda", r->conda);
    add_demand(w, r);
    add_times(w, r, &standard);
    add_turn(w, r, &standard);
    request_free(&standard);
}

int
jobreq_check_folder(const char *cwd, struct err *e)
{
    auto_buf struct buf shown = BUF_INIT;

    if (text_is_utf8(cwd, strlen(cwd), NULL))
        return 0;
    text_add_safe(&shown, cwd, strlen(cwd), 0);
    return err_set(e, ERR_USAGE, "the name of the folder %s is not UTF-8; give it another name",
                   buf_str(&shown));
}

char *
jobreq_current_folder(struct err *e)
{
    auto_free char *here = getcwd(NULL, 0);

    if (!here && errno == ENOENT)
        err_set(e, ERR_USAGE, "the current folder has gone; cd somewhere, or name one with -D");
    else if (!here)
        err_errno(e, ERR_USAGE, errno, "cannot tell the current folder");
    else if (jobreq_check_folder(here, e) == 0)
        return TAKE(here);
    return NULL;
}

void
jobreq_add_context(struct jsonw *w, const char *cwd, const struct env_choice *env)
{
    mode_t bits = umask(0);

    umask(bits);
    jsonw_kstr(w, "cwd", cwd);
    jsonw_kint(w, "umask", bits);
    env_add(w, env);
}

void
jobreq_add_line(struct jsonw *w, const struct jobsfile_line *line)
{
    jobreq_add_fields(w, &line->req);
    jsonw_kstr(w, "key", line->key);
    jsonw_kint(w, "line", line->line);
    add_flag(w, "cancel", line->req.cancel);
}
