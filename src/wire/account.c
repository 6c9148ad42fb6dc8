/* See account.h. Used by the interactive command; long-running programs and those linked to a
 * shared libc use the C library. */
#include "wire/account.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/child_output.h"
#include "base/cleanup.h"
#include "base/err.h"

/* The output of a system program found in PATH. NULL with errno if it could not be run. */
static char *
output_of(const char *const *argv)
{
    auto_buf struct buf out = BUF_INIT;
    struct err e;
    if (child_output(&(struct child){.argv = argv}, &out, NULL, &e) < 0) {
        errno = e.errnum;
        return NULL;
    }
    return xstrdup(buf_str(&out));
}

/* --- entries --- */

static bool
take_entry(const struct passwd *pw, struct account *out)
{
    *out = (struct account){.uid = pw->pw_uid,
                            .gid = pw->pw_gid,
                            .name = xstrdup(pw->pw_name),
                            .home = xstrdup(pw->pw_dir ? pw->pw_dir : ""),
                            .shell = xstrdup(pw->pw_shell ? pw->pw_shell : "")};
    return true;
}

/* The first entry with that name, or with that number if name is NULL. */
static bool
find_in(FILE *file, const char *name, uid_t uid, struct account *out)
{
    const struct passwd *pw;
    while ((pw = fgetpwent(file)) != NULL)
        if (name ? strcmp(pw->pw_name, name) == 0 : pw->pw_uid == uid)
            return take_entry(pw, out);
    return false;
}

static bool
find_in_file(const char *name, uid_t uid, struct account *out)
{
    FILE *file = fopen("/etc/passwd", "re");
    bool found = file && find_in(file, name, uid, out);
    if (file)
        fclose(file);
    return found;
}

static bool
find_elsewhere(const char *name, uid_t uid, struct account *out)
{
    char number[24];
    const char *const argv[] = {"getent", "passwd", "--", name ? name : number, NULL};
    snprintf(number, sizeof number, "%lu", (unsigned long)uid);
    auto_free char *text = output_of(argv);
    FILE *file = text && text[0] ? fmemopen(text, strlen(text), "r") : NULL;
    bool found = file && find_in(file, name, uid, out);
    if (file)
        fclose(file);
    if (text)
        errno = ENOENT;
    return found;
}

bool
account_by_uid(uid_t uid, struct account *out)
{
    *out = ACCOUNT_INIT;
    return find_in_file(NULL, uid, out) || find_elsewhere(NULL, uid, out);
}

bool
account_by_name(const char *name, struct account *out)
{
    *out = ACCOUNT_INIT;
    return find_in_file(name, 0, out) || find_elsewhere(name, 0, out);
}

void
account_free(struct account *a)
{
    free(a->name);
    free(a->home);
    free(a->shell);
    *a = ACCOUNT_INIT;
}

/* --- groups --- */

gid_t *
account_groups(const struct account *a, size_t *n)
{
    const char *const argv[] = {"id", "-G", "--", a->name, NULL};
    auto_free char *text = output_of(argv);
    gid_t *groups = NULL;
    *n = 0;
    if (!text)
        return NULL;
    char *end;
    for (const char *at = text;; at = end) {
        unsigned long gid = strtoul(at, &end, 10);
        if (end == at)
            break;
        groups = xrealloc(groups, (*n + 1) * sizeof *groups);
        groups[(*n)++] = (gid_t)gid;
    }
    if (!groups)
        errno = ENOENT;
    return groups;
}
