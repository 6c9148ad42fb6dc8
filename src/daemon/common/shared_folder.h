/* The folder that attempts on Slurm share with their nodes. If the settings name one
 * (slurm_folder), this instance has its own subfolder there, named after the instance, with
 * `jobs`, `allocations` and `logs` as in the state folder. Otherwise it is the state folder
 * itself. The store keeps the one in use and all earlier ones by number, so that running
 * attempts and logs of ended ones are found whatever the settings are now. */
#ifndef DAEMON_COMMON_SHARED_FOLDER_H
#define DAEMON_COMMON_SHARED_FOLDER_H

#include <stdbool.h>
#include <stdint.h>

struct err;
struct instance;
struct job;

struct shared_folder {
    char **paths; /* owned: all ever in use, as set; numbers start at 1 */
    int32_t n;
    int32_t number;  /* of the one in use; 0: the state folder */
    int jobs_fd;     /* folder of its attempts' folders; -1: not open, or the state's is used */
    bool is_unsaved; /* not in the store yet */
};

/* Loads what the store has about it. Opens nothing. */
void shared_folder_load(struct instance *inst);
void shared_folder_free(struct instance *inst);
/* write: within the transaction. written: once that is durable. */
void shared_folder_write(struct instance *inst);
void shared_folder_written(struct instance *inst);

/* True if it is not the state folder. */
bool shared_folder_is_apart(const struct instance *inst);
/* True if this job's attempts have their folders there rather than in the state folder. */
bool shared_folder_has(const struct instance *inst, const struct job *job);
/* The folder with the folders of attempts on Slurm; the one with those of this job. */
int shared_folder_fd(const struct instance *inst);
int shared_folder_fd_for(const struct instance *inst, const struct job *job);

/* The path in use, as set; "": the state folder. */
const char *shared_folder_setting(const struct instance *inst);
/* A path in the one in use; the folder of logs with that number. The caller frees. */
char *shared_folder_path(const struct instance *inst, const char *name);
char *shared_folder_logs(const struct instance *inst, int32_t number);

/* Reopens the one in use by its path, so that a later mount or removal is noticed. -1 with
 * e->errnum: not there now; then none is open. */
int shared_folder_open(struct instance *inst, struct err *e);
/* Makes missing folders. Do not call while an attempt is under way there: an empty folder
 * below a file system that is not mounted would suggest that all attempts' folders
 * were removed. */
int shared_folder_make(struct instance *inst, struct err *e);
/* Switches to the folder that the settings name, and makes it. -1: unchanged. */
int shared_folder_use(struct instance *inst, const char *setting, struct err *e);

#endif
