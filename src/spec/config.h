/* The settings of an instance: each has a key, a type, a range, a default and one line of
 * help in one table (config.c), from which reading, checking, the sample and the manual are
 * made. Text in, text out; the callers read and write files. Pure. */
#ifndef SPEC_CONFIG_H
#define SPEC_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;

enum config_placement { PLACEMENT_PACK, PLACEMENT_SPREAD };
enum config_gpu_env { GPU_ENV_INDEX, GPU_ENV_UUID };
enum config_on_exceed { CONFIG_EXCEED_WARN, CONFIG_EXCEED_KILL, CONFIG_EXCEED_IGNORE };
enum config_cpu_bind { CONFIG_BIND_AUTO, CONFIG_BIND_NODE, CONFIG_BIND_OFF };
enum config_vram_cap { CONFIG_CAP_AUTO, CONFIG_CAP_REQUIRE, CONFIG_CAP_OFF };
enum config_container { RUNTIME_AUTO, RUNTIME_PODMAN, RUNTIME_APPTAINER };
enum config_order { ORDER_BY_QUEUE, ORDER_BY_SHORT, ORDER_BY_LONGEST, ORDER_BY_BALANCED };

enum config_private { PRIVATE_OFF, PRIVATE_ON };
enum config_locked { LOCKED_REFUSE, LOCKED_RUN };
enum config_no_new_privs { NO_NEW_PRIVS_OFF, NO_NEW_PRIVS_ON };
enum config_device_filter { DEVICE_FILTER_OFF, DEVICE_FILTER_ON, DEVICE_FILTER_AUTO };

/* What one user may have, in the settings' map `users`. -1: as for every user. */
struct config_user {
    char *name;    /* owned */
    double weight; /* of the user's fair share; 1 */
    int64_t max_running, max_gpus, max_vram_mib, max_pending;
};

struct config {
    int64_t margin_mib;         /* kept free on a card on top of every demand */
    int64_t idle_threshold_mib; /* strangers' use below which a card counts as idle */
    double spike_buffer;        /* on top of observed peaks, as a fraction */
    double tolerance;           /* declared against measured, as a fraction */
    int placement;              /* enum config_placement */
    int64_t sample_ms;          /* between samples while jobs run */
    int64_t idle_sample_ms;     /* and while none do */
    int64_t probe_deadline_ms;  /* a probe silent for so long is replaced */
    int64_t mig_wait_ms;        /* a MIG instance that was removed may come back so long */
    int64_t vram_wait_ms;       /* at most, for an ended job's VRAM to come back */
    int64_t grace_ms;           /* between TERM and KILL, for jobs that do not say */
    int64_t idle_exit_s;        /* a daemon that `berth run` started leaves; 0: never */
    char **oom_patterns;        /* owned, NULL-terminated; lower case */
    int64_t oom_retries;        /* for jobs that do not say */
    int gpu_env;                /* enum config_gpu_env */
    int on_exceed;              /* enum config_on_exceed */
    char *mps;                  /* owned; the GPUs that have it (value.h) */
    char *on_exceed_gpus;       /* owned; other rules for some GPUs (value.h) */
    int vram_cap;               /* enum config_vram_cap */
    int cpu_bind;               /* enum config_cpu_bind */
    int64_t pending_max;        /* pending jobs at any time */
    int64_t keep_days;          /* ended jobs; 0: for ever */
    int64_t keep_jobs;          /* how many numbers back; 0: all */
    int64_t keep_mib;           /* of the database, before ended jobs go; 0: any size */
    int64_t keep_events;        /* 0: all */
    char *on_start, *on_end, *on_fail; /* owned; commands run for every job; "": none */
    char *webhook;        /* owned; where starts and ends are posted; "": nowhere */
    char *hook_user;      /* owned; the account that runs these four; "": the standard one */
    char *sendmail;       /* owned; the program; "": in the usual places */
    int64_t hook_limit_s; /* for each of these */
    int log_level;        /* enum log_level */
    int log_format;       /* enum log_format */
    int64_t log_max_mib; /* the daemon's log is put aside when it has grown to this; 0: never */
    int64_t log_keep;    /* number of rotated logs to keep */
    int order;           /* enum config_order */
    int64_t reservations;          /* firm starts at a time */
    int64_t reservation_horizon_s; /* how near a firm start is; 0: any; -1: as suits */
    int64_t patience_s;            /* passed over for longer: GPUs are pinned */
    int64_t aging_s;               /* waiting adds one to the priority each time; 0: never */
    int fair_share;                /* 0 off, 1 on */
    int64_t fair_half_life_s;      /* in which recent use halves; 0: never */
    int64_t max_running, max_gpus, max_vram_mib; /* all together; 0: no limit */
    int64_t user_max_running, user_max_gpus, user_max_vram_mib,
        user_max_pending;      /* each user */
    int64_t time_max_s;        /* the longest time limit a job may ask for; 0: any */
    int64_t time_default_s;    /* for jobs that name none; 0: none */
    char *env_setup;           /* owned; for jobs that say nothing of a set-up; "": none */
    char *conda;               /* the same of a conda environment */
    struct config_user *users; /* owned */
    size_t n_users;
    char *slurm_commands; /* owned; the folder of sbatch and the others; "": in PATH */
    char *slurm_folder;   /* owned; what jobs there share with their nodes; "": the state */
    char *slurm_partition, *slurm_account, *slurm_qos; /* owned; "": Slurm's own default */
    char *slurm_options;     /* owned; more for sbatch, with blanks between them */
    int64_t slurm_shard_mib; /* of VRAM for which one shard stands; 0: whole GPUs only */
    int64_t slurm_max_jobs;  /* in Slurm's hands at the same time */
    int64_t slurm_array_max; /* tasks of one array that is sent */
    int container_runtime;   /* enum config_container */
    int64_t slurm_pack_mib;  /* jobs with so much VRAM at most are packed; 0: those that ask */
    int64_t slurm_allocations;        /* for packed jobs, at the same time */
    int64_t slurm_allocation_gpus;    /* of each */
    int64_t slurm_allocation_cpus;    /* 0: Slurm's default */
    int64_t slurm_allocation_mem_mib; /* 0: the same */
    int64_t slurm_allocation_s;       /* its time limit */
    int64_t slurm_allocation_idle_s;  /* without a job, before it is given back */
    int64_t slurm_gpu_mib;            /* of each GPU, where nodes cannot tell; 0: not known */
    char *models;                     /* owned; absolute path of the model table; "": none */
    /* Of a daemon that serves all users of the machine: */
    char *admin_group;         /* owned; its members are admins; "": root alone is */
    int private;               /* enum config_private */
    char *pam_service;         /* owned; asked before each start; "": PAM is not */
    int locked_accounts;       /* enum config_locked */
    int no_new_privs;          /* enum config_no_new_privs */
    char *drop_capabilities;   /* owned; names (capabilities.h) that no job can get */
    int device_filter;         /* enum config_device_filter */
    int64_t job_max_processes; /* and threads of one job, where cgroups can bound them */
    int64_t job_log_max_mib;   /* of a job's log; 0: any */
    int64_t log_reserve_mib;   /* that logs leave free on the disk of the state; 0: none */
    int64_t request_max_mib;   /* of a user's request */
    int64_t answer_max_mib;    /* of an answer to one */
    int64_t job_max_text_kib;  /* of a user's job: its command; its environment */
    int64_t user_max_connections;
    int64_t user_max_buffer_mib; /* that one user's requests and unread answers take */
    int64_t grace_max_ms;      /* the longest grace that users who are no admins may ask for */
    int64_t user_priority_max; /* the highest priority of users who are no admins */
};

void config_init(struct config *c); /* the defaults */
void config_free(struct config *c); /* what it owns; not c */

/* Lays the keys of a YAML (or JSON) text over *c. Unknown keys, values of the wrong type or
 * out of range, keys said twice: ERR_USAGE with "NAME:LINE: ..." and *c untouched. all: every
 * error on a line of its own (the first is in e too); may be NULL. */
int config_read(struct config *c, const char *name, const char *text, size_t len,
                struct buf *all, struct err *e);

/* Takes over from fresh, which is still to be freed, those settings that `may` allows;
 * `differs` is called for each that is not what it was, with whether it was taken. */
void config_take(struct config *c, struct config *fresh, bool (*may)(const char *key),
                 void (*differs)(void *arg, const char *key, bool taken), void *arg);

/* One setting from the environment or an option. A list is separated by commas. */
int config_set(struct config *c, const char *key, const char *value, struct err *e);

/* Every key with its help, range and default, as a file that config_read accepts. */
void config_sample(struct buf *out);

/* Every key with its present value, as a file that config_read accepts. */
void config_show(const struct config *c, struct buf *out);
/* The same as one JSON object. */
void config_show_json(const struct config *c, struct buf *out);

#endif
