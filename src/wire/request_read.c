/* Jobs from JSON: see request_read.h; docs/protocol.md lists the members under "A job in a
 * request". */
#include "wire/request_read.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/request.h"
#include "spec/attr.h"
#include "spec/attr_hooks.h"
#include "spec/models.h"
#include "spec/value.h"

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
    if (read_int(v, name, min, max, &n, e) < 0)
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

/* jansson has checked that it is UTF-8; an embedded NUL would truncate a command. */
static int
read_text(const json_t *v, const char *name, char **out, struct err *e)
{
    if (!json_is_string(v) || strlen(json_string_value(v)) != json_string_length(v))
        return bad(e, name, "a string without NUL bytes");
    free(*out);
    *out = xstrdup(json_string_value(v));
    return 0;
}

/* An empty list counts as not set. */
static int
read_list(const json_t *v, const struct attr *a, char ***out, struct err *e)
{
    size_t n = json_array_size(v), i;
    const json_t *item;
    if (!json_is_array(v) || (int64_t)n < a->min || (int64_t)n > a->max)
        return bad(e, a->key, a->want);
    if (n == 0)
        return 0;
    *out = xcalloc(n + 1, sizeof(char *));
    json_array_foreach(v, i, item)
    {
        if (read_text(item, a->key, &(*out)[i], e) < 0)
            return -1;
        if (a->bytes && value_check_text((*out)[i], a->bytes, e) < 0)
            return err_prefix(e, "\"%s\"", a->key);
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
        if (read_int(item, "devices", 0, GPU_MAX - 1, &n, e) < 0)
            return -1;
        *out |= UINT64_C(1) << n;
    }
    return 0;
}

/* GPUs some of which are given by UUID; stored as attr_read_text does. */
static int
read_gpu_names(const json_t *v, struct request *r, struct err *e)
{
    auto_buf struct buf names = BUF_INIT;
    size_t i;
    const json_t *item;
    json_array_foreach(v, i, item)
    {
        const char *name = json_string_value(item);
        if (!json_is_integer(item) && (!name || !name[0] || strchr(name, ',')))
            return err_set(e, ERR_USAGE, "\"gpu_ids\" has something that is no GPU");
        if (name)
            buf_addf(&names, "%s%s", i ? "," : "", name);
        else
            buf_addf(&names, "%s%lld", i ? "," : "", (long long)json_integer_value(item));
    }
    return attr_take_gpu_names(r, buf_take(&names), (int)i, e);
}

static int
read_ids(const json_t *v, struct request *r, struct err *e)
{
    size_t i, n = json_array_size(v);
    struct demand *d = &r->demand;
    const json_t *item;
    if (!json_is_array(v) || n == 0 || n > REQUEST_IDS_MAX)
        return err_set(e, ERR_USAGE, "\"gpu_ids\" must be a list of 1 to %d GPU indices",
                       REQUEST_IDS_MAX);
    json_array_foreach(v, i, item)
    {
        if (json_is_string(item))
            return read_gpu_names(v, r, e);
    }
    json_array_foreach(v, i, item)
    {
        int64_t id = 0;
        if (read_int(item, "gpu_ids", 0, GPU_MAX - 1, &id, e) < 0)
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
read_array(const json_t *v, struct request *r, struct err *e)
{
    auto_free char *text = NULL;
    int32_t at_once = 0;
    if (read_text(v, "array", &text, e) < 0)
        return -1;
    task_set_free(&r->array);
    if (value_tasks(text, &r->array, &at_once, e) < 0)
        return err_prefix(e, "\"array\"");
    if (at_once)
        r->array_max = at_once;
    return 0;
}

/* The first word may be NULL: a value that users cannot write. */
static int
read_choice(const json_t *v, const char *name, const char *const *words, int64_t *out,
            struct err *e)
{
    int first = words[0] ? 0 : 1;
    for (int i = first; json_is_string(v) && words[i]; i++) {
        if (strcmp(json_string_value(v), words[i]) == 0) {
            *out = i;
            return 0;
        }
    }
    words += first;
    return err_set(e, ERR_USAGE, "\"%s\" must be \"%s\", \"%s\"%s%s%s", name, words[0],
                   words[1], words[2] ? " or \"" : "", words[2] ? words[2] : "",
                   words[2] ? "\"" : "");
}

/* One element of "after": {"type":"success","job":12,"task":3} or
 * {"type":"any","name":"prep"}. */
static int
read_dep(const json_t *j, struct dep *d, struct err *e)
{
    static const char *const types[] = {"success", "any", "failed", NULL};
    const char *k;
    json_t *v;
    int64_t type = DEP_SUCCESS, job = 0;

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
    r->deps = xcalloc(n, sizeof *r->deps);
    r->n_deps = (int32_t)n;
    json_array_foreach(v, i, item)
    {
        if (read_dep(item, &r->deps[i], e) < 0)
            return -1;
    }
    return 0;
}

static int
read_mail(const json_t *v, const char *name, uint32_t *out, struct err *e)
{
    auto_free char *types = NULL;
    if (read_text(v, name, &types, e) < 0)
        return -1;
    return hooks_parse_types(types, out, e) ? err_prefix(e, "\"%s\"", name) : 0;
}

/* Flags, numbers and choices. */
static int
read_number(const json_t *v, const struct attr *a, struct request *r, struct err *e)
{
    bool flag = false;
    int64_t n = 0;
    int rc = a->kind == ATTR_FLAG     ? read_bool(v, a->key, &flag, e)
             : a->kind == ATTR_CHOICE ? read_choice(v, a->key, a->words, &n, e)
                                      : read_int(v, a->key, a->min, a->max, &n, e);
    if (rc == 0)
        attr_set_number(a, r, a->kind == ATTR_FLAG ? flag : n);
    return rc;
}

static int
read_member(const json_t *v, const struct attr *a, struct request *r, struct err *e)
{
    switch (a->kind) {
    case ATTR_FLAG:
    case ATTR_INT:
    case ATTR_MIB:
    case ATTR_PERMILLE:
    case ATTR_TENTHS:
    case ATTR_MS:
    case ATTR_US:
    case ATTR_CHOICE:
        return read_number(v, a, r, e);
    case ATTR_TEXT:
    case ATTR_HOOK:
        return read_text(v, a->key, attr_field_to_set(a, r), e);
    case ATTR_LIST:
        return read_list(v, a, attr_field(a, r), e);
    case ATTR_MAIL:
        return read_mail(v, a->key, attr_field_to_set(a, r), e);
    case ATTR_CARDS:
        return read_devices(v, &r->demand.devices, e);
    case ATTR_IDS:
        return read_ids(v, r, e);
    case ATTR_TYPE:
        return read_gpu_type(v, a->key, r->demand.gpu_type, e);
    case ATTR_TASKS:
        return read_array(v, r, e);
    case ATTR_DEPS:
        return read_deps(v, r, e);
    case ATTR_NOTHING:
        break;
    }
    return -1;
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
        const struct attr *a = attr_of_key(k);
        if (json_is_null(v))
            continue;
        if (!a && !is_named(extra, k))
            return err_set(e, ERR_USAGE, "a job has no \"%s\"", k);
        if (a && read_member(v, a, out, e) < 0)
            return -1;
        out->gpus_said |= strcmp(k, "gpus") == 0;
    }
    if (!out->command == !out->argv)
        return err_set(e, ERR_USAGE, "a job needs either \"command\" or \"argv\"");
    if (out->command && !out->command[strspn(out->command, " \t\n")])
        return err_set(e, ERR_USAGE, "the command is empty");
    if (out->chdir && out->chdir[0] != '/')
        return err_set(e, ERR_USAGE, "\"chdir\" must be an absolute path");
    models_apply(models, out);
    return request_validate(out, e);
}
