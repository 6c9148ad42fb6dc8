/* Turns pids into user names for the samples. The process's user is read every time (a pid
 * may be another's by now); the name, which may come from a slow directory server, once. */
#include "probe/process_users.h"

#include <pwd.h>
#include <stdlib.h>

#include "base/err.h"
#include "gpu/procfs.h"

struct user {
    int64_t uid;
    char *name;
};

struct users {
    struct user *list;
    int n;
    size_t cap;
};

struct users *
process_users_new(void)
{
    return xcalloc(1, sizeof(struct users));
}

void
process_users_free(struct users *u)
{
    if (!u)
        return;
    for (int i = 0; i < u->n; i++)
        free(u->list[i].name);
    free(u->list);
    free(u);
}

static const char *
add_user(struct users *u, int64_t uid)
{
    const struct passwd *entry = getpwuid((uid_t)uid);

    u->list = xgrow(u->list, u->n, &u->cap, sizeof *u->list);
    struct user *user = &u->list[u->n++];
    user->uid = uid;
    user->name = entry ? xstrdup(entry->pw_name) : xasprintf("%lld", (long long)uid);
    return user->name;
}

const char *
process_users_of_process(void *users, int32_t pid)
{
    struct users *u = users;
    int64_t uid = procfs_uid(pid);

    if (uid < 0)
        return NULL;
    for (int i = 0; i < u->n; i++) {
        if (u->list[i].uid == uid)
            return u->list[i].name;
    }
    return add_user(u, uid);
}
