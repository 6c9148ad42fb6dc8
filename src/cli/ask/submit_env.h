/* Selects the variables of this process that a job gets, and adds others: --env and --export
 * of `berth submit`, and their equivalents in scripts. */
#ifndef CLI_ASK_SUBMIT_ENV_H
#define CLI_ASK_SUBMIT_ENV_H

#include <stdbool.h>
#include <stddef.h>

struct err;
struct jsonw;

struct env_list {
    char **at; /* owned, NULL-terminated; NULL while empty */
    size_t n;
};

/* Zeroed: sends every variable and adds none. */
struct env_choice {
    struct env_list set;       /* "K=V", names are unique */
    struct env_list names;     /* if only: the variables to send */
    struct env_list slurm_set; /* for a job with Slurm's variables, unless set contains them */
    char *for_steps; /* owned; value of --export, which steps of a batch job inherit */
    bool only;
    bool slurm; /* do not send our own SLURM_* variables, which belong to another job */
    bool login; /* send a login environment instead of ours */
};

/* --env K=V; the last of equal names wins. ERR_USAGE. */
int env_set(struct env_choice *c, const char *entry, struct err *e);

/* --export ALL, NONE or a list such as PATH,FOO and ALL,FOO=1; replaces an earlier choice. A
 * comma between quotes belongs to a value. NONE and lists still send the account's variables
 * and PATH (HOME LOGNAME PATH SHELL USER). ERR_USAGE. */
int env_export(struct env_choice *c, const char *text, struct err *e);

/* Applies srun's rule, which differs from sbatch's: our own value of a variable that is sent
 * overrides the one from --export (ALL,A=1), and the job's steps do not inherit --export. */
void env_prefer_own(struct env_choice *c);

/* For a login, whose profiles set the rest: the account's HOME LOGNAME SHELL USER, the usual
 * PATH, the terminal's TERM, and variables that were named. */
void env_for_login(struct env_choice *c);

/* Adds a variable from #SBATCH lines, for jobs that turn out to have Slurm's variables.
 * ERR_USAGE. */
int env_set_slurm(struct env_choice *c, const char *entry, struct err *e);

/* For a job with Slurm's variables: adds the folder it is submitted from (NULL: it is gone)
 * and the variables from its #SBATCH lines, and omits our own SLURM_* variables, which belong
 * to another job. */
void env_for_slurm(struct env_choice *c, const char *folder);

/* Adds "env" to an open object. Omits variables that are not UTF-8, which JSON cannot
 * represent. c NULL: the whole environment. */
void env_add(struct jsonw *w, const struct env_choice *c);

/* Prints to standard error which variables were omitted for that reason, each once. */
void env_say_unsendable(const struct env_choice *c);

void env_free(struct env_choice *c); /* frees the contents, not c */

#endif
