/* What each user may use of a daemon that serves many: connections, buffered bytes in either
 * direction, and a fair share of the daemon's time. If a user exceeds the time share, the next
 * requests are read later; nothing is refused unless it would hurt others. Root is not
 * limited, and a user without a connection always gets one. */
#ifndef DAEMON_RPC_USER_SHARES_H
#define DAEMON_RPC_USER_SHARES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct peers;

#define PEERS_CLIENTS_MAX 1024 /* connections of all users together, except root's */

/* shared false: a user's own daemon, where no other user competes. subuid: the path of
 * /etc/subuid, whose ranges count as one user each. */
struct peers *peers_new(bool shared, const char *subuid);
void peers_free(struct peers *p);

/* Sets the maximum of connections and of buffered bytes per user. */
void peers_set_limits(struct peers *p, int64_t clients_max, int64_t bytes_max);

/* Adds one connection; -1 with e if it would be too many. *group: the group that its
 * user counts in, that is the user alone or the range of user ids that contains it. All other
 * calls use it, so that a connection is removed from where it was added even if the ranges
 * have changed. *crowd: if all connections are taken, the group that has to give one up; else
 * unchanged. */
int peers_enter(struct peers *p, uid_t uid, int total, int64_t now_us, uid_t *group,
                uid_t *crowd, struct err *e);
void peers_leave(struct peers *p, uid_t group);

/* Adds to the bytes that the daemon holds for the group (negative: releases). False: too
 * many. */
bool peers_keep(struct peers *p, uid_t group, int64_t bytes);
/* The same for requests that wait for their answer. */
void peers_keep_waiting(struct peers *p, uid_t group, int64_t bytes);
/* Whether another request of the group may wait for its answer. Half of the maximum is left to
 * requests that are answered at once, such as a cancel. */
bool peers_may_wait(const struct peers *p, uid_t group);

/* Charges the group the time of a request. */
void peers_charge(struct peers *p, uid_t group, int64_t us, int64_t now_us);
/* True if the group's requests have used a full round since the last peers_new_round: even the
 * only user lets the daemon handle other events in between. */
bool peers_had_round(const struct peers *p, uid_t group);
void peers_new_round(struct peers *p);
/* Whether the group's next request may be served now. */
bool peers_may_ask(struct peers *p, uid_t group, int64_t now_us);

#endif
