/* Names of users. */
#include <pwd.h>
#include <stdio.h>

#include "base/err.h"
#include "daemon/daemon.h"

#define USER_NAME_MAX 64

/* Names are asked for once: the answer may come over a network. */
struct user_name {
    struct user_name *next;
    uid_t uid;
    char name[USER_NAME_MAX];
};

const char *
daemon_user_name(uid_t uid)
{
    static struct user_name *known; /* a cache, not state: dropping it changes nothing */
    struct user_name *u;
    for (u = known; u; u = u->next)
        if (u->uid == uid)
            return u->name;
    const struct passwd *pw = getpwuid(uid);
    u = xcalloc(1, sizeof *u);
    u->uid = uid;
    if (pw)
        snprintf(u->name, sizeof u->name, "%s", pw->pw_name);
    else
        snprintf(u->name, sizeof u->name, "uid:%u", uid);
    u->next = known;
    known = u;
    return u->name;
}
