/* Running the command in a container: what to execute instead of it, and how it ended. */
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
    char **argv, **env; /* owned; their strings are in the two buffers below */
    struct buf words, variables;
    int mark_fd; /* becomes the program's descriptor 3; -1: none. The caller closes it */
};
#define CONTAINER_RUN_INIT                                                                     \
    {                                                                                          \
        .mark_fd = -1                                                                          \
    }
#define auto_container __attribute__((cleanup(container_clear)))

/* argv: the spec's, or an equivalent one; script: content of /dev/fd/3 for the command, NULL:
 * none. -1 with words: the machine lacks something that is needed. */
int container_prepare(const struct spec *spec, char *const *argv, char *const *env,
                      const struct identity *id, const struct rlimits *limits,
                      const char *script, struct container_run *out, struct err *e);
void container_clear(struct container_run *run);

/* The command's progress, from the lines that the container's first process writes to the mark
 * file. */
struct container_end {
    bool begun;  /* the exec was tried */
    int errnum;  /* why the exec failed; 0: it did not */
    int trouble; /* errno that prevented the exec (begun is false); 0 */
    int code;    /* its exit code; -1 */
    int signal;  /* the signal that ended it; 0 */
};
void container_read_end(int mark_fd, struct container_end *out);
bool container_has_ended(int mark_fd);

/* Appends podman's own environment, each variable NUL-terminated: the job's, without those
 * that would mislead podman. cards: the list for NVIDIA's hook, if the hook and not CDI adds
 * the GPUs. */
void container_add_podman_env(char *const *env, const char *cards, struct buf *out);

/* Search path for podman and the programs it executes. */
#define CONTAINER_FOLDERS "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"

#endif
