/* Reads and writes lists of CPUs: see cpu_list.h. Used by the probe, which reads the CPUs of
 * NUMA nodes from the kernel, by the daemon, and by the supervisor, which binds the job. */
#include "base/cpu_list.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/parse.h"

/* Adds "3" or "0-7"; modifies the text. */
static bool
add_range(char *range, cpu_set_t *out)
{
    char *dash = strchr(range, '-');
    int64_t first, last;

    if (dash)
        *dash++ = '\0';
    if (parse_int(range, 0, CPU_SETSIZE - 1, &first, NULL) < 0)
        return false;
    last = first;
    if (dash && parse_int(dash, first, CPU_SETSIZE - 1, &last, NULL) < 0)
        return false;
    for (int64_t cpu = first; cpu <= last; cpu++)
        CPU_SET((size_t)cpu, out);
    return true;
}

bool
cpu_list_read(const char *text, cpu_set_t *out)
{
    size_t n = strcspn(text, "\n");
    auto_free char *copy = xstrndup(text, n);
    char *rest = copy, *range;

    CPU_ZERO(out);
    while ((range = strsep(&rest, ","))) {
        if (add_range(range, out))
            continue;
        CPU_ZERO(out);
        return false;
    }
    return true;
}

void
cpu_list_add(const cpu_set_t *set, struct buf *out)
{
    const char *between = "";

    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        size_t last = cpu;
        if (!CPU_ISSET(cpu, set))
            continue;
        while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, set))
            last++;
        buf_addf(out, "%s%zu", between, cpu);
        if (last > cpu)
            buf_addf(out, "-%zu", last);
        between = ",";
        cpu = last;
    }
}
