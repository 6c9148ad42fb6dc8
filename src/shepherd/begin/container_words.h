/* The command lines that put a job's command into a container. */
#ifndef SHEPHERD_BEGIN_CONTAINER_WORDS_H
#define SHEPHERD_BEGIN_CONTAINER_WORDS_H

#include <sys/resource.h>
#include <sys/types.h>

struct buf;
struct spec;

/* Borrowed. */
struct container_wish {
    const struct spec *spec; /* must have a container */
    char *const *argv;       /* command to run: the spec's, or an equivalent one */
    const char *home;        /* the user's; NULL: not known */
    const char *init;        /* path of berth-init */
    char *const *cdi;        /* CDI names of its GPUs */
    uid_t uid;
    gid_t gid;
    struct rlimit files, processes;
};

/* Appends the container's command line, each word NUL-terminated. */
void container_add_words(const struct container_wish *w, struct buf *out);

/* Appends the command line that removes what a killed podman may have left. */
void container_add_removal(const struct spec *spec, struct buf *out);

#endif
