/* Groups of v2 and v1 under one interface: see groups.h. Attempts, sweeps and hooks use them
 * to confine, find and end processes. Outcomes are correct without them. */
#include "shepherd/common/groups.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "sys/devfilter.h"

static const char *
text_of(const json_t *from, const char *key)
{
    return json_string_value(json_object_get(from, key));
}

static int32_t
number_of(const json_t *from, const char *key)
{
    json_int_t v = json_integer_value(json_object_get(from, key));
    return v < 0 ? 0 : v > INT32_MAX ? INT32_MAX : (int32_t)v;
}

/* Reads a list of minor numbers, at most max; -1 if invalid. */
static int32_t
read_minors(const json_t *list, size_t max, int32_t *out)
{
    const json_t *item;
    size_t i;
    if (!list)
        return 0;
    if (!json_is_array(list) || json_array_size(list) > max)
        return -1;
    json_array_foreach(list, i, item) out[i] = (int32_t)json_integer_value(item);
    return (int32_t)json_array_size(list);
}

int
groups_read(const json_t *from, struct groups_wish *out, struct err *e)
{
    const json_t *list = json_object_get(from, "minors");
    *out = (struct groups_wish){.path = text_of(from, "cgroup"), .n_minors = -1};
    out->v1[CGROUP_V1_MEMORY] = text_of(from, "cgroup_memory");
    out->v1[CGROUP_V1_PIDS] = text_of(from, "cgroup_pids");
    out->v1[CGROUP_V1_CPU] = text_of(from, "cgroup_cpu");
    out->limits.mem_mib = number_of(from, "mem_mib");
    out->limits.cpus = number_of(from, "cpus");
    out->limits.pids = number_of(from, "max_processes");
    vram_cap_read(from, &out->cap);
    if (!list)
        return 0;
    out->n_minors = read_minors(list, GPU_MAX, out->minors);
    if (out->n_minors < 0)
        return err_set(e, ERR_FAILED, "'minors' is not a list of cards");
    out->n_denied =
        read_minors(json_object_get(from, "dri_denied"), 2 * (size_t)GPU_MAX, out->denied);
    if (out->n_denied < 0)
        return err_set(e, ERR_FAILED, "'dri_denied' is not a list of devices");
    out->mig_major = number_of(from, "mig_major");
    out->n_mig_minors =
        read_minors(json_object_get(from, "mig_minors"), 2 * (size_t)GPU_MAX, out->mig_minors);
    if (out->n_mig_minors < 0)
        return err_set(e, ERR_FAILED, "'mig_minors' is not a list of devices");
    return 0;
}

int
groups_make(const struct groups_wish *wish, struct groups *out, struct err *e)
{
    *out = (struct groups)GROUPS_NONE;
    if (wish->path)
        out->fd = cgroup_create(wish->path, &wish->limits, e);
    else
        err_set(e, ERR_FAILED, "there is no cgroup");
    cgroup_v1_create(wish->v1, &wish->limits, out->v1_fds);
    bool bounded = wish->limits.mem_mib > 0;
    if (out->fd < 0 && (wish->n_minors >= 0 || (bounded && wish->path)))
        return -1;
    const char *memory = wish->v1[CGROUP_V1_MEMORY];
    if (bounded && memory && out->v1_fds[CGROUP_V1_MEMORY] < 0)
        return err_errno(e, ERR_FAILED, -out->v1_fds[CGROUP_V1_MEMORY],
                         "cannot make the cgroup %s", memory);
    if (wish->n_minors < 0)
        return 0;
    const struct devfilter filter = {.minors = wish->minors,
                                     .n_minors = (size_t)wish->n_minors,
                                     .denied = wish->denied,
                                     .n_denied = (size_t)wish->n_denied,
                                     .mig_major = wish->mig_major,
                                     .mig_minors = wish->mig_minors,
                                     .n_mig_minors = (size_t)wish->n_mig_minors};
    return devfilter_attach(out->fd, &filter, e);
}

bool
groups_must_hold(const struct groups_wish *wish)
{
    return wish->n_minors >= 0 || wish->limits.mem_mib > 0 || wish->cap.mib > 0;
}

void
groups_open(const struct groups_wish *wish, struct groups *out)
{
    out->fd = wish->path ? cgroup_open(wish->path) : -1;
    cgroup_v1_open(wish->v1, out->v1_fds);
}

int
groups_enter_for_end(const struct groups *g)
{
    if (g->fd >= 0 && cgroup_enter_below(g->fd, "ending") < 0)
        return -1;
    (void)cgroup_v1_join(g->v1_fds);
    return 0;
}

void
groups_close(struct groups *g)
{
    if (g->fd >= 0)
        close(g->fd);
    for (int i = 0; i < CGROUP_V1_N; i++)
        if (g->v1_fds[i] >= 0)
            close(g->v1_fds[i]);
    *g = (struct groups)GROUPS_NONE;
}

bool
groups_are_populated(const struct groups *g)
{
    if (g->fd >= 0)
        return cgroup_is_populated(g->fd) == 1;
    return cgroup_v1_signal(g->v1_fds, 0) > 0;
}

void
groups_kill(const struct groups *g)
{
    if (g->fd < 0)
        (void)cgroup_v1_signal(g->v1_fds, SIGKILL);
    else
        cgroup_kill(g->fd);
}

int64_t
groups_oom_kills(const struct groups *g, bool *own)
{
    int64_t n = g->fd >= 0 ? cgroup_oom_kills(g->fd, own) : 0;
    return n > 0 ? n : cgroup_v1_oom_kills(g->v1_fds[CGROUP_V1_MEMORY], own);
}

void
groups_remove(const struct groups_wish *wish)
{
    if (wish->cap.mib > 0)
        vram_cap_clear(&wish->cap);
    if (wish->path)
        (void)cgroup_remove(wish->path);
    cgroup_v1_remove(wish->v1);
}
