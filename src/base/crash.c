/* Crash points for recovery tests; see crash.h. The daemon and the shepherd call this wherever
 * a crash must be survived. It costs one getenv if the variable is not set. SIGKILL, not
 * abort, because nothing may get a chance to clean up. */
#include "base/crash.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/parse.h"

/* The call that is due if `wanted` names label: 1, or N if it ends in ":N"; 0: not named. */
static long
wanted_pass(const char *wanted, const char *label)
{
    size_t n = strlen(label);
    int64_t pass = 1;
    if (strncmp(wanted, label, n) != 0)
        return 0;
    if (wanted[n] == '\0')
        return 1;
    if (wanted[n] != ':' || parse_int(wanted + n + 1, 1, 1000000, &pass, NULL) < 0)
        return 0;
    return (long)pass;
}

bool
crash_is_due(const char *label)
{
    static long passes; /* a process counts only one label */
    const char *wanted = getenv("BERTH_CRASH_AT");
    if (!wanted)
        return false;
    long pass = wanted_pass(wanted, label);
    return pass > 0 && ++passes == pass;
}

void
crash_point(const char *label)
{
    if (!crash_is_due(label))
        return;
    kill(getpid(), SIGKILL);
    pause();
}
