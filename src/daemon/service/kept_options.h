/* What an instance was started with. A client that finds its daemon dead starts another, and
 * knows nothing of the settings that the first was given: they lie in the state folder for as
 * long as there are jobs that were queued under them. */
#ifndef DAEMON_SERVICE_KEPT_OPTIONS_H
#define DAEMON_SERVICE_KEPT_OPTIONS_H

struct err;
struct options;

/* Without --config and --set: those that are remembered, if any, into *o. They live as long as
 * the process. state: the path of the folder. */
int recall_options(const char *state, struct options *o, struct err *e);

/* Remembers those of *o (or that there are none), once the folder is this daemon's. */
int recall_write(const char *state, const struct options *o, struct err *e);

/* Nothing is left that was queued under them. */
void recall_forget(const char *state);

#endif
