/* berthd's command line and settings. */
#ifndef DAEMON_SERVICE_DAEMON_OPTIONS_H
#define DAEMON_SERVICE_DAEMON_OPTIONS_H

#include <stdbool.h>

struct config;
struct err;
struct places;

struct options {
    const char *dir;      /* --dir */
    bool system;          /* --system: one daemon for all users */
    const char *sim;      /* --sim */
    const char *config;   /* --config */
    int ready_fd;         /* --ready-fd; -1: run in the foreground, log to stderr */
    bool stay;            /* --stay: do not exit when idle */
    bool need_gpus;       /* --need-gpus: exit if none is readable and no job waits */
    const char *sets[32]; /* --set key=value */
    int n_sets;
    char *recalled; /* owned: read by recall_options; config and sets point into it */
};

/* 0: go on; 1: --help or --version was printed; -1: e says what is wrong. */
int daemon_options_parse(int argc, char **argv, struct options *out, struct err *e);

/* The settings: /etc/berth/config.yaml, the user's, the instance's, --config, --set. */
int daemon_options_read_config(const struct options *o, const struct places *p,
                               struct config *out, struct err *e);

#endif
