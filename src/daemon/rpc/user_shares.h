/* What each user may ask of a daemon that serves many: connections, bytes that wait in either
 * direction, and a fair part of the daemon's time. If a user asks too much, the next requests
 * are read later; nothing is refused unless it would hurt others. Root is not limited, and a
 * user without a connection always gets one. */
#ifndef DAEMON_RPC_USER_SHARES_H
#define DAEMON_RPC_USER_SHARES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct peers;

#define PEERS_CLIENTS_MAX 1024 /* connections of all users together, but for root's */

/* shared false: a user's own daemon, which no user can take from another. subuid: the path of
 * /etc/subuid, whose ranges count as one user each. */
struct peers *peers_new(bool shared, const char *subuid);
void peers_free(struct peers *p);

/* So many connections, and bytes that wait, one user may have. */
void peers_set_limits(struct peers *p, int64_t clients_max, int64_t bytes_max);

/* One more connection; -1 with words when it would be too many. *group: the group that its
 * user counts in, that is the user alone or the range of user ids that contains it. All other
 * calls use it, so that a connection is removed from where it was added even if the ranges
 * have changed. *crowd: if all connections are taken, the group that has to give one up; else
 * unchanged. */
int peers_enter(struct peers *p, uid_t uid, int total, int64_t now_us, uid_t *group,
                uid_t *crowd, struct err *e);
void peers_leave(struct peers *p, uid_t group);

/* Bytes that the daemon keeps for these users: more (or, negative, fewer). False: too many. */
bool peers_keep(struct peers *p, uid_t group, int64_t bytes);
/* The same for requests that wait for their answer. */
void peers_keep_waiting(struct peers *p, uid_t group, int64_t bytes);
/* Whether another of these users' requests may wait for its answer: half of the maximum is left
 * to requests that are answered at once, such as a cancel. */
bool peers_may_wait(const struct peers *p, uid_t group);

/* A request has taken so long. */
void peers_charge(struct peers *p, uid_t group, int64_t us, int64_t now_us);
/* Whether its requests have taken long enough since the last peers_new_round: even the only
 * user lets the daemon look at other events between them. */
bool peers_had_round(const struct peers *p, uid_t group);
void peers_new_round(struct peers *p);
/* Whether the next one may be served now. */
bool peers_may_ask(struct peers *p, uid_t group, int64_t now_us);

#endif
