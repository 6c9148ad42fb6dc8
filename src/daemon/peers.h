/* What each user may ask of a daemon that serves many: connections, bytes that wait for him or
 * from him, and a fair part of the daemon's time. Of one who asks too much the next requests
 * are read later; he is refused nothing that others would not be hurt by. Root is not bound. */
#ifndef DAEMON_PEERS_H
#define DAEMON_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct peers;

/* shared false: a user's own daemon, which nobody can take from another. */
struct peers *peers_new(bool shared);
void peers_free(struct peers *p);

/* One more connection; -1 with words when it would be too many. */
int peers_enter(struct peers *p, uid_t uid, int total, struct err *e);
void peers_leave(struct peers *p, uid_t uid);

/* Bytes that the daemon keeps for this user: more (or, negative, fewer). False: too many. */
bool peers_keep(struct peers *p, uid_t uid, int64_t bytes);

/* A request has taken so long. */
void peers_charge(struct peers *p, uid_t uid, int64_t us, int64_t now_us);
/* Whether the next one may be served now. */
bool peers_may_ask(struct peers *p, uid_t uid, int64_t now_us);

#endif
