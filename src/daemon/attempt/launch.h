/* Starting an attempt that is durable: its folder, its environment, its shepherd. */
#ifndef DAEMON_ATTEMPT_LAUNCH_H
#define DAEMON_ATTEMPT_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct buf;
struct daemon;
struct err;
struct job;
struct jsonw;

/* Makes the folder of an attempt that is about to be committed, with its lock in it: so one
 * that is committed and has no folder has lost it, and may have run. -1: machine trouble, with
 * e->errnum. */
int launch_make_folder(struct daemon *d, const struct job *job, struct err *e);

/* Never fails towards its caller: an attempt that cannot be launched ends as NEVER_RAN, and
 * what kept it from that is the machine's trouble. */
void launch_attempt(struct daemon *d, struct job *job);

/* By which rules the account is judged before a process becomes its user
 * (shepherd/begin/account_rules.h), and which rights it can never get: members of the object
 * that is being written. */
void launch_add_account_rules(const struct daemon *d, struct jsonw *w);

/* Starts the sweeper of an attempt whose shepherd has died: it waits for the lock, kills
 * what the attempt left behind and leaves. Returns a descriptor that reads end-of-file when
 * it has gone, -1 when it could not be started. *gone is set when the attempt's folder was
 * not there any more, or was no folder: nothing in the new one says whether its command ran. */
int launch_sweeper(struct daemon *d, const struct job *job, bool *gone, struct err *e);

/* Whether folders and logs can be written: does what a start would do there, and undoes it. */
int launch_try_folders(struct daemon *d, struct err *e);

/* The name of an attempt's folder, "12.1", into out (at least 32 bytes); returns out. */
char *launch_folder(uint32_t job, int32_t attempt, char *out);

/* Removes an attempt's folder; its lock must be free or its shepherd about to leave. One that
 * stays is told in the log and tried again later; the other only returns why (an errno). */
int launch_try_remove_folder(struct daemon *d, uint32_t job, int32_t attempt);
void launch_remove_folder(struct daemon *d, uint32_t job, int32_t attempt);

/* log_names.c. Where a job's output goes: the pattern it asked for, filled in, or the
 * instance's place. The caller frees. */
char *launch_log_path(const struct daemon *d, const struct job *job);
/* Where its standard error goes; NULL: into the log. The caller frees. */
char *launch_error_path(const struct daemon *d, const struct job *job);

/* Appends the name of the screen session of a job that has or had an attempt. */
void launch_screen_name(const struct daemon *d, const struct job *job, struct buf *out);

/* The socket of an interactive job's current attempt; NULL: it is not interactive, or has not
 * been started. The caller frees. */
char *launch_attach_path(const struct daemon *d, const struct job *job);

/* Words about a limit of memory that the job asks for and that nothing here enforces; NULL:
 * there is none. The caller frees. */
char *launch_unenforced(const struct daemon *d, const struct job *job);

/* Whether a job of now can open no cards but its own. */
bool launch_filters_devices(const struct daemon *d);

/* The groups that something of the job's is to run in, with its limits and the cards that it
 * may open, as a spec or an order has them. name: of the groups; NULL: those of the attempt. */
void launch_write_groups(const struct daemon *d, const struct job *job, const char *name,
                         struct jsonw *w);

#endif
