/* What one job asks for: the plain value that every door (command line, jobs file, socket)
 * produces and that the scheduler reads. Zero-initialised with request_init's defaults. */
#ifndef BASE_REQUEST_H
#define BASE_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#define GPU_MAX          64 /* cards in one machine: one bit each in a set */
#define REQUEST_IDS_MAX  16 /* exact ids in one request */
#define PRIORITY_MIN     -1000
#define PRIORITY_MAX     1000
#define RETRIES_MAX      100
#define VRAM_MAX_MIB     (16 * 1024 * 1024)
#define GRACE_DEFAULT_MS 10000
#define GPU_TYPE_MAX     24      /* bytes of a GPU type, with its NUL */
#define ARRAY_MAX        1000000 /* tasks of one array; task numbers go to ARRAY_MAX - 1 */
#define DEPS_MAX         64      /* jobs that one job waits for */
#define TAGS_MAX         16
#define ENV_MAX_BYTES    131072 /* of a request's own variables */
#define REQUEUES_DEFAULT 3

/* Which of the cards with room. */
enum placing_rule {
    PLACING_DEFAULT, /* the ledger's */
    PLACING_PACK,    /* the fullest */
    PLACING_SPREAD,  /* the emptiest */
    PLACING_FIRST,   /* by number */
};
#define PLACING_RULES 4

/* Who executes it. */
enum job_engine {
    ENGINE_HERE,
    ENGINE_SLURM, /* the cluster that this machine submits to: daemon/slurm */
};

/* Whether what the job may have of a shared card's memory is enforced by the driver or the
 * kernel, not only counted. */
enum vram_cap {
    VRAM_CAP_DEFAULT, /* as the settings say */
    VRAM_CAP_AUTO,    /* where the card can */
    VRAM_CAP_REQUIRE, /* only on cards that can */
    VRAM_CAP_OFF,
};

/* Whether a job runs only on CPUs of the NUMA nodes that its cards are attached to. */
enum cpu_bind {
    CPU_BIND_DEFAULT, /* as the settings say */
    CPU_BIND_AUTO,    /* where it books cores, and they are free there */
    CPU_BIND_NODE,    /* also without cores, and also where others hold them */
    CPU_BIND_OFF,
};

/* What to ask for where runs have peaked at so much: a tenth more, rounded up. */
static inline int64_t
request_vram_for_peak_mib(int64_t peak_mib)
{
    return (peak_mib * 11 + 9) / 10;
}

/* What decides where a job can run. Two jobs with equal demands stand in one line, so this
 * must be comparable with memcmp: set it with demand_init (or memset 0) first. */
struct demand {
    uint64_t devices; /* any of these indices; 0: all */
    /* Whose job it is, plus 1, where a card may serve one user at a time; 0: nothing depends on
     * it. The queue says so (queue_tell_users_apart), not the user. */
    uint64_t user;
    int32_t gpus;           /* how many; 0: CPU only */
    int32_t vram_mib;       /* on each GPU; 0: not declared, wants each GPU whole and idle */
    int32_t cpus;           /* booked cores; 0: none */
    int32_t mem_mib;        /* booked host memory; 0: none */
    int32_t share_permille; /* of one GPU's compute, 1..1000; 0: none. With vram_mib 0 the same
                               part of the card's VRAM is meant */
    int32_t min_vram_mib;   /* only cards of at least this size; 0: any */
    int32_t max_used_permille; /* only while used memory is below; 0: not said */
    int32_t max_load_permille; /* only while utilisation is below; 0: not said */
    int32_t margin_mib;        /* kept free beside it; -1: the ledger's */
    int32_t idle_mib; /* a card counts as idle while strangers have less (for a share: what they
                         and other shares use beyond what was declared); 0: the ledger's */
    uint8_t exclusive; /* 1: no other Berth job beside it */
    uint8_t n_ids;     /* exact GPUs, in this order; 0: any */
    uint8_t ids[REQUEST_IDS_MAX];
    char gpu_type[GPU_TYPE_MAX]; /* the card's name contains it, any case; kept in lower case,
                                    filled with NULs; "": any */
    uint8_t placement;           /* enum placing_rule */
    uint8_t vram_cap;            /* enum vram_cap */
    uint8_t engine;              /* enum job_engine */
    uint8_t min_cc;   /* only cards of at least this compute capability, in tenths; 0: any */
    uint8_t cpu_bind; /* enum cpu_bind */
    uint8_t pack;     /* 1: with ENGINE_SLURM, beside others in an allocation */
};

/* What has said of which type the GPUs are to be. Another gpus takes back what one with a type
 * has said, and gpus=0 what a constraint has. */
enum type_origin { TYPE_BY_ITSELF, TYPE_WITH_GPUS, TYPE_BY_CONSTRAINT };

/* A job that must end before this one may start. */
enum dep_type {
    DEP_SUCCESS, /* it must have COMPLETED; else this one is CANCELLED */
    DEP_ANY,     /* it must have ended */
    DEP_FAILED,  /* it must have ended otherwise than COMPLETED; else this one is CANCELLED */
};

struct dep {
    enum dep_type type;
    uint32_t job;  /* 0: name says which, until the daemon has looked it up */
    int32_t task;  /* of that array; -1: the whole job */
    char *name;    /* owned; a job's name (the newest such job of the same user); NULL */
    uint8_t ended; /* 0; else the state in which it ended, as it has been met, or only the line
                      of its jobs file is remembered. Stored as met, one way or the other */
};

/* Numbers of an array's tasks: disjoint ranges, ascending, not touching. */
struct task_range {
    int32_t first, last; /* both included */
};
struct task_set {
    struct task_range *ranges; /* owned */
    int32_t n;
};

/* What happens to a job that uses more VRAM than it declared and is not held to that. */
enum on_exceed { ON_EXCEED_DEFAULT, ON_EXCEED_WARN, ON_EXCEED_KILL, ON_EXCEED_IGNORE };

enum on_timeout { ON_TIMEOUT_KILL, ON_TIMEOUT_REQUEUE };

/* --- who is notified of its start and end, and how: most requests have none --- */

/* When mail is sent; Slurm's words (spec/attr_hooks.c). */
#define MAIL_BEGIN       1U
#define MAIL_END         2U
#define MAIL_FAIL        4U
#define MAIL_REQUEUE     8U
#define MAIL_TIME_LIMIT  16U
#define MAIL_ARRAY_TASKS 32U /* of each task of an array, instead of the array as a whole */
#define MAIL_NONE        64U /* said to be never */

/* Its texts, all owned; NULL: none. Copying and freeing follow from this list. */
#define HOOK_TEXTS(X)                                                                          \
    X(on_start) /* shell text; and the next two */                                             \
    X(on_end)                                                                                  \
    X(on_fail)                                                                                 \
    X(webhook)   /* URL */                                                                     \
    X(mail_user) /* "alice,bob@example.org"; NULL: whose job it is */

struct hooks {
#define X(field) char *field;
    HOOK_TEXTS(X)
#undef X
    uint32_t mail_types; /* 0: not said */
};

void hooks_free(struct hooks *h); /* NULL is fine */
struct hooks *hooks_copy(const struct hooks *h);

/* When mail is sent: at the end, where only the address was given. */
uint32_t hooks_mail_types(const struct hooks *h);

/* --- the request --- */

/* The texts of a request, all owned; NULL: not said. The members, and copying, freeing and
 * counting them, follow from this list. */
#define REQUEST_TEXTS(X)                                                                       \
    X(command)    /* shell text for /bin/sh -c; NULL: argv is set */                           \
    X(name)       /* for tables and selectors */                                               \
    X(gpu_names)  /* gpu-ids by UUID, with commas, until the daemon has taken it in; then the  \
                     demand has as many numbers, which mean nothing yet */                     \
    X(llm)        /* the model of --llm in the command, when a table was asked */              \
    X(begin_said) /* begin_us as it was said, "16:00"; NULL: not known */                      \
    X(log)        /* where output goes, %j the job's id; NULL: the instance's place */         \
    X(error)      /* where standard error goes; NULL: where output goes */                     \
    X(comment)    /* for people */                                                             \
    X(chdir)      /* where it runs; NULL: where it was submitted. A client makes it absolute   \
                     before it sends it */                                                     \
    X(env_setup)  /* shell text, run in the shell that then runs the command; "": nothing, and \
                     no default either, until the daemon has taken it in */                    \
    X(conda) /* a conda environment's name or path, activated before env_setup; "" alike */    \
    X(container)    /* the image that it runs in; NULL: in none */                             \
    X(submitted_as) /* what Slurm's commands show in the place of the command: the script as   \
                       sbatch was given it, not the copy that runs; "": nothing */

/* The lists of texts in it, all owned and NULL-terminated; NULL: not said. */
#define REQUEST_LISTS(X)                                                                       \
    X(argv)                                                                                    \
    X(tags)                                                                                    \
    X(env)              /* "NAME=value", over the submitter's */                               \
    X(container_mounts) /* "SOURCE:DESTINATION[:ro]", in its container */

struct request {
    struct demand demand;
    int32_t priority;    /* higher first; 0 */
    int32_t oom_retries; /* attempts more after a CUDA OOM; -1: not said */
    int32_t retries;     /* attempts more after any failure; 0 */
    int32_t warn_signal; /* sent warn_ms before the limit; 0: none */
    int64_t limit_ms;    /* time limit of one attempt; 0: none */
    int64_t grace_ms;    /* between TERM and KILL; -1: not said, see request_grace_ms */
    bool hold;           /* enters the queue held */
    bool cancel;         /* a jobs-file word: stop it, or never start it */
    bool requeue; /* run again when it was lost (its supervisor died, the machine went down) */
    bool singleton; /* only while no other of the user's jobs with its name runs or is ahead */
    bool unique;    /* refuse it when the same is pending, running or completed */
    bool gpus_said; /* else the number of GPUs is a default (spec/attr.h) */
    bool gpus_shared;           /* a part of one was said as gpus=0.5, and is the share */
    enum type_origin type_from; /* which demand.gpu_type is */
    bool gpus_rounded;          /* a fraction above 1 was said, and rounded up */
    bool limit_bare;            /* limit_ms was said without a unit: seconds */
    bool preemptible;           /* gives way to jobs of higher priority, and runs again later */
    bool login;                 /* in the environment of a login */
    bool interactive;           /* clients can attach to it, and type */
    bool vram_auto;             /* demand.vram_mib is learned from runs of the same command */
    bool pty;                   /* on a terminal of its own; then it is interactive */
    bool screen;                /* shown in a GNU screen session, so on a terminal */
    enum on_timeout on_timeout; /* what the time limit does */
    enum on_exceed on_exceed;   /* what more VRAM than was declared does */
    int32_t max_requeues;       /* by the time limit; REQUEUES_DEFAULT */
    int32_t rows, columns;      /* of the terminal; 0: not known */
    int64_t warn_ms;
    int64_t begin_us;      /* not before this wall time; 0: at once */
    struct task_set array; /* n 0: not an array */
    int32_t array_max;     /* the most tasks that run at the same time; 0: no limit */
    int32_t n_deps;        /* of deps */
    struct dep *deps;      /* owned */
    struct hooks *hooks;   /* owned; notifications; NULL: none */
    int32_t log_max_mib;   /* of log and error each; 0: the settings alone bound it */
    bool truncate;         /* log and error are emptied before each attempt, not appended to */
    bool warn_batch;       /* the warning is for the command's own process alone (B:USR2@60) */
    bool slurm_env;        /* SLURM_* variables, and srun in its PATH */
#define X(field) char *field;
    REQUEST_TEXTS(X)
#undef X
#define X(field) char **field;
    REQUEST_LISTS(X)
#undef X
};

/* What request_init makes of one. */
extern const struct request request_standard;

void request_init(struct request *r);

/* In milliseconds, also of a request that no daemon has given its settings' grace. */
static inline int64_t
request_grace_ms(const struct request *r)
{
    return r->grace_ms < 0 ? GRACE_DEFAULT_MS : r->grace_ms;
}
/* How much text of unbounded length it keeps, in bytes. */
int64_t request_text_bytes(const struct request *r);
void request_free(struct request *r);                              /* what it owns; not r */
void request_copy(struct request *to, const struct request *from); /* to is overwritten */
void demand_init(struct demand *d);                                /* one whole GPU */
bool demand_is_whole(const struct demand *d); /* declares neither VRAM nor a share */

/* How many cards it wants. */
static inline int
demand_n_gpus(const struct demand *d)
{
    return d->n_ids ? d->n_ids : d->gpus;
}

/* Of this machine: what goes to Slurm takes nothing here, and keeps nobody waiting here. */
static inline int
demand_n_gpus_here(const struct demand *d)
{
    return d->engine == ENGINE_SLURM ? 0 : demand_n_gpus(d);
}

/* "0-3,7": every task number of the set, as value_tasks (spec) reads it. */
struct buf;
void task_set_text(const struct task_set *t, struct buf *out);
int64_t task_set_count(const struct task_set *t);
bool task_set_has(const struct task_set *t, int32_t task);
/* The least task of the set that lies in first..last; -1: none does. */
int32_t task_set_next(const struct task_set *t, int32_t first, int32_t last);
bool task_set_remove(struct task_set *t, int32_t task); /* false: it was not there */
bool task_set_add(struct task_set *t, int32_t task);    /* false: it was there already */
void task_set_copy(struct task_set *to, const struct task_set *from); /* to is overwritten */
void task_set_free(struct task_set *t);

#endif
