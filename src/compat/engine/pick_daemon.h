/* Chooses the daemon of a front end: the one named by the environment (BERTH_SOCKET,
 * BERTH_DIR), else the machine's, else the user's own if it is running, else the tool's own,
 * in the folder with the tool's files. A real GPU belongs to one daemon: if another run's
 * daemon has them all, that daemon is used. With simulated GPUs it is always the tool's own,
 * since the command line sets their number. BERTH_SIM=SPEC gives simulated GPUs to tools
 * without such an option. */
#ifndef COMPAT_ENGINE_PICK_DAEMON_H
#define COMPAT_ENGINE_PICK_DAEMON_H

#include <stdbool.h>

#include "cli/ask/connect.h"
#include "cli/common/cli.h"

struct client;
struct err;

struct compat_home {
    const char *root; /* the tool's folder; its own daemon uses root/.berth */
    /* sim and settings must stay valid until the link is closed, for restarts. */
    const char *sim;             /* NULL: real GPUs */
    const char *const *settings; /* "key=value" for the tool's own daemon; NULL-terminated */
    bool system; /* a daemon started here serves all users; for front ends run by root */
};

struct compat_link {
    struct cli cli;          /* how to connect, also again */
    struct daemon_args args; /* how to start it, also again */
    struct client *client;   /* owned */
    bool own;                /* the tool's own daemon, stopped on close */
    char *dir;               /* owned; its folder */
};

/* Connect. If the tool's own daemon was left running, it is kept as it is while it has jobs,
 * else restarted with these settings and GPUs. *l is overwritten. */
int compat_link_open(struct compat_link *l, const struct compat_home *home, struct err *e);
/* Reconnect to the same daemon after it has gone, or start it again. */
int compat_link_again(struct compat_link *l, struct err *e);
/* Disconnect; stop the tool's own daemon unless it has running or pending jobs. */
void compat_link_close(struct compat_link *l);

#endif
