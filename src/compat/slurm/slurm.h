/* Slurm's commands in front of Berth's queue; what they share. Formats, words and exit statuses
 * are those of Slurm 22.05. */
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
#define SLURM_PARTITION "berth" /* there is one, and every job is in it */
#define SLURM_CLUSTER   SCRIPT_CLUSTER

/* --- slurm_options.c: command lines --- */

/* An option of a command's own, and where its value goes in what the command fills. Without a
 * place the command takes it itself. */
struct slurm_option {
    struct script_option option;
    enum slurm_place { SLURM_TAKEN, SLURM_FLAG, SLURM_TEXT } place;
    size_t at;
};
#define SLURM_INTO(type, member)                                                               \
    .place = _Generic(((type *)NULL)->member, bool: SLURM_FLAG, const char *: SLURM_TEXT),     \
    .at = offsetof(type, member)

struct slurm_reader {
    const char *name;               /* the command's */
    const char *usage;              /* all of what --help prints */
    const struct slurm_option *own; /* ends with a NULL name */
    bool jobs;     /* and the options of sbatch that describe a job (sbatch_option) */
    bool anywhere; /* options may also stand behind words */
    int wrong;     /* exit status of a command line that makes no sense */

    const char *value; /* of the option that is to be taken; NULL: none. Borrowed from argv */
    char said[64];     /* that option, as it is called in messages: "--gres" */
    char **words;      /* what is no option; borrowed from argv */
    int n_words;

    int argc;
    char **argv;
    struct option *longs; /* owned while it reads, as is letters */
    char *letters;
    int n_own;
};

/* Takes an option that has no place: the row of own, or n_own + the row of sbatch_option. 0, or
 * the exit status once the mistake is reported. */
typedef int slurm_take(void *into, struct slurm_reader *r, int row);

/* Reads a command line into what the places are of; take: NULL, where options without a place
 * mean nothing here. False: *status is what to end with, as help was shown or a mistake
 * reported. */
bool slurm_read(struct slurm_reader *r, int argc, char **argv, void *into, slurm_take *take,
                int *status);
/* The value of an option that may have one, where it stands behind it as a word of its own:
 * -j 12. NULL: there is none. */
const char *slurm_take_word(struct slurm_reader *r);
/* 0 where all words were options, or 1 with the first that is none reported. */
int slurm_refuse_words(const struct slurm_reader *r);

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
