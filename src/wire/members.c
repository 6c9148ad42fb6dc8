/* Members of JSON objects by a table; see members.h. */
#include "wire/members.h"

#include <string.h>

#include "base/err.h"

static int
must_be(const char *key, const char *what, struct err *e)
{
    return err_set(e, ERR_USAGE, "\"%s\" must be %s", key, what);
}

static int
read_number(const json_t *v, const struct member *m, void *to, struct err *e)
{
    json_int_t n = json_integer_value(v);

    if (!json_is_integer(v) || n < m->min || n > m->max)
        return m->max == INT64_MAX
                   ? err_set(e, ERR_USAGE, "\"%s\" must be a whole number of %lld or more",
                             m->key, (long long)m->min)
                   : err_set(e, ERR_USAGE, "\"%s\" must be a whole number from %lld to %lld",
                             m->key, (long long)m->min, (long long)m->max);
    switch (m->size) {
    case sizeof(int16_t):
        *(int16_t *)to = (int16_t)n;
        return 0;
    case sizeof(int32_t):
        *(int32_t *)to = (int32_t)n;
        return 0;
    case sizeof(int64_t):
        *(int64_t *)to = n;
        return 0;
    }
    err_abort("%s has %zu bytes", m->key, m->size);
}

static int
read_chars(const json_t *v, const struct member *m, char *to, struct err *e)
{
    const char *s = json_string_value(v);
    size_t n = json_string_length(v);

    if (!s)
        return must_be(m->key, "a string", e);
    if (n >= m->size) {
        n = m->size - 1;
        while (n > 0 && ((unsigned char)s[n] & 0xc0) == 0x80)
            n--;
    }
    memcpy(to, s, n);
    to[n] = '\0';
    return 0;
}

static int
read_list(const json_t *v, const struct member *m, char ***to, struct err *e)
{
    const json_t *item;
    size_t i;

    if (v && !json_is_null(v) && !json_is_array(v))
        return must_be(m->key, "a list of strings", e);
    *to = xcalloc(json_array_size(v) + 1, sizeof **to);
    json_array_foreach(v, i, item)
    {
        (*to)[i] = (char *)json_string_value(item);
        if (!(*to)[i])
            return must_be(m->key, "a list of strings", e);
    }
    return 0;
}

static int
read_member(const json_t *v, const struct member *m, void *to, struct err *e)
{
    switch (m->kind) {
    case MEMBER_NUMBER:
        return read_number(v, m, to, e);
    case MEMBER_TEXT:
        *(const char **)to = json_string_value(v);
        return json_is_string(v) ? 0 : must_be(m->key, "a string", e);
    case MEMBER_CHARS:
        return read_chars(v, m, to, e);
    case MEMBER_LIST:
        return read_list(v, m, to, e);
    case MEMBER_FLAG:
        *(bool *)to = json_is_true(v);
        return 0;
    }
    err_abort("%s is of kind %d", m->key, (int)m->kind);
}

int
members_read(const json_t *object, const struct member *table, void *out, struct err *e)
{
    for (const struct member *m = table; m->key; m++) {
        const json_t *v = json_object_get(object, m->key);

        if (!m->needed && m->kind != MEMBER_LIST && (!v || json_is_null(v)))
            continue;
        if (read_member(v, m, (char *)out + m->at, e) < 0)
            return -1;
    }
    return 0;
}
