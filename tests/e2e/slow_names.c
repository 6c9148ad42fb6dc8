/* A directory of users that does not answer for one of them while a file is there: SLOW_UID,
 * SLOW_WHILE. To be preloaded into berthd. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

static void
wait_for_it(uid_t uid)
{
    const char *slow = getenv("SLOW_UID"), *file = getenv("SLOW_WHILE");
    while (slow && file && uid == (uid_t)atoi(slow) && access(file, F_OK) == 0)
        usleep(1000);
}

struct passwd *
getpwuid(uid_t uid)
{
    struct passwd *(*real)(uid_t);
    *(void **)&real = dlsym(RTLD_NEXT, "getpwuid");
    wait_for_it(uid);
    return real(uid);
}

int
getpwuid_r(uid_t uid, struct passwd *entry, char *text, size_t n, struct passwd **found)
{
    int (*real)(uid_t, struct passwd *, char *, size_t, struct passwd **);
    *(void **)&real = dlsym(RTLD_NEXT, "getpwuid_r");
    wait_for_it(uid);
    return real(uid, entry, text, n, found);
}
