/* The folder of a card's MPS: who keeps a control daemon there, and how that is known. The
 * daemon makes it, DIR/UUID, where only root (or the instance's user) can write:
 *
 *   keeper      locked by the process that keeps the control daemon, and what that says of it
 *   UID.users   locked, shared, by the supervisor of each job that uses it, and alone by a
 *               keeper that ends: so it never ends under a job, nor does a job begin while it
 *               ends
 *   UID/        root's, with a small file system of the user's on it while there are jobs; the
 *               user's own, where none can be mounted: pipe/ and log/ of the control daemon */
#ifndef SYS_MPS_PLACE_H
#define SYS_MPS_PLACE_H

/* Where its program is looked for. */
#define MPS_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum mps_phase {
    MPS_STARTING,
    MPS_READY,  /* the control daemon answers */
    MPS_FAILED, /* it could not be started */
    MPS_DIED,   /* it ended though there were jobs */
    MPS_ENDED,  /* there was no job left */
};

#define MPS_GROUP_SIZE 448

/* What a keeper says. Plain value. */
struct mps_state {
    enum mps_phase phase;
    int64_t uid; /* whose control daemon it is */
    pid_t pid;   /* of the keeper, and when that began */
    uint64_t ticks;
    int64_t said_us; /* boot clock: when it said so */
    char text[120];  /* FAILED, DIED: why, in words */
    /* The last one that died before it, for jobs that it had: the keeper, and why. 0: none. */
    pid_t died_pid;
    uint64_t died_ticks;
    char died_text[120];
    /* From before the control daemon is started until nothing of it is there any more: what is
     * left when the keeper was killed is found by it. What an earlier version says has none. */
    bool left;
    int64_t left_uid;  /* whose that is */
    pid_t control_pid; /* of the control daemon, and when that began; 0: not known */
    uint64_t control_ticks;
    /* The groups that it is in; "": none, or a path too long to be kept here. */
    char group[MPS_GROUP_SIZE], group_pids[MPS_GROUP_SIZE];
};

#define MPS_TURN_US   INT64_C(40000000) /* until another user's, or one that ends, has gone */
#define MPS_ANSWER_US INT64_C(10000000) /* until a control daemon that was started answers */

#define MPS_KEEPER     "keeper"
#define MPS_USERS_SIZE 24
/* The name of a user's file in the folder, into out, which is also returned. */
const char *mps_users_name(int64_t uid, char out[MPS_USERS_SIZE]);

/* What stands as BERTH_MARK in the environment of a user's control daemon, and of what that
 * starts; dir: the card's folder. The caller frees. */
char *mps_mark(const char *dir, int64_t uid);

/* Writes *s to the open file `keeper`. -1 with errno. */
int mps_state_write(int fd, const struct mps_state *s);
/* Reads it. False: nobody has said anything since the machine was started, or it is being
 * written just now. */
bool mps_state_read(int fd, struct mps_state *out);
/* Whether that keeper is still there; its control daemon. */
bool mps_state_lives(const struct mps_state *s);
bool mps_control_lives(const struct mps_state *s);
/* Whether the process belongs to that control daemon: a server, most likely. */
bool mps_has_process(const struct mps_state *s, pid_t pid);

#endif
