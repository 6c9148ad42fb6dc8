/* The script of sbatch: read, checked, and kept as it was submitted. */
#ifndef COMPAT_SLURM_SLURM_SCRIPT_H
#define COMPAT_SLURM_SLURM_SCRIPT_H

#include "base/buf.h"

struct submit_script;

#define SLURM_SCRIPT_MAX (4 << 20) /* as Slurm has it (MaxScriptSize) */

/* The text of the file, or of standard input when path is NULL. 0, or the exit status, said. */
int slurm_read_script(const char *path, struct buf *text);
/* The script that --wrap makes of a command. */
void slurm_wrap_script(const char *command, struct buf *text);

/* Keeps a copy where the job finds it whatever becomes of the original, and makes script that
 * file. shown is its name for messages, text the caller's. 0, or the exit status. */
int slurm_keep_script(const struct buf *text, const char *shown, struct submit_script *script);

/* The path of the copy that a job's command runs; NULL: it runs none. The caller frees. */
char *slurm_kept_script(const char *command);

/* Removes copies that have not been used for a week and that no job will run again. Looks at
 * most once a day. */
void slurm_tidy_scripts(void);

#endif
