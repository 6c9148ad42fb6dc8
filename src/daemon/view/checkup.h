/* Whether all is well with the daemon and what it needs, in words: `health`. Made when somebody
 * asks, from what is known anyway and a few cheap looks at local things; nothing here waits. */
#ifndef DAEMON_VIEW_CHECKUP_H
#define DAEMON_VIEW_CHECKUP_H

#include <stdbool.h>
#include <stdint.h>

struct daemon;
struct jsonw;

/* The wall clock against that which counts from boot; part of struct daemon. */
struct checkup_clock {
    bool known;
    int64_t offset_us;      /* wall - boot, when it was last looked at */
    int64_t jump_us;        /* the newest jump: so far ahead, or (negative) back */
    int64_t jumped_boot_us; /* when it was noticed */
};

/* With each sample: notices when the wall clock has been set. */
void checkup_clock(struct daemon *d);

/* "state" and "checks", into an open object. */
void checkup_write(struct daemon *d, struct jsonw *out);

#endif
