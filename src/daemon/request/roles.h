/* Who may do what. A user's own daemon serves that user (and root, who has access anyway). The
 * machine's daemon serves all users; there an admin - root, or a member of admin_group in the
 * settings - may do to any job what its owner may. */
#ifndef DAEMON_REQUEST_ROLES_H
#define DAEMON_REQUEST_ROLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct caller;
struct err;
struct instance;
struct job;
struct request;
struct roles;
struct ucred;

struct roles {
    const struct instance *inst; /* borrowed */
    const struct caller *caller; /* whose request is being served; NULL: none */
};

struct roles *roles_new(const struct instance *inst);

/* True if the daemon serves this user at all. */
bool roles_is_served(const struct roles *r, uid_t uid);

/* For the process at the other end of the socket fd, according to its groups in the kernel. */
bool roles_is_admin(const struct roles *r, int fd, const struct ucred *cred);

bool roles_may_touch(const struct caller *c, const struct job *job);

/* For requests that affect all users: -1 with e unless the caller is an admin. */
int roles_need_admin(const struct caller *c, const char *what, struct err *e);

/* The highest priority that the caller may give its own jobs. */
int64_t roles_priority_max(const struct roles *r);
int roles_check_priority(const struct roles *r, int32_t priority, struct err *e);

/* Limit on how long a job of the caller may continue after it was asked to end. */
int roles_check_grace(const struct roles *r, int64_t grace_ms, struct err *e);

/* True if the caller may see of the job only that it exists, its owner and what it holds. */
bool roles_is_hidden(const struct roles *r, uid_t owner);

/* True if the caller sees this job's texts in full: its owner does. Lists cut the texts of
 * other users' jobs, so that one user's long command lines cannot make a list too long
 * for all. */
#define ROLES_OTHERS_TEXT_MAX 1024 /* bytes; 98 MiB for 100,000 jobs */
bool roles_sees_whole(const struct roles *r, uid_t owner);

/* Like roles_is_hidden, for an event line: events of other users' jobs may be hidden. */
struct viewer {
    uid_t uid;
    bool admin;
};
bool roles_hides_event(const struct roles *r, const struct viewer *v, uint32_t job,
                       const char *line, size_t n);
#endif
