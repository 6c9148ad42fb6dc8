/* The placement rule without bookkeeping: whether a GPU has room, and which of two GPUs with
 * room comes first. The daemon uses it through place.c, over a ledger; the simulator through
 * node.c, over plain numbers. Neither has a rule of its own. */
#ifndef CORE_PLACE_FIT_H
#define CORE_PLACE_FIT_H

#include <stdbool.h>
#include <stdint.h>

enum fit_rule {
    FIT_BEST,  /* pack: the smallest sufficient headroom */
    FIT_WORST, /* spread: the largest */
    FIT_FIRST, /* lowest number */
};

/* The margin is needed once beside the arriving job; margins do not add up. */
static inline bool
fit_has_room(int64_t headroom_mib, int64_t vram_mib, int64_t margin_mib)
{
    return headroom_mib >= vram_mib + margin_mib;
}

/* Ties go to the lower number. */
static inline bool
fit_precedes(enum fit_rule rule, int64_t room_a, int a, int64_t room_b, int b)
{
    if (rule == FIT_FIRST || room_a == room_b)
        return a < b;
    return rule == FIT_BEST ? room_a < room_b : room_a > room_b;
}

#endif
