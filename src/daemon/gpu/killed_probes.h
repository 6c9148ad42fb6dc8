/* Probes that were killed but may not have ended: a process that hangs in a driver call does
 * not die. Called by prober.c, which starts no further probe while several are left. */
#ifndef DAEMON_GPU_KILLED_PROBES_H
#define DAEMON_GPU_KILLED_PROBES_H

/* More than can be left: prober.c runs two at a time, and starts none while two killed ones
 * are left. */
#define KILLED_PROBES_MAX 8

/* Zero-initialise. */
struct killed_probes {
    int n;
    int pidfds[KILLED_PROBES_MAX];
};

/* Takes ownership of pidfd; -1: the process cannot be watched, and does not count. */
void killedprobes_add(struct killed_probes *k, int pidfd);
/* The number of killed probes that have not ended yet. */
int killedprobes_count(struct killed_probes *k);
void killedprobes_close(struct killed_probes *k);

#endif
