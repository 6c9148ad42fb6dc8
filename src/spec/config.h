/* The settings of an instance. One table (config.c) gives each a key, a type, a range, a
 * default and one line of help; reading, checking, the sample and the manual are made from it.
 * Text in, text out: the callers read and write files. Pure. */
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

/* One user's limits, from the settings' map `users`. -1: the limit that all users have. */
struct config_user {
    char *name;    /* owned */
    double weight; /* in fair share; default: 1 */
    int64_t max_running, max_gpus, max_vram_mib, max_pending;
};

struct config {
    int64_t margin_mib;         /* kept free on a GPU in addition to every request */
    int64_t idle_threshold_mib; /* a GPU is idle while other processes use less than this */
    double spike_buffer;        /* added to measured peaks, as a fraction */
    double tolerance;           /* fraction by which measured VRAM may differ from declared */
    int placement;              /* enum config_placement */
    int64_t sample_ms;          /* between samples while jobs run */
    int64_t idle_sample_ms;     /* the same while no job runs */
    int64_t probe_deadline_ms;  /* a probe silent for this long is replaced */
    int64_t mig_wait_ms;        /* how long a removed MIG instance may take to come back */
    int64_t vram_wait_ms;       /* longest wait for an ended job's VRAM to be freed */
    int64_t grace_ms;           /* between TERM and KILL, for jobs that set none */
    int64_t idle_exit_s;        /* idle time after which a `berth run` daemon exits; 0: no */
    char **oom_patterns;        /* owned, NULL-terminated; lower case */
    int64_t oom_retries;        /* for jobs that set none */
    int gpu_env;                /* enum config_gpu_env */
    int on_exceed;              /* enum config_on_exceed */
    char *mps;                  /* owned; the GPUs with MPS (value.h) */
    char *on_exceed_gpus;       /* owned; other rules for some GPUs (value.h) */
    int vram_cap;               /* enum config_vram_cap */
    int cpu_bind;               /* enum config_cpu_bind */
    int64_t pending_max;        /* pending jobs at any time */
    int64_t keep_days;          /* age at which ended jobs are deleted; 0: never */
    int64_t keep_jobs;          /* number of ended jobs to keep, the newest; 0: all */
    int64_t keep_mib;    /* database size above which ended jobs are deleted; 0: any size */
    int64_t keep_events; /* number of events to keep; 0: all */
    char *on_start, *on_end, *on_fail; /* owned; commands run for every job; "": none */
    char *webhook;        /* owned; URL to which job starts and ends are posted; "": none */
    char *hook_user;      /* owned; account that runs the four above; "": the default one */
    char *sendmail;       /* owned; path of the program; "": search the usual places */
    int64_t hook_limit_s; /* per hook, post or mail */
    int log_level;        /* enum log_level */
    int log_format;       /* enum log_format */
    int64_t log_max_mib;  /* size at which the daemon's log is rotated; 0: never */
    int64_t log_keep;     /* number of rotated logs to keep */
    int order;            /* enum config_order */
    int64_t reservations; /* firm starts at a time; -1: one, or none under `short` */
    int64_t reservation_horizon_s; /* a start this near becomes firm; 0: any; -1: automatic */
    int64_t patience_s;            /* a job passed for longer than this gets GPUs reserved */
    int64_t aging_s;               /* waiting time that adds 1 to the priority; 0: never */
    int fair_share;                /* 0 off, 1 on */
    int64_t fair_half_life_s;      /* half-life of recent use; 0: it does not decay */
    int64_t max_running, max_gpus, max_vram_mib; /* all users together; 0: no limit */
    int64_t user_max_running, user_max_gpus, user_max_vram_mib,
        user_max_pending;      /* each user */
    int64_t time_max_s;        /* the longest time limit a job may request; 0: any */
    int64_t time_default_s;    /* for jobs that request none; 0: none */
    char *env_setup;           /* owned; for jobs without a set-up of their own; "": none */
    char *conda;               /* owned; likewise the conda environment */
    struct config_user *users; /* owned */
    size_t n_users;
    char *slurm_commands; /* owned; the folder of sbatch, squeue and scancel; "": in PATH */
    char *slurm_folder;   /* owned; shared with the nodes of jobs on Slurm; "": the state */
    char *slurm_partition, *slurm_account, *slurm_qos; /* owned; "": Slurm's own default */
    char *slurm_options;       /* owned; further options for sbatch, separated by blanks */
    int64_t slurm_shard_mib;   /* VRAM per shard; 0: request whole GPUs only */
    int64_t slurm_max_jobs;    /* jobs given to Slurm at the same time */
    int64_t slurm_array_max;   /* the most tasks sent as one array */
    int container_runtime;     /* enum config_container */
    int64_t slurm_pack_mib;    /* jobs of at most this VRAM are packed; 0: only with --pack */
    int64_t slurm_allocations; /* for packed jobs, at the same time */
    int64_t slurm_allocation_gpus;    /* per allocation, on one node */
    int64_t slurm_allocation_cpus;    /* 0: Slurm's default */
    int64_t slurm_allocation_mem_mib; /* 0: the same */
    int64_t slurm_allocation_s;       /* its time limit */
    int64_t slurm_allocation_idle_s;  /* idle time after which an allocation is given back */
    int64_t slurm_gpu_mib; /* memory of each GPU where nodes cannot tell; 0: unknown */
    char *models;          /* owned; absolute path of the model table; "": none */
    /* For a daemon that serves all users of the machine: */
    char *admin_group;         /* owned; its members are admins; "": only root is */
    int private;               /* enum config_private */
    char *pam_service;         /* owned; checked before each start; "": PAM is not used */
    int locked_accounts;       /* enum config_locked */
    int no_new_privs;          /* enum config_no_new_privs */
    char *drop_capabilities;   /* owned; capabilities (capabilities.h) that no job can get */
    int device_filter;         /* enum config_device_filter */
    int64_t job_max_processes; /* processes and threads per job, if cgroups can limit them */
    int64_t job_log_max_mib;   /* largest log of a job; 0: any size */
    int64_t log_reserve_mib;   /* left free by logs on the disk of the state; 0: none */
    int64_t request_max_mib;   /* per request of a user */
    int64_t answer_max_mib;    /* per answer to such a request */
    int64_t job_max_text_kib;  /* per user's job: limit of command, and of environment */
    int64_t user_max_connections;
    int64_t user_max_buffer_mib; /* memory of one user's requests and unread answers */
    int64_t grace_max_ms;        /* longest grace that users other than admins may request */
    int64_t user_priority_max;   /* highest priority of users other than admins */
};

void config_init(struct config *c); /* sets the defaults */
void config_free(struct config *c); /* frees the contents, not c */

/* Applies the keys of a YAML (or JSON) text to *c. Unknown or duplicate keys and values of the
 * wrong type or out of range: ERR_USAGE with "NAME:LINE: ...", and *c is unchanged. all, if
 * not NULL, receives every error, one per line (the first is in e too). */
int config_read(struct config *c, const char *name, const char *text, size_t len,
                struct buf *all, struct err *e);

/* Moves the settings that `may` allows from fresh into c; the caller still frees fresh. Calls
 * `differs` for each setting that changed, with whether it was taken. */
void config_take(struct config *c, struct config *fresh, bool (*may)(const char *key),
                 void (*differs)(void *arg, const char *key, bool taken), void *arg);

/* Sets one setting from the environment or an option. Lists are comma-separated. */
int config_set(struct config *c, const char *key, const char *value, struct err *e);

/* Appends every key with its help, range and default, in a form that config_read accepts. */
void config_sample(struct buf *out);

/* Appends every key with its present value, in a form that config_read accepts. */
void config_show(const struct config *c, struct buf *out);
/* The same as one JSON object. */
void config_show_json(const struct config *c, struct buf *out);

#endif
