/* What this process takes of the machine, from /proc. */
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

/* Where the program of that name is that was installed beside this one, which an upgrade may
 * have replaced meanwhile. The caller frees. */
char *self_sibling(const char *name);

/* What the machine has of memory for new work, and in all; -1: not known. */
void self_read_memory(int64_t *available_bytes, int64_t *total_bytes);

#endif
