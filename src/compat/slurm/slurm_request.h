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

/* Variables that say what an option says, by their beginnings: SBATCH_TIMELIMIT, "time". */
enum {
    VARIABLES_SBATCH = 1,
    VARIABLES_SALLOC = 2,
    VARIABLES_SLURM = 4,
    VARIABLES_SRUN = 8, /* which count more than those of SLURM */
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
/* Takes what the environment says in these variables. */
void slurm_take_variables(struct slurm_request *q, unsigned of);
/* Takes an option of the command line: row `option` of sbatch_option, as r has just read it. */
void slurm_take_option(struct slurm_request *q, const struct slurm_reader *r, int option);

/* Puts all of it into q->s.req, over the #SBATCH and #BERTH lines of the script (its head may
 * be empty). What cannot be honoured is said. 0, or the exit status: wrong, or 1. */
int slurm_settle(struct slurm_request *q, struct submit_script *script, int wrong);

#endif
