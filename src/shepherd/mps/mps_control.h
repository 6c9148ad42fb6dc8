/* Runs and controls nvidia-cuda-mps-control, as the user whose jobs it serves. */
#ifndef SHEPHERD_MPS_MPS_CONTROL_H
#define SHEPHERD_MPS_MPS_CONTROL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "shepherd/begin/identity.h"
#include "shepherd/common/groups.h"

struct err;

/* The daemon's order to a keeper. root owns the strings. */
struct mps_order {
    const char *uuid;    /* of the GPU */
    const char *program; /* a path, or a name to look up */
    const char *dir;     /* the GPU's folder */
    const char *user;    /* the account's name; NULL: not known */
    int64_t uid;         /* owner of the control daemon */
    bool become;         /* change to that user, because the keeper is root */
    int64_t drop_caps;
    bool no_new_privs;
    bool mend; /* start none: only take over what a killed keeper left while there are jobs, or
                  end it */
    struct groups_wish groups;
    json_t *root; /* owned */
};

struct mps_control {
    struct mps_order order;
    struct identity identity; /* of the user, with order.become */
    struct groups groups;
    char *folder; /* owned; the user's folder, DIR/UID */
    char *mark;   /* owned; BERTH_MARK in its environment */
    char **env;   /* owned, with its strings */
    pid_t pid;    /* pid and start time of the control daemon; 0: not running */
    uint64_t ticks;
    int said_fd; /* its output; -1 */
};
#define MPS_CONTROL_INIT                                                                       \
    {                                                                                          \
        .identity = IDENTITY_INIT, .groups = GROUPS_NONE, .said_fd = -1                        \
    }

int mps_control_read(int order_fd, struct mps_control *c, struct err *e);
/* Prepares for the other calls: account, folder, environment. */
int mps_control_prepare(int folder_fd, struct mps_control *c, struct err *e);
/* Unmounts the folder's file system, unless it is in use. */
void mps_control_end_folder(int folder_fd, const struct mps_control *c);
void mps_control_free(struct mps_control *c);

/* Starts the control daemon in its own group. It survives this process. */
int mps_control_start(struct mps_control *c, struct err *e);
/* True if it answers within patience_ms. */
bool mps_control_answers(const struct mps_control *c, int patience_ms);
/* Sends it a command. 0: accepted. */
int mps_control_tell(const struct mps_control *c, const char *words, int patience_ms);
/* Explains why it ended, from waitpid's status (-1: not known) and its output. */
void mps_control_explain(const struct mps_control *c, int status, char *out, size_t size);

#endif
