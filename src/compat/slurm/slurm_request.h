/* What sbatch, srun and salloc ask for, as a submission of Berth's: options of the environment
 * and of the command line over those of a script. */
#ifndef COMPAT_SLURM_SLURM_REQUEST_H
#define COMPAT_SLURM_SLURM_REQUEST_H

#include <stdbool.h>

#include "base/buf.h"
#include "cli/submit/submit_script.h"
#include "cli/submit/submit_verb.h"
#include "compat/slurm/slurm.h"
#include "spec/script.h"

/* A variable that says what an option says: {"SBATCH_TIMELIMIT", "time"}. */
struct slurm_variable {
    const char *name, *option;
};

struct slurm_request {
    struct submission s;
    struct script_word *words; /* owned; in the order in which they count */
    size_t n, cap;
    bool quiet; /* notes are not said */
};

#define auto_slurm_request __attribute__((cleanup(slurm_request_free)))
void slurm_request_free(struct slurm_request *q);

/* Begins with what Slurm has where nothing is said. */
void slurm_request_begin(struct slurm_request *q);
/* Takes what the environment says; the list ends with a NULL name. */
void slurm_take_variables(struct slurm_request *q, const struct slurm_variable *list);
/* Takes an option of the command line: row `option` of sbatch_option, as r has just read it. */
void slurm_take_option(struct slurm_request *q, const struct slurm_reader *r, int option);

/* Puts all of it into q->s.req, over the #SBATCH and #BERTH lines of the script (its head may
 * be empty). What cannot be honoured is said. 0, or the exit status: wrong, or 1. */
int slurm_settle(struct slurm_request *q, struct submit_script *script, int wrong);

#endif
