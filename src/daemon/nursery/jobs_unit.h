/* The unit that jobs live in: separate from the daemon's, if there is a service manager. */
#ifndef DAEMON_NURSERY_JOBS_UNIT_H
#define DAEMON_NURSERY_JOBS_UNIT_H

#include <stdbool.h>

struct buf;
struct err;

#define JOBSUNIT_ARGS_MAX 24

/* Start of a command line that runs the rest of it in a new scope. */
struct jobsunit_scope {
    char *texts[JOBSUNIT_ARGS_MAX]; /* owned */
    int n;
    char *runtime_dir; /* owned; XDG_RUNTIME_DIR to use instead of ours; or NULL */
};

/* True if a scope can be requested: from the machine's service manager for root, from the
 * user's own otherwise. base: "berth-" and eight hex digits, part of the scope's name. */
bool jobsunit_scope_find(const char *base, struct jobsunit_scope *out);
void jobsunit_scope_free(struct jobsunit_scope *s);

/* Starts an instance of the template unit ("berth-jobs@"), whose process connects to a socket
 * named after the instance. Returns that connection (O_CLOEXEC, owned by the caller); -1 if it
 * does not arrive within patience_ms. */
int jobsunit_start(const char *template_unit, const char *base, int patience_ms, struct err *e);

#endif
