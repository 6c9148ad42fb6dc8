/* Tests whether a line of a jobs file requests what its waiting job already has: then nothing
 * changes, and no change is reported. Called by method_file.c. */
#include <string.h>

#include "daemon/request/file_sync.h"
#include "spec/attr.h"

_Static_assert(offsetof(struct request, demand) == 0, "a field in front of its end is in it");

bool
file_same_deps(const struct request *a, const struct request *b)
{
    return attr_is_same(attr_of_key("after"), a, b);
}

/* A begin time may be relative to now, so it differs each time the file is read. So the given
 * text is compared if both are known (jobs from version 0.1 lack it). */
bool
file_same_begin(const struct request *a, const struct request *b)
{
    return !a->begin_us == !b->begin_us &&
           (!a->begin_said || !b->begin_said || strcmp(a->begin_said, b->begin_said) == 0);
}

/* Attributes in struct demand are compared as a whole. */
static bool
is_in_demand(const struct attr *row)
{
    return row->kind != ATTR_HOOK && row->kind != ATTR_MAIL && row->at < sizeof(struct demand);
}

bool
file_same_request(const struct request *a, const struct request *b)
{
    const struct attr *row;
    struct demand said = a->demand, stored = b->demand;
    said.user = stored.user = 0; /* set only in the queue */
    if (memcmp(&said, &stored, sizeof said) != 0 || !file_same_begin(a, b))
        return false;
    for (size_t i = 0; (row = attr_at(i)); i++)
        if (!row->settled && !is_in_demand(row) && !attr_is_same(row, a, b))
            return false;
    return true;
}
