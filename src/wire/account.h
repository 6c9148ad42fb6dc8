/* User accounts, for statically linked programs: the C library's own look-ups (getpwuid,
 * initgroups) would need modules of the exact version it was built with. /etc/passwd is read
 * first; other users are looked up with getent(1), which knows every directory. */
#ifndef WIRE_ACCOUNT_H
#define WIRE_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct account {
    uid_t uid;
    gid_t gid;
    char *name, *home, *shell; /* owned, never NULL */
};

#define ACCOUNT_INIT ((struct account){.name = NULL})

/* False, with errno and *out empty, if there is no such account (ENOENT) or it cannot be
 * looked up. May block on a directory server. */
bool account_by_uid(uid_t uid, struct account *out);
bool account_by_name(const char *name, struct account *out);
void account_free(struct account *a);
#define auto_account __attribute__((cleanup(account_free)))

/* All groups of the user, *n of them; the caller frees. NULL with errno: not known. */
gid_t *account_groups(const struct account *a, size_t *n);

#endif
