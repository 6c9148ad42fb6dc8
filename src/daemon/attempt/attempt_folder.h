/* The folder of an attempt. It exists from before the start is committed until the end is, and
 * holds the lock (with the spec and the marks of what ran) and the socket. For a job on Slurm
 * the folder is where its nodes see it (shared_folder.h). */
#ifndef DAEMON_ATTEMPT_ATTEMPT_FOLDER_H
#define DAEMON_ATTEMPT_ATTEMPT_FOLDER_H

#include <stdint.h>

struct attempts;
struct err;
struct instance;
struct job;

/* Makes the folder and lock of an attempt before its commit. So a committed attempt without a
 * folder has lost it and may have run. -1: machine trouble, with e->errnum. */
int folder_make(struct attempts *a, const struct job *job, struct err *e);

/* Removes the folder of the job's attempt. Its lock must be free, or its supervisor about to
 * exit. A failure is logged, and removal is tried again later. */
void folder_remove(struct attempts *a, const struct job *job);

/* The same once the end is committed and the supervisor knows that. The folder may be kept for
 * another attempt (spare_folders.h). */
void folder_done(struct attempts *a, const struct job *job);

/* The cgroup that holds the job's attempt to its VRAM, as the folder records it; the current
 * daemon may make its groups elsewhere. NULL: none, or unreadable. The caller frees. */
char *folder_read_cap_group(const struct attempts *a, const struct job *job);

/* At start-up: removes folders of settled and of uncommitted attempts. Those still in use are
 * tried again later. */
int folders_clean(struct attempts *a, struct err *e);

/* Tests whether folders and logs can be written: does what a start does there, and
 * undoes it. */
int folders_try(struct instance *inst, struct err *e);

#endif
