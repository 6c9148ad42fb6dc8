/* Shared by the files of this folder; README.md says what each contains. */
#ifndef DAEMON_SLURM_SLURM_PRIV_H
#define DAEMON_SLURM_SLURM_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uthash.h>
#include <uv.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/queue/job.h"
#include "slurm/backlog.h"
#include "slurm/slurm_answers.h"

struct instance;
struct lot;
struct slurm_command;
struct wait;

#define S_US INT64_C(1000000)

/* An attempt, from its commit to the commit of its outcome. */
struct remote {
    uint32_t job;
    int32_t attempt;
    struct lot *lot;     /* NULL: the attempt is packed, and so not sent itself */
    struct alloc *alloc; /* packed: where it began; NULL: it has not, or unknown */
    bool has_left;       /* packed: its supervisor has left the allocation */
    int32_t stops;       /* packed: how often its end was requested */
    int64_t blank_us;    /* packed: since when its mark exists but is empty */
    int64_t look_us;     /* packed: when its folder is read again */
    int32_t index;
    bool is_sent;    /* an sbatch that may have sent it was started */
    bool began;      /* its mark was seen */
    bool is_void;    /* the daemon made its mark: no Slurm job can begin it any more */
    bool ended;      /* its outcome is known and being committed */
    bool is_again;   /* it may have been sent before: another Slurm job of it may be alive */
    int sends;       /* number of times sent */
    int64_t sent_us; /* boot clock, as all times here */
    int64_t gone_us; /* since when it is unlisted or over in Slurm; 0: it is not */
    int gone_polls;  /* consecutive polls that said so */
    bool is_known;   /* listed in the last poll, with: */
    bool was_listed; /* listed in any poll */
    enum slurm_phase phase;
    char state[24], reason[104], node[64];
    int64_t start_s;   /* wall clock: Slurm's start time; 0: unknown */
    bool folder_gone;  /* its folder was removed, so whether it ran is unknown */
    int64_t record_us; /* when its exit record was seen */
    int64_t cause_us;  /* since when Slurm could have reported why it ended */
    int64_t runs_us;   /* since when Slurm says RUNNING, without a mark; 0: it does not */
    bool is_stuck;     /* silent or without a mark for too long: its Slurm job was cancelled */
    bool stop_asked;
    char *word;        /* owned: stop request for its supervisor, not written yet; NULL: none */
    bool word_failed;  /* the failure to write it was logged */
    int64_t stop_us;   /* when Slurm is next asked to end it */
    int64_t kill_us;   /* when to end it without grace */
    uint32_t round;    /* last round in which its folder was read */
    int64_t pulse;     /* content of its last heartbeat */
    int64_t pulse_us;  /* when the heartbeat was last seen to change */
    int64_t seen_us;   /* when its folder was last read */
    int64_t unread_us; /* since when its folder is unreadable; 0: readable */
    UT_hash_handle hh; /* by job */
};

/* Attempts with one key: sent with one sbatch. */
struct lot {
    char key[sizeof((struct sent *)NULL)->key];
    struct remote **members; /* by index; NULL: none, or settled */
    int32_t n;
    int32_t live; /* members present, plus other references */
    bool waits;   /* members wait to be sent, not before: */
    int64_t due_us;
    int64_t pause_us;   /* backoff before the next try */
    int32_t most;       /* maximum per send after Slurm took no more; 0: all */
    bool is_limited;    /* blocked by a limit on the user's jobs; others are not */
    struct err trouble; /* the last error of sbatch; code 0: accepted */
    UT_hash_handle hh;  /* by key */
};

/* An allocation for packed jobs, from the record in its folder until Slurm no longer has it
 * and the attempts that began there are settled. */
struct alloc {
    char key[ALLOCATION_KEY_SIZE];
    struct allocation_spec spec;
    char id[24]; /* Slurm's; "": unknown */
    bool is_sent;
    int64_t due_us, pause_us; /* when it is sent, and backoff before the next try */
    int64_t sent_us;          /* 0: sent by an earlier daemon */
    bool is_known;            /* listed in the last poll, with: */
    enum slurm_phase phase;
    char state[24], reason[104], node[64];
    int64_t gone_us;
    int gone_polls;
    off_t read;      /* bytes read of its events */
    bool is_here;    /* its process has reported, and its time ends at: */
    int64_t end_us;  /* boot clock */
    int32_t gpu_mib; /* of its smallest GPU; 0: unknown */
    bool was_told;   /* Slurm told it to end */
    int64_t told_us; /* wall clock of its node */
    bool is_over;    /* its process has exited */
    bool is_doomed;  /* found dead and unused in this round: */
    uint32_t doomed_round;
    bool was_of_use;  /* an attempt began there */
    bool was_refused; /* it must not be sent any more */
    bool is_kept;     /* pending, and needed by waiting attempts */
    bool is_unwanted; /* pending, and not needed for a while */
    int64_t spare_us; /* since when it is not needed; 0: it is */
    int64_t stop_us;  /* when Slurm is next asked to end it */
    int32_t n_begun;  /* attempts that began there and are not settled */
    double used;      /* GPUs used by them */
    UT_hash_handle hh;
};

enum slurm_call { CALL_NONE, CALL_SBATCH, CALL_SQUEUE, CALL_SCANCEL };

struct slurm {
    struct instance *inst;
    struct remote *remotes;
    struct lot *lots;
    uv_timer_t tick;
    uv_timer_cb on_tick;
    struct slurm_command *command;
    enum slurm_call call;
    struct lot *sending; /* with CALL_SBATCH: this, or */
    struct alloc *sending_alloc;
    int64_t next_call_us;  /* not before */
    bool has_just_stopped; /* the last call was scancel */
    bool are_ids_old;      /* slurmctld did not answer, and may have lost jobs since */
    int64_t call_began_us;
    int64_t poll_us;       /* when squeue is due; 0: not scheduled */
    int64_t poll_pause_us; /* interval to the following poll */
    int64_t poll_rest_us;  /* no poll before, whatever happens */
    int64_t polled_us;     /* start time of the last completed or failed squeue */
    int64_t scan_us;       /* when the folders are read next */
    uint32_t round;        /* number of completed scans */
    uint32_t sweep_round;  /* round in which every folder is read */
    struct alloc *allocs;
    int allocs_fd;        /* folder of the allocations and the backlog; -1: not needed yet */
    struct wait *waiting; /* attempts that wait for an allocation, as last listed */
    size_t n_waiting;
    int64_t waiting_us, grown_us; /* time of that list; time of the last slurm_grow decision */
    bool waiting_is_old;          /* an attempt was added, or must end */
    bool some_left;               /* some listed ones no longer wait */
    struct buf backlog;           /* as last written */
    bool backlog_is_written;      /* since the start */
    int32_t gpu_mib;              /* of the GPUs of allocations; 0: not readable, -1: unknown */
    int64_t grow_us, grow_pause_us; /* none is made before; backoff after useless ones */
    int misses;                     /* consecutive allocations that ended without a report */
    int64_t missed_us;              /* when the last miss was counted; 0: never */
    struct buf words;               /* slurm_tell's result */
    struct err trouble;             /* of squeue and scancel; code 0: none */
    struct err pack_trouble;        /* of sbatch for allocations */
    struct err folder_trouble;      /* of the shared folder */
    bool is_away;                   /* the shared folder is not there, */
    int64_t back_us;   /* or was not until then: what happened there was not seen */
    int64_t looked_us; /* when it was last checked */
    int64_t folder_us, folder_pause_us; /* no start before; backoff */
    bool are_allocs_unread;             /* an earlier daemon's, as the folder was away */
    bool is_change_said;                /* logged that the new setting waits */
};

/* slurm_shared.c */
#define PACKED_KEY "packed" /* key of all packed attempts: they are not sent themselves */
struct job *slurm_job_of(const struct slurm *s, const struct remote *r); /* NULL: gone */
struct remote *slurm_member(const struct slurm *s, const char *key, int32_t index);
bool slurm_lot_has_one_name(const struct slurm *s, const struct lot *lot);
bool slurm_is_to_send(const struct remote *r);
bool slurm_is_packed(const struct remote *r);
/* True if the job that Slurm lists is the run that made the mark, or if there is no mark. A
 * killed slurmctld may forget that it started a job and start it again; that run only finds
 * the mark. */
bool slurm_is_its_run(const struct remote *r, const struct job *job);
struct alloc *slurm_alloc_of(const struct slurm *s, const char *key);
bool slurm_alloc_is_dead(const struct alloc *a); /* no more attempts will begin there */
void slurm_wake(struct slurm *s);                /* starts the tick: something is due */
void slurm_poll_soon(struct slurm *s);
int64_t slurm_pause_us(int64_t *pause_us); /* after a failed call: the doubled backoff */
/* Tries to write r->word, if there is one. Logs a failure once. */
void slurm_write_word(const struct slurm *s, struct remote *r);

/* slurm_folder.c: the folder shared with nodes */
/* True if the folder is there under its path. While it is not, nothing is known of its
 * contents. */
bool slurm_folder_is_there(struct slurm *s);
/* True if this attempt's folder was removed while the shared folder is there. */
bool slurm_folder_is_gone(struct slurm *s, const struct remote *r);
/* True for errors caused by this process or machine (out of descriptors or memory), not by the
 * file. */
bool slurm_is_lack(int errnum);
/* Resumes starts that waited for the folder, and reports a setting not in use yet. */
void slurm_folder_follow(struct slurm *s);

/* slurm_engine.c: drops a reference to the lot */
void slurm_let_go(struct slurm *s, struct lot *lot);

/* slurm_calls.c: starts the most urgent command, if it is time for one. */
void slurm_pump(struct slurm *s);
/* Starts one of Slurm's commands; args: NUL-terminated arguments after the program's name. -1:
 * it could not be started, which was logged. */
int slurm_start_call(struct slurm *s, enum slurm_call call, struct buf *args,
                     const struct buf *input);

/* slurm_stops.c: has Slurm end some attempts or allocations that must end. False: there are
 * none. */
bool slurm_ask_stops(struct slurm *s);

/* slurm_alloc.c: the allocations and their folders */
/* Creates an allocation, to be sent later; its record is durable. NULL: failed, and logged. */
struct alloc *slurm_alloc_make(struct slurm *s, const struct allocation_spec *spec);
void slurm_allocs_free(struct slurm *s);
/* Loads the allocations of an earlier daemon. */
void slurm_allocs_recover(struct slurm *s);
/* Reopens the allocations' folder if it is open: the path may lead to another one now. */
void slurm_allocs_reopen(struct slurm *s);
/* Reads new events of the allocations; drops those that are over. */
void slurm_allocs_follow(struct slurm *s);

/* slurm_packed.c: an attempt in the backlog, or in an allocation */
/* Parses the text after the time in the attempt's mark. False: the mark is being written. */
bool slurm_packed_began(struct slurm *s, struct remote *r, const char *words);
/* Copies what is known of the attempt from its allocation. */
void slurm_packed_look(struct slurm *s, struct remote *r, struct job *job, int64_t now);
void slurm_packed_let_go(struct remote *r);

/* slurm_grow.c */
/* Writes the backlog, and decides about the number of allocations: may create one, or cancel
 * those not needed. */
void slurm_grow(struct slurm *s);
void slurm_waiting_free(struct slurm *s);
/* Refuses the waiting attempts that fit an allocation like this one and no other. */
void slurm_refuse_like(struct slurm *s, const struct allocation_spec *spec, const char *text);
void slurm_add_packed_words(const struct slurm *s, const struct remote *r, struct buf *out);

/* slurm_alloc_calls.c: Slurm's commands and answers about allocations */
struct alloc *slurm_next_alloc(const struct slurm *s, int64_t now);
int slurm_send_alloc(struct slurm *s, struct alloc *a, struct buf *args, struct buf *script,
                     struct err *e);
void slurm_alloc_sent(struct slurm *s, struct alloc *a, const char *id, enum slurm_refusal why,
                      const char *words);
void slurm_alloc_listed(struct slurm *s, const struct slurm_job *j);
void slurm_allocs_unlist(struct slurm *s);              /* before squeue's answer is read */
void slurm_allocs_polled(struct slurm *s, int64_t now); /* after it was read */
bool slurm_alloc_is_to_stop(const struct alloc *a, int64_t now);

/* slurm_settle.c */
void slurm_scan(struct slurm *s);
/* Ends an attempt that can never run; text says why. No-op if a node has begun it. */
void slurm_refuse(struct slurm *s, struct remote *r, const char *text);

#endif
