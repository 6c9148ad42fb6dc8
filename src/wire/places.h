/* Where an instance keeps its things: docs/protocol.md section 1, in one place for the
 * daemon and its clients. */
#ifndef WIRE_PLACES_H
#define WIRE_PLACES_H

#include <stdbool.h>

struct err;

/* Where clients look for the machine's own daemon when the user has none. */
#define PLACES_SYSTEM_SOCKET "/run/berth/berth.sock"

struct places {
    bool system; /* one daemon for all users of the machine, run by root */
    char *root;  /* the --dir given, absolute; NULL without one */
    char *socket;
    char *state; /* berth.db, lock, jobs/ */
    char *logs;
    char *mps;    /* folders of MPS, one for each card's UUID (sys/mps_place.h) */
    char *attach; /* sockets of interactive jobs: ID.N.sock, N the attempt */
    char *log;    /* the daemon's own */
    char *sim;    /* simulated cards */
};

/* dir NULL: BERTH_DIR, else the user's instance. The folders need not exist. */
int places_find(const char *dir, struct places *out, struct err *e);
/* The machine's instance; with dir, an instance of that kind in there. What serves all users
 * is not moved by one shell's environment: -1 when only BERTH_DIR names another place. */
int places_system(const char *dir, struct places *out, struct err *e);
void places_free(struct places *p);

/* The program NAME (berthd, berth-shepherd, berth-probe): beside the running program, in
 * the build tree around it, in ../libexec/berth, or where it was installed. The caller
 * frees; NULL with words when it is nowhere. */
char *places_program(const char *name, struct err *e);

#endif
