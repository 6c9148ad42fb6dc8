/* Reaching the daemon, and starting one. */
#ifndef CLI_ASK_CONNECT_H
#define CLI_ASK_CONNECT_H

#include <stdbool.h>
#include <stdint.h>

struct cli;
struct client;
struct err;

/* What a daemon that has to be started is given; NULL: nothing special. */
struct daemon_args {
    const char *sim;             /* --sim SPEC */
    const char *config;          /* --config FILE */
    const char *const *settings; /* --set key=value; NULL-terminated, or NULL */
    bool stay;                   /* do not leave when idle */
    bool need_gpus;              /* do not start where no GPU can be read */
    bool system;                 /* the machine's daemon, not the user's */
    bool own;                    /* the user's, also where the machine's runs */
};

/* So long a daemon may be silent while an answer is due, on every connection from here. */
#define CONNECT_PATIENCE_MS 15000

/* Connects to the daemon that the options or the environment name, else the user's own, else
 * the machine's. Starts the user's own again when it died, as its jobs may wait or run on; else
 * none. Without one: ERR_UNREACHABLE, and words that say how to start it. */
struct client *connect_daemon(const struct cli *cli, struct err *e);

/* The same, but a user's own daemon that died is not started again: for verbs that ask how it
 * is, or stop it. */
struct client *connect_running(const struct cli *cli, struct err *e);

/* How long and how loudly a lost connection is had again. */
struct keeping {
    int64_t until_us; /* boot clock; 0: a minute from when it is lost */
    bool quiet;       /* nothing is said: there is a picture on the terminal */
};

/* A connection that is lost is had again from the same place, and asked again what had no
 * answer (client_keep); the user's own daemon is started again when it died. A signal that is
 * handled ends the waiting. c is from one of the functions here, cli outlives it; how: NULL for
 * a minute, with words. */
void connect_keep(const struct cli *cli, struct client *c, const struct keeping *how);

/* connect_daemon and connect_keep: for questions, which a daemon that dies as they come leaves
 * without an answer. */
struct client *connect_kept(const struct cli *cli, struct err *e);

/* A new connection to where c was connected, waited for in the same way; the user's own daemon
 * is started with args however it left, unless its service manager does that. c is freed. NULL
 * with e. */
struct client *connect_back(const struct cli *cli, const struct daemon_args *args,
                            struct client *c, struct err *e);

/* Connects in the same order, and starts the user's daemon first when there is none. *started
 * (may be NULL) says which. Two simultaneous callers end up at the same daemon. */
struct client *connect_or_start(const struct cli *cli, const struct daemon_args *args,
                                bool *started, struct err *e);

/* The machine's daemon, else the user's own in its usual place, if one of them runs; NULL. */
struct client *connect_machine_or_own(const struct cli *cli);
/* The daemon of the instance in dir, if it runs and is this user's or root's; NULL. */
struct client *connect_trusted_at(const char *dir);

#endif
