/* Roles: see roles.h. The caller is identified only by the socket; its groups too come from
 * the kernel rather than a directory service, which may be slow or unavailable. */
#include "daemon/request/roles.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/parse.h"
#include "core/queue/job.h"
#include "daemon/common/caller.h"
#include "daemon/common/instance.h"
#include "daemon/common/user_names.h"

struct roles *
roles_new(const struct instance *inst)
{
    struct roles *r = xcalloc(1, sizeof *r);
    r->inst = inst;
    return r;
}

bool
roles_is_served(const struct roles *r, uid_t uid)
{
    return r->inst->places.system || uid == getuid() || uid == 0;
}

/* The supplementary groups of the connected process, as of its connection. */
static bool
peer_is_in(int fd, gid_t gid)
{
    gid_t none;
    socklen_t size = 0;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, &none, &size) == 0 || size == 0)
        return false; /* in no group, or unsupported by the kernel */
    auto_free gid_t *groups = xmalloc(size);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size))
        return false;
    for (size_t i = 0; i < size / sizeof *groups; i++)
        if (groups[i] == gid)
            return true;
    return false;
}

/* settings_names.c looks the group up. Root's own group makes nobody an admin. */
static bool
find_admins(const struct roles *r, gid_t *gid)
{
    const char *name = r->inst->config.admin_group;
    return name && name[0] && users_gid(name, gid) && *gid != 0;
}

bool
roles_is_admin(const struct roles *r, int fd, const struct ucred *cred)
{
    gid_t gid;
    if (!r->inst->places.system || cred->uid == 0)
        return true; /* root, or a user with an own daemon */
    return find_admins(r, &gid) && (cred->gid == gid || peer_is_in(fd, gid));
}

bool
roles_may_touch(const struct caller *c, const struct job *job)
{
    return c->admin || c->uid == job->uid;
}

int
roles_need_admin(const struct caller *c, const char *what, struct err *e)
{
    if (c->admin)
        return 0;
    return err_set(e, ERR_PERMISSION, "only root and members of admin_group may %s", what);
}

int64_t
roles_priority_max(const struct roles *r)
{
    return r->inst->places.system && r->caller && !r->caller->admin
               ? r->inst->config.user_priority_max
               : PRIORITY_MAX;
}

int
roles_check_priority(const struct roles *r, int32_t priority, struct err *e)
{
    if (priority <= roles_priority_max(r))
        return 0;
    return err_set(e, ERR_PERMISSION,
                   "priority %d is above %lld, the maximum for users; lower the priority of "
                   "other jobs instead, or ask an admin",
                   priority, (long long)r->inst->config.user_priority_max);
}

/* The larger of grace_max_ms and grace_ms applies, because the administrator set both. */
int
roles_check_grace(const struct roles *r, int64_t grace_ms, struct err *e)
{
    char asked[24], most[24];
    int64_t most_ms = r->inst->config.grace_max_ms > r->inst->config.grace_ms
                          ? r->inst->config.grace_max_ms
                          : r->inst->config.grace_ms;
    if (grace_ms <= most_ms || !r->inst->places.system || !r->caller || r->caller->admin)
        return 0;
    return err_set(e, ERR_PERMISSION,
                   "a grace of %s is above %s, the maximum for users (grace_max_ms); use "
                   "--signal for an earlier warning",
                   format_duration(grace_ms, asked), format_duration(most_ms, most));
}

bool
roles_is_hidden(const struct roles *r, uid_t owner)
{
    return r->inst->places.system && r->inst->config.private && r->caller &&
           !r->caller->admin && r->caller->uid != owner;
}

bool
roles_sees_whole(const struct roles *r, uid_t owner)
{
    return !r->inst->places.system || !r->caller || r->caller->uid == owner;
}

/* The owner's name is a member of the line; inside a user's string its quotes would
 * be escaped. */
bool
roles_hides_event(const struct roles *r, const struct viewer *v, uint32_t job, const char *line,
                  size_t n)
{
    if (job == 0 || !r->inst->places.system || !r->inst->config.private || v->admin)
        return false;
    auto_free char *own = xasprintf("\"user\":\"%s\"", daemon_user_name(v->uid));
    return !memmem(line, n, own, strlen(own));
}
