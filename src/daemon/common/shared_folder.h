/* The folder that attempts on Slurm share with their nodes. Where the settings name one
 * (slurm_folder), this instance has a folder of its own in it, named after the instance: with
 * `jobs`, `allocations` and `logs`, as in the state. Otherwise it is the state itself. The
 * store keeps which one is in use, and all that ever were, by number: so attempts that are
 * under way and the logs of ended ones are found, whatever the settings say by now. */
#ifndef DAEMON_COMMON_SHARED_FOLDER_H
#define DAEMON_COMMON_SHARED_FOLDER_H

#include <stdbool.h>
#include <stdint.h>

struct err;
struct instance;
struct job;

struct shared_folder {
    char **paths; /* owned: all that were in use, as the settings said; numbers begin at 1 */
    int32_t n;
    int32_t number; /* of the one in use; 0: the state */
    int jobs_fd;    /* its folder of attempts' folders; -1: it is not open, or the state's is */
    bool is_unsaved; /* the store does not know it yet */
};

/* What the store knows of it. Opens nothing. */
void shared_folder_load(struct instance *inst);
void shared_folder_free(struct instance *inst);
/* Within the transaction, and once that is durable. */
void shared_folder_write(struct instance *inst);
void shared_folder_written(struct instance *inst);

/* Whether it is another folder than the state. */
bool shared_folder_is_apart(const struct instance *inst);
/* Whether this job's attempts have their folders there, and not in the state. */
bool shared_folder_has(const struct instance *inst, const struct job *job);
/* The folder in which attempts on Slurm have theirs, and that in which those of this job
 * have. */
int shared_folder_fd(const struct instance *inst);
int shared_folder_fd_for(const struct instance *inst, const struct job *job);

/* The one in use, as the settings said it; "": the state. */
const char *shared_folder_setting(const struct instance *inst);
/* A path in the one in use; in the folder of logs of that number. The caller frees. */
char *shared_folder_path(const struct instance *inst, const char *name);
char *shared_folder_logs(const struct instance *inst, int32_t number);

/* Opens the one in use again, by its path: so what was mounted, or removed, since then is seen.
 * -1: it is not there now, with e->errnum; then none is open. */
int shared_folder_open(struct instance *inst, struct err *e);
/* Makes what it lacks. Not while an attempt is under way in it: an empty one, below a file
 * system that is not mounted, would say that all of them were removed. */
int shared_folder_make(struct instance *inst, struct err *e);
/* Takes the one that the settings name from now on, and makes it. -1: all is as it was. */
int shared_folder_use(struct instance *inst, const char *setting, struct err *e);

#endif
