/* Reading the daemon's answers; see answer.h. */
#include "cli/ask/answer.h"

#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/text.h"

const char *
answer_str(const json_t *object, const char *key)
{
    const char *s = json_string_value(json_object_get(object, key));

    return s ? s : "";
}

int64_t
answer_int(const json_t *object, const char *key, int64_t otherwise)
{
    const json_t *v = json_object_get(object, key);

    if (json_is_integer(v))
        return json_integer_value(v);
    return json_is_real(v) ? (int64_t)json_real_value(v) : otherwise;
}

bool
answer_bool(const json_t *object, const char *key)
{
    return json_is_true(json_object_get(object, key));
}

int64_t
answer_time_us(const json_t *object, const char *key)
{
    const json_t *unix_s = json_object_get(json_object_get(object, key), "unix");

    return json_is_number(unix_s) ? (int64_t)(json_number_value(unix_s) * 1e6) : 0;
}

json_t *
answer_list(const json_t *result, const char *key, struct err *e)
{
    json_t *list = json_object_get(result, key);

    if (json_is_array(list))
        return list;
    err_set(e, ERR_FAILED,
            "the daemon's answer has no \"%s\": it has another version than this program; "
            "restart it with this version",
            key);
    return NULL;
}

void
answer_add_gpus(struct buf *out, const json_t *gpus)
{
    size_t i;
    const json_t *g;

    json_array_foreach(gpus, i, g)
    {
        const json_t *index = json_is_object(g) ? json_object_get(g, "index") : g;

        if (json_is_integer(index))
            buf_addf(out, "%s%lld", i ? "," : "", (long long)json_integer_value(index));
    }
}

/* Appends a task as "12_3", any other job as the number under key. */
static void
add_job(struct buf *out, const json_t *object, const char *key)
{
    int64_t array = answer_int(object, "array_job", 0);

    if (array > 0)
        buf_addf(out, "%lld_%lld", (long long)array,
                 (long long)answer_int(object, "array_task", 0));
    else
        buf_addf(out, "%lld", (long long)answer_int(object, key, 0));
}

void
answer_add_id(struct buf *out, const json_t *job)
{
    add_job(out, job, "id");
}

void
answer_add_holder(struct buf *out, const json_t *hold)
{
    add_job(out, hold, "job");
}

void
answer_add_array(struct buf *out, const json_t *array)
{
    int64_t max = answer_int(array, "max", 0);

    if (!answer_str(array, "pending")[0])
        return;
    buf_addf(out, "_[%s", answer_str(array, "pending"));
    if (max > 0)
        buf_addf(out, "%%%lld", (long long)max);
    buf_addc(out, ']');
}

void
answer_add_words(struct buf *out, const json_t *words)
{
    size_t i;
    const json_t *word;

    json_array_foreach(words, i, word) buf_addf(
        out, "%s%s", i ? "," : "", json_is_string(word) ? json_string_value(word) : "");
}

void
answer_add_options(struct buf *out, const json_t *words)
{
    size_t i;
    const json_t *word;

    json_array_foreach(words, i, word)
    {
        const char *text = json_is_string(word) ? json_string_value(word) : "";

        buf_adds(out, i ? " " : "");
        text_add_safe(out, text, strlen(text), 0);
    }
}

bool
answer_has_word(const json_t *words, const char *word)
{
    size_t i;
    const json_t *has;

    json_array_foreach(words, i, has)
    {
        if (json_is_string(has) && strcmp(json_string_value(has), word) == 0)
            return true;
    }
    return false;
}

void
answer_add_after(struct buf *out, const json_t *after)
{
    size_t i;
    const json_t *dep;

    json_array_foreach(after, i, dep)
    {
        const char *type = answer_str(dep, "type");

        buf_addf(out, "%s%lld", i ? ", " : "", (long long)answer_int(dep, "job", 0));
        if (answer_int(dep, "task", -1) >= 0)
            buf_addf(out, "_%lld", (long long)answer_int(dep, "task", 0));
        if (type[0] && strcmp(type, "success") != 0)
            buf_addf(out, " %s", type);
    }
}

int64_t
answer_peak(const json_t *peak_mib)
{
    int64_t most = -1;
    const char *gpu;
    json_t *mib;

    json_object_foreach((json_t *)peak_mib, gpu, mib)
    {
        if (json_is_number(mib) && (int64_t)json_number_value(mib) > most)
            most = (int64_t)json_number_value(mib);
    }
    return most;
}

void
answer_add_peaks(struct buf *out, const json_t *peak_mib)
{
    char size[24];
    const char *gpu;
    json_t *mib;
    bool first = true;

    if (json_object_size(peak_mib) == 0) {
        buf_adds(out, "n/a");
        return;
    }
    json_object_foreach((json_t *)peak_mib, gpu, mib)
    {
        format_mib(json_is_number(mib) ? (int64_t)json_number_value(mib) : -1, size);
        if (json_object_size(peak_mib) > 1)
            buf_addf(out, "%sgpu %s: %s", first ? "" : ", ", gpu, size);
        else
            buf_adds(out, size);
        first = false;
    }
}
