/* Running as the user whose job it is, for a shepherd that is root. */
#ifndef SHEPHERD_BEGIN_IDENTITY_H
#define SHEPHERD_BEGIN_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct command;
struct err;
struct rlimits;
struct spec;

/* The user's account, as the directory of users has it at this moment, and what was opened as
 * that user: the descriptors are -1 when there are none. Strings point into `answer`. */
struct identity {
    uid_t uid;
    gid_t gid;
    gid_t *groups; /* owned */
    size_t n_groups;
    const char *name, *home, *shell;
    const char *limits; /* those of a login (sys/rlimits.h); NULL or "": none are set */
    uint64_t drop_caps; /* bit N: capability N is out of reach */
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

/* Asks berth-user, which becomes the user and as such enters the working folder and opens the
 * log; nothing that a user named is touched with any other rights. The log is in out->log_fd.
 * -1 with the reason in out. Takes at most half a minute, whatever a file server does. */
int identity_open(const struct spec *spec, struct identity *id, struct command *out);

/* The account alone, also one that may run no more jobs: nothing is opened, and what becomes
 * this identity is in the root folder. 0 or -1. Takes as long. */
int identity_look_up(const struct spec *spec, struct identity *id);

/* The same for an account of the administrator's choice, the first of names (a list with
 * commas) that there is. It has no log. */
int identity_open_account(const char *names, const char *cwd, struct identity *id,
                          struct command *out);

/* Bounds resource limits by those of a login. is_set: whether limits holds any yet. */
int identity_bound(const struct identity *id, struct rlimits *limits, bool *is_set,
                   struct err *e);

/* In the child, while it still has its limits and rights: the kernel's OOM killer and audit no
 * longer take it for the service's. System calls only. */
void identity_disown(const struct identity *id);

/* In the child, just before the command is executed: this process is the user's from now on,
 * in the job's working folder, with nothing left of root. It gets death_signal when its parent
 * dies. System calls only. 0 or an errno value. */
int identity_become(const struct identity *id, int death_signal);

#endif
