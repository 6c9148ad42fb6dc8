/* The folder of an attempt, from before its start is committed until its end is: its lock, with
 * what is to run and the marks of what ran, its socket. That of a job on Slurm is where its
 * nodes see it (shared_folder.h). */
#ifndef DAEMON_ATTEMPT_ATTEMPT_FOLDER_H
#define DAEMON_ATTEMPT_ATTEMPT_FOLDER_H

#include <stdint.h>

struct attempts;
struct err;
struct instance;
struct job;

/* Makes the folder of an attempt that is about to be committed, with its lock in it: so one
 * that is committed and has no folder has lost it, and may have run. -1: machine trouble, with
 * e->errnum. */
int folder_make(struct attempts *a, const struct job *job, struct err *e);

/* That of the job's attempt. Its lock must be free or its shepherd about to leave. One that
 * stays is logged and tried again later. */
void folder_remove(struct attempts *a, const struct job *job);

/* The same for one whose end is committed, and whose shepherd has been told so: the folder may
 * be kept for another attempt (spare_folders.h). */
void folder_done(struct attempts *a, const struct job *job);

/* The group by which the job's attempt is held to its VRAM, as what stands in the folder has
 * it: where this daemon makes groups may be elsewhere. NULL: there is none, or that cannot be
 * read. The caller frees. */
char *folder_read_cap_group(const struct attempts *a, const struct job *job);

/* At the start: removes folders of attempts that are settled, or that no commit ever knew;
 * those that are still in use later. */
int folders_clean(struct attempts *a, struct err *e);

/* Whether folders and logs can be written: does what a start would do there, and undoes it. */
int folders_try(struct instance *inst, struct err *e);

#endif
