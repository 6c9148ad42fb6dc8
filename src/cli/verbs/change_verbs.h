/* cancel, hold and release: a selector goes in, the jobs it touched come out. */
#ifndef CLI_VERBS_CHANGE_VERBS_H
#define CLI_VERBS_CHANGE_VERBS_H

#include <stdbool.h>

struct cli;
struct opt_reader;

/* Asks for method on the jobs that the words of r select (all: every job of mine that has
 * not ended) and says what was done, "cancelled job 3". Returns the exit status. */
int change_jobs(const struct cli *cli, const struct opt_reader *r, bool all, const char *method,
                long long grace_ms, const char *done);

#endif
