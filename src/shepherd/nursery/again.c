/* Attempts one after the other in one process: see again.h. To fork a supervisor, copy what it
 * writes to and wait for its end is half of what one costs that has a short job. nursery_main.c
 * calls this; children.c is the other side.
 *
 * Only attempts that wait for `go` are handed over. So whatever becomes of this process between
 * packet and `go`, the daemon takes it for a supervisor that left before it began, and has
 * another one forked. What could reach from one attempt into the next goes in between: all
 * descriptors are closed, no process is left, and usage is counted by process (outcome.c). A
 * signal that was sent to end this process ends it here, rather than the next job. */
#include "shepherd/nursery/again.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/libc.h"
#include "shepherd/nursery/packet.h"
#include "sys/signals.h"

/* So long it waits for another attempt: long enough for jobs that follow each other. */
#define IDLE_MS 1000
/* Then a new process takes its place, lest anything adds up. */
#define ATTEMPTS_MAX 100

/* All but the standard descriptors and the socket to the nursery. */
static void
close_all(void)
{
    for (int fd = FD_CTL; fd <= FD_FOLDER; fd++)
        close(fd);
    libc_close_from(FD_NURSERY + 1);
}

/* Waits for a packet. With the socket shut down for reading none can come any more, so one that
 * came in time is not left lying. False: this process is to end. */
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

/* Whether there is another attempt, which is in place then. */
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
