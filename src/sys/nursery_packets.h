/* What the daemon sends to the nursery of shepherds (shepherd/nursery/nursery_main.c): a packet
 * of one of these bytes, with three descriptors: connection, lock, folder. Where no process can
 * be forked the nursery says {"event":"not_forked","errno":N} on the connection before it
 * closes. */
#ifndef SYS_NURSERY_PACKETS_H
#define SYS_NURSERY_PACKETS_H

#include <signal.h>
#include <stdint.h>

struct buf;

#define NURSERY_ATTEMPT 'a' /* supervise the attempt */
/* The same, of one whose start is not durable yet: the supervisor gets ready, and starts
 * nothing before it hears NURSERY_GO on the connection. If that is closed first, it was never
 * there. Only for a nursery whose hello has "ahead". */
#define NURSERY_AHEAD   'g'
#define NURSERY_GO      "go\n"
#define NURSERY_SWEEP   's' /* end what is left of one whose shepherd died */
#define NURSERY_DELIVER 'd' /* the second holds what to deliver; the third plays no part */
/* Keep a control daemon of MPS: the second holds the order, the third is the card's folder. The
 * first is closed once the job that it is for has come. */
#define NURSERY_MPS 'm'
/* Fork, say {"event":"tried"} on the first and end; no part for others. */
#define NURSERY_TRY 't'

/* The signal by which the service manager stops a unit of jobs (KillSignal= of that unit):
 * supervisors have their jobs end. Ignored by all that do not ask for it, as a job must be
 * stopped by its supervisor, which then says why it ended. */
#define NURSERY_UNIT_STOPS SIGURG

#define NURSERY_FDS 3

/* The line by which a supervisor is asked to end its attempt, appended. why: "preempt",
 * "requeue", "exceed"; NULL: a user cancels it. by: for the record; NULL: nobody. */
void nursery_add_cancel(struct buf *out, const char *why, const char *by, int64_t grace_ms);

/* Sends a packet over a SEQPACKET socket; flags are those of sendmsg. -1 with errno. */
int nursery_send_packet(int to, char kind, const int fds[NURSERY_FDS], int flags);

#endif
