/* Jobs out of JSON: see reqjson.h; the members are listed in docs/protocol.md under "A job in
 * a request". */
#include "daemon/reqjson.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/request.h"
#include "core/job.h"
#include "daemon/daemon.h"
#include "daemon/server.h"
#include "spec/attr.h"
#include "store/store.h"
#include "sys/procs.h"

#define LIMIT_MAX_MS (INT64_C(36500) * 86400 * 1000) /* as parse_duration_ms has it */
#define MEM_MAX_MIB  VRAM_MAX_MIB

static int
bad(struct err *e, const char *name, const char *want)
{
    return err_set(e, ERR_USAGE, "\"%s\" must be %s", name, want);
}

static int
read_int(const json_t *v, const char *name, int64_t min, int64_t max, int64_t *out,
         struct err *e)
{
    int64_t n = json_integer_value(v);
    if (!json_is_integer(v) || n < min || n > max)
        return err_set(e, ERR_USAGE, "\"%s\" must be a whole number from %lld to %lld", name,
                       (long long)min, (long long)max);
    *out = n;
    return 0;
}

static int
read_int32(const json_t *v, const char *name, int64_t min, int64_t max, int32_t *out,
           struct err *e)
{
    int64_t n = 0;
    if (read_int(v, name, min, max, &n, e))
        return -1;
    *out = (int32_t)n;
    return 0;
}

static int
read_bool(const json_t *v, const char *name, bool *out, struct err *e)
{
    if (!json_is_boolean(v))
        return bad(e, name, "true or false");
    *out = json_is_true(v);
    return 0;
}

/* jansson has checked that it is UTF-8; a NUL inside would cut a command short. */
static int
read_text(const json_t *v, const char *name, char **out, struct err *e)
{
    if (!json_is_string(v) || strlen(json_string_value(v)) != json_string_length(v))
        return bad(e, name, "a string without NUL bytes");
    free(*out);
    *out = xstrdup(json_string_value(v));
    return 0;
}

static int
read_argv(const json_t *v, char ***out, struct err *e)
{
    size_t n = json_array_size(v), i;
    const json_t *item;
    if (!json_is_array(v) || n == 0)
        return bad(e, "argv", "a list of at least one string");
    *out = xcalloc(n + 1, sizeof(char *));
    json_array_foreach(v, i, item)
    {
        if (read_text(item, "argv", &(*out)[i], e))
            return -1;
    }
    return 0;
}

static int
read_devices(const json_t *v, uint64_t *out, struct err *e)
{
    size_t i;
    const json_t *item;
    if (!json_is_array(v) || json_array_size(v) == 0)
        return bad(e, "devices", "a list of GPU indices");
    json_array_foreach(v, i, item)
    {
        int64_t n = 0;
        if (read_int(item, "devices", 0, GPU_MAX - 1, &n, e))
            return -1;
        *out |= UINT64_C(1) << n;
    }
    return 0;
}

static int
read_ids(const json_t *v, struct demand *d, struct err *e)
{
    size_t i, n = json_array_size(v);
    const json_t *item;
    if (!json_is_array(v) || n == 0 || n > REQUEST_IDS_MAX)
        return err_set(e, ERR_USAGE, "\"gpu_ids\" must be a list of 1 to %d GPU indices",
                       REQUEST_IDS_MAX);
    json_array_foreach(v, i, item)
    {
        int64_t id = 0;
        if (read_int(item, "gpu_ids", 0, GPU_MAX - 1, &id, e))
            return -1;
        if (memchr(d->ids, (int)id, i))
            return err_set(e, ERR_USAGE, "\"gpu_ids\" names GPU %d twice", (int)id);
        d->ids[i] = (uint8_t)id;
    }
    d->n_ids = (uint8_t)n;
    return 0;
}

/* One member. 1: it is none of ours. */
static int
read_member(const char *k, const json_t *v, struct request *r, struct err *e)
{
    struct demand *d = &r->demand;
    bool flag = false;
    int rc;
#define IS(name) (strcmp(k, name) == 0)
    if (IS("command"))
        return read_text(v, k, &r->command, e);
    if (IS("argv"))
        return read_argv(v, &r->argv, e);
    if (IS("name"))
        return read_text(v, k, &r->name, e);
    if (IS("log"))
        return read_text(v, k, &r->log, e);
    if (IS("gpus"))
        return read_int32(v, k, 0, GPU_MAX, &d->gpus, e);
    if (IS("vram_mib"))
        return read_int32(v, k, 1, VRAM_MAX_MIB, &d->vram_mib, e);
    if (IS("exclusive")) {
        rc = read_bool(v, k, &flag, e);
        d->exclusive = flag;
        return rc;
    }
    if (IS("devices"))
        return read_devices(v, &d->devices, e);
    if (IS("gpu_ids"))
        return read_ids(v, d, e);
    if (IS("cpus"))
        return read_int32(v, k, 0, 65536, &d->cpus, e);
    if (IS("mem_mib"))
        return read_int32(v, k, 0, MEM_MAX_MIB, &d->mem_mib, e);
    if (IS("priority"))
        return read_int32(v, k, PRIORITY_MIN, PRIORITY_MAX, &r->priority, e);
    if (IS("limit_ms"))
        return read_int(v, k, 0, LIMIT_MAX_MS, &r->limit_ms, e);
    if (IS("grace_ms"))
        return read_int(v, k, 0, LIMIT_MAX_MS, &r->grace_ms, e);
    if (IS("oom_retries"))
        return read_int32(v, k, 0, RETRIES_MAX, &r->oom_retries, e);
    if (IS("retries"))
        return read_int32(v, k, 0, RETRIES_MAX, &r->retries, e);
    if (IS("hold"))
        return read_bool(v, k, &r->hold, e);
    if (IS("requeue"))
        return read_bool(v, k, &r->requeue, e);
    if (IS("cancel"))
        return read_bool(v, k, &r->cancel, e);
#undef IS
    return 1;
}

static bool
is_named(const char *const *names, const char *k)
{
    for (; names && *names; names++)
        if (strcmp(*names, k) == 0)
            return true;
    return false;
}

int
reqjson_read(const json_t *j, const char *const *extra, struct request *out, struct err *e)
{
    const char *k;
    json_t *v;
    request_begin(out);
    if (!json_is_object(j))
        return err_set(e, ERR_USAGE, "a job must be an object");
    json_object_foreach((json_t *)j, k, v)
    {
        if (json_is_null(v))
            continue;
        int rc = read_member(k, v, out, e);
        if (rc < 0)
            return -1;
        if (rc == 1 && !is_named(extra, k))
            return err_set(e, ERR_USAGE, "a job has no \"%s\"", k);
    }
    if (!out->command == !out->argv)
        return err_set(e, ERR_USAGE, "a job needs \"command\" or \"argv\", one of them");
    if (out->command && !out->command[strspn(out->command, " \t\n")])
        return err_set(e, ERR_USAGE, "the command is empty");
    return request_validate(out, e);
}

/* The environment as the store keeps it: K=V, each with a NUL behind it. */
static int
read_env(struct daemon *d, const json_t *env, int64_t *id, struct err *e)
{
    auto_buf struct buf block = BUF_INIT;
    size_t i;
    const json_t *v;
    *id = 0;
    if (!env)
        return 0;
    if (!json_is_array(env))
        return bad(e, "env", "a list of \"NAME=value\"");
    json_array_foreach(env, i, v)
    {
        const char *text = json_string_value(v);
        if (!text || !strchr(text, '=') || strlen(text) != json_string_length(v))
            return bad(e, "env", "a list of \"NAME=value\"");
        buf_add(&block, text, strlen(text) + 1);
    }
    return block.len ? store_env_put(d->store, block.data, block.len, id, e) : 0;
}

/* Who asks is asleep until we answer, so its limits are the kernel's to tell and need not be
 * believed from a message. A pid that has gone to another process since it connected is not
 * asked: such a job gets the limits that jobs of this daemon have. */
static void
read_rlimits(const struct daemon *d, struct reqjson_context *out)
{
    auto_buf struct buf text = BUF_INIT;
    const struct caller *c = d->caller;
    struct proc p;
    out->rlimits[0] = '\0';
    if (!c || c->pid <= 0 || proc_read(c->pid, &p) ||
        p.start_ticks > procs_ticks_of_boot_us(c->since_us) || rlimits_of(c->pid, &text))
        return;
    snprintf(out->rlimits, sizeof out->rlimits, "%s", buf_str(&text));
}

int
reqjson_context(struct daemon *d, const json_t *params, struct reqjson_context *out,
                struct err *e)
{
    const json_t *umask_value = json_object_get(params, "umask");
    out->cwd = json_string_value(json_object_get(params, "cwd"));
    if (!out->cwd || out->cwd[0] != '/')
        return bad(e, "cwd", "an absolute path");
    out->umask_bits = 022;
    if (umask_value && read_int32(umask_value, "umask", 0, 0777, &out->umask_bits, e))
        return -1;
    read_rlimits(d, out);
    return read_env(d, json_object_get(params, "env"), &out->env, e);
}

void
reqjson_apply(const struct reqjson_context *ctx, struct job *job)
{
    free(job->cwd);
    job->cwd = xstrdup(ctx->cwd);
    job->umask_bits = ctx->umask_bits;
    job->env = ctx->env;
    free(job->rlimits);
    job->rlimits = ctx->rlimits[0] ? xstrdup(ctx->rlimits) : NULL;
    free(job->user);
    job->user = xstrdup(daemon_user_name(job->uid));
}
