/* What the parts of `berth export` hand each other. */
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

/* A pending job, or those tasks of an array that are still part of it. */
struct export_job {
    uint32_t id, array; /* array: the one that it left as a task; 0: none */
    int32_t task;
    char *user; /* owned */
    int umask_bits;
    int64_t environment; /* the daemon's number for it; 0: none */
    struct request req;  /* as the job is now: held or not, the tasks that are left */
    bool must_wait;      /* for what runs here and is not exported */
    bool is_placed;      /* in the order (export_order.c) */
};

struct export_card {
    char *model; /* owned; its name, in the letters of gres.conf */
    char *name;  /* owned; its type there */
    int64_t mib;
};

/* What is known of a job before it is looked at. */
struct export_listed {
    uint32_t id;
    bool held;
};

/* What Slurm cannot do, and how many jobs want it. */
struct export_loss {
    char *text; /* owned */
    int jobs;
};

struct export_data {
    char key[17]; /* of this export: the jobs' comments begin with "berth:KEY.ID" */
    struct export_listed *listed; /* owned */
    size_t n_listed;
    struct export_job *jobs; /* owned; in the order in which they are submitted */
    size_t n, cap;
    size_t n_active;           /* jobs that run and stay */
    struct export_card *cards; /* owned */
    size_t n_cards;
    bool simulated; /* the cards */
    bool all_users; /* not only this user's */
    bool hold_here; /* jobs are held before they are exported */
    char **users;   /* owned, NULL-terminated; all that have jobs here */
    size_t n_users;
    struct export_loss *notes; /* owned */
    size_t n_notes, notes_cap;
};

/* Once each. */
void export_add_user(struct export_data *x, const char *name);
void export_note(struct export_data *x, const char *text);

/* export_fetch.c: the numbers of the jobs that wait, in the order of the queue. */
int export_list(struct client *c, struct export_data *x, struct err *e);
/* These jobs, held first if that is asked for, and the cards. */
int export_fetch(struct client *c, struct export_data *x, struct err *e);
/* The variables with which the job was submitted, each with a NUL behind it. */
int export_fetch_environment(struct client *c, uint32_t job, struct buf *out, struct err *e);

/* export_order.c */
void export_put_in_order(struct export_data *x);
/* An exported job that is, or has a part of, the one that dep names: the next after `from`
 * (NULL: the first). NULL: no more. */
const struct export_job *export_find_dep(const struct export_data *x, const struct dep *dep,
                                         const struct export_job *from);

/* export_script.c: the text of the job's script; what is lost goes to the notes. */
void export_script(struct export_data *x, const struct export_job *job,
                   const struct sbatch_site *site, struct buf *out);
/* export_submit.c: the program that submits them all. */
void export_submit_all(const struct export_data *x, struct buf *out);

/* What the machine has, for slurm.conf and for the options of jobs. */
struct export_machine {
    const char *cluster; /* borrowed */
    char host[64];
    int64_t cpus, memory_mib;
    int32_t shard_mib; /* 0: no shards */
    char **types;      /* owned; of gres.conf, NULL-terminated */
    int32_t *type_mib; /* owned; the memory of each */
};

/* export_machine.c */
int export_look_at_machine(const struct export_data *x, struct export_machine *m,
                           struct err *e);
void export_machine_free(struct export_machine *m);
void export_slurm_conf(const struct export_data *x, const struct export_machine *m,
                       const struct config *config, struct buf *out);
void export_gres_conf(const struct export_data *x, const struct export_machine *m,
                      struct buf *out);

/* export_accounts.c: a script of sacctmgr commands. */
void export_accounts(const struct export_data *x, const struct config *config, struct buf *out);

/* export_history.c: ended jobs since then (0: all), as `sacct -P` prints them. */
int export_history(struct client *c, struct export_data *x, int64_t since_us, struct buf *out,
                   struct err *e);

#endif
