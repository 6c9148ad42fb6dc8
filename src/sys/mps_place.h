/* The MPS folder of a GPU: which process keeps a control daemon there, and how others find
 * out. The daemon makes the folder, DIR/UUID, writable only by root (or the instance's user):
 *
 *     keeper      locked by the process that keeps the control daemon; its content is
 *                 that process's state
 *     UID.users   locked, shared, by the supervisor of each job that uses the control daemon,
 *                 and exclusively by a keeper that is ending: so it never ends under a job,
 *                 and no job begins while it ends
 *     UID/        root's, with a small file system owned by the user mounted on it while
 *                 there are jobs; the user's own, if none can be mounted: pipe/ and log/ of
 *                 the control daemon */
#ifndef SYS_MPS_PLACE_H
#define SYS_MPS_PLACE_H

/* Search path for the control daemon's program. */
#define MPS_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum mps_phase {
    MPS_STARTING,
    MPS_READY,  /* the control daemon answers */
    MPS_FAILED, /* it could not be started */
    MPS_DIED,   /* it ended while there were jobs */
    MPS_ENDED,  /* ended because no job was left */
};

#define MPS_GROUP_SIZE 448

/* State of a keeper. Plain value. */
struct mps_state {
    enum mps_phase phase;
    int64_t uid; /* owner of the control daemon */
    pid_t pid;   /* pid and start time of the keeper */
    uint64_t ticks;
    int64_t said_us; /* boot clock: when this state was written */
    char text[120];  /* FAILED, DIED: the reason */
    /* The last keeper before this one that died while it had jobs, and the reason. 0: none. */
    pid_t died_pid;
    uint64_t died_ticks;
    char died_text[120];
    /* True from before the control daemon is started until none of its processes is left: if
     * the keeper is killed, its leftovers are found through these fields. States of earlier
     * versions lack them. */
    bool left;
    int64_t left_uid;  /* owner of the leftovers */
    pid_t control_pid; /* pid and start time of the control daemon; 0: not known */
    uint64_t control_ticks;
    /* Its groups; "": none, or the path is too long for this field. */
    char group[MPS_GROUP_SIZE], group_pids[MPS_GROUP_SIZE];
};

#define MPS_TURN_US   INT64_C(40000000) /* to wait for another user's or an ending keeper */
#define MPS_ANSWER_US INT64_C(10000000) /* deadline for a started control daemon to answer */

#define MPS_KEEPER     "keeper"
#define MPS_USERS_SIZE 24
/* The name of a user's file in the folder; written to out, which is returned. */
const char *mps_users_name(int64_t uid, char out[MPS_USERS_SIZE]);

/* BERTH_MARK in the environment of a user's control daemon and its children; dir: the GPU's
 * folder. The caller frees. */
char *mps_mark(const char *dir, int64_t uid);

/* Writes *s to the open file `keeper`. -1 with errno. */
int mps_state_write(int fd, const struct mps_state *s);
/* Reads the state. False: no state was written since boot, or a write is in progress. */
bool mps_state_read(int fd, struct mps_state *out);
/* True if the keeper, or its control daemon, is alive. */
bool mps_state_lives(const struct mps_state *s);
bool mps_control_lives(const struct mps_state *s);
/* True if the process belongs to that control daemon; most likely an MPS server. */
bool mps_has_process(const struct mps_state *s, pid_t pid);

#endif
