/* nvidia-cuda-mps-control, run and asked as the user whose jobs it serves. */
#ifndef SHEPHERD_MPS_MPS_CONTROL_H
#define SHEPHERD_MPS_MPS_CONTROL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "shepherd/begin/identity.h"
#include "shepherd/common/groups.h"

struct err;

/* What the daemon asks of a keeper. Strings belong to root. */
struct mps_order {
    const char *uuid;    /* of the card */
    const char *program; /* a path, or a name to be looked up */
    const char *dir;     /* the card's folder */
    const char *user;    /* the account's name; NULL: not known */
    int64_t uid;         /* whose it is */
    bool become;         /* that user, as the keeper is root for all */
    int64_t drop_caps;
    bool no_new_privs;
    bool mend; /* none is to be started: only what a keeper that was killed has left is kept,
                  while there are jobs, or ended */
    struct groups_wish groups;
    json_t *root; /* owned */
};

struct mps_control {
    struct mps_order order;
    struct identity identity; /* of the user, with order.become */
    struct groups groups;
    char *folder; /* owned; the user's, DIR/UID */
    char *mark;   /* owned; in its environment */
    char **env;   /* owned, and what is in it */
    pid_t pid;    /* of the control daemon, and when that began; 0: it does not run */
    uint64_t ticks;
    int said_fd; /* what it writes; -1 */
};
#define MPS_CONTROL_INIT                                                                       \
    {                                                                                          \
        .identity = IDENTITY_INIT, .groups = GROUPS_NONE, .said_fd = -1                        \
    }

int mps_control_read(int order_fd, struct mps_control *c, struct err *e);
/* Makes ready for the others: account, folder, environment. */
int mps_control_prepare(int folder_fd, struct mps_control *c, struct err *e);
/* What is mounted on the folder goes, unless somebody is in it. */
void mps_control_end_folder(int folder_fd, const struct mps_control *c);
void mps_control_free(struct mps_control *c);

/* In a group of its own. It does not end with us. */
int mps_control_start(struct mps_control *c, struct err *e);
/* Whether it answers; waits for that for at most so long. */
bool mps_control_answers(const struct mps_control *c, int patience_ms);
/* Says it to the control daemon. 0: it took it. */
int mps_control_tell(const struct mps_control *c, const char *words, int patience_ms);
/* Why it has ended, from waitpid's status (-1: not known) and what it wrote. */
void mps_control_explain(const struct mps_control *c, int status, char *out, size_t size);

#endif
