/* The files and folders of an instance: docs/protocol.md section 1, in one place for the
 * daemon and its clients. */
#ifndef WIRE_PLACES_H
#define WIRE_PLACES_H

#include <stdbool.h>

struct err;

/* Where clients look for the machine's own daemon if the user has none. */
#define PLACES_SYSTEM_FOLDER "/run/berth"
#define PLACES_SYSTEM_SOCKET PLACES_SYSTEM_FOLDER "/berth.sock"
/* Notes in that folder (daemon/service/start_note.c). */
#define PLACES_STARTING "starting"
#define PLACES_LEFT     "left"

struct places {
    bool system; /* one daemon for all users of the machine, run by root */
    char *root;  /* the --dir given, absolute; NULL without --dir */
    char *socket;
    char *state; /* berth.db, lock, jobs/ */
    char *logs;
    char *mps;    /* MPS folders, one per GPU UUID (sys/mps_place.h) */
    char *attach; /* sockets of interactive jobs: ID.N.sock, N the attempt */
    char *log;    /* the daemon's own log */
    char *sim;    /* simulated GPUs */
};

/* dir NULL: BERTH_DIR, else the user's instance. The folders need not exist. */
int places_find(const char *dir, struct places *out, struct err *e);
/* The machine's instance; with dir, a system instance at dir. One shell's environment must not
 * move what serves all users: -1 if only BERTH_DIR names another place. */
int places_system(const char *dir, struct places *out, struct err *e);
void places_free(struct places *p);

/* Where the user's daemon for these places listens: at the socket that its lock names while it
 * lives (sign_lock in daemon/berthd.c), else at p->socket. The two differ if the environments
 * of daemon and client do, such as those of a login and of cron. The caller frees. */
char *places_live_socket(const struct places *p);
/* Bytes of a lock: a process and a path. */
#define PLACES_LOCK_MAX 8192

/* The folder of this user's login for sockets: XDG_RUNTIME_DIR, or /run/user/UID if that is not
 * set or names a folder of another user, as after `su` or `sudo -E`. The caller frees; NULL:
 * there is none that belongs to this user. */
char *places_runtime_dir(void);

/* The folder of the locks on GPUs: BERTH_LOCK_DIR, else /run/lock, else, where only root can
 * write to that, /tmp. */
const char *places_lock_dir(void);

/* The path of program NAME (berthd, berth-shepherd, berth-probe): beside the running program,
 * in its build tree, in ../libexec/berth, or in the install folder. The caller frees; NULL
 * with words if it is not found. */
char *places_program(const char *name, struct err *e);

#endif
