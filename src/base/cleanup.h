/* Scope-bound clean-up: a variable marked auto_* releases what it owns when it goes out
 * of scope; TAKE() hands it on instead. */
#ifndef BASE_CLEANUP_H
#define BASE_CLEANUP_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void
cleanup_free(void *p)
{
    free(*(void **)p);
}

static inline void
cleanup_close(const int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

static inline void
cleanup_fclose(FILE **f)
{
    if (*f)
        fclose(*f);
}

static inline void
cleanup_closedir(DIR **d)
{
    if (*d)
        closedir(*d);
}

#define auto_free   __attribute__((cleanup(cleanup_free)))
#define auto_close  __attribute__((cleanup(cleanup_close)))
#define auto_fclose __attribute__((cleanup(cleanup_fclose)))
#define auto_dir    __attribute__((cleanup(cleanup_closedir)))

/* The pointer's value, which the caller now owns; the variable becomes NULL. */
#define TAKE(p)                                                                                \
    ({                                                                                         \
        __typeof__(p) take_ = (p);                                                             \
        (p) = NULL;                                                                            \
        take_;                                                                                 \
    })

/* The descriptor's value, which the caller now owns; the variable becomes -1. */
#define TAKE_FD(fd)                                                                            \
    ({                                                                                         \
        int take_ = (fd);                                                                      \
        (fd) = -1;                                                                             \
        take_;                                                                                 \
    })

#endif
