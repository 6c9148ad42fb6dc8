/* Crash points for tests of recovery; see crash.h. The daemon and the shepherd call this at
 * every edge where one of them may die. Costs one getenv when the variable is not set, and
 * SIGKILL (not abort) because nothing may get a chance to clean up. */
#include "base/crash.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/parse.h"

/* Which pass is wanted when `wanted` names label: 1 unless it ends in ":N"; 0: not named. */
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
    static long passes; /* only one label is ever counted in a process */
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
