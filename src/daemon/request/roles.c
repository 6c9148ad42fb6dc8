/* Roles: see roles.h. The caller is known from the socket alone; groups too come from the
 * kernel and not from a directory service, which may be slow or away. */
#include "daemon/request/roles.h"

#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/parse.h"
#include "core/queue/job.h"
#include "daemon/common/caller.h"
#include "daemon/common/daemon.h"
#include "daemon/common/user_names.h"

int
roles_find(struct daemon *d, struct err *e)
{
    const char *name = d->inst.config.admin_group;
    d->admin_gid = 0;
    if (!d->inst.places.system || !name || !name[0])
        return 0;
    const struct group *g = getgrnam(name);
    if (!g)
        return err_set(e, ERR_USAGE,
                       "admin_group: unknown group '%s'; 'groupadd %s' creates it", name, name);
    d->admin_gid = g->gr_gid;
    return 0;
}

bool
roles_is_served(const struct daemon *d, uid_t uid)
{
    return d->inst.places.system || uid == getuid() || uid == 0;
}

/* The supplementary groups of the process that connected, as they were then. */
static bool
peer_is_in(int fd, gid_t gid)
{
    gid_t none;
    socklen_t size = 0;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, &none, &size) == 0 || size == 0)
        return false; /* in none; or the kernel does not say */
    auto_free gid_t *groups = xmalloc(size);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size))
        return false;
    for (size_t i = 0; i < size / sizeof *groups; i++)
        if (groups[i] == gid)
            return true;
    return false;
}

bool
roles_is_admin(const struct daemon *d, int fd, const struct ucred *cred)
{
    if (!d->inst.places.system || cred->uid == 0)
        return true; /* a user with a daemon of their own */
    return d->admin_gid && (cred->gid == d->admin_gid || peer_is_in(fd, d->admin_gid));
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
roles_priority_max(const struct daemon *d)
{
    return d->inst.places.system && d->caller && !d->caller->admin
               ? d->inst.config.user_priority_max
               : PRIORITY_MAX;
}

int
roles_check_priority(const struct daemon *d, int32_t priority, struct err *e)
{
    if (priority <= roles_priority_max(d))
        return 0;
    return err_set(e, ERR_PERMISSION,
                   "priority %d is above %lld, the maximum for users; lower the priority of "
                   "other jobs instead, or ask an admin",
                   priority, (long long)d->inst.config.user_priority_max);
}

/* The settings' own grace_ms is the administrator's word as well. */
int
roles_check_grace(const struct daemon *d, int64_t grace_ms, struct err *e)
{
    char asked[24], most[24];
    int64_t most_ms = d->inst.config.grace_max_ms > d->inst.config.grace_ms
                          ? d->inst.config.grace_max_ms
                          : d->inst.config.grace_ms;
    if (grace_ms <= most_ms || !d->inst.places.system || !d->caller || d->caller->admin)
        return 0;
    return err_set(e, ERR_PERMISSION,
                   "a grace of %s is above %s, the maximum for users (grace_max_ms); use "
                   "--signal for an earlier warning",
                   format_duration(grace_ms, asked), format_duration(most_ms, most));
}

bool
roles_is_hidden(const struct daemon *d, uid_t owner)
{
    return d->inst.places.system && d->inst.config.private && d->caller && !d->caller->admin &&
           d->caller->uid != owner;
}

bool
roles_sees_whole(const struct daemon *d, uid_t owner)
{
    return !d->inst.places.system || !d->caller || d->caller->uid == owner;
}

/* The owner's name stands in the line as a member of its own; inside a string of a user's the
 * quotes around it would be escaped. */
bool
roles_hides_event(const struct daemon *d, const struct viewer *v, uint32_t job,
                  const char *line, size_t n)
{
    if (job == 0 || !d->inst.places.system || !d->inst.config.private || v->admin)
        return false;
    auto_free char *own = xasprintf("\"user\":\"%s\"", daemon_user_name(v->uid));
    return !memmem(line, n, own, strlen(own));
}
