/* Terms that users of other schedulers type by habit: Slurm's commands, and verbs and options
 * of gflow, pueue and task-spooler. Berth does not accept them; it says what to use
 * instead. */
#ifndef CLI_COMMON_OTHER_SCHEDULERS_H
#define CLI_COMMON_OTHER_SCHEDULERS_H

struct opt;

/* "berth queue" for "squeue" or "ls"; NULL: an unknown word. */
const char *habit_verb(const char *word);

/* What to use instead of the option (name without dashes), such as "--gpus 2", if the verb
 * with this table has it; NULL: unknown. */
const char *habit_option(const struct opt *table, const char *name);

#endif
