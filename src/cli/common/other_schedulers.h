/* What hands that know another scheduler type first: Slurm's commands, the verbs and options of
 * gflow, pueue and task-spooler. Nothing of it is understood; what it is called here is
 * said. */
#ifndef CLI_COMMON_OTHER_SCHEDULERS_H
#define CLI_COMMON_OTHER_SCHEDULERS_H

struct opt;

/* "berth queue" for "squeue" or "ls"; NULL: nothing is known of the word. */
const char *habit_verb(const char *word);

/* What to say in the place of the option (without dashes), as in "--gpus 2", where the verb
 * with this table has that; NULL. */
const char *habit_option(const struct opt *table, const char *name);

#endif
