/* What the daemon sends to the nursery of shepherds (shepherd/nursery/nursery_main.c): a
 * packet with one of these bytes and three descriptors: connection, lock, folder. If no
 * process can be forked, the nursery sends {"event":"not_forked","errno":N} on the connection
 * and closes it. */
#ifndef SYS_NURSERY_PACKETS_H
#define SYS_NURSERY_PACKETS_H

#include <signal.h>
#include <stdint.h>

struct buf;

#define NURSERY_ATTEMPT 'a' /* supervise the attempt */
/* As NURSERY_ATTEMPT, but the start is not durable yet: the supervisor gets ready and starts
 * nothing until it receives NURSERY_GO on the connection. If the connection closes first, the
 * attempt never existed. Only for a nursery whose hello has "ahead". */
#define NURSERY_AHEAD   'g'
#define NURSERY_GO      "go\n"
#define NURSERY_SWEEP   's' /* end the leftovers of an attempt whose shepherd died */
#define NURSERY_DELIVER 'd' /* the second holds what to deliver; the third is unused */
/* Keep an MPS control daemon: the second descriptor holds the order, the third is the GPU's
 * folder. The first is closed once the job that needs it has joined. */
#define NURSERY_MPS 'm'
/* Fork, send {"event":"tried"} on the first descriptor and exit; the others are unused. */
#define NURSERY_TRY 't'

/* The signal with which the service manager stops a unit of jobs (KillSignal= of that unit):
 * supervisors end their jobs. The default action ignores it, so jobs do not receive a fatal
 * signal directly: their supervisor must stop them, and records the reason. */
#define NURSERY_UNIT_STOPS SIGURG

#define NURSERY_FDS 3

/* Appends the line that asks a supervisor to end its attempt. why: "preempt", "requeue",
 * "exceed"; NULL: a user cancels it. by: the user, for the record; NULL: nobody. */
void nursery_add_cancel(struct buf *out, const char *why, const char *by, int64_t grace_ms);

/* Sends a packet over a SEQPACKET socket; flags as for sendmsg. -1 with errno. */
int nursery_send_packet(int to, char kind, const int fds[NURSERY_FDS], int flags);

#endif
