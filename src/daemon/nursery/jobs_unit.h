/* Where jobs live: a unit of the service manager that is not the daemon's, where there is
 * one. */
#ifndef DAEMON_NURSERY_JOBS_UNIT_H
#define DAEMON_NURSERY_JOBS_UNIT_H

#include <stdbool.h>

struct buf;
struct err;

#define JOBSUNIT_ARGS_MAX 24

/* The start of a command line that runs the rest of it in a scope of its own. */
struct jobsunit_scope {
    char *texts[JOBSUNIT_ARGS_MAX]; /* owned */
    int n;
    char *runtime_dir; /* owned; XDG_RUNTIME_DIR for it, if that is not set; or NULL */
};

/* Whether a scope can be asked for: of the machine's service manager by root, of the user's own
 * by others. base: "berth-" and eight hex digits; part of the scope's name. */
bool jobsunit_scope_find(const char *base, struct jobsunit_scope *out);
void jobsunit_scope_free(struct jobsunit_scope *s);

/* Starts an instance of the template unit ("berth-jobs@") whose process connects to a socket
 * that is named after the instance, and returns that connection (O_CLOEXEC, the caller's). -1
 * when it does not come within the time. */
int jobsunit_start(const char *template_unit, const char *base, int patience_ms, struct err *e);

#endif
