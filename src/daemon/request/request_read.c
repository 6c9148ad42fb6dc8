/* Jobs out of JSON: see request_read.h; the members are listed in docs/protocol.md under "A job
 * in a request". */
#include "daemon/request/request_read.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/hook_list.h"
#include "base/request.h"
#include "spec/attr.h"
#include "spec/attr_hooks.h"
#include "spec/models.h"
#include "spec/value.h"

#define MEM_MAX_MIB VRAM_MAX_MIB

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

static int
read_gpu_type(const json_t *v, const char *name, char *out, struct err *e)
{
    const char *text = json_string_value(v);
    size_t n = json_string_length(v);

    if (!text || n == 0 || n >= GPU_TYPE_MAX || strlen(text) != n)
        return err_set(e, ERR_USAGE, "\"%s\" must be a string of 1 to %d bytes", name,
                       GPU_TYPE_MAX - 1);
    memset(out, 0, GPU_TYPE_MAX);
    for (size_t i = 0; i < n; i++)
        out[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] - 'A' + 'a' : text[i]);
    return value_check_text(out, GPU_TYPE_MAX - 1, e) ? err_prefix(e, "\"%s\"", name) : 0;
}

static int
read_tags(const json_t *v, char ***out, struct err *e)
{
    size_t n = json_array_size(v), i;
    const json_t *item;
    if (!json_is_array(v) || n > TAGS_MAX)
        return err_set(e, ERR_USAGE, "\"tags\" must be a list of at most %d strings", TAGS_MAX);
    if (n == 0)
        return 0;
    *out = xcalloc(n + 1, sizeof(char *));
    json_array_foreach(v, i, item)
    {
        if (read_text(item, "tags", &(*out)[i], e))
            return -1;
        if (value_check_text((*out)[i], TAG_MAX_BYTES, e))
            return err_prefix(e, "\"tags\"");
    }
    return 0;
}

static int
read_env(const json_t *v, struct request *r, struct err *e)
{
    size_t n = json_array_size(v), i;
    const json_t *item;
    if (!json_is_array(v))
        return bad(e, "env", "a list of \"NAME=value\"");
    if (n == 0)
        return 0;
    r->env = xcalloc(n + 1, sizeof(char *));
    json_array_foreach(v, i, item)
    {
        if (read_text(item, "env", &r->env[i], e))
            return -1;
    }
    return 0;
}

static int
read_array(const json_t *v, struct request *r, struct err *e)
{
    auto_free char *text = NULL;
    int32_t at_once = 0;
    if (read_text(v, "array", &text, e))
        return -1;
    task_set_free(&r->array);
    if (value_tasks(text, &r->array, &at_once, e))
        return err_prefix(e, "\"array\"");
    if (at_once)
        r->array_max = at_once;
    return 0;
}

static int
read_choice(const json_t *v, const char *name, const char *const *words, int *out,
            struct err *e)
{
    for (int i = 0; json_is_string(v) && words[i]; i++) {
        if (strcmp(json_string_value(v), words[i]) == 0) {
            *out = i;
            return 0;
        }
    }
    return err_set(e, ERR_USAGE, "\"%s\" must be \"%s\", \"%s\"%s%s%s", name, words[0],
                   words[1], words[2] ? " or \"" : "", words[2] ? words[2] : "",
                   words[2] ? "\"" : "");
}

/* One of "after": {"type":"success","job":12,"task":3} or {"type":"any","name":"prep"}. */
static int
read_dep(const json_t *j, struct dep *d, struct err *e)
{
    static const char *const types[] = {"success", "any", "failed", NULL};
    const char *k;
    json_t *v;
    int type = DEP_SUCCESS;
    int64_t job = 0;

    d->task = -1;
    if (!json_is_object(j))
        return bad(e, "after", "a list of objects with \"type\" and \"job\" or \"name\"");
    json_object_foreach((json_t *)j, k, v)
    {
        int rc = strcmp(k, "type") == 0   ? read_choice(v, k, types, &type, e)
                 : strcmp(k, "job") == 0  ? read_int(v, k, 1, UINT32_MAX, &job, e)
                 : strcmp(k, "task") == 0 ? read_int32(v, k, 0, ARRAY_MAX - 1, &d->task, e)
                 : strcmp(k, "name") == 0 ? read_text(v, k, &d->name, e)
                                          : err_set(e, ERR_USAGE, "it has no \"%s\"", k);
        if (rc)
            return err_prefix(e, "\"after\"");
    }
    d->type = (enum dep_type)type;
    d->job = (uint32_t)job;
    return 0;
}

static int
read_deps(const json_t *v, struct request *r, struct err *e)
{
    size_t n = json_array_size(v), i;
    const json_t *item;
    if (!json_is_array(v) || n > DEPS_MAX)
        return err_set(e, ERR_USAGE, "\"after\" must be a list of at most %d objects",
                       DEPS_MAX);
    if (n == 0)
        return 0;
    r->deps = xcalloc(n, sizeof(*r->deps));
    r->n_deps = (int32_t)n;
    json_array_foreach(v, i, item)
    {
        if (read_dep(item, &r->deps[i], e))
            return -1;
    }
    return 0;
}

/* Numbers whose range is all there is to check. */
static const struct {
    const char *name;
    size_t offset;
    int32_t min, max;
} numbers[] = {
    {"gpus", offsetof(struct request, demand.gpus), 0, GPU_MAX},
    {"vram_mib", offsetof(struct request, demand.vram_mib), 1, VRAM_MAX_MIB},
    {"share_permille", offsetof(struct request, demand.share_permille), 1, 1000},
    {"min_vram_mib", offsetof(struct request, demand.min_vram_mib), 0, VRAM_MAX_MIB},
    {"max_used_permille", offsetof(struct request, demand.max_used_permille), 1, 1000},
    {"max_load_permille", offsetof(struct request, demand.max_load_permille), 1, 1000},
    {"margin_mib", offsetof(struct request, demand.margin_mib), 0, VRAM_MAX_MIB},
    {"idle_mib", offsetof(struct request, demand.idle_mib), 1, VRAM_MAX_MIB},
    {"cpus", offsetof(struct request, demand.cpus), 0, CPUS_MAX},
    {"mem_mib", offsetof(struct request, demand.mem_mib), 0, MEM_MAX_MIB},
    {"priority", offsetof(struct request, priority), PRIORITY_MIN, PRIORITY_MAX},
    {"oom_retries", offsetof(struct request, oom_retries), 0, RETRIES_MAX},
    {"retries", offsetof(struct request, retries), 0, RETRIES_MAX},
    {"max_requeues", offsetof(struct request, max_requeues), 0, REQUEUES_MAX},
    {"warn_signal", offsetof(struct request, warn_signal), 1, 64},
    {"log_max_mib", offsetof(struct request, log_max_mib), 0, VRAM_MAX_MIB},
    {"array_max", offsetof(struct request, array_max), 0, ARRAY_MAX},
    {"rows", offsetof(struct request, rows), 0, TTY_SIZE_MAX},
    {"columns", offsetof(struct request, columns), 0, TTY_SIZE_MAX},
};

static const struct {
    const char *name;
    size_t offset;
    int64_t max;
} long_numbers[] = {
    {"limit_ms", offsetof(struct request, limit_ms), LIMIT_MAX_MS},
    {"grace_ms", offsetof(struct request, grace_ms), GRACE_MAX_MS},
    {"warn_ms", offsetof(struct request, warn_ms), LIMIT_MAX_MS},
    {"begin_us", offsetof(struct request, begin_us), INT64_MAX},
};

static const struct {
    const char *name;
    size_t offset;
} flags[] = {
    {"hold", offsetof(struct request, hold)},
    {"requeue", offsetof(struct request, requeue)},
    {"cancel", offsetof(struct request, cancel)},
    {"unique", offsetof(struct request, unique)},
    {"preemptible", offsetof(struct request, preemptible)},
    {"interactive", offsetof(struct request, interactive)},
    {"pty", offsetof(struct request, pty)},
    {"login", offsetof(struct request, login)},
    {"vram_auto", offsetof(struct request, vram_auto)},
    {"screen", offsetof(struct request, screen)},
    {"slurm_env", offsetof(struct request, slurm_env)},
    {"warn_batch", offsetof(struct request, warn_batch)},
};

static const struct {
    const char *name;
    size_t offset;
} texts[] = {
    {"command", offsetof(struct request, command)},
    {"name", offsetof(struct request, name)},
    {"log", offsetof(struct request, log)},
    {"llm", offsetof(struct request, llm)},
    {"begin_said", offsetof(struct request, begin_said)},
    {"error", offsetof(struct request, error)},
    {"comment", offsetof(struct request, comment)},
    {"chdir", offsetof(struct request, chdir)},
    {"env_setup", offsetof(struct request, env_setup)},
    {"conda", offsetof(struct request, conda)},
};

#define COUNT(a)         (sizeof(a) / sizeof((a)[0]))
#define FIELD(r, offset) ((void *)((char *)(r) + (offset)))

static const struct {
    const char *name;
    size_t offset;
} hook_texts[] = {
    {"on_start", offsetof(struct hooks, on_start)},
    {"on_end", offsetof(struct hooks, on_end)},
    {"on_fail", offsetof(struct hooks, on_fail)},
    {"webhook", offsetof(struct hooks, webhook)},
    {"mail_user", offsetof(struct hooks, mail_user)},
};

/* Whom to tell. 1: it is none of these. */
static int
read_hook(const char *k, const json_t *v, struct request *r, struct err *e)
{
    auto_free char *types = NULL;
    bool is_types = strcmp(k, "mail_type") == 0;
    for (size_t i = 0; i < COUNT(hook_texts) || is_types; i++) {
        if (!is_types && strcmp(k, hook_texts[i].name) != 0)
            continue;
        if (!r->hooks)
            r->hooks = xcalloc(1, sizeof *r->hooks);
        if (!is_types)
            return read_text(v, k, FIELD(r->hooks, hook_texts[i].offset), e);
        if (read_text(v, k, &types, e))
            return -1;
        return hooks_parse_types(types, &r->hooks->mail_types, e)
                   ? err_prefix(e, "\"mail_type\"")
                   : 0;
    }
    return 1;
}

/* A member that is one plain value. 1: it is none of these. */
static int
read_plain(const char *k, const json_t *v, struct request *r, struct err *e)
{
    for (size_t i = 0; i < COUNT(numbers); i++)
        if (strcmp(k, numbers[i].name) == 0)
            return read_int32(v, k, numbers[i].min, numbers[i].max, FIELD(r, numbers[i].offset),
                              e);
    for (size_t i = 0; i < COUNT(long_numbers); i++)
        if (strcmp(k, long_numbers[i].name) == 0)
            return read_int(v, k, 0, long_numbers[i].max, FIELD(r, long_numbers[i].offset), e);
    for (size_t i = 0; i < COUNT(flags); i++)
        if (strcmp(k, flags[i].name) == 0)
            return read_bool(v, k, FIELD(r, flags[i].offset), e);
    for (size_t i = 0; i < COUNT(texts); i++)
        if (strcmp(k, texts[i].name) == 0)
            return read_text(v, k, FIELD(r, texts[i].offset), e);
    return 1;
}

/* One member. 1: it is none of ours. */
static int
read_member(const char *k, const json_t *v, struct request *r, struct err *e)
{
    static const char *const at_limit[] = {"kill", "requeue", NULL};
    static const char *const modes[] = {"append", "truncate", NULL};
    static const char *const rules[] = {"pack", "spread", "first", NULL};
    bool flag = false;
    int choice = 0, rc;
#define IS(name) (strcmp(k, name) == 0)
    if (IS("argv"))
        return read_argv(v, &r->argv, e);
    if (IS("exclusive")) {
        rc = read_bool(v, k, &flag, e);
        r->demand.exclusive = flag;
        return rc;
    }
    if (IS("devices"))
        return read_devices(v, &r->demand.devices, e);
    if (IS("gpu_ids"))
        return read_ids(v, &r->demand, e);
    if (IS("gpu_type"))
        return read_gpu_type(v, k, r->demand.gpu_type, e);
    if (IS("placement")) {
        rc = read_choice(v, k, rules, &choice, e);
        r->demand.placement = (uint8_t)(choice + PLACING_PACK);
        return rc;
    }
    if (IS("on_timeout")) {
        rc = read_choice(v, k, at_limit, &choice, e);
        r->on_timeout = (enum on_timeout)choice;
        return rc;
    }
    if (IS("open_mode")) {
        rc = read_choice(v, k, modes, &choice, e);
        r->truncate = choice == 1;
        return rc;
    }
    if (IS("env"))
        return read_env(v, r, e);
    if (IS("tags"))
        return read_tags(v, &r->tags, e);
    if (IS("array"))
        return read_array(v, r, e);
    if (IS("after"))
        return read_deps(v, r, e);
#undef IS
    rc = read_hook(k, v, r, e);
    return rc == 1 ? read_plain(k, v, r, e) : rc;
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
reqjson_read(const json_t *j, const char *const *extra, const struct models *models,
             struct request *out, struct err *e)
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
        out->gpus_said |= strcmp(k, "gpus") == 0;
        if (rc == 1 && !is_named(extra, k))
            return err_set(e, ERR_USAGE, "a job has no \"%s\"", k);
    }
    if (!out->command == !out->argv)
        return err_set(e, ERR_USAGE, "a job needs \"command\" or \"argv\", one of them");
    if (out->command && !out->command[strspn(out->command, " \t\n")])
        return err_set(e, ERR_USAGE, "the command is empty");
    if (out->chdir && out->chdir[0] != '/')
        return err_set(e, ERR_USAGE, "\"chdir\" must be an absolute path");
    models_apply(models, out);
    return request_validate(out, e);
}
