/* Options in the leading comments of a job script: #BERTH lines with Berth's own options,
 * #SBATCH lines with those of Slurm that one machine can honour (table in sbatch.c). As in
 * sbatch, reading ends at the first line that is neither blank nor a comment. Pure: the caller
 * reads the file. */
#ifndef SPEC_SCRIPT_H
#define SPEC_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>

struct err;
struct request;
struct when_clock;

#define SCRIPT_WORDS_MAX 100     /* messages that are kept */
#define SCRIPT_CLUSTER   "berth" /* the only name that --clusters accepts */

/* Messages for people: "FILE:LINE: words". */
struct script_list {
    char **at; /* owned */
    size_t n;
};

struct script {
    const char *file;               /* borrowed from the caller */
    int n_sbatch;                   /* #SBATCH lines only */
    int n_lines;                    /* #BERTH and #SBATCH lines; 0: not a job script */
    char *interpreter;              /* owned; the text after #!, "/bin/bash -e"; NULL: none */
    char *export;                   /* owned; ALL, NONE or names; may be NULL */
    struct script_list errors;      /* invalid options, which cannot be ignored */
    struct script_list unsupported; /* valid in sbatch, but cannot be honoured here */
    struct script_list notes;       /* information for the user */
    struct script_list ignored;     /* names of options that have no meaning on one machine */
    struct script_list variables;   /* "SLURM_JOB_PARTITION=gpu", for the script to read */
};

enum script_takes {
    TAKES_NOTHING,
    TAKES_VALUE,
    TAKES_MAYBE, /* optional value, only as --name=value */
};

struct script_option {
    const char *name;
    char letter; /* 0: none */
    enum script_takes takes;
};

/* Row i of sbatch's options; NULL after the last. */
const struct script_option *sbatch_option(int i);

/* An sbatch option from outside the script: from a command line or a variable. */
struct script_word {
    char *from;        /* in messages: "--gres", "SBATCH_GRES"; owned by the caller */
    int option;        /* row of sbatch_option */
    const char *value; /* borrowed; NULL: none */
    bool is_variable;
};

/* Applies the script's options to *r, which the caller has initialised with request_begin or
 * through an earlier door; the caller also calls request_validate. file is used in messages.
 * *out is overwritten, and the caller frees it in every case. Returns -1 if there are errors,
 * the first in e; the caller decides about unsupported options. over: what the caller will
 * apply to *r afterwards, so that memory per core is computed from its cores; NULL:
 * nothing. */
int script_read(const char *file, const char *text, size_t len, const struct when_clock *clock,
                const struct request *over, struct request *r, struct script *out,
                struct err *e);

/* True if word, the name of a Slurm node with or without its domain, is the machine host. */
bool script_node_is(const char *word, const char *host);

/* The same, followed by n options from elsewhere, which override those of the script. The
 * values may depend on each other across both, such as memory per core. If nothing requests
 * GPUs, the job has none, as in Slurm. host is the name that --nodelist may contain. */
int script_read_over(const char *file, const char *text, size_t len,
                     const struct when_clock *clock, const char *host,
                     const struct script_word *over, size_t n, struct request *r,
                     struct script *out, struct err *e);

void script_free(struct script *s); /* frees the contents, not s */

#endif
