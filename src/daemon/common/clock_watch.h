/* Whether the wall clock has been set. */
#ifndef DAEMON_COMMON_CLOCK_WATCH_H
#define DAEMON_COMMON_CLOCK_WATCH_H

#include <stdbool.h>
#include <stdint.h>

/* The wall clock against that which counts from boot; part of struct instance. */
struct clock_watch {
    bool known;
    int64_t offset_us;      /* wall - boot, when it was last looked at */
    int64_t jump_us;        /* the newest jump: so far ahead, or (negative) back */
    int64_t jumped_boot_us; /* when it was noticed */
};

/* Notices when it has. */
void clock_watch_look(struct clock_watch *k);

#endif
