/* Which limits apply to a user. Used by the planner, and by the daemon at submission. */
#include "core/plan/limits.h"

#include "base/search.h"

const struct limit *
limits_of(const struct limits *l, uint32_t uid)
{
    size_t place = search_first(at, l->n_users, l->users[at].uid < uid);

    return place < l->n_users && l->users[place].uid == uid ? &l->users[place].limit : &l->each;
}

bool
limits_bar(const struct limits *l, uint32_t uid)
{
    for (size_t i = 0; i < l->n_barred; i++)
        if (l->barred[i] == uid)
            return true;
    return false;
}
