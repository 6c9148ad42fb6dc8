/* Options that a job script carries in its leading comments: #BERTH lines with Berth's own
 * options, #SBATCH lines with Slurm's, as far as one machine can honour them (sbatch.c has
 * the table). As sbatch does it, reading ends at the first line that is neither blank nor a
 * comment. Pure: the caller reads the file. */
#ifndef SPEC_SCRIPT_H
#define SPEC_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>

struct err;
struct request;
struct when_clock;

#define SCRIPT_WORDS_MAX 100     /* complaints that are kept */
#define SCRIPT_CLUSTER   "berth" /* the one that --clusters may name */

/* Lines for a person: "FILE:LINE: words". */
struct script_list {
    char **at; /* owned */
    size_t n;
};

struct script {
    const char *file;               /* the caller's */
    int n_sbatch;                   /* #SBATCH lines alone */
    int n_lines;                    /* #BERTH and #SBATCH lines: 0 is a file like any other */
    char *interpreter;              /* owned; what is behind #!, "/bin/bash -e"; NULL: none */
    char *export;                   /* owned; ALL, NONE or names; NULL */
    struct script_list errors;      /* what is wrong, whatever one ignores */
    struct script_list unsupported; /* what is right for sbatch and cannot be honoured here */
    struct script_list notes;       /* what a reader may like to know */
    struct script_list ignored;     /* names of options that mean nothing on one machine */
    struct script_list variables;   /* "SLURM_JOB_PARTITION=gpu", which the script may read */
};

enum script_takes {
    TAKES_NOTHING,
    TAKES_VALUE,
    TAKES_MAYBE, /* only as --name=value */
};

struct script_option {
    const char *name;
    char letter; /* 0: none */
    enum script_takes takes;
};

/* Row i of sbatch's options; NULL behind the last. */
const struct script_option *sbatch_option(int i);

/* One of sbatch's options that is not in the script: of a command line or a variable. */
struct script_word {
    char *from;        /* for messages: "--gres", "SBATCH_GRES"; owned by the caller */
    int option;        /* row of sbatch_option */
    const char *value; /* borrowed; NULL: none */
    bool is_variable;
};

/* Lays the options over *r, which request_begin or an earlier door has begun; request_validate
 * is the caller's. file is for messages. *out is overwritten and to be freed in every case.
 * -1 when there are errors, the first in e; what is unsupported is the caller's to judge.
 * over: what the caller is going to lay over *r, so that memory for each core is that of its
 * cores; NULL: nothing. */
int script_read(const char *file, const char *text, size_t len, const struct when_clock *clock,
                const struct request *over, struct request *r, struct script *out,
                struct err *e);

/* Whether a node of Slurm's of this name, with or without a domain, is the machine host. */
bool script_node_is(const char *word, const char *host);

/* The same, and then n options from elsewhere, which override those of the script. They may
 * ask for what they share with it, such as memory for each of its cores. Without a word for
 * GPUs the job has none, as with Slurm. host is what --nodelist may name. */
int script_read_over(const char *file, const char *text, size_t len,
                     const struct when_clock *clock, const char *host,
                     const struct script_word *over, size_t n, struct request *r,
                     struct script *out, struct err *e);

void script_free(struct script *s); /* what it owns; not s */

#endif
