/* The table of policies. */
#include "sim/textbook/policy.h"

#include <stddef.h>
#include <string.h>

#define AGED_S (4 * 3600)

/* Policies that use run times exist twice: -p uses the true ones (a bound on what is
 * achievable), -e the users' estimates. */
#define TWICE(NAME, HELP, ...)                                                                 \
    {.name = NAME "-p", .help = HELP "; true run times", __VA_ARGS__},                         \
    {                                                                                          \
        .name = NAME "-e", .help = HELP "; users' estimates", .estimates = true, __VA_ARGS__   \
    }

const struct policy policies[] = {
    {.name = "fifo",
     .help = "in order of arrival; the first job that does not fit blocks all others",
     .head = HEAD_OLDEST,
     .blocked = BLOCKED_STOP},
    {.name = "greedy", .help = "in order of arrival; jobs that do not fit are skipped"},
    {.name = "greedy-wf", .help = "greedy, on the emptiest GPUs", .fit = FIT_WORST},
    {.name = "greedy-ff", .help = "greedy, on the first GPUs", .fit = FIT_FIRST},
    {.name = "whole", .help = "greedy without sharing", .fit = FIT_FIRST, .whole = true},
    {.name = "whole-fifo",
     .help = "fifo without sharing",
     .fit = FIT_FIRST,
     .whole = true,
     .head = HEAD_OLDEST,
     .blocked = BLOCKED_STOP},
    TWICE("easy", "in order of arrival, with a reservation for the first blocked job",
          .head = HEAD_OLDEST, .blocked = BLOCKED_RESERVE),
    TWICE("sjbf", "easy, shortest first behind the reservation", .head = HEAD_OLDEST,
          .blocked = BLOCKED_RESERVE, .order = ORDER_SHORTEST),
    TWICE("hrrn", "by response ratio, with a reservation for the first blocked job",
          .head = HEAD_FIRST, .blocked = BLOCKED_RESERVE, .order = ORDER_RATIO),
    TWICE("sjf", "shortest first; long and wide jobs starve", .order = ORDER_SHORTEST),
    TWICE("lpt", "longest first", .order = ORDER_LONGEST),
    TWICE("aged", "shortest first, but the oldest has a reservation after 4 h",
          .head = HEAD_OLDEST, .blocked = BLOCKED_RESERVE, .order = ORDER_SHORTEST,
          .head_age_s = AGED_S),
    {.name = NULL},
};

const struct policy *
policy_find(const char *name)
{
    for (const struct policy *p = policies; p->name; p++) {
        if (strcmp(p->name, name) == 0)
            return p;
    }
    return NULL;
}
