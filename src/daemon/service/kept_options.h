/* Keeps the options that an instance was started with. A client that finds its daemon dead
 * starts another without knowing them, so they stay in the state folder as long as jobs queued
 * under them exist. */
#ifndef DAEMON_SERVICE_KEPT_OPTIONS_H
#define DAEMON_SERVICE_KEPT_OPTIONS_H

struct err;
struct options;

/* Without --config and --set, fills in the stored ones, if any. They live as long as the
 * process. state: path of the state folder. */
int recall_options(const char *state, struct options *o, struct err *e);

/* Stores those of *o (or that there are none), once this daemon owns the folder. */
int recall_write(const char *state, const struct options *o, struct err *e);

/* Call when no job queued under them is left. */
void recall_forget(const char *state);

#endif
