/* Shared by Slurm's commands in front of Berth's queue. Formats, messages and exit statuses
 * follow Slurm 22.05. */
#ifndef COMPAT_SLURM_SLURM_H
#define COMPAT_SLURM_SLURM_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/common/cli.h"
#include "spec/script.h"

struct client;
struct err;

#define SLURM_RELEASE   "22.05.8"
#define SLURM_PARTITION "berth" /* the only partition, with every job */
#define SLURM_CLUSTER   SCRIPT_CLUSTER

/* --- slurm_options.c: command lines --- */

/* An option specific to a command, and the member that gets its value. An option without a
 * member is passed to slurm_take. */
struct slurm_option {
    struct script_option option;
    enum slurm_place { SLURM_TAKEN, SLURM_FLAG, SLURM_TEXT } place;
    size_t at;
};
#define SLURM_INTO(type, member)                                                               \
    .place = _Generic(((type *)NULL)->member, bool: SLURM_FLAG, const char *: SLURM_TEXT),     \
    .at = offsetof(type, member)

struct slurm_reader {
    const char *name;               /* name of the command */
    const char *usage;              /* text that --help prints */
    const struct slurm_option *own; /* terminated by a NULL name */
    bool jobs;     /* also accept sbatch's options that describe a job (sbatch_option) */
    bool anywhere; /* options may follow other words */
    int wrong;     /* exit status for a wrong command line */

    const char *value; /* value of the current option; NULL: none. Borrowed from argv */
    char said[64];     /* name of the current option in messages: "--gres" */
    char **words;      /* non-option words; borrowed from argv */
    int n_words;

    int argc;
    char **argv;
    struct option *longs; /* owned during slurm_read, like letters */
    char *letters;
    int n_own;
};

/* Handle an option without a member: row of own, or n_own + row of sbatch_option. Returns 0,
 * or the exit status after reporting an error. */
typedef int slurm_take(void *into, struct slurm_reader *r, int row);

/* Read a command line into the members of *into; take NULL: ignore options without a member.
 * False: exit with *status, since help was printed or an error reported. */
bool slurm_read(struct slurm_reader *r, int argc, char **argv, void *into, slurm_take *take,
                int *status);
/* The optional value of an option given as the next word: -j 12. NULL: no value. */
const char *slurm_take_word(struct slurm_reader *r);
/* 0 if there are no non-option words; else 1, after reporting the first one. */
int slurm_refuse_words(const struct slurm_reader *r);

/* Print "NAME: error: message" to standard error. Returns status. */
int slurm_fail(int status, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* --- slurm_daemon.c: the daemon behind the commands --- */

/* Options for the daemon that the environment names. */
struct cli slurm_cli(void);
/* Connect to the machine's daemon, or to the user's, which is started if needed. NULL:
 * reported with Slurm's message for an unreachable controller. */
struct client *slurm_connect(const char *what);
/* The name of the current user. Borrowed. */
const char *slurm_own_name(void);
/* True if there is a user with this name or number. */
bool slurm_is_user(const char *word);
/* Short name of this host. Borrowed. */
const char *slurm_node(void);
/* True if the comma-separated list contains this host, with or without its domain. */
bool slurm_is_here(const char *nodes);

#endif
