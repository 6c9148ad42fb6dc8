/* The limit of memory of a job of scheduler_10x. */
#ifndef COMPAT_SCHEDULER_X10_MEMORY_H
#define COMPAT_SCHEDULER_X10_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

struct memory_watch {
    int64_t limit_mib; /* 0: none */
    int64_t due_us;    /* the next look, on the boot clock */
    bool is_over;      /* they had more, and were killed */
};

/* Of all processes below this one, from here on. */
void memory_watch_begin(struct memory_watch *w, int64_t limit_mib);
/* Looks when it is time, and kills what has more. */
void memory_watch_look(struct memory_watch *w);
/* How long poll may wait until then; -1: for ever. */
int memory_watch_wait_ms(const struct memory_watch *w);

#endif
