/* A job: its request, its state and its results. Jobs live in one table (queue.h) and are
 * named by id everywhere else. Only job_apply, the table of state x event, changes a job's
 * state. Pure: no clock, no I/O. */
#ifndef CORE_QUEUE_JOB_H
#define CORE_QUEUE_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/request.h"

struct buf;

enum job_state {
    JOB_PENDING,
    JOB_HELD,
    JOB_STARTING, /* decided and durable; the command is not yet known to run */
    JOB_RUNNING,
    JOB_SUSPENDED,
    JOB_COMPLETING, /* its processes are gone; its VRAM is not yet known to be free */
    JOB_COMPLETED,
    JOB_FAILED,
    JOB_CANCELLED,
    JOB_TIMEOUT,
    JOB_OUT_OF_MEMORY,
    JOB_PREEMPTED,
    JOB_INFEASIBLE,
    JOB_LOST,
};
#define JOB_STATES (JOB_LOST + 1)

/* Result of looking up a job in the store of all jobs, past and present. */
struct found_job {
    uint32_t id; /* 0: there is none */
    enum job_state state;
};

/* How an attempt ended, as its supervisor (or the daemon, for LOST) saw it. */
enum outcome {
    OUTCOME_NONE,        /* has not ended */
    OUTCOME_EXITED,      /* see code */
    OUTCOME_SIGNALED,    /* see signal */
    OUTCOME_TIMEOUT,     /* reached its time limit */
    OUTCOME_CANCELLED,   /* stopped on request */
    OUTCOME_NOT_STARTED, /* the command could not be executed: see errno_value and text */
    OUTCOME_LOST,        /* no exit record: supervisor vanished or the machine rebooted */
    OUTCOME_NEVER_RAN, /* the supervisor died before the command started: safe to start again */
    OUTCOME_PREEMPTED, /* stopped to make way for a job of higher priority */
    OUTCOME_REQUEUED,  /* stopped on request, to run again */
    OUTCOME_SETUP_FAILED, /* a set-up command failed (code or signal), so the command did not
                             run; text names it */
    OUTCOME_EXCEEDED,     /* stopped because it used more VRAM than it declared */
};

#define OUTCOMES (OUTCOME_EXCEEDED + 1)

enum oom_kind { OOM_NONE, OOM_CUDA, OOM_HOST };

/* Facts about how an attempt ended. Plain value. */
struct ending {
    enum outcome outcome;
    int32_t code;        /* exit code, with OUTCOME_EXITED (and for a TIMEOUT that exited) */
    int32_t signal;      /* 0: none */
    int32_t errno_value; /* with OUTCOME_NOT_STARTED */
    enum oom_kind oom;
    int64_t ended_us;      /* wall clock */
    int64_t run_ms;        /* on the boot clock, unaffected by clock changes */
    int64_t cpu_ms;        /* -1: unknown */
    int64_t max_rss_kib;   /* -1: unknown */
    int64_t log_cut_bytes; /* output missing because the log was too large; 0: complete */
    char text[160];        /* the CUDA OOM line, what could not be opened, why it is LOST */
};

/* An attempt run by Slurm. Attempts with the same key were submitted together, as one
 * array. */
struct sent {
    char key[20];     /* random; the Slurm job's comment is "berth:KEY". "": not in Slurm */
    int32_t index;    /* its task number in that array */
    char id[24];      /* Slurm's job id, "123_4"; "": not yet known */
    char node[64];    /* where it ran; "": not yet known */
    int32_t peak_mib; /* highest VRAM on one GPU; -1: not measured */
    int32_t folder;   /* its folder's number in daemon/common/shared_folder.h */
};

/* One run of a job on its GPUs. */
struct attempt {
    int32_t number; /* 1, 2, ... */
    uint8_t n_gpus;
    uint8_t gpus[GPU_MAX];     /* indices into the ledger, in the order the job sees */
    int32_t peak_mib[GPU_MAX]; /* per slot of gpus; -1: never attributed */
    int32_t now_mib[GPU_MAX];  /* as last sampled; -1: not attributed */
    int32_t vram_mib;          /* the demand of this attempt, 0: undeclared */
    int32_t cap_mib;           /* enforced VRAM cap on each card; 0: not enforced */
    int64_t nodes;             /* mask of NUMA nodes to whose CPUs it is bound; 0: not bound */
    int32_t shepherd_pid;      /* of its supervisor; 0: unknown */
    int32_t screen_pid;        /* of its screen session; 0: none, or unknown; not stored */
    int32_t command_pid;       /* also its process group; 0: unknown. Not stored */
    int64_t started_us;        /* wall clock, start of the command; 0: not yet */
    int64_t clock_set_us;      /* adjustment of the wall clock since then; not stored here */
    int64_t util_sum;          /* sum of its cards' load over util_count samples */
    int32_t util_count;
    int64_t energy_mj;      /* its part of its cards' energy; 0: unknown */
    bool warned;            /* EXCEEDS has been reported */
    int64_t ended_boot_us;  /* boot clock: when its end became known; not stored */
    struct attempt *before; /* owned; the previous attempt, kept while this start may be undone
                               (daemon/state/starts.h) */
    struct ending ending;
    struct sent sent; /* with ENGINE_SLURM; such an attempt has no GPUs of this machine */
};

/* Why a pending job waits. */
enum reason {
    REASON_NONE,
    REASON_PRIORITY,   /* other jobs go first */
    REASON_RESOURCES,  /* too few GPUs with room */
    REASON_GPU_MEMORY, /* not enough VRAM on any GPU it may use */
    REASON_GPU_SHARE,  /* not enough compute share on any GPU it may use */
    REASON_GPU_BUSY,   /* wants an idle GPU and none is; or a guard measured too much use */
    REASON_GPU_PAUSED,
    REASON_GPU_SICK,
    REASON_GPU_MPS, /* an MPS GPU that serves another user */
    REASON_GPU_CAP, /* its VRAM must be capped, and the GPU's driver refused that */
    REASON_CPUS,
    REASON_MEMORY, /* host RAM */
    REASON_HELD,
    REASON_BEGIN_TIME,  /* waits for its begin time, or for a retry */
    REASON_PROBE,       /* no recent report from the GPU probe */
    REASON_DEPENDENCY,  /* other jobs must end first */
    REASON_ARRAY_LIMIT, /* its array's limit on running tasks is reached */
    REASON_USER_LIMIT,  /* a limit of this user */
    REASON_QUEUE_LIMIT, /* a limit of all users together */
    REASON_RESERVATION, /* it would delay the job that has a reservation */
    REASON_DISK,        /* nothing can be written to disk, so nothing starts */
    REASON_MACHINE,     /* the machine, or something of the user's, prevents starts */
    REASON_SLURM,       /* Slurm has as many jobs as allowed, or a submission is under way */
};

/* There may be a hundred thousand jobs: the fields are ordered to avoid padding. */
struct job {
    uint32_t id;
    uint32_t uid;
    enum job_state state;
    int32_t attempts; /* started so far */
    struct request req;
    int32_t declared_mib;  /* VRAM as submitted; req.demand.vram_mib may have been raised */
    int32_t auto_runs;     /* with req.vram_auto: number of runs its demand was learned from */
    int32_t oom_used;      /* OOM retries used */
    int32_t retries_used;  /* other retries used */
    int32_t requeues_used; /* times it was requeued at its time limit */
    int32_t misfires;      /* attempts in a row whose supervisor died before the command ran */
    bool admin_held;       /* an admin held another user's job: only an admin may release it */
    bool cancel_asked;     /* a user wants it stopped; survives restarts */
    uint8_t requeue_asked; /* enum requeue: it is being stopped, to run again */
    uint8_t parked;        /* bits of enum park: why it is in no line; 0: nothing bars it */
    int32_t deps_unmet;    /* unmet ones among req.deps; core/queue/deps.c */
    uint64_t order;        /* place in the line: smaller first within a priority; never 0 */
    int64_t submitted_us;  /* wall clock */
    int64_t begin_us;      /* earliest start, wall clock; 0: at once */
    int64_t ended_us;      /* wall clock; 0: not ended */
    int64_t stop_grace_ms; /* between TERM and KILL when cancelled; -1: as its request says */
    /* Above 0: wall clock since when it has been in line, moved back by the time it was in
     * line before. 0 or below: it is not in line, and was for -lined_us (lines.c). */
    int64_t lined_us;
    int64_t joined_us; /* wall clock: when it last joined its line; 0: not yet. Not stored */
    int64_t blocked_since_us; /* wall clock: passed over since then; 0: not passed over */
    int64_t limited_since_us; /* wall clock: since when a limit has held it back or kept
                                 something for it; 0: none */
    int64_t first_since_us;   /* wall clock: first for good since (balance.h); 0: it is not */
    int64_t span_ms;          /* expected run time, part of its kind: the time limit, else the
                                 estimate rounded up by span_class; 0: unknown */
    int64_t estimate_ms;      /* mean of the last two runs of the same command; 0: unknown */
    char *fingerprint; /* owned; of command, cwd and set-up (spec/fingerprint.h); or NULL */

    /* An array is one job in the queue. A task becomes a job of its own when it starts, or
     * when a request names it: see core/queue/array.h. */
    uint32_t array;      /* the array it is a task of; 0: none */
    int32_t task;        /* its task number; -1: none */
    struct tasks *tasks; /* owned; an array's state; NULL: not an array */

    struct attempt *run; /* owned; current or last attempt; NULL: none yet */
    uint32_t file;       /* the jobs file it came from (id in the store); 0: none */
    int32_t line;        /* line number in that file, for messages; 0: none */
    char *key;           /* owned; identifies its line in that file; NULL: none */
    int64_t env;         /* id of the captured environment in the store */
    int32_t env_bytes;   /* size of the environment, bounded per request; not stored */
    int32_t umask_bits;
    char *cwd;          /* a counted_text.h text; so are rlimits and user */
    char *rlimits;      /* the submitter's (sys/rlimits.h); NULL: unknown */
    char *user;         /* the owner's name at submission; NULL: unknown */
    char *cancelled_by; /* owned; NULL: none */
    char *never_text; /* owned; INFEASIBLE: why it can never start; CANCELLED: which dependency
                         failed */

    /* For queue.c: */
    struct kind *kind; /* its line; NULL if not in line */
    struct {
        struct job *rbe_left, *rbe_right, *rbe_parent;
        int rbe_color;
    } entry;               /* libbsd's RB_ENTRY(job), written out */
    uint8_t filed_state;   /* state under which it is counted */
    uint8_t filed_place;   /* the tree that holds entry */
    bool line_moved;       /* queued for queue_mark_lines */
    uint8_t unsaved;       /* for the daemon: what the next commit must write (changes.h) */
    bool same_listed;      /* for runtimes.c: it is in the list of same_next */
    uint32_t waiting_told; /* for the daemon (turn_plan.c): the reason it waits was sent to
                              followers; 0: no */
    int32_t filed_waiting; /* pending jobs it is counted as */
    uint32_t filed_uid;    /* the user it is counted for */
    int64_t filed_text;    /* bytes of text it is counted with */
    int64_t filed_env;     /* environment it is counted with; 0: none */
    struct job *hash_next; /* next in the id table's bucket */

    /* For singles.c: its place among its user's jobs of the same name. */
    struct single_group *single; /* NULL: none */
    struct {
        struct job *rbe_left, *rbe_right, *rbe_parent;
        int rbe_color;
    } single_entry;
    uint8_t single_part;

    /* For runtimes.c: live jobs with the same fingerprint. */
    struct job *same_next, *same_prev;
};

/* Reasons that keep a pending job out of all lines. */
enum park {
    PARK_DEPENDENCY = 1,
    PARK_ARRAY_LIMIT = 2, /* a task, or the rest of an array, while array_max tasks run */
    PARK_SINGLETON = 4,   /* jobs with its name go first: singles.h */
};

/* Why an active job is being stopped, other than a cancel. */
enum requeue {
    REQUEUE_NO,
    REQUEUE_PREEMPTED, /* preempted; if it completed before the request came, that stands */
    REQUEUE_WANTED,    /* a person wants it to run again, however this run ends */
    REQUEUE_HELD,      /* it goes on hold; if it completed first, it stays completed */
};

struct job *job_new(void);      /* zeroed, JOB_PENDING, request_init'ed; abort on no memory */
void job_free(struct job *job); /* NULL is fine */

/* An attempt with this number, no GPUs and all else unknown. */
struct attempt *attempt_new(int32_t number);

const char *job_state_name(enum job_state s); /* "PENDING" */

/* A job's display name: "12", or "12_3" for a task of an array. */
struct job_words {
    char text[24];
};
struct job_words job_words(const struct job *job);

int job_state_from_name(const char *name, enum job_state *out); /* any case; 0 or -1 */
bool job_state_is_final(enum job_state s);
/* Appends the names of the states in the mask (1 << state) that jobs can have, separated by
 * commas. */
void job_states_text(uint32_t states, struct buf *out);
bool job_state_is_active(enum job_state s); /* holds resources: STARTING .. COMPLETING */
const char *reason_name(enum reason r);     /* "GpuMemory" */
const char *outcome_name(enum outcome o);   /* "exited" */

/* Everything that can happen to a job. */
enum job_event_type {
    JOB_EV_HOLD, /* by a person */
    JOB_EV_RELEASE,
    JOB_EV_CANCEL,     /* by a person, or its line was removed from its jobs file */
    JOB_EV_START,      /* the plan starts it: run is the new attempt */
    JOB_EV_STARTED,    /* the supervisor reports that the command runs */
    JOB_EV_ENDED,      /* the supervisor (or recovery) reports the end: ending */
    JOB_EV_VRAM_BACK,  /* its VRAM is free again, or the wait for that is over */
    JOB_EV_INFEASIBLE, /* it can never start */
    JOB_EV_DEP_FAILED, /* a dependency cannot be met: text says why */
    JOB_EV_PREEMPT,    /* it must make way: remembered as a cancel is, but it runs again */
    JOB_EV_REQUEUE,    /* by a person: an ended job becomes pending; an active one is stopped
                          and runs again */
    JOB_EV_OVER,       /* an array: all its tasks have ended (array_is_over) */
};
#define JOB_EVENTS (JOB_EV_OVER + 1)

struct job_event {
    enum job_event_type type;
    int64_t wall_us;             /* now */
    const char *by;              /* CANCEL, REQUEUE: the user; borrowed */
    bool hold;                   /* REQUEUE of an active job: put it on hold afterwards */
    struct attempt *run;         /* START: owned by the job if the result is JOB_NEXT */
    const struct ending *ending; /* ENDED */
    const char *text;            /* INFEASIBLE, DEP_FAILED: why */
};

enum job_verdict {
    JOB_NEXT,    /* new state or new fact; the caller acts on (old, new) */
    JOB_IGNORED, /* valid but changes nothing: a repetition, or overtaken by events */
    JOB_REFUSED, /* invalid in this state: *why says so */
};

/* Applies the event. Defined for every state and event. ENDED leads to COMPLETING. VRAM_BACK
 * leads from there to the final state, or back to PENDING: after a CUDA OOM (at once, with a
 * raised demand; a job with whole GPUs keeps asking for whole GPUs), after another failure
 * (with a begin time; a time limit is no failure), after LOST if req.requeue is set, after
 * NEVER_RAN, after a PREEMPT or REQUEUE (at its old place), and after its time limit if
 * on_timeout says so (then job_goes_last). A job with a cancel request never runs again.
 * CANCEL, PREEMPT and REQUEUE of an active job are only remembered: its ENDED decides how it
 * ended. CANCEL, INFEASIBLE and DEP_FAILED end all tasks still in an array; the array ends
 * when it is over, else with OVER. Afterwards the caller must call queue_refile. why may be
 * NULL. */
enum job_verdict job_apply(struct job *job, const struct job_event *ev, const char **why);

/* The time between TERM and KILL, if it is stopped now. */
int64_t job_grace_ms(const struct job *job);

/* How long the job has been in line, able to start: without the time it waited for a time or
 * for other jobs, was held or ran. Reset when its time limit was reached, and when it
 * ended. */
int64_t job_lined_us(const struct job *job, int64_t now_us);

/* Whether a job that has just become PENDING again goes to the end of its line
 * (queue_reorder): because it reached its time limit. */
bool job_goes_last(const struct job *job);

#endif
