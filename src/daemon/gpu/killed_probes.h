/* Probes that were killed: one that hangs in a call of the driver does not end by that. Called
 * by prober.c, which starts no other while several are left. */
#ifndef DAEMON_GPU_KILLED_PROBES_H
#define DAEMON_GPU_KILLED_PROBES_H

/* More than can be left: prober.c has two at a time, and starts none beside two killed ones. */
#define KILLED_PROBES_MAX 8

/* Zero-initialise. */
struct killed_probes {
    int n;
    int pidfds[KILLED_PROBES_MAX];
};

/* Takes the descriptor over; -1: the process cannot be watched, and does not count. */
void killedprobes_add(struct killed_probes *k, int pidfd);
/* How many have not ended yet. */
int killedprobes_count(struct killed_probes *k);
void killedprobes_close(struct killed_probes *k);

#endif
