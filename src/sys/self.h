/* This process's use of the machine's resources, from /proc. */
#ifndef SYS_SELF_H
#define SYS_SELF_H

#include <stdint.h>

struct self {
    int64_t resident_bytes;
    int64_t cpu_us; /* user and system */
    int open_fds;
    int64_t max_fds;
}; /* -1: not known */

void self_read(struct self *out);

/* The path of an installed program beside this one; an upgrade may have replaced this one
 * meanwhile. The caller frees. */
char *self_sibling(const char *name);

/* The machine's memory available for new work, and in total; -1: not known. */
void self_read_memory(int64_t *available_bytes, int64_t *total_bytes);

#endif
