/* Connects to the daemon, starting it if needed. */
#ifndef CLI_ASK_CONNECT_H
#define CLI_ASK_CONNECT_H

#include <stdbool.h>
#include <stdint.h>

struct cli;
struct client;
struct err;
struct machine;

/* Arguments of a daemon to be started; NULL: none. */
struct daemon_args {
    const char *sim;             /* --sim SPEC */
    const char *config;          /* --config FILE */
    const char *const *settings; /* --set key=value; NULL-terminated, or NULL */
    bool stay;                   /* do not exit when idle */
    bool need_gpus;              /* do not start if no GPU can be read */
    bool system;                 /* the machine's daemon, not the user's own */
    bool own;                    /* the user's own, even if the machine's daemon runs */
};

/* How long a daemon may be silent while an answer is due, on every connection made here. */
#define CONNECT_PATIENCE_MS 15000

/* Connects to the daemon that the options or the environment name, else to the user's own,
 * else to the machine's. Restarts the user's own if it died, as it may have pending or running
 * jobs; starts none otherwise. Without a daemon: ERR_UNREACHABLE, and a message that says how
 * to start one. */
struct client *connect_daemon(const struct cli *cli, struct err *e);

/* The same, but does not restart the user's own daemon: for verbs that query its state or stop
 * it. */
struct client *connect_running(const struct cli *cli, struct err *e);

/* How a lost connection is restored. */
struct keeping {
    int64_t until_us; /* boot clock; 0: for a minute after the loss */
    bool quiet;       /* print nothing: a full-screen view uses the terminal */
};

/* Makes c reconnect to the same place when the connection is lost and repeat unanswered
 * requests (client_keep); restarts the user's own daemon if it died. A handled signal ends the
 * wait. c comes from a function of this file, cli outlives it; how: NULL for a minute, with
 * messages. */
void connect_keep(const struct cli *cli, struct client *c, const struct keeping *how);

/* connect_daemon and connect_keep: for read-only requests, which may be lost if the daemon
 * dies as they arrive. */
struct client *connect_kept(const struct cli *cli, struct err *e);

/* Reconnects to where c was connected, waiting in the same way; starts the user's own daemon
 * with args however it ended, unless its service manager does. Frees c. NULL with e. */
struct client *connect_back(const struct cli *cli, const struct daemon_args *args,
                            struct client *c, struct err *e);

/* Connects as connect_daemon does, and starts the user's daemon if there is none. *started
 * (may be NULL) says whether it did. Two simultaneous callers get the same daemon. */
struct client *connect_or_start(const struct cli *cli, const struct daemon_args *args,
                                bool *started, struct err *e);

/* The machine's daemon, if none was named and neither it nor the user's own answers. */
struct machine connect_machine(const struct cli *cli);

/* Connects to the machine's daemon, else to the user's own in its usual place, if one of them
 * runs; NULL: neither does. */
struct client *connect_machine_or_own(const struct cli *cli);
/* Connects to the daemon of the instance in dir, if it runs and belongs to this user or root;
 * else NULL. */
struct client *connect_trusted_at(const char *dir);

#endif
