/* Searches the end of a failed job's log for messages of CUDA programs about a full GPU.
 * outcome.c asks once, at the end. A log that is not a regular file (a terminal, /dev/null)
 * cannot be read back, so nothing is found. */
#include "shepherd/attempt/oom.h"

#include <ctype.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "shepherd/attempt/log_tail.h"

#define WINDOW_BYTES LOG_TAIL_BYTES
#define TEXT_BYTES   150
/* Of a longer line, what precedes the match by more than this is dropped. */
#define LEAD_BYTES 100

static void
fold(char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (s[i] >= 'A' && s[i] <= 'Z')
            s[i] = (char)(s[i] - 'A' + 'a');
}

/* Start of the pattern's last occurrence; -1 if there is none. Both texts are case-folded. */
static ssize_t
find_last(const char *text, size_t n, const char *pattern)
{
    size_t len = strlen(pattern);
    if (len == 0 || len > n)
        return -1;
    for (size_t at = n - len + 1; at-- > 0;)
        if (memcmp(text + at, pattern, len) == 0)
            return (ssize_t)at;
    return -1;
}

static ssize_t
find_last_of(const char *tail, size_t n, char *const *patterns)
{
    char folded[WINDOW_BYTES];
    ssize_t best = -1;
    memcpy(folded, tail, n);
    fold(folded, n);
    for (; patterns && *patterns; patterns++) {
        char pattern[256];
        size_t len = strlen(*patterns);
        if (len >= sizeof pattern)
            continue;
        memcpy(pattern, *patterns, len + 1);
        fold(pattern, len);
        ssize_t at = find_last(folded, n, pattern);
        if (at > best)
            best = at;
    }
    return best;
}

/* Copies the line around byte `at`, made safe and truncated, into text. Progress bars end
 * lines with \r. */
static void
copy_line(const char *tail, size_t n, size_t at, char *text, size_t size)
{
    size_t start = at, end = at;
    while (start > 0 && !strchr("\r\n", tail[start - 1]))
        start--;
    while (end < n && !strchr("\r\n", tail[end]))
        end++;
    while (start < at && isspace((unsigned char)tail[start]))
        start++;
    if (at - start > LEAD_BYTES)
        start = at;
    auto_buf struct buf safe = BUF_INIT;
    text_add_safe(&safe, tail + start, end - start, 0);
    size_t len = safe.len;
    if (len > TEXT_BYTES || len >= size) {
        len = size - 1 < TEXT_BYTES ? size - 1 : TEXT_BYTES;
        while (len > 0 && ((unsigned char)safe.data[len] & 0xc0) == 0x80)
            len--;
    }
    memcpy(text, buf_str(&safe), len);
    text[len] = '\0';
}

bool
oom_find_in_log(int log_fd, off_t from, char *const *patterns, char *text, size_t size)
{
    char tail[WINDOW_BYTES] = "";
    if (log_fd < 0 || !patterns || !patterns[0])
        return false;
    size_t n = log_tail_read(log_fd, from, tail);
    ssize_t at = find_last_of(tail, n, patterns);
    if (at < 0)
        return false;
    copy_line(tail, n, (size_t)at, text, size);
    return true;
}
