/* Running as the job's user, for a supervisor that is root. */
#ifndef SHEPHERD_BEGIN_IDENTITY_H
#define SHEPHERD_BEGIN_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct command;
struct err;
struct rlimits;
struct spec;

/* The user's account at this moment, and the working folder opened as that user (-1: none).
 * Strings point into `answer`. */
struct identity {
    uid_t uid;
    gid_t gid;
    gid_t *groups; /* owned */
    size_t n_groups;
    const char *name, *home, *shell;
    const char *limits; /* of a login (sys/rlimits.h); NULL or "": none */
    uint64_t drop_caps; /* bit N: capability N is dropped from the bounding set */
    bool no_new_privs;
    int cwd_fd;
    char *answer; /* owned */
};
#define IDENTITY_INIT                                                                          \
    {                                                                                          \
        .cwd_fd = -1                                                                           \
    }
#define auto_identity __attribute__((cleanup(identity_free)))
void identity_free(struct identity *id);

/* Asks berth-user, which changes to the user, enters the working folder and opens the log, so
 * that paths named by a user are only accessed with that user's rights. The log is in
 * out->log_fd. -1 with the reason in out. Takes at most 30 s, even if a file server hangs. */
int identity_open(const struct spec *spec, struct identity *id, struct command *out);

/* Looks up the account only, even one that may no longer run jobs. Opens nothing; a process
 * that becomes this identity is in the root folder. 0 or -1, within the same time. */
int identity_look_up(const struct spec *spec, struct identity *id);

/* As identity_open, for an account of the administrator's choice: the first existing one of
 * names (comma-separated). Opens no log. */
int identity_open_account(const char *names, const char *cwd, struct identity *id,
                          struct command *out);

/* Bounds resource limits by those of the login. is_set: whether limits has any set. */
int identity_bound(const struct identity *id, struct rlimits *limits, bool *is_set,
                   struct err *e);

/* In the child, while it still has its privileges: resets the OOM score and the audit login id
 * that it inherited from the service. System calls only. */
void identity_disown(const struct identity *id);

/* In the child, just before the exec: changes to the user, enters the working folder and drops
 * everything of root. The child gets death_signal when its parent dies. System calls only. 0
 * or an errno value. */
int identity_become(const struct identity *id, int death_signal);

#endif
