/* NSS module "away" for nsswitch.conf, a user directory with the entries of passwd and group in
 * the folder NSS_FOLDER (a macro). While the file `away` is in there, the directory's server
 * does not answer, and the module reports that as that of nslcd does: UNAVAIL, with ENOENT. */
#define _GNU_SOURCE
#include <errno.h>
#include <grp.h>
#include <nss.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static enum nss_status
open_entries(const char *path, FILE **file, int *why)
{
    *file = access(NSS_FOLDER "/away", F_OK) == 0 ? NULL : fopen(path, "re");
    *why = ENOENT;
    return *file ? NSS_STATUS_SUCCESS : NSS_STATUS_UNAVAIL;
}

/* rc: of the last entry that was read. */
static enum nss_status
close_entries(FILE *file, int rc, int *why)
{
    fclose(file);
    *why = rc;
    return rc == 0        ? NSS_STATUS_SUCCESS
           : rc == ERANGE ? NSS_STATUS_TRYAGAIN
                          : NSS_STATUS_NOTFOUND;
}

enum nss_status
_nss_away_getpwuid_r(uid_t uid, struct passwd *entry, char *text, size_t n, int *why)
{
    FILE *file;
    struct passwd *found;
    int rc;
    if (open_entries(NSS_FOLDER "/passwd", &file, why) != NSS_STATUS_SUCCESS)
        return NSS_STATUS_UNAVAIL;
    while ((rc = fgetpwent_r(file, entry, text, n, &found)) == 0 && found->pw_uid != uid)
        ;
    return close_entries(file, rc, why);
}

enum nss_status
_nss_away_getpwnam_r(const char *name, struct passwd *entry, char *text, size_t n, int *why)
{
    FILE *file;
    struct passwd *found;
    int rc;
    if (open_entries(NSS_FOLDER "/passwd", &file, why) != NSS_STATUS_SUCCESS)
        return NSS_STATUS_UNAVAIL;
    while ((rc = fgetpwent_r(file, entry, text, n, &found)) == 0 &&
           strcmp(found->pw_name, name) != 0)
        ;
    return close_entries(file, rc, why);
}

enum nss_status
_nss_away_getgrnam_r(const char *name, struct group *entry, char *text, size_t n, int *why)
{
    FILE *file;
    struct group *found;
    int rc;
    if (open_entries(NSS_FOLDER "/group", &file, why) != NSS_STATUS_SUCCESS)
        return NSS_STATUS_UNAVAIL;
    while ((rc = fgetgrent_r(file, entry, text, n, &found)) == 0 &&
           strcmp(found->gr_name, name) != 0)
        ;
    return close_entries(file, rc, why);
}
