/* Which of this process's variables a job gets, and which others: --env and --export of
 * `berth submit`, and their like in scripts. */
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

/* Zeroed: everything goes along and nothing is added. */
struct env_choice {
    struct env_list set;       /* "K=V", no name twice */
    struct env_list names;     /* with only: those that go along */
    struct env_list slurm_set; /* for a job with Slurm's variables, unless set has them */
    char *for_steps; /* owned; what --export said, which steps of a batch job take over */
    bool only;
    bool slurm; /* our own SLURM_* variables are of another job, and stay behind */
    bool login; /* what a login begins with instead of ours */
};

/* --env K=V; a later one of the same name wins. ERR_USAGE. */
int env_set(struct env_choice *c, const char *entry, struct err *e);

/* --export ALL, NONE or a list such as PATH,FOO and ALL,FOO=1; replacing what an earlier one
 * chose. A comma between quotes belongs to a value. With NONE or a list, the variables of the
 * account and PATH are kept all the same (HOME LOGNAME PATH SHELL USER). ERR_USAGE. */
int env_export(struct env_choice *c, const char *text, struct err *e);

/* As srun has it, unlike sbatch: our value of a variable that goes along wins over the one that
 * --export gave it (ALL,A=1), and the steps of the job do not take --export over. */
void env_prefer_own(struct env_choice *c);

/* For a login, whose profiles make the rest: the account's HOME LOGNAME SHELL USER, the usual
 * PATH, the terminal's TERM, and what was named. */
void env_for_login(struct env_choice *c);

/* What #SBATCH lines say, for a job that turns out to have Slurm's variables. ERR_USAGE. */
int env_set_slurm(struct env_choice *c, const char *entry, struct err *e);

/* For a job with Slurm's variables: says from which folder it is submitted (NULL: it is gone)
 * and what its #SBATCH lines say, and leaves behind what we have of another job's. */
void env_for_slurm(struct env_choice *c, const char *folder);

/* "env" into an open object. A variable that is not UTF-8 is left out: JSON has no bytes for
 * it. c NULL: everything. */
void env_add(struct jsonw *w, const struct env_choice *c);

/* Says on standard error which variables are left out for that, once for each. */
void env_say_unsendable(const struct env_choice *c);

void env_free(struct env_choice *c); /* what it owns */

#endif
