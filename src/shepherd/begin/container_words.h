/* The command lines that put a job's command into a container. */
#ifndef SHEPHERD_BEGIN_CONTAINER_WORDS_H
#define SHEPHERD_BEGIN_CONTAINER_WORDS_H

#include <sys/resource.h>
#include <sys/types.h>

struct buf;
struct spec;

/* Borrowed. */
struct container_wish {
    const struct spec *spec; /* with a container */
    char *const *argv;       /* what is to run in it: the spec's, or one that means the same */
    const char *home;        /* of its user; NULL: not known */
    const char *init;        /* berth-init */
    char *const *cdi;        /* CDI names of its cards */
    uid_t uid;
    gid_t gid;
    struct rlimit files, processes;
};

/* Appends the words that execute it, each with a NUL behind it. */
void container_add_words(const struct container_wish *w, struct buf *out);

/* The same of the command that removes what a killed podman may have left. */
void container_add_removal(const struct spec *spec, struct buf *out);

#endif
