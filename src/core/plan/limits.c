/* Which limits bind a user. Read by the planner and by the daemon at submission. */
#include "core/plan/limits.h"

const struct limit *
limits_of(const struct limits *l, uint32_t uid)
{
    size_t low = 0, high = l->n_users;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (l->users[mid].uid == uid)
            return &l->users[mid].limit;
        if (l->users[mid].uid < uid)
            low = mid + 1;
        else
            high = mid;
    }
    return &l->each;
}

bool
limits_bar(const struct limits *l, uint32_t uid)
{
    for (size_t i = 0; i < l->n_barred; i++)
        if (l->barred[i] == uid)
            return true;
    return false;
}
