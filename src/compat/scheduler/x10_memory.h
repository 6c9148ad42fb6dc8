/* The memory limit of a scheduler_10x job. */
#ifndef COMPAT_SCHEDULER_X10_MEMORY_H
#define COMPAT_SCHEDULER_X10_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

struct memory_watch {
    int64_t limit_mib; /* 0: none */
    int64_t due_us;    /* boot time of the next look */
    bool is_over;      /* the limit was exceeded, and the processes killed */
};

/* Start to watch all processes below this one. */
void memory_watch_begin(struct memory_watch *w, int64_t limit_mib);
/* If a look is due, measure and kill the processes if above the limit. */
void memory_watch_look(struct memory_watch *w);
/* Timeout for poll until the next look; -1: no limit. */
int memory_watch_wait_ms(const struct memory_watch *w);

#endif
