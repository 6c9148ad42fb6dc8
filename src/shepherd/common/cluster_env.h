/* What a node of a cluster says to a job by its environment. */
#ifndef SHEPHERD_COMMON_CLUSTER_ENV_H
#define SHEPHERD_COMMON_CLUSTER_ENV_H

#include <stdbool.h>

/* The list with Slurm's own variables in the place of those that have their names, for which
 * the caller frees list alone: the strings are env's and the process's. all: every SLURM_*
 * variable, else those that say which job it is. */
char **cluster_env(char *const *env, bool all);

#endif
