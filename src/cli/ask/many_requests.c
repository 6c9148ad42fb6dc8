/* Splits long selections into several requests: see many_requests.h. */
#include "cli/ask/many_requests.h"

#include "base/cleanup.h"
#include "wire/client.h"

#define AT_ONCE 500

/* A copy of params with only the words from..from+AT_ONCE of the selection. */
static json_t *
part_of(const json_t *params, const json_t *words, size_t from)
{
    json_t *part = json_copy((json_t *)params), *some = json_array(); /* a shallow copy */

    for (size_t i = from; i < from + AT_ONCE && i < json_array_size(words); i++)
        json_array_append(some, json_array_get(words, i));
    json_object_set_new(part, "select", some);
    return part;
}

static void
join(json_t *all, const json_t *more)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)more, key, value) /* the macro rejects const */
    {
        json_t *have = json_object_get(all, key);
        if (json_is_array(have) && json_is_array(value))
            json_array_extend(have, value);
        else if (json_is_object(have) && json_is_object(value))
            json_object_update(have, value);
        else if (!have)
            json_object_set(all, key, value);
    }
}

int
many_call(struct client *c, const char *method, json_t *params, json_t **result, struct err *e)
{
    const json_t *words = json_object_get(params, "select");
    size_t n = json_array_size(words);
    auto_json json_t *kept = params;
    auto_json json_t *all = NULL;

    if (n <= AT_ONCE)
        return client_call(c, method, TAKE(kept), result, e);
    for (size_t from = 0; from < n; from += AT_ONCE) {
        auto_json json_t *answer = NULL;
        if (client_call(c, method, part_of(params, words, from), &answer, e) < 0)
            return -1;
        if (!all)
            all = TAKE(answer);
        else
            join(all, answer);
    }
    if (result)
        *result = TAKE(all);
    return 0;
}
