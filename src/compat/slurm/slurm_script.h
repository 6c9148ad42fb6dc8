/* The script of sbatch: reading, checking, and keeping it as submitted. */
#ifndef COMPAT_SLURM_SLURM_SCRIPT_H
#define COMPAT_SLURM_SLURM_SCRIPT_H

#include "base/buf.h"

struct submit_script;

#define SLURM_SCRIPT_MAX (4 << 20) /* Slurm's default MaxScriptSize */

/* Read the file, or standard input if path is NULL. Returns 0, or the exit status after
 * reporting an error. */
int slurm_read_script(const char *path, struct buf *text);
/* Make a script of the command of --wrap. */
void slurm_wrap_script(const char *command, struct buf *text);

/* Keep a copy that the job can run whatever happens to the original, and set script to it.
 * shown is its name in messages; borrowed. Returns 0 or the exit status. */
int slurm_keep_script(const struct buf *text, const char *shown, struct submit_script *script);

/* The path of the copy that a job's command runs; NULL: none. The caller frees. */
char *slurm_kept_script(const char *command);

/* Remove copies that were not submitted for a week and that no live job runs. At most once a
 * day. */
void slurm_tidy_scripts(void);

#endif
