/* Numbers of users that /etc/subuid lends to an account, as rootless containers have them:
 * 65,536 for each. They have no accounts of their own, so all of a range count as one user. */
#ifndef DAEMON_RPC_SUBUIDS_H
#define DAEMON_RPC_SUBUIDS_H

#include <sys/types.h>

struct subuids;

/* path: "/etc/subuid"; it is read now, and again by subuids_refresh. */
struct subuids *subuids_new(const char *path);
void subuids_free(struct subuids *s);
/* Reads the file again when it is another one than it was. Where it cannot be read, nothing is
 * lent. */
void subuids_refresh(struct subuids *s);

/* The first number of the range that holds this one, or the number itself. */
uid_t subuids_group(const struct subuids *s, uid_t uid);

#endif
