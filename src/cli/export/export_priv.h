/* Shared by the parts of `berth export`. */
#ifndef CLI_EXPORT_EXPORT_PRIV_H
#define CLI_EXPORT_EXPORT_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/request.h"
#include "slurm/sbatch_options.h"

struct buf;
struct client;
struct config;
struct err;

/* A pending job, or the tasks that are still part of a pending array. */
struct export_job {
    uint32_t id, array; /* array: the array that it left as a task; 0: none */
    int32_t task;
    char *user; /* owned */
    int umask_bits;
    int64_t environment; /* the daemon's id of it; 0: none */
    struct request req;  /* as the job is now: hold state and remaining tasks */
    bool must_wait;      /* depends on a job that runs here and is not exported */
    bool is_placed;      /* placed in the order (export_order.c) */
};

struct export_card {
    char *model; /* owned; the GPU's name, as written in gres.conf */
    char *name;  /* owned; its type in gres.conf */
    int64_t mib;
};

/* Properties of a job known from the list, before it is fetched. */
struct export_listed {
    uint32_t id;
    bool held;
};

/* A feature that Slurm lacks, and how many jobs use it. */
struct export_loss {
    char *text; /* owned */
    int jobs;
};

struct export_data {
    char key[17]; /* identifies this export: the jobs' comments begin with "berth:KEY.ID" */
    struct export_listed *listed; /* owned */
    size_t n_listed;
    struct export_job *jobs; /* owned; in order of submission */
    size_t n, cap;
    size_t n_active;           /* running jobs, which stay here */
    struct export_card *cards; /* owned */
    size_t n_cards;
    bool simulated; /* the GPUs are simulated */
    bool all_users; /* export all users' jobs, not only this user's */
    bool hold_here; /* hold jobs before they are exported */
    char **users;   /* owned, NULL-terminated; all users with jobs here */
    size_t n_users;
    struct export_loss *notes; /* owned */
    size_t n_notes, notes_cap;
};

/* Add a user or a note unless it is there already. */
void export_add_user(struct export_data *x, const char *name);
void export_note(struct export_data *x, const char *text);

/* export_fetch.c: lists the ids of pending jobs, in queue order. */
int export_list(struct client *c, struct export_data *x, struct err *e);
/* Fetches these jobs, after holding them if requested, and the GPUs. */
int export_fetch(struct client *c, struct export_data *x, struct err *e);
/* Appends the variables with which the job was submitted, each with its NUL. */
int export_fetch_environment(struct client *c, uint32_t job, struct buf *out, struct err *e);

/* export_order.c */
void export_put_in_order(struct export_data *x);
/* The next exported job after `from` (NULL: the first) that is, or has a part of, the job that
 * dep names. NULL: no more. */
const struct export_job *export_find_dep(const struct export_data *x, const struct dep *dep,
                                         const struct export_job *from);

/* export_script.c: appends the job's script; adds features that are lost to the notes. */
void export_script(struct export_data *x, const struct export_job *job,
                   const struct sbatch_site *site, struct buf *out);
/* export_submit.c: appends the program that submits them all. */
void export_submit_all(const struct export_data *x, struct buf *out);

/* Properties of the machine, for slurm.conf and for options of jobs. */
struct export_machine {
    const char *cluster; /* borrowed */
    char host[64];
    int64_t cpus, memory_mib;
    int32_t shard_mib; /* 0: no shards */
    char **types;      /* owned; types in gres.conf, NULL-terminated */
    int32_t *type_mib; /* owned; memory of each type */
};

/* export_machine.c */
int export_look_at_machine(const struct export_data *x, struct export_machine *m,
                           struct err *e);
void export_machine_free(struct export_machine *m);
void export_slurm_conf(const struct export_data *x, const struct export_machine *m,
                       const struct config *config, struct buf *out);
void export_gres_conf(const struct export_data *x, const struct export_machine *m,
                      struct buf *out);

/* export_accounts.c: appends a script of sacctmgr commands. */
void export_accounts(const struct export_data *x, const struct config *config, struct buf *out);

/* export_history.c: appends jobs that ended since then (0: all), as `sacct -P` prints them. */
int export_history(struct client *c, struct export_data *x, int64_t since_us, struct buf *out,
                   struct err *e);

#endif
