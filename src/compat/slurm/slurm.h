/* Slurm's commands in front of Berth's queue; what they share. Formats, words and exit statuses
 * are those of Slurm 22.05. */
#ifndef COMPAT_SLURM_SLURM_H
#define COMPAT_SLURM_SLURM_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/common/cli.h"
#include "spec/script.h"

struct client;
struct err;

#define SLURM_RELEASE   "22.05.8"
#define SLURM_PARTITION "berth" /* there is one, and every job is in it */
#define SLURM_CLUSTER   SCRIPT_CLUSTER

/* --- slurm_options.c: command lines --- */

/* What each command understands beside its own options. */
#define SLURM_DONE (-1)
#define SLURM_EXIT (-2) /* with .status: help was shown, or a mistake reported */

struct slurm_reader {
    const char *name;                /* the command's */
    const char *usage;               /* all of what --help prints */
    const struct script_option *own; /* ends with a NULL name */
    bool jobs;     /* and the options of sbatch that describe a job (sbatch_option) */
    bool anywhere; /* options may also stand behind words */
    int wrong;     /* exit status of a command line that makes no sense */
    int argc;
    char **argv;
    const char *value; /* of the option just returned; NULL: none */
    char said[64];     /* that option, as it is called in messages: "--gres" */
    int status;

    struct option *longs; /* owned, as is letters */
    char *letters;
    int n_own;
};

void slurm_begin(struct slurm_reader *r, int argc, char **argv);
/* The row of own, or n_own + the row of sbatch_option; SLURM_DONE or SLURM_EXIT. */
int slurm_next(struct slurm_reader *r);
/* The value of an option that may have one, where it stands behind it as a word of its own:
 * -j 12. NULL: there is none. */
const char *slurm_take_word(struct slurm_reader *r);
/* The words that are no options; how many in *n. */
char **slurm_words(const struct slurm_reader *r, int *n);
void slurm_end(struct slurm_reader *r); /* what it owns */

/* "NAME: error: words" to standard error; returns status. */
int slurm_fail(int status, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* --- slurm_daemon.c: the daemon behind the commands --- */

/* Where the environment says that it is. */
struct cli slurm_cli(void);
/* The user's daemon, which is started if need be, or the machine's. NULL, said as Slurm says
 * that no controller answers. */
struct client *slurm_connect(const char *what);
/* The user's name. Borrowed. */
const char *slurm_own_name(void);
/* Whether there is such a user, by name or by number. */
bool slurm_is_user(const char *word);
/* This machine's name, without its domain. Borrowed. */
const char *slurm_node(void);
/* Whether one of the nodes of a list with commas is this machine, also with its domain. */
bool slurm_is_here(const char *nodes);

#endif
