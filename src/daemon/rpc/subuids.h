/* Ranges of user ids that /etc/subuid lends to accounts for rootless containers, 65,536 each.
 * These ids have no accounts of their own, so a whole range counts as one user. */
#ifndef DAEMON_RPC_SUBUIDS_H
#define DAEMON_RPC_SUBUIDS_H

#include <sys/types.h>

struct subuids;

/* path: "/etc/subuid". Reads it now; subuids_refresh rereads it. */
struct subuids *subuids_new(const char *path);
void subuids_free(struct subuids *s);
/* Rereads the file if it has changed. If it cannot be read, there are no ranges. */
void subuids_refresh(struct subuids *s);

/* The first id of the range that contains uid, or uid itself. */
uid_t subuids_group(const struct subuids *s, uid_t uid);

#endif
