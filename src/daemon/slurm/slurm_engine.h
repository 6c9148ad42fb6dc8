/* The engine that has jobs executed by a cluster's Slurm: those with `on: slurm`. What the
 * nursery and supervisor_watch.h are for jobs of this machine, this is for those. */
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

struct slurm *slurm_new(struct instance *inst); /* which is borrowed */
void
slurm_close(struct slurm *s); /* what is under way is given up; the next daemon finds out */
void slurm_free(struct slurm *s);

/* Whether jobs can be sent from here at all; -1 with the reason. */
int slurm_is_usable(const struct instance *inst, struct err *e);

/* How many jobs may be decided for Slurm now. None while what was decided before is not sent:
 * what comes in meanwhile goes together. */
int32_t slurm_room(const struct slurm *s);

/* Before the folder of a start is made: takes a change of the folder that is shared with nodes,
 * if there is one and no attempt is under way, and makes sure that it is there. -1: none can
 * start now; slurm_trouble says why. */
int slurm_folder_ready(struct slurm *s);
/* The same was met when the folder of an attempt was made there. */
void slurm_folder_failed(struct slurm *s, const struct err *e);
/* The one that the settings name, if it is not taken yet; else NULL. Borrowed. */
const char *slurm_folder_next(const struct slurm *s);

/* A random key, as Slurm is to keep it. */
void slurm_make_key(char *out, size_t size);

/* Before the commit: gives the attempts that are new in it their keys, one for all that can go
 * as one array. */
void slurm_prepare(const struct instance *inst);
/* After it: sends it in its turn. What is to run is in the folder. */
void slurm_launch(struct slurm *s, const struct job *job);
/* After a restart: finds it, or sends it again where it never began. */
void slurm_recover(struct slurm *s, const struct job *job);
/* And, once, after all of them: the allocations of an earlier daemon. */
void slurm_take_up(struct slurm *s);
/* Its outcome is committed. One that is not known is fine. */
void slurm_settled(struct slurm *s, uint32_t job, int32_t attempt);

/* A reader of the turn's changes: stops. */
void slurm_read_change(struct slurm *s, const struct change *change);

/* A signal for its command, which its node reads within ten seconds. False: the command has not
 * begun, or that cannot be written. */
bool slurm_signal(struct slurm *s, const struct job *job, int sig);

/* Where a job that was decided for Slurm is there, and why it does not run yet. Borrowed until
 * the next call. */
const char *slurm_tell(struct slurm *s, const struct job *job);
/* Why none is sent; NULL: nothing is known to be wrong. Borrowed until the next turn. */
const char *slurm_trouble(const struct slurm *s);

#endif
