/* Detects steps of the wall clock. */
#ifndef DAEMON_COMMON_CLOCK_WATCH_H
#define DAEMON_COMMON_CLOCK_WATCH_H

#include <stdbool.h>
#include <stdint.h>

/* Wall clock compared with the boot clock; part of struct instance. */
struct clock_watch {
    bool known;
    int64_t offset_us;      /* wall - boot, when last read */
    int64_t jump_us;        /* the newest step: ahead, or (negative) back */
    int64_t jumped_boot_us; /* when it was detected */
};

/* Reads the clocks, and notes a step. */
void clock_watch_look(struct clock_watch *k);

#endif
