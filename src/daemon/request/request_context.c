/* Where and as which user the jobs of one request run; see request_context.h. request_read.c
 * reads what a job itself requests. */
#include "daemon/request/request_context.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/counted_text.h"
#include "base/err.h"
#include "core/queue/job.h"
#include "core/queue/queue.h"
#include "daemon/common/caller.h"
#include "daemon/request/admit.h"
#include "daemon/request/budget.h"
#include "daemon/state/state.h"
#include "store/store.h"
#include "sys/procs.h"

static int
refuse_env(struct err *e)
{
    return err_set(e, ERR_USAGE, "\"env\" must be a list of \"NAME=value\"");
}

static int
read_umask(const json_t *v, int32_t *out, struct err *e)
{
    json_int_t bits = json_integer_value(v);
    if (!json_is_integer(v) || bits < 0 || bits > 0777)
        return err_set(e, ERR_USAGE, "\"umask\" must be a whole number from 0 to 511");
    *out = (int32_t)bits;
    return 0;
}

/* An environment that one of the user's jobs already has does not count again. */
static int
check_room(const struct admission *a, uid_t uid, const struct buf *block, struct err *e)
{
    int64_t id = 0;
    if (budget_check_env(a->budget, uid, block->len, e) < 0 ||
        store_env_find(a->store, block->data, block->len, &id, e) < 0)
        return -1;
    if (id && queue_has_env(a->state->queue, uid, id))
        return 0;
    return admit_env(a, uid, (int64_t)block->len, e);
}

/* Stores the environment as K=V strings, each terminated by a NUL. */
static int
read_env(const struct admission *a, uid_t uid, const json_t *env, struct reqcontext *out,
         struct err *e)
{
    auto_buf struct buf block = BUF_INIT;
    size_t i;
    const json_t *v;
    out->env = out->env_bytes = 0;
    if (!env)
        return 0;
    if (!json_is_array(env))
        return refuse_env(e);
    json_array_foreach(env, i, v)
    {
        const char *text = json_string_value(v);
        if (!text || !strchr(text, '=') || strlen(text) != json_string_length(v))
            return refuse_env(e);
        buf_addz(&block, text);
    }
    if (check_room(a, uid, &block, e) < 0)
        return -1;
    out->env_bytes = (int64_t)block.len;
    return block.len ? store_env_put(a->store, block.data, block.len, &out->env, e) : 0;
}

/* True if the connected process still exists and is the same: its pid was not reused, and it
 * did not execute a program with other privileges. */
static bool
is_itself(const struct admission *a, const struct caller *c)
{
    struct proc p;
    return proc_read(c->pid, &p) == 0 && p.start_ticks <= procs_ticks_of_boot_us(c->since_us) &&
           (!a->state->system || proc_is_only_of(c->pid, c->uid));
}

/* The caller waits for our answer, so its limits are read from the kernel rather than taken
 * from a message. A process that hands its connection on and exits would escape its limits,
 * and is refused. For a caller in a container whose processes are not visible here the limits
 * are unknown, and the job gets the limits of this daemon's jobs. */
static int
read_rlimits(const struct admission *a, const struct caller *c, struct reqcontext *out,
             struct err *e)
{
    auto_buf struct buf text = BUF_INIT;
    out->rlimits[0] = '\0';
    if (c->pid <= 0)
        return 0;
    if (is_itself(a, c) && rlimits_of(c->pid, &text) == 0)
        snprintf(out->rlimits, sizeof out->rlimits, "%s", buf_str(&text));
    else if (budget_binds(a->budget, c->uid))
        return err_set(e, ERR_PERMISSION,
                       "the limits of the process that connected (pid %d) cannot be read: it "
                       "has exited or changed its user; connect from the submitting process, "
                       "and keep it running until the answer",
                       (int)c->pid);
    return 0;
}

int
reqcontext_read(const struct admission *a, const struct caller *c, const json_t *params,
                struct reqcontext *out, struct err *e)
{
    const json_t *umask_value = json_object_get(params, "umask");
    out->cwd = json_string_value(json_object_get(params, "cwd"));
    if (!out->cwd || out->cwd[0] != '/')
        return err_set(e, ERR_USAGE, "\"cwd\" must be an absolute path");
    if (strlen(out->cwd) >= PATH_MAX)
        return err_set(e, ERR_USAGE, "\"cwd\" is %zu bytes long; the maximum is %d",
                       strlen(out->cwd), PATH_MAX - 1);
    out->user = NULL;
    out->umask_bits = 022;
    if (umask_value && read_umask(umask_value, &out->umask_bits, e) < 0)
        return -1;
    if (read_rlimits(a, c, out, e) < 0)
        return -1;
    return read_env(a, c->uid, json_object_get(params, "env"), out, e);
}

int
reqcontext_check_room(const struct admission *a, uid_t uid, const struct reqcontext *ctx,
                      struct err *e)
{
    if (!ctx->env || queue_has_env(a->state->queue, uid, ctx->env))
        return 0;
    return admit_env(a, uid, ctx->env_bytes, e);
}

void
reqcontext_apply(const struct reqcontext *ctx, struct job *job)
{
    shared_free(job->cwd);
    job->cwd = shared_new(job->req.chdir ? job->req.chdir : ctx->cwd);
    job->umask_bits = ctx->umask_bits;
    job->env = ctx->env;
    job->env_bytes = (int32_t)ctx->env_bytes;
    shared_free(job->rlimits);
    job->rlimits = ctx->rlimits[0] ? shared_new(ctx->rlimits) : NULL;
    shared_free(job->user);
    job->user = ctx->user ? shared_new(ctx->user) : NULL; /* looked up again at the start */
}
