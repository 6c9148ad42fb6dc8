/* What the files of this folder share: README.md says what each has. */
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

/* An attempt from its commit to the commit of its outcome. */
struct remote {
    uint32_t job;
    int32_t attempt;
    struct lot *lot;     /* NULL: it is packed, and so not sent itself */
    struct alloc *alloc; /* packed: where it began; NULL: it has not, or that is not known */
    bool has_left;       /* packed: its supervisor has left the allocation */
    int32_t stops;       /* packed: how often its end was asked for */
    int64_t blank_us;    /* packed: since when its mark is there and says nothing yet */
    int64_t look_us;     /* packed: when its folder is looked at again */
    int32_t index;
    bool is_sent;    /* a command that may have sent it was started */
    bool began;      /* its mark was seen */
    bool is_void;    /* the daemon made its mark: no Slurm job begins it any more */
    bool ended;      /* its outcome is known; the commit is under way */
    bool is_again;   /* it was sent before, perhaps: another Slurm job of it may be alive */
    int sends;       /* so often */
    int64_t sent_us; /* boot clock, as all times here */
    int64_t gone_us; /* since when Slurm has it no more; 0: it has it, or was not asked */
    int gone_polls;  /* how often it said so since then */
    bool is_known;   /* Slurm listed it in the last poll, as: */
    bool was_listed; /* in any */
    enum slurm_phase phase;
    char state[24], reason[104], node[64];
    int64_t start_s;   /* wall clock: since when it runs, for Slurm; 0: not known */
    bool folder_gone;  /* somebody removed it: whether it ran is not to be known */
    int64_t record_us; /* when its record was seen */
    int64_t cause_us;  /* since when Slurm was asked why it ended */
    int64_t runs_us;   /* since when it is RUNNING in Slurm, without a mark; 0: it is not */
    bool is_stuck;     /* for too long: its Slurm job was cancelled */
    bool stop_asked;
    char *word;        /* owned: of its end for its supervisor, not written yet; NULL: none */
    bool word_failed;  /* that was said */
    int64_t stop_us;   /* when it is time to ask Slurm for its end */
    int64_t kill_us;   /* and when for one without grace */
    uint32_t round;    /* in which its folder was looked at */
    int64_t pulse;     /* what it last said of being alive */
    int64_t pulse_us;  /* when that was seen to change */
    int64_t seen_us;   /* when its folder was read last */
    int64_t unread_us; /* since when it cannot be read; 0: it can */
    UT_hash_handle hh; /* by job */
};

/* All with one key: what goes to sbatch at once. */
struct lot {
    char key[sizeof((struct sent *)NULL)->key];
    struct remote **members; /* by index; NULL: none, or settled */
    int32_t n;
    int32_t live; /* members that are there, and what else keeps it */
    bool waits;   /* some of it is to be sent, not before: */
    int64_t due_us;
    int64_t pause_us;   /* before the next try */
    int32_t most;       /* of it in one send, as Slurm took no more; 0: all */
    bool is_limited;    /* a limit on this user's jobs is in its way, but in no others' */
    struct err trouble; /* what sbatch said of it last; code 0: it was taken */
    UT_hash_handle hh;  /* by key */
};

/* An allocation for packed jobs, from the record in its folder until Slurm has it no more and
 * what began there is settled. */
struct alloc {
    char key[ALLOCATION_KEY_SIZE];
    struct allocation_spec spec;
    char id[24]; /* Slurm's; "": not known */
    bool is_sent;
    int64_t due_us, pause_us; /* when it is sent, and before the next try */
    int64_t sent_us;          /* 0: by an earlier daemon */
    bool is_known;            /* Slurm listed it in the last poll, as: */
    enum slurm_phase phase;
    char state[24], reason[104], node[64];
    int64_t gone_us;
    int gone_polls;
    off_t read;      /* so much of its events */
    bool is_here;    /* its process has said so, and when its time will be over: */
    int64_t end_us;  /* boot clock */
    int32_t gpu_mib; /* of its smallest GPU; 0: not known */
    bool was_told;   /* by Slurm, to end */
    int64_t told_us; /* wall clock of its node */
    bool is_over;    /* its process has left */
    bool is_doomed;  /* it was dead and of no use in this round: */
    uint32_t doomed_round;
    bool was_of_use;  /* something began there */
    bool was_refused; /* it is not to be sent any more */
    bool is_kept;     /* it waits, and what waits for allocations needs it */
    bool is_unwanted; /* it waits, and nothing needed it for a while */
    int64_t spare_us; /* since when; 0: something does */
    int64_t stop_us;  /* when Slurm is asked for its end again */
    int32_t n_begun;  /* attempts that began there and are not settled */
    double used;      /* GPUs' worth of them */
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
    bool are_ids_old;      /* slurmctld did not answer, and may have forgotten jobs since */
    int64_t call_began_us;
    int64_t poll_us;       /* when squeue is due; 0: it is not */
    int64_t poll_pause_us; /* until the one after */
    int64_t poll_rest_us;  /* not before that, whatever happens */
    int64_t polled_us;     /* when the last squeue began that has answered or failed */
    int64_t scan_us;       /* when the folders are looked at */
    uint32_t round;        /* how often all of them were */
    uint32_t sweep_round;  /* the round in which none is left out */
    struct alloc *allocs;
    int allocs_fd;        /* their folders and the backlog; -1: none was needed yet */
    struct wait *waiting; /* what waits for an allocation, when it was listed last */
    size_t n_waiting;
    int64_t waiting_us, grown_us; /* when that was, and when their number was looked at */
    bool waiting_is_old;          /* something was added, or is to end */
    bool some_left;               /* some of them do not wait any more */
    struct buf backlog;           /* as it was written last */
    bool backlog_is_written;      /* since the start */
    int32_t gpu_mib; /* of the GPUs of allocations; 0: they cannot tell, -1: not known */
    int64_t grow_us, grow_pause_us; /* no allocation before, as the last ones began nothing */
    int misses;                /* allocations in a row that ended before they said anything */
    int64_t missed_us;         /* when the last of them was counted; 0: none was */
    struct buf words;          /* slurm_tell' */
    struct err trouble;        /* of squeue and scancel; code 0: nothing is wrong */
    struct err pack_trouble;   /* of sbatch for allocations */
    struct err folder_trouble; /* of the folder that is shared with nodes */
    bool is_away;              /* that is not there, */
    int64_t back_us;           /* or was not until then: what happened there was not seen */
    int64_t looked_us;         /* when it was looked for last */
    int64_t folder_us, folder_pause_us; /* nothing is started before, as it failed */
    bool are_allocs_unread;             /* those of an earlier daemon, as it was not there */
    bool is_change_said;                /* of the setting, which is not taken yet */
};

/* slurm_shared.c */
#define PACKED_KEY "packed" /* of all packed attempts: they are not sent themselves */
struct job *slurm_job_of(const struct slurm *s, const struct remote *r); /* NULL: it has gone */
struct remote *slurm_member(const struct slurm *s, const char *key, int32_t index);
bool slurm_lot_has_one_name(const struct slurm *s, const struct lot *lot);
bool slurm_is_to_send(const struct remote *r);
bool slurm_is_packed(const struct remote *r);
/* Whether what Slurm lists is the run that made the mark, if there is one. A slurmctld that was
 * killed can forget that it started a job, and start it once more: that one only finds the
 * mark. */
bool slurm_is_its_run(const struct remote *r, const struct job *job);
struct alloc *slurm_alloc_of(const struct slurm *s, const char *key);
bool slurm_alloc_is_dead(const struct alloc *a); /* nothing more will begin there */
void slurm_wake(struct slurm *s);                /* something is due */
void slurm_poll_soon(struct slurm *s);
int64_t slurm_pause_us(int64_t *pause_us); /* a call failed: the pause, which doubles */
/* Tries to write r->word, if there is one. A failure is said once. */
void slurm_write_word(const struct slurm *s, struct remote *r);

/* slurm_folder.c: the folder that is shared with nodes */
/* Whether it is there now, as it is seen under its path. While it is not, nothing is known of
 * what is in it. */
bool slurm_folder_is_there(struct slurm *s);
/* Whether the folder of this attempt was removed, and not that around it. */
bool slurm_folder_is_gone(struct slurm *s, const struct remote *r);
/* A failure of this process or this machine, and not of what was to be opened. */
bool slurm_is_lack(int errnum);
/* Sees to starts that had to wait for it, and to a setting that is not taken yet. */
void slurm_folder_follow(struct slurm *s);

/* slurm_engine.c: one that counted there has gone */
void slurm_let_go(struct slurm *s, struct lot *lot);

/* slurm_calls.c: starts the command that is most due, if it is time for one. */
void slurm_pump(struct slurm *s);
/* One of Slurm's commands; args: NUL-terminated strings behind the program's name. -1: it could
 * not be started, which was said. */
int slurm_start_call(struct slurm *s, enum slurm_call call, struct buf *args,
                     const struct buf *input);

/* slurm_stops.c: has Slurm end some of those that are to end. False: there are none. */
bool slurm_ask_stops(struct slurm *s);

/* slurm_alloc.c: the allocations, and their folders */
/* A new one, which will be sent; its record is durable. NULL: that was said in the log. */
struct alloc *slurm_alloc_make(struct slurm *s, const struct allocation_spec *spec);
void slurm_allocs_free(struct slurm *s);
/* Those that an earlier daemon made. */
void slurm_allocs_recover(struct slurm *s);
/* Opens their folder again where that has been opened: it may be another one now. */
void slurm_allocs_reopen(struct slurm *s);
/* What their processes have said since; forgets those that are over. */
void slurm_allocs_follow(struct slurm *s);

/* slurm_packed.c: an attempt in the backlog, or in an allocation */
/* What its mark says, behind the time. False: it is being written. */
bool slurm_packed_began(struct slurm *s, struct remote *r, const char *words);
/* What is known of it by its allocation. */
void slurm_packed_look(struct slurm *s, struct remote *r, struct job *job, int64_t now);
void slurm_packed_let_go(struct remote *r);

/* slurm_grow.c */
/* Writes the backlog, and sees how many there are to be: makes one, or gives one back. */
void slurm_grow(struct slurm *s);
void slurm_waiting_free(struct slurm *s);
/* Those that wait for an allocation like this one, and can have no other, never run. */
void slurm_refuse_like(struct slurm *s, const struct allocation_spec *spec, const char *text);
void slurm_add_packed_words(const struct slurm *s, const struct remote *r, struct buf *out);

/* slurm_alloc_calls.c: what Slurm is asked of allocations, and says of them */
struct alloc *slurm_next_alloc(const struct slurm *s, int64_t now);
int slurm_send_alloc(struct slurm *s, struct alloc *a, struct buf *args, struct buf *script,
                     struct err *e);
void slurm_alloc_sent(struct slurm *s, struct alloc *a, const char *id, enum slurm_refusal why,
                      const char *words);
void slurm_alloc_listed(struct slurm *s, const struct slurm_job *j);
void slurm_allocs_unlist(struct slurm *s);              /* before an answer of squeue is read */
void slurm_allocs_polled(struct slurm *s, int64_t now); /* after it */
bool slurm_alloc_is_to_stop(const struct alloc *a, int64_t now);

/* slurm_settle.c */
void slurm_scan(struct slurm *s);
/* It can never run: text says why. Nothing happens to one that a node has begun. */
void slurm_refuse(struct slurm *s, struct remote *r, const char *text);

#endif
