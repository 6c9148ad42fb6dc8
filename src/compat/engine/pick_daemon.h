/* Which daemon a front end works with: the one that the environment names (BERTH_SOCKET,
 * BERTH_DIR), else the machine's, else the user's own if it runs, else one of the tool's own in
 * the folder in which that tool keeps its files. A real card belongs to one daemon: where that
 * of another run has them all, it is that one. With simulated cards it is always one of its
 * own: their number is the command line's. BERTH_SIM=SPEC gives simulated cards to tools that
 * have no option for them. */
#ifndef COMPAT_ENGINE_PICK_DAEMON_H
#define COMPAT_ENGINE_PICK_DAEMON_H

#include <stdbool.h>

#include "cli/ask/connect.h"
#include "cli/common/cli.h"

struct client;
struct err;

struct compat_home {
    const char *root; /* the tool's folder; its own instance is root/.berth */
    /* These two are to stay until the link is closed: it may have to be started again. */
    const char *sim;             /* NULL: real cards */
    const char *const *settings; /* "key=value" for a daemon of its own; NULL-terminated */
    bool system; /* a daemon that is started serves all users: for front ends that root runs */
};

struct compat_link {
    struct cli cli;          /* how this daemon is reached, also again */
    struct daemon_args args; /* what it is started with, also again */
    struct client *client;   /* owned */
    bool own;                /* the tool's own daemon, which goes with it */
    char *dir;               /* owned; where that is */
};

/* A daemon of its own that was left behind is used as it is while jobs are in it, else it makes
 * way for one with these settings and cards. *l is overwritten. */
int compat_link_open(struct compat_link *l, const struct compat_home *home, struct err *e);
/* After the daemon has gone: finds or starts the same one. */
int compat_link_again(struct compat_link *l, struct err *e);
/* Lets go; a daemon of its own is ended, unless jobs run in it or wait to. */
void compat_link_close(struct compat_link *l);

#endif
