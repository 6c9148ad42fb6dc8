/* A job: what was asked, where it stands, what became of it. Jobs live in one table
 * (queue.h) and are named by id everywhere else. job_apply is the one table of
 * state x event; nothing else changes a job's state. Pure: no clock, no I/O. */
#ifndef CORE_QUEUE_JOB_H
#define CORE_QUEUE_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/request.h"

struct buf;

enum job_state {
    JOB_PENDING,
    JOB_HELD,
    JOB_STARTING, /* decided and durable; the command has not been seen to run yet */
    JOB_RUNNING,
    JOB_SUSPENDED,
    JOB_COMPLETING, /* its processes are gone, its VRAM is not yet known to be back */
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

/* What is known of a job that was looked for where all that ever were are kept. */
struct found_job {
    uint32_t id; /* 0: there is none */
    enum job_state state;
};

/* How an attempt ended, as its shepherd (or the daemon, for LOST) saw it. */
enum outcome {
    OUTCOME_NONE,        /* it has not */
    OUTCOME_EXITED,      /* code says */
    OUTCOME_SIGNALED,    /* signal says */
    OUTCOME_TIMEOUT,     /* the time limit was reached */
    OUTCOME_CANCELLED,   /* stopped on request */
    OUTCOME_NOT_STARTED, /* the command could not be executed: errno_value and text say why */
    OUTCOME_LOST,        /* no exit record: supervisor vanished or the machine rebooted */
    OUTCOME_NEVER_RAN, /* the supervisor died before the command started: safe to start again */
    OUTCOME_PREEMPTED, /* stopped to make way for a job of higher priority */
    OUTCOME_REQUEUED,  /* stopped on request, to run again */
    OUTCOME_SETUP_FAILED, /* what was to be set up ended (code or signal), so the command never
                             ran; text says what it was */
    OUTCOME_EXCEEDED,     /* stopped because it used more VRAM than it declared */
};

#define OUTCOMES (OUTCOME_EXCEEDED + 1)

enum oom_kind { OOM_NONE, OOM_CUDA, OOM_HOST };

/* Facts about how an attempt ended. Plain value. */
struct ending {
    enum outcome outcome;
    int32_t code;   /* exit code, with OUTCOME_EXITED (also kept for a TIMEOUT that exited) */
    int32_t signal; /* 0: none */
    int32_t errno_value; /* with OUTCOME_NOT_STARTED */
    enum oom_kind oom;
    int64_t ended_us;      /* wall clock */
    int64_t run_ms;        /* on the boot clock, so no clock jump shows */
    int64_t cpu_ms;        /* -1: not known */
    int64_t max_rss_kib;   /* -1: not known */
    int64_t log_cut_bytes; /* of its output, as its log had become too large; 0: all is there */
    char text[160]; /* words: the CUDA OOM line, what could not be opened, why it is lost */
};

/* An attempt in Slurm's hands. All with the same key were sent together, as one array. */
struct sent {
    char key[20]; /* random; what Slurm keeps as the comment is "berth:KEY". "": not in Slurm */
    int32_t index;    /* its number in that array */
    char id[24];      /* Slurm's, "123_4"; "": not known yet */
    char node[64];    /* where it ran; "": not known yet */
    int32_t peak_mib; /* the most VRAM on one GPU; -1: not seen */
    int32_t folder;   /* where it is, by its number in daemon/common/shared_folder.h */
};

/* One run of a job on cards. */
struct attempt {
    int32_t number; /* 1, 2, ... */
    uint8_t n_gpus;
    uint8_t gpus[GPU_MAX];     /* indices into the ledger, in the order the job sees */
    int32_t peak_mib[GPU_MAX]; /* per slot of gpus; -1: never attributed */
    int32_t now_mib[GPU_MAX];  /* as last sampled; -1: not attributed */
    int32_t vram_mib;          /* the demand of this attempt, 0: undeclared */
    int32_t cap_mib;           /* what it is held to on each card; 0: nothing holds it */
    int64_t nodes;             /* mask of NUMA nodes to whose CPUs it is bound; 0: it is not */
    int32_t shepherd_pid;      /* 0: not known */
    int32_t screen_pid;        /* of its screen session; 0: none that is known; not stored */
    int32_t command_pid;       /* its process group too; 0: not known. Not stored */
    int64_t started_us;        /* wall clock, when the command started (0: not yet) */
    int64_t clock_set_us;      /* by so much that clock was set since; not stored here */
    int64_t util_sum;          /* of the cards' load over util_count samples */
    int32_t util_count;
    int64_t energy_mj;      /* its part of what its cards used; 0: not known */
    bool warned;            /* EXCEEDS has been said */
    int64_t ended_boot_us;  /* boot clock: when its end became known; not stored */
    struct attempt *before; /* owned; the one before, for as long as this start may be taken
                               back (daemon/state/starts.h) */
    struct ending ending;
    struct sent sent; /* with ENGINE_SLURM; such an attempt has no cards of this machine */
};

/* Why a pending job waits. */
enum reason {
    REASON_NONE,
    REASON_PRIORITY,   /* others are first */
    REASON_RESOURCES,  /* too few cards with room */
    REASON_GPU_MEMORY, /* short of VRAM on every card it may use */
    REASON_GPU_SHARE,  /* too little compute share is left on every card it may use */
    REASON_GPU_BUSY,   /* wants an idle card, none is; or a guard says that it is too busy */
    REASON_GPU_PAUSED,
    REASON_GPU_SICK,
    REASON_GPU_MPS, /* a card shared by MPS, which serves another user */
    REASON_GPU_CAP, /* it must be held to its VRAM, and the card's driver has refused that */
    REASON_CPUS,
    REASON_MEMORY, /* host RAM */
    REASON_HELD,
    REASON_BEGIN_TIME,  /* waits for its begin time or its retry's */
    REASON_PROBE,       /* no fresh word from the GPUs */
    REASON_DEPENDENCY,  /* other jobs must end first */
    REASON_ARRAY_LIMIT, /* as many tasks of its array run as are allowed */
    REASON_USER_LIMIT,  /* this user's limit */
    REASON_QUEUE_LIMIT, /* the limit for all users together */
    REASON_RESERVATION, /* it would delay the job that has a reservation */
    REASON_DISK,        /* nothing can be written down, so nothing is started */
    REASON_MACHINE,     /* the machine, or something of the user's, lets nothing start */
    REASON_SLURM,       /* Slurm has all the jobs it may have, or is being sent some */
};

/* There may be a hundred thousand: the order is one that leaves few gaps. */
struct job {
    uint32_t id;
    uint32_t uid;
    enum job_state state;
    int32_t attempts; /* started so far */
    struct request req;
    int32_t declared_mib;  /* VRAM as submitted; req.demand.vram_mib may have been raised */
    int32_t auto_runs;     /* with req.vram_auto: how many runs its demand was learned from */
    int32_t oom_used;      /* OOM retries spent */
    int32_t retries_used;  /* other retries spent */
    int32_t requeues_used; /* by the time limit */
    int32_t misfires;      /* attempts in a row whose supervisor died before the command ran */
    bool admin_held;       /* an admin holds another user's job: only an admin releases it */
    bool cancel_asked;     /* a user wants it stopped; survives restarts */
    uint8_t requeue_asked; /* enum requeue: it is being stopped to run again */
    uint8_t parked;        /* enum park: why it stands in no line; 0: it may */
    int32_t deps_unmet;    /* of req.deps; core/queue/deps.c */
    uint64_t order;        /* place in the line: smaller first within a priority; never 0 */
    int64_t submitted_us;  /* wall clock */
    int64_t begin_us;      /* not before this wall time; 0: at once */
    int64_t ended_us;      /* wall clock; 0: has not */
    int64_t stop_grace_ms; /* of its cancel, between TERM and KILL; -1: its request's */
    /* Wall clock: it has stood in line since then, time in line before counted as if it had
     * been just before. 0 and below: it stands in none, and has for so long (lines.c). */
    int64_t lined_us;
    int64_t joined_us; /* wall clock: when it joined its line last; 0: not yet. Not stored */
    int64_t blocked_since_us; /* wall clock: passed over since then; 0: it has not been */
    int64_t limited_since_us; /* wall clock: since when a limit has held it back, or
                                 kept something for it; 0: none */
    int64_t
        first_since_us;  /* wall clock: since when it comes first (balance.h); 0: it does not */
    int64_t span_ms;     /* what the scheduler expects one run to take, part of its kind: the
                            time limit, else the estimate rounded up by span_class; 0: unknown */
    int64_t estimate_ms; /* mean of the last two runs of the same command; 0: unknown */
    char *fingerprint;   /* owned; of command, cwd and set-up (spec/fingerprint.h); NULL */

    /* An array is one job in the queue, whose tasks become jobs of their own when they start
     * (or when a request names one): see core/queue/array.h. */
    uint32_t array;      /* the job it is a task of; 0: none */
    int32_t task;        /* its number there; -1: none */
    struct tasks *tasks; /* owned; an array's book-keeping; NULL: not an array */

    struct attempt *run; /* owned; the current or last attempt, NULL before the first */
    uint32_t file;       /* jobs file it came from (store's id); 0: none */
    int32_t line;        /* its line there, for messages; 0: none */
    char *key;           /* owned; identity of its line in that file; NULL: none */
    int64_t env;         /* store's id of the captured environment */
    int32_t env_bytes;   /* its size, which one request bounds; not stored */
    int32_t umask_bits;
    char *cwd;          /* counted_text.h; as are rlimits and user */
    char *rlimits;      /* the submitter's (sys/rlimits.h); NULL: not known */
    char *user;         /* the owner's name when it was submitted; NULL: not known */
    char *cancelled_by; /* owned; NULL: none */
    char *never_text; /* owned; INFEASIBLE: why it can never start; CANCELLED: which dependency
                         failed */

    /* queue.c's: */
    struct kind *kind; /* the line it stands in; NULL unless pending */
    struct {
        struct job *rbe_left, *rbe_right, *rbe_parent;
        int rbe_color;
    } entry;               /* libbsd's RB_ENTRY(job), written out */
    uint8_t filed_state;   /* the state under which it is counted */
    uint8_t filed_place;   /* which tree holds entry */
    bool line_moved;       /* it is among those for queue_mark_lines */
    uint8_t unsaved;       /* the daemon's: what the next commit must write (changes.h) */
    bool same_listed;      /* runtimes.c's: in the list of same_next */
    uint32_t waiting_told; /* the daemon's (turn_plan.c): followers have been sent why it waits;
                              0: no */
    int32_t filed_waiting; /* as how many waiting ones it is counted */
    uint32_t filed_uid;    /* the user it is counted for */
    int64_t filed_text;    /* bytes of text with which it is counted */
    int64_t filed_env;     /* the environment with which it is; 0: none */
    struct job *hash_next; /* the id table's chain */

    /* singles.c's: its place among the jobs of its name */
    struct single_group *single; /* NULL: none */
    struct {
        struct job *rbe_left, *rbe_right, *rbe_parent;
        int rbe_color;
    } single_entry;
    uint8_t single_part;

    /* runtimes.c's: live jobs with the same fingerprint */
    struct job *same_next, *same_prev;
};

/* Reasons that keep a pending job out of the lines altogether. */
enum park {
    PARK_DEPENDENCY = 1,
    PARK_ARRAY_LIMIT = 2, /* a task, or an array's rest, while array_max tasks run */
    PARK_SINGLETON = 4,   /* others of its name come first: singles.h */
};

/* Why an active job is stopped although no user cancels it. */
enum requeue {
    REQUEUE_NO,
    REQUEUE_PREEMPTED, /* it makes way; if it completed before the order came, that stands */
    REQUEUE_WANTED,    /* a person wants it run again, however this run ends */
    REQUEUE_HELD,      /* it is to wait on hold; if it completed first, that stands */
};

struct job *job_new(void);      /* zeroed, JOB_PENDING, request_init'ed; abort on no memory */
void job_free(struct job *job); /* NULL is fine */

/* An attempt on no cards, of which nothing is known but its number. */
struct attempt *attempt_new(int32_t number);

const char *job_state_name(enum job_state s); /* "PENDING" */

/* What people call a job: "12", a task of an array "12_3". */
struct job_words {
    char text[24];
};
struct job_words job_words(const struct job *job);

int job_state_from_name(const char *name, enum job_state *out); /* any case; 0 or -1 */
bool job_state_is_final(enum job_state s);
/* Appends the names of those of these states (a bit each) that jobs can have, separated by
 * commas. */
void job_states_text(uint32_t states, struct buf *out);
bool job_state_is_active(enum job_state s); /* holds cards: STARTING .. COMPLETING */
const char *reason_name(enum reason r);     /* "GpuMemory" */
const char *outcome_name(enum outcome o);   /* "exited" */

/* Everything that can happen to a job. */
enum job_event_type {
    JOB_EV_HOLD, /* a person */
    JOB_EV_RELEASE,
    JOB_EV_CANCEL,     /* a person, or its line is gone */
    JOB_EV_START,      /* the plan gave it cards: run is the new attempt */
    JOB_EV_STARTED,    /* its shepherd says the command runs */
    JOB_EV_ENDED,      /* its shepherd (or recovery) says how it ended: ending */
    JOB_EV_VRAM_BACK,  /* the cards are clear of it, or the wait for that is over */
    JOB_EV_INFEASIBLE, /* it can never start */
    JOB_EV_DEP_FAILED, /* what it depends on ended otherwise: text says so */
    JOB_EV_PREEMPT,    /* it is to make way: remembered like a cancel, but it runs again */
    JOB_EV_REQUEUE,    /* a person: an ended job is pending again; an active one is stopped and
                          runs again */
    JOB_EV_OVER,       /* an array: all its tasks have ended (array_is_over) */
};
#define JOB_EVENTS (JOB_EV_OVER + 1)

struct job_event {
    enum job_event_type type;
    int64_t wall_us;             /* now */
    const char *by;              /* CANCEL, REQUEUE: the user; borrowed */
    bool hold;                   /* REQUEUE of an active one: it waits on hold then */
    struct attempt *run;         /* START: taken over when the result is JOB_NEXT */
    const struct ending *ending; /* ENDED */
    const char *text;            /* INFEASIBLE, DEP_FAILED: why */
};

enum job_verdict {
    JOB_NEXT,    /* the job has a new state (or a new fact); act on (old, new) */
    JOB_IGNORED, /* true, and changes nothing: a repetition, or overtaken */
    JOB_REFUSED, /* makes no sense in this state: *why says so */
};

/* Applies the event. Total over state x event. ENDED leads to COMPLETING; VRAM_BACK from there
 * to the final state, or to PENDING again: a retry after a CUDA OOM (at once, with a raised
 * demand; a job that had whole cards keeps asking for whole cards), after another failure
 * (with a begin time; a time limit is not a failure), after LOST where req.requeue says so,
 * after NEVER_RAN, after a PREEMPT or REQUEUE (in its old place), and after its time limit
 * where on_timeout says so (then job_goes_last). Nothing is run again that a user asked to
 * cancel. CANCEL, PREEMPT and REQUEUE of an active job are only remembered: how it ended is
 * for its ENDED to say. CANCEL, INFEASIBLE and DEP_FAILED take all that has not left an array;
 * it has ended when it is over, else OVER ends it. Afterwards the caller calls queue_refile.
 * why may be NULL. */
enum job_verdict job_apply(struct job *job, const struct job_event *ev, const char **why);

/* Between TERM and KILL, if it is stopped now. */
int64_t job_grace_ms(const struct job *job);

/* How long it has stood in line, where it could have started: not while it waited for a time or
 * for others, was held or ran. It begins anew when its time was up, and when it had ended. */
int64_t job_lined_us(const struct job *job, int64_t now_us);

/* Whether a job that has just become PENDING again is to go to the end of its line
 * (queue_reorder): its time was up. */
bool job_goes_last(const struct job *job);

#endif
