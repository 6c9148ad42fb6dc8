/* LD_PRELOAD library for berthd, a user directory that does not answer for one user, SLOW_UID
 * or SLOW_NAME, while the file SLOW_WHILE exists. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
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

static void
wait_for_name(const char *name)
{
    const char *slow = getenv("SLOW_NAME"), *file = getenv("SLOW_WHILE");
    while (slow && file && strcmp(name, slow) == 0 && access(file, F_OK) == 0)
        usleep(1000);
}

struct passwd *
getpwnam(const char *name)
{
    struct passwd *(*real)(const char *);
    *(void **)&real = dlsym(RTLD_NEXT, "getpwnam");
    wait_for_name(name);
    return real(name);
}

int
getpwnam_r(const char *name, struct passwd *entry, char *text, size_t n, struct passwd **found)
{
    int (*real)(const char *, struct passwd *, char *, size_t, struct passwd **);
    *(void **)&real = dlsym(RTLD_NEXT, "getpwnam_r");
    wait_for_name(name);
    return real(name, entry, text, n, found);
}
