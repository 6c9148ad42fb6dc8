/* Starting an attempt that is durable: its shepherd, from what is in its folder. */
#ifndef DAEMON_ATTEMPT_LAUNCH_H
#define DAEMON_ATTEMPT_LAUNCH_H

struct daemon;
struct job;

/* Never fails towards its caller: an attempt that cannot be launched ends as NEVER_RAN, and
 * what kept it from that is the machine's trouble. */
void launch_attempt(struct daemon *d, struct job *job);

#endif
