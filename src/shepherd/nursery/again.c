/* Runs attempts one after the other in one process: see again.h. Forking a supervisor, copying
 * the pages it writes to and waiting for its end is half the cost of a supervisor for a short
 * job. nursery_main.c calls this; children.c is the other side.
 *
 * Only attempts that wait for `go` are handed over. If this process dies between packet and
 * `go`, the daemon treats it as a supervisor that exited before it began, and has another one
 * forked. Nothing may leak from one attempt into the next: all descriptors are closed in
 * between, no process is left, and usage is counted by process (outcome.c). A signal meant to
 * end this process ends it here instead of the next job. */
#include "shepherd/nursery/again.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/libc.h"
#include "shepherd/nursery/packet.h"
#include "sys/signals.h"

/* How long to wait for another attempt: enough for jobs in quick succession. */
#define IDLE_MS 1000
/* After this many attempts a new process replaces this one, in case anything accumulates. */
#define ATTEMPTS_MAX 100

/* Closes everything except the standard descriptors and the socket to the nursery. */
static void
close_all(void)
{
    for (int fd = FD_CTL; fd <= FD_FOLDER; fd++)
        close(fd);
    libc_close_from(FD_NURSERY + 1);
}

/* Waits for a packet. On a timeout the socket is shut down for reading, so no later packet can
 * be lost; one that arrived just before is still read. False: this process must exit. */
static bool
await_packet(int signals)
{
    struct pollfd p[] = {{.fd = FD_NURSERY, .events = POLLIN},
                         {.fd = signals, .events = POLLIN}};
    int rc = poll(p, 2, IDLE_MS);
    if (rc == 0)
        (void)shutdown(FD_NURSERY, SHUT_RD);
    return rc >= 0 && !p[1].revents;
}

/* Receives the next attempt and puts its descriptors in place; false: there is none. */
static bool
take_next(void)
{
    static const char idle = AGAIN_IDLE;
    char kind;
    int fds[NURSERY_FDS];
    close_all();
    int signals =
        packet_move_up(signals_to_fd((const int[]){SIGTERM, NURSERY_UNIT_STOPS, 0}, NULL));
    if (signals < 0 || send(FD_NURSERY, &idle, 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1 ||
        !await_packet(signals) || packet_receive(FD_NURSERY, &kind, fds) != 1)
        return false;
    struct pollfd p = {.fd = signals, .events = POLLIN};
    if (poll(&p, 1, 0) != 0)
        return false;
    close(signals);
    return kind == NURSERY_AHEAD && packet_put_in_place(fds);
}

int
again_run(bool ahead)
{
    for (int n = 1;; n++) {
        bool clean = false;
        int status = attempt_run(ahead, &clean);
        if (!clean || n == ATTEMPTS_MAX || !take_next())
            return status;
        ahead = true;
    }
}
