/* The service manager's protocol: see notify.h. Sends datagrams of lines to the socket that
 * the manager named; a name starting with @ is in the abstract namespace. Called
 * by berthd.c. */
#include "daemon/service/notify.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <uv.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "base/parse.h"
#include "daemon/common/instance.h"

struct notify {
    struct sockaddr_un addr;
    socklen_t addr_len;
    int64_t watchdog_ms; /* between keep-alives; 0: none requested */
    uv_timer_t timer;
    bool is_ticking;
};

/* The watchdog may be meant for another process if a wrapper started us. */
static int64_t
read_watchdog_ms(void)
{
    const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    int64_t us, whose;
    if (!usec || parse_int(usec, 1, INT64_MAX, &us, NULL) < 0)
        return 0;
    if (pid && (parse_int(pid, 1, INT32_MAX, &whose, NULL) < 0 || whose != getpid()))
        return 0;
    return us / 2000 > 0 ? us / 2000 : 1; /* twice as often as required */
}

struct notify *
notify_new(void)
{
    const char *path = getenv("NOTIFY_SOCKET");
    size_t n = path ? strlen(path) : 0;
    struct notify *out = NULL;
    if (n > 1 && n < sizeof out->addr.sun_path && (path[0] == '/' || path[0] == '@')) {
        out = xcalloc(1, sizeof *out);
        out->addr.sun_family = AF_UNIX;
        memcpy(out->addr.sun_path, path, n);
        if (path[0] == '@')
            out->addr.sun_path[0] = '\0';
        out->addr_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
        out->watchdog_ms = read_watchdog_ms();
    }
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
    return out;
}

void
notify_free(struct notify *n)
{
    free(n);
}

static void
say(const struct notify *n, const char *text)
{
    auto_close int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || sendto(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT,
                         (const struct sockaddr *)&n->addr, n->addr_len) < 0)
        log_warn("event=notify-failed the service manager was not told");
}

static void
on_tick(uv_timer_t *timer)
{
    say(timer->data, "WATCHDOG=1\n");
}

void
notify_ready(struct notify *n, struct instance *inst)
{
    if (!n)
        return;
    auto_free char *text = xasprintf("READY=1\nMAINPID=%d\nSTATUS=Listening on %s\n", getpid(),
                                     inst->places.socket);
    say(n, text);
    if (!n->watchdog_ms)
        return;
    uv_timer_init(inst->loop, &n->timer);
    n->timer.data = n;
    uv_timer_start(&n->timer, on_tick, 0, (uint64_t)n->watchdog_ms);
    n->is_ticking = true;
}

void
notify_leaving(struct notify *n)
{
    if (!n)
        return;
    say(n, "STOPPING=1\n");
    if (n->is_ticking)
        uv_close((uv_handle_t *)&n->timer, NULL);
    n->is_ticking = false;
}
