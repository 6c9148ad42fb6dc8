/* Filters the jobs that `berth top` lists; see top_filter.h. */
#include "cli/top/top_filter.h"

#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/parse.h"
#include "base/request.h"
#include "cli/ask/answer.h"
#include "cli/table/render.h"
#include "wire/client.h"

static bool
has_text(const struct row *row, enum field f, const char *word)
{
    auto_buf struct buf text = BUF_INIT;

    scan_add(&text, &row->v[f]);
    return strcasestr(buf_str(&text), word) != NULL;
}

static bool
begins(const struct row *row, enum field f, const char *word)
{
    auto_buf struct buf text = BUF_INIT;

    scan_add(&text, &row->v[f]);
    return strncasecmp(buf_str(&text), word, strlen(word)) == 0;
}

static bool
is_on_gpu(const struct row *row, const char *word)
{
    auto_json json_t *gpus = row->v[F_GPUS].len > 2 ? scan_tree(&row->v[F_GPUS]) : NULL;
    int64_t index = -1;
    size_t i;
    json_t *gpu;

    if (!word[0])
        return true; /* the number has not been typed yet */
    (void)parse_int(word, 0, GPU_MAX - 1, &index, NULL);
    json_array_foreach(gpus, i, gpu)
    {
        if (answer_int(gpu, "index", -2) == index)
            return true;
    }
    return false;
}

static bool
has_label(const struct row *row, const char *word)
{
    auto_buf struct buf label = BUF_INIT;

    queue_column_draw("id", row, &label);
    return strncmp(buf_str(&label), word, strlen(word)) == 0;
}

static bool
matches(const struct row *row, const char *word)
{
    if (strncmp(word, "user:", 5) == 0)
        return begins(row, F_USER, word + 5);
    if (strncmp(word, "state:", 6) == 0)
        return begins(row, F_STATE, word + 6);
    if (strncmp(word, "gpu:", 4) == 0)
        return is_on_gpu(row, word + 4);
    return has_text(row, F_COMMAND, word) || has_text(row, F_NAME, word) ||
           has_text(row, F_USER, word) || begins(row, F_STATE, word) ||
           begins(row, F_REASON, word) || has_label(row, word);
}

bool
top_filter_lets(const char *filter, const struct row *row)
{
    for (const char *s = filter; *s;) {
        size_t n = strcspn(s, " ");
        auto_buf struct buf word = BUF_INIT;

        buf_add(&word, s, n);
        if (n > 0 && !matches(row, buf_str(&word)))
            return false;
        s += n + (s[n] != '\0');
    }
    return true;
}

/* A prefix of a state's name matches. */
static bool
names_a_state(const char *word)
{
    for (int i = 0; render_state_at(i); i++)
        if (strncasecmp(render_state_at(i), word, strlen(word)) == 0)
            return true;
    return false;
}

bool
top_filter_check(const char *filter, struct buf *why)
{
    int64_t gpu;

    for (const char *s = filter; *s;) {
        size_t n = strcspn(s, " ");
        auto_buf struct buf word = BUF_INIT;

        buf_add(&word, s, n);
        if (n > 4 && strncmp(s, "gpu:", 4) == 0 &&
            parse_int(buf_str(&word) + 4, 0, GPU_MAX - 1, &gpu, NULL) < 0) {
            buf_addf(why, "'%s' is not a GPU's number: gpu:0", buf_str(&word) + 4);
            return false;
        }
        if (n > 6 && strncmp(s, "state:", 6) == 0 && !names_a_state(buf_str(&word) + 6)) {
            buf_addf(why, "'%s' is not a state: state:run, state:pend, state:held",
                     buf_str(&word) + 6);
            return false;
        }
        s += n + (s[n] != '\0');
    }
    return true;
}
