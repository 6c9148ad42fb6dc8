/* The command in a container: what is executed in its place, and what came of it. */
#ifndef SHEPHERD_BEGIN_CONTAINER_H
#define SHEPHERD_BEGIN_CONTAINER_H

#include <stdbool.h>

#include "base/buf.h"

struct command;
struct err;
struct identity;
struct rlimits;
struct spec;

/* What to execute. */
struct container_run {
    char **argv, **env; /* owned; their texts are in the two below */
    struct buf words, variables;
    int mark_fd; /* becomes the program's descriptor 3; -1: it has none. The caller closes */
};
#define CONTAINER_RUN_INIT                                                                     \
    {                                                                                          \
        .mark_fd = -1                                                                          \
    }
#define auto_container __attribute__((cleanup(container_clear)))

/* argv: the spec's, or one that means the same; script: what it finds in /dev/fd/3, NULL:
 * nothing. -1 with words: the machine has not what it needs. */
int container_prepare(const struct spec *spec, char *const *argv, char *const *env,
                      const struct identity *id, const struct rlimits *limits,
                      const char *script, struct container_run *out, struct err *e);
void container_clear(struct container_run *run);

/* How far the command came: the lines in such a file, which a container's first process
 * writes. */
struct container_end {
    bool begun;  /* it was executed, or that failed */
    int errnum;  /* why it could not be executed; 0 */
    int trouble; /* why that was not tried: an errno; 0. It has not begun then */
    int code;    /* its exit code; -1 */
    int signal;  /* that ended it; 0 */
};
void container_read_end(int mark_fd, struct container_end *out);
bool container_has_ended(int mark_fd);

/* Podman's own variables, each with its NUL: the job's, without those that mislead it. cards:
 * the list for NVIDIA's hook, where that and no CDI brings the GPUs in. */
void container_add_podman_env(char *const *env, const char *cards, struct buf *out);

/* Where podman and what it executes are looked for. */
#define CONTAINER_FOLDERS "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"

#endif
