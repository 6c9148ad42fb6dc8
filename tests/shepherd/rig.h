/* The daemon's side of one supervisor, for tests: makes the attempt's folder and spec, starts
 * the program, talks to it, and reads what it left. Every wait is for an event, with a
 * deadline after which the test fails. */
#ifndef TESTS_SHEPHERD_RIG_H
#define TESTS_SHEPHERD_RIG_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "sys/exitrec.h"

#define RIG_WAIT_MS 120000

struct rig {
    char dir[64]; /* scratch; the attempt's folder is dir/a, its log dir/log */
    int folder;
    int ctl; /* our end of the socket pair; -1 once closed */
    pid_t pid;
    char mark[64];
    json_t *spec;
    const char *crash_at; /* NULL: does not crash */
    struct buf in;        /* received over ctl, not consumed yet */
};

/* Uses /bin/sh -c script as the command; script may use $T, the scratch folder. */
void rig_open(struct rig *r, const char *script);
void rig_close(struct rig *r);               /* the supervisor must have exited */
void rig_remove_folder(const struct rig *r); /* the attempt's, as a daemon does at its end */

void rig_set_argv(struct rig *r, const char *const *argv);
void rig_set_int(struct rig *r, const char *key, int64_t v);
void rig_set_text(struct rig *r, const char *key, const char *v);
void rig_add_env(struct rig *r, const char *entry);

void rig_start(struct rig *r);
void rig_write_spec(const struct rig *r); /* rig_start's first two steps */
int rig_take_lock(const struct rig *r);
pid_t rig_start_sweep(struct rig *r); /* a second, sweeping supervisor; returns its pid */
/* Starts it as the batch script of a Slurm job, in the folder with the spec. limit_files: its
 * descriptor limit; 0: unlimited. confined: file modes are enforced for root too. */
void rig_start_stand_in(struct rig *r, unsigned limit_files, bool confined);
void rig_await_file(const struct rig *r, const char *name); /* in the attempt's folder */

/* The next message of any kind, and the next one with this "event"; the caller decrefs. in
 * keeps the unread rest. */
json_t *rig_read(int fd, struct buf *in);
json_t *rig_await(int fd, struct buf *in, const char *event);
bool rig_at_end(int fd); /* blocks until the peer closes; false if the peer sent anything */

int rig_connect(const struct rig *r); /* connects to ctl.sock, once it exists */
void rig_say(int fd, const char *line);
void rig_recorded(struct rig *r);

/* Waits for the supervisor. Returns its wait status. */
int rig_wait(struct rig *r);
int rig_wait_pid(pid_t pid);

/* Runs it to its end, answering with `recorded`; *out is the record in the `ended` message,
 * which is checked against the file. */
void rig_run(struct rig *r, struct exitrec *out);

/* The exit record's file: 1 if there, else 0; and the pid in the started mark, else 0. */
int rig_record(const struct rig *r, struct exitrec *out);
int32_t rig_started(const struct rig *r);
bool rig_lock_is_held(const struct rig *r);
void rig_read_log(const struct rig *r, struct buf *out);

/* Makes a FIFO dir/name for scripts to write to; reads one line (a number) from it. */
void rig_make_fifo(const struct rig *r, const char *name);
long rig_read_fifo(const struct rig *r, const char *name);

/* True if that process is alive (a zombie is not). */
bool rig_lives(pid_t pid);

#endif
