/* The engine for jobs with `on: slurm`, which the Slurm of a cluster runs. It is to them what
 * the nursery and supervisor_watch.h are to jobs of this machine. */
#ifndef DAEMON_SLURM_SLURM_ENGINE_H
#define DAEMON_SLURM_SLURM_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct change;
struct err;
struct instance;
struct job;
struct slurm;

struct slurm *slurm_new(struct instance *inst); /* inst: borrowed */
void slurm_close(struct slurm *s); /* abandons what is under way; the next daemon recovers it */
void slurm_free(struct slurm *s);

/* Whether jobs can be sent from here at all; -1 with the reason. */
int slurm_is_usable(const struct instance *inst, struct err *e);

/* How many jobs may be assigned to Slurm now. 0 while earlier ones have not been sent, so that
 * what arrives meanwhile is sent together. */
int32_t slurm_room(const struct slurm *s);

/* Call before the folder of an attempt is created: adopts a change of the shared folder, if
 * there is one and no attempt is under way, and ensures that the folder exists. -1: no attempt
 * can start now; slurm_trouble says why. */
int slurm_folder_ready(struct slurm *s);
/* Reports that creating an attempt's folder there failed. */
void slurm_folder_failed(struct slurm *s, const struct err *e);
/* The folder that the settings name, if it is not in use yet; else NULL. Borrowed. */
const char *slurm_folder_next(const struct slurm *s);

/* Writes a random key that Slurm stores with the job. */
void slurm_make_key(char *out, size_t size);

/* Before the commit: assigns keys to its new attempts, one for all that can be sent as one
 * array. */
void slurm_prepare(const struct instance *inst);
/* After the commit: queues the attempt for sending. Its folder must be complete. */
void slurm_launch(struct slurm *s, const struct job *job);
/* After a restart: finds the attempt in Slurm, or sends it again if it never began. */
void slurm_recover(struct slurm *s, const struct job *job);
/* Once, after all slurm_recover calls: takes over the allocations of an earlier daemon. */
void slurm_take_up(struct slurm *s);
/* The attempt's outcome is committed. Unknown attempts are ignored. */
void slurm_settled(struct slurm *s, uint32_t job, int32_t attempt);

/* A reader of the turn's changes: acts on cancels and requeues. */
void slurm_read_change(struct slurm *s, const struct change *change);

/* Sends a signal to the job's command; its node reads it within ten seconds. False: the
 * command has not begun, or the signal cannot be written. */
bool slurm_signal(struct slurm *s, const struct job *job, int sig);

/* Where in Slurm the job is, and why it does not run yet. Borrowed until the next call. */
const char *slurm_tell(struct slurm *s, const struct job *job);
/* Why nothing is sent; NULL: no trouble is known. Borrowed until the next turn. */
const char *slurm_trouble(const struct slurm *s);

#endif
