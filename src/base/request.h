/* What one job asks for: the plain value that every entry point (command line, jobs file,
 * socket) produces and the scheduler reads. Initialise with request_init. */
#ifndef BASE_REQUEST_H
#define BASE_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#define GPU_MAX          64 /* GPUs in one machine: one bit each in a set */
#define REQUEST_IDS_MAX  16 /* exact ids in one request */
#define PRIORITY_MIN     -1000
#define PRIORITY_MAX     1000
#define RETRIES_MAX      100
#define VRAM_MAX_MIB     (16 * 1024 * 1024)
#define GRACE_DEFAULT_MS 10000
#define GPU_TYPE_MAX     24      /* size of a GPU type, with its NUL */
#define ARRAY_MAX        1000000 /* tasks of one array; task numbers end at ARRAY_MAX - 1 */
#define DEPS_MAX         64      /* dependencies of one job */
#define TAGS_MAX         16
#define ENV_MAX_BYTES    131072 /* of a request's own environment variables */
#define REQUEUES_DEFAULT 3

/* Which GPU to choose among those with room. */
enum placing_rule {
    PLACING_DEFAULT, /* the ledger's rule */
    PLACING_PACK,    /* the fullest GPU */
    PLACING_SPREAD,  /* the emptiest GPU */
    PLACING_FIRST,   /* the lowest index */
};
#define PLACING_RULES 4

/* What runs the job. */
enum job_engine {
    ENGINE_HERE,
    ENGINE_SLURM, /* the cluster to which this machine submits: daemon/slurm */
};

/* Whether the driver or the kernel enforces a job's share of a GPU's memory, instead of the
 * scheduler only accounting for it. */
enum vram_cap {
    VRAM_CAP_DEFAULT, /* as the settings say */
    VRAM_CAP_AUTO,    /* where the GPU supports it */
    VRAM_CAP_REQUIRE, /* only GPUs that support it */
    VRAM_CAP_OFF,
};

/* Whether a job runs only on the CPUs of its GPUs' NUMA nodes. */
enum cpu_bind {
    CPU_BIND_DEFAULT, /* as the settings say */
    CPU_BIND_AUTO,    /* if it books cores and they are free there */
    CPU_BIND_NODE,    /* even without booked cores, or if other jobs hold those cores */
    CPU_BIND_OFF,
};

/* The VRAM to request for runs that peaked at this much: 10 % more, rounded up. */
static inline int64_t
request_vram_for_peak_mib(int64_t peak_mib)
{
    return (peak_mib * 11 + 9) / 10;
}

/* Everything that decides where a job can run. Jobs with equal demands are scheduled as one
 * line, so demands must be comparable with memcmp: initialise with demand_init (or memset
 * 0). */
struct demand {
    uint64_t devices; /* bit set of allowed indices; 0: all */
    /* The job's uid plus 1 if a GPU may serve only one user at a time; 0: does not matter. Set
     * by the queue (queue_tell_users_apart), not by the user. */
    uint64_t user;
    int32_t gpus;              /* number of GPUs; 0: CPU only */
    int32_t vram_mib;          /* on each GPU; 0: not declared, needs each GPU whole and idle */
    int32_t cpus;              /* booked cores; 0: none */
    int32_t mem_mib;           /* booked host memory; 0: none */
    int32_t share_permille;    /* of one GPU's compute, 1..1000; 0: none. With vram_mib 0, also
                                  the fraction of the GPU's VRAM */
    int32_t min_vram_mib;      /* only GPUs of at least this size; 0: any */
    int32_t max_used_permille; /* only GPUs with less memory in use; 0: not set */
    int32_t max_load_permille; /* only GPUs with lower utilisation; 0: not set */
    int32_t margin_mib;        /* to keep free besides it; -1: the ledger's */
    int32_t idle_mib;  /* a GPU is idle while foreign processes use less (for a share: foreign
                          processes, and the undeclared use of other shares); 0: the ledger's */
    uint8_t exclusive; /* 1: no other Berth job on its GPUs */
    uint8_t n_ids;     /* number of exact GPUs, in this order; 0: any */
    uint8_t ids[REQUEST_IDS_MAX];
    char gpu_type[GPU_TYPE_MAX]; /* substring of the GPU's name, ignoring case; stored in lower
                                    case, padded with NULs; "": any */
    uint8_t placement;           /* enum placing_rule */
    uint8_t vram_cap;            /* enum vram_cap */
    uint8_t engine;              /* enum job_engine */
    uint8_t min_cc;              /* minimum compute capability, in tenths; 0: any */
    uint8_t cpu_bind;            /* enum cpu_bind */
    uint8_t pack; /* 1: with ENGINE_SLURM, shares an allocation with other jobs */
};

/* Which attribute set gpu_type. A later gpus replaces a type that came with gpus, and gpus=0
 * one that came from a constraint. */
enum type_origin { TYPE_BY_ITSELF, TYPE_WITH_GPUS, TYPE_BY_CONSTRAINT };

/* A dependency: a job that must end before this one may start. */
enum dep_type {
    DEP_SUCCESS, /* the job must be COMPLETED; else this one is CANCELLED */
    DEP_ANY,     /* the job must have ended */
    DEP_FAILED,  /* the job must have ended but not COMPLETED; else this one is CANCELLED */
};

struct dep {
    enum dep_type type;
    uint32_t job;  /* 0: given by name, until the daemon has looked it up */
    int32_t task;  /* task of that array; -1: the whole job */
    char *name;    /* owned; name of the user's newest such job; NULL: given by id */
    uint8_t ended; /* 0; else the job's final state, set once the dependency is met, or if the
                      job is known only from its line in a jobs file. Stored only as met */
};

/* A set of task numbers: disjoint ranges, ascending, not adjacent. */
struct task_range {
    int32_t first, last; /* both included */
};
struct task_set {
    struct task_range *ranges; /* owned */
    int32_t n;
};

/* What happens to a job that uses more VRAM than it declared, without an enforced cap. */
enum on_exceed { ON_EXCEED_DEFAULT, ON_EXCEED_WARN, ON_EXCEED_KILL, ON_EXCEED_IGNORE };

enum on_timeout { ON_TIMEOUT_KILL, ON_TIMEOUT_REQUEUE };

/* --- notifications of start and end: most requests have none --- */

/* When mail is sent; named as in Slurm (spec/attr_hooks.c). */
#define MAIL_BEGIN       1U
#define MAIL_END         2U
#define MAIL_FAIL        4U
#define MAIL_REQUEUE     8U
#define MAIL_TIME_LIMIT  16U
#define MAIL_ARRAY_TASKS 32U /* one per array task, instead of one for the array */
#define MAIL_NONE        64U /* explicitly never */

/* The texts, all owned; NULL: not set. Copying and freeing follow from this list. */
#define HOOK_TEXTS(X)                                                                          \
    X(on_start) /* shell text, like the next two */                                            \
    X(on_end)                                                                                  \
    X(on_fail)                                                                                 \
    X(webhook)   /* URL */                                                                     \
    X(mail_user) /* "alice,bob@example.org"; NULL: the job's owner */

struct hooks {
#define X(field) char *field;
    HOOK_TEXTS(X)
#undef X
    uint32_t mail_types; /* 0: not set */
};

void hooks_free(struct hooks *h); /* NULL is fine */
struct hooks *hooks_copy(const struct hooks *h);

/* When mail is sent; at the end, if only an address was given. */
uint32_t hooks_mail_types(const struct hooks *h);

/* --- the request --- */

/* The texts of a request, all owned; NULL: not set. The members, and copying, freeing and
 * counting them, follow from this list. */
#define REQUEST_TEXTS(X)                                                                       \
    X(command)      /* shell text for /bin/sh -c; NULL: argv is set */                         \
    X(name)         /* shown in tables, used in selectors */                                   \
    X(gpu_names)    /* gpu-ids given by UUID, comma-separated; until the daemon                \
                       resolves them, demand has as many placeholder ids */                    \
    X(llm)          /* model of --llm in the command, if a table was consulted */              \
    X(begin_said)   /* begin_us as written, "16:00"; NULL: not known */                        \
    X(log)          /* path of the log, %j: job id; NULL: the instance's default */            \
    X(error)        /* path for standard error; NULL: same as log */                           \
    X(comment)      /* free text for people */                                                 \
    X(chdir)        /* working folder; NULL: where it was submitted. A client makes it         \
                       absolute before it sends it */                                          \
    X(env_setup)    /* shell text, run first in the shell that runs the command; "":           \
                       nothing, not even the default, until the daemon has taken it in */      \
    X(conda)        /* conda environment to activate before env_setup; "" as above */          \
    X(container)    /* container image; NULL: none */                                          \
    X(submitted_as) /* what Slurm's commands show as the command: the script passed            \
                       to sbatch, not the copy that runs; "": nothing */

/* The lists of texts, all owned and NULL-terminated; NULL: not set. */
#define REQUEST_LISTS(X)                                                                       \
    X(argv)                                                                                    \
    X(tags)                                                                                    \
    X(env)              /* "NAME=value", overrides the submitter's */                          \
    X(container_mounts) /* "SOURCE:DESTINATION[:ro]", in its container */

struct request {
    struct demand demand;
    int32_t priority;    /* higher runs first; default 0 */
    int32_t oom_retries; /* extra attempts after a CUDA OOM; -1: not set */
    int32_t retries;     /* extra attempts after any failure; default 0 */
    int32_t warn_signal; /* sent warn_ms before the limit; 0: none */
    int64_t limit_ms;    /* per attempt; 0: none */
    int64_t grace_ms;    /* between TERM and KILL; -1: not set, see request_grace_ms */
    bool hold;           /* enters the queue held */
    bool cancel;         /* only in jobs files: stop the job, or never start it */
    bool requeue;        /* run again if lost (its supervisor died or the machine went down) */
    bool singleton;   /* wait until no other job of the user with this name runs or is ahead */
    bool unique;      /* refuse it if an equal job is pending, running or completed */
    bool gpus_said;   /* else the number of GPUs is a default (spec/attr.h) */
    bool gpus_shared; /* a fraction was given as gpus=0.5, and is the share */
    enum type_origin type_from; /* origin of demand.gpu_type */
    bool gpus_rounded;          /* a fraction above 1 was given, and rounded up */
    bool limit_bare;            /* limit_ms was given without a unit: seconds */
    bool preemptible;           /* may be stopped for a higher priority; runs again later */
    bool login;                 /* run in a login environment */
    bool interactive;           /* clients can attach and type */
    bool vram_auto;             /* learn demand.vram_mib from runs of the same command */
    bool pty;                   /* run on its own terminal; implies interactive */
    bool screen;                /* shown in a GNU screen session; implies a terminal */
    enum on_timeout on_timeout; /* action at the time limit */
    enum on_exceed on_exceed;   /* action if the job exceeds its declared VRAM */
    int32_t max_requeues;       /* after the time limit; REQUEUES_DEFAULT */
    int32_t rows, columns;      /* of the terminal; 0: not known */
    int64_t warn_ms;
    int64_t begin_us;      /* earliest start, wall time; 0: at once */
    struct task_set array; /* n 0: not an array */
    int32_t array_max;     /* upper bound on tasks running at the same time; 0: none */
    int32_t n_deps;        /* of deps */
    struct dep *deps;      /* owned */
    struct hooks *hooks;   /* owned; notifications; NULL: none */
    int32_t log_max_mib;   /* of log and error each; 0: only the settings limit it */
    bool truncate;         /* empty log and error before each attempt */
    bool warn_batch;       /* send the warning only to the command's own process (B:USR2@60) */
    bool slurm_env;        /* set SLURM_* variables, and put srun in PATH */
#define X(field) char *field;
    REQUEST_TEXTS(X)
#undef X
#define X(field) char **field;
    REQUEST_LISTS(X)
#undef X
};

/* The defaults that request_init sets. */
extern const struct request request_standard;

void request_init(struct request *r);

/* The grace in milliseconds, with a default for a request that no daemon has filled in yet. */
static inline int64_t
request_grace_ms(const struct request *r)
{
    return r->grace_ms < 0 ? GRACE_DEFAULT_MS : r->grace_ms;
}
/* Size in bytes of its texts of unbounded length. */
int64_t request_text_bytes(const struct request *r);
void request_free(struct request *r);                              /* what r owns, not r */
void request_copy(struct request *to, const struct request *from); /* to is overwritten */
void demand_init(struct demand *d);                                /* one whole GPU */
bool demand_is_whole(const struct demand *d); /* declares neither VRAM nor a share */

/* Number of GPUs wanted. */
static inline int
demand_n_gpus(const struct demand *d)
{
    return d->n_ids ? d->n_ids : d->gpus;
}

/* Number of this machine's GPUs wanted: a job for Slurm takes none, and delays no job here. */
static inline int
demand_n_gpus_here(const struct demand *d)
{
    return d->engine == ENGINE_SLURM ? 0 : demand_n_gpus(d);
}

/* Appends "0-3,7": the set's task numbers, as value_tasks (spec) reads them. */
struct buf;
void task_set_text(const struct task_set *t, struct buf *out);
int64_t task_set_count(const struct task_set *t);
bool task_set_has(const struct task_set *t, int32_t task);
/* The lowest task of the set in first..last; -1: none. */
int32_t task_set_next(const struct task_set *t, int32_t first, int32_t last);
bool task_set_remove(struct task_set *t, int32_t task); /* false: not in the set */
bool task_set_add(struct task_set *t, int32_t task);    /* false: already in the set */
void task_set_copy(struct task_set *to, const struct task_set *from); /* to is overwritten */
void task_set_free(struct task_set *t);

#endif
