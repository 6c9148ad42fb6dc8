/* The requests of sbatch, srun and salloc as a Berth submission: options on the command line
 * and in the environment override those in the script. */
#ifndef COMPAT_SLURM_SLURM_REQUEST_H
#define COMPAT_SLURM_SLURM_REQUEST_H

#include <stdbool.h>

#include "base/buf.h"
#include "cli/submit/submit_script.h"
#include "cli/submit/submit_verb.h"
#include "compat/slurm/slurm.h"
#include "spec/script.h"

/* Prefixes of variables that stand for options, such as SBATCH_TIMELIMIT for "time". */
enum {
    VARIABLES_SBATCH = 1,
    VARIABLES_SALLOC = 2,
    VARIABLES_SLURM = 4,
    VARIABLES_SRUN = 8, /* override those of SLURM */
};

struct slurm_request {
    struct submission s;
    struct script_word *words; /* owned; in ascending precedence */
    size_t n, cap;
    bool quiet; /* do not print notes */
};

#define auto_slurm_request __attribute__((cleanup(slurm_request_free)))
void slurm_request_free(struct slurm_request *q);

/* Start with Slurm's defaults. */
void slurm_request_begin(struct slurm_request *q);
/* Take options from the environment variables with these prefixes. */
void slurm_take_variables(struct slurm_request *q, unsigned of);
/* Take an option of the command line: row `option` of sbatch_option, as r has just read it. */
void slurm_take_option(struct slurm_request *q, const struct slurm_reader *r, int option);

/* Merge everything into q->s.req, over the #SBATCH and #BERTH lines in the script's head (may
 * be empty). Reports what cannot be honoured. Returns 0, or the exit status: `wrong` for
 * errors, 1 for unsupported options. */
int slurm_settle(struct slurm_request *q, struct submit_script *script, int wrong);

#endif
