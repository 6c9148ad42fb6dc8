/* Whether a process that a fake driver was given is still alive; for fake_nvml.c and
 * fake_cuda.c, which are libraries of one file each. */
#ifndef TESTS_GPU_ALIVE_H
#define TESTS_GPU_ALIVE_H

#include <stdbool.h>
#include <stdio.h>

/* A zombie counts as dead: it has given its memory back. */
static inline bool
is_alive(long pid)
{
    char path[64], state = 'X';

    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    bool read = fscanf(f, "%*d (%*[^)]) %c", &state) == 1;
    fclose(f);
    return read && state != 'Z' && state != 'X';
}

#endif
