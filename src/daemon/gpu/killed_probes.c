/* See killed_probes.h. A process in the kernel's uninterruptible sleep (state D) stays until
 * the call returns, which may be never, and counts against the limit on the service's
 * processes. Its pidfd tells whether it has ended, so that no other process is mistaken for
 * it. */
#include "daemon/gpu/killed_probes.h"

#include <poll.h>
#include <stdbool.h>
#include <unistd.h>

static bool
has_ended(int pidfd)
{
    struct pollfd p = {.fd = pidfd, .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

int
killedprobes_count(struct killed_probes *k)
{
    int n = 0;
    for (int i = 0; i < k->n; i++) {
        if (has_ended(k->pidfds[i]))
            close(k->pidfds[i]);
        else
            k->pidfds[n++] = k->pidfds[i];
    }
    k->n = n;
    return n;
}

void
killedprobes_add(struct killed_probes *k, int pidfd)
{
    if (pidfd < 0)
        return;
    if (killedprobes_count(k) == KILLED_PROBES_MAX)
        close(pidfd);
    else
        k->pidfds[k->n++] = pidfd;
}

void
killedprobes_close(struct killed_probes *k)
{
    for (int i = 0; i < k->n; i++)
        close(k->pidfds[i]);
    k->n = 0;
}
