/* See clock_watch.h. Called with each sample, and when the daemon is idle. */
#include "daemon/common/clock_watch.h"

#include "base/clock.h"
#include "base/log.h"

#define JUMP_US INT64_C(1000000) /* NTP slewing stays below */

void
clock_watch_look(struct clock_watch *k)
{
    int64_t boot_us = clock_boot_us(), offset_us = clock_wall_us() - boot_us;
    int64_t by_us = offset_us - k->offset_us;
    if (k->known && (by_us >= JUMP_US || by_us <= -JUMP_US)) {
        k->jump_us = by_us;
        k->jumped_boot_us = boot_us;
        log_warn("event=clock-jump by_ms=%lld", (long long)(by_us / 1000));
    }
    k->offset_us = offset_us;
    k->known = true;
}
