/* Who may do what. A user's own daemon serves that user (and root, who could anyway); the
 * machine's serves all users, and there an admin - root, or a member of the settings'
 * admin_group - may do to any job what its owner may. */
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
    gid_t admin_gid;             /* its members are admins; 0: no such group */
    const struct caller *caller; /* whose request is being served; NULL: none */
};

/* Looks the admin_group up. NULL when it is named and there is none. */
struct roles *roles_new(const struct instance *inst, struct err *e);

/* Whether the daemon talks to this user at all. */
bool roles_is_served(const struct roles *r, uid_t uid);

/* Of the process at the other end of the socket fd, by the groups that the kernel knows of. */
bool roles_is_admin(const struct roles *r, int fd, const struct ucred *cred);

bool roles_may_touch(const struct caller *c, const struct job *job);

/* For what concerns all users: -1 with words when the caller is no admin. */
int roles_need_admin(const struct caller *c, const char *what, struct err *e);

/* The highest priority that the caller may give a job of their own. */
int64_t roles_priority_max(const struct roles *r);
int roles_check_priority(const struct roles *r, int32_t priority, struct err *e);

/* How long a job of the caller may continue after it was asked to end. */
int roles_check_grace(const struct roles *r, int64_t grace_ms, struct err *e);

/* Whether the caller sees only that there is such a job, whose it is and what it holds. */
bool roles_is_hidden(const struct roles *r, uid_t owner);

/* Whether this job's texts are shown in full, which they are to its own user. A long list cuts
 * those of other users, or one user's long command lines would make it too long for all. */
#define ROLES_OTHERS_TEXT_MAX 1024 /* bytes; of 100,000 jobs 98 MiB */
bool roles_sees_whole(const struct roles *r, uid_t owner);

/* What roles_is_hidden says, of an event's line: those of other users' jobs are not for every
 * user. */
struct viewer {
    uid_t uid;
    bool admin;
};
bool roles_hides_event(const struct roles *r, const struct viewer *v, uint32_t job,
                       const char *line, size_t n);
#endif
