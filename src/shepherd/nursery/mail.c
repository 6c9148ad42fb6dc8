/* Composes a mail: see mail.h. A job's name and command are chosen by its owner, so no user's
 * text may become a header of its own: header values are printable ASCII or encoded (RFC
 * 2047). Called by hook_command.c. */
#include "shepherd/nursery/mail.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/parse.h"
#include "base/text.h"

#define SUBJECT_COLUMNS 120
#define WORD_BYTES      42 /* of one encoded word: 56 base64 digits, 12 bytes around them */

static const char *
text_of(const json_t *event, const char *key)
{
    const char *s = json_string_value(json_object_get(event, key));

    return s ? s : "";
}

static void
add_base64(struct buf *out, const unsigned char *s, size_t n)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    for (size_t i = 0; i < n; i += 3) {
        uint32_t v = (uint32_t)s[i] << 16 | (i + 1 < n ? (uint32_t)s[i + 1] << 8 : 0) |
                     (i + 2 < n ? s[i + 2] : 0);
        buf_addc(out, digits[v >> 18]);
        buf_addc(out, digits[v >> 12 & 63]);
        buf_addc(out, i + 1 < n ? digits[v >> 6 & 63] : '=');
        buf_addc(out, i + 2 < n ? digits[v & 63] : '=');
    }
}

/* Splits the text into encoded words, never within a character. */
static void
add_encoded(struct buf *out, const char *s)
{
    size_t n = strlen(s);

    for (size_t at = 0; at < n;) {
        size_t len = n - at > WORD_BYTES ? WORD_BYTES : n - at;
        while (at + len < n && ((unsigned char)s[at + len] & 0xC0) == 0x80)
            len--;
        buf_adds(out, at ? "\n =?UTF-8?B?" : "=?UTF-8?B?");
        add_base64(out, (const unsigned char *)s + at, len);
        buf_adds(out, "?=");
        at += len;
    }
}

static void
add_header(struct buf *out, const char *name, const char *value)
{
    auto_buf struct buf safe = BUF_INIT;
    bool plain = true;

    text_add_safe(&safe, value, strlen(value), SUBJECT_COLUMNS);
    for (size_t i = 0; i < safe.len; i++)
        plain = plain && safe.data[i] >= ' ' && safe.data[i] < 0x7f;
    buf_addf(out, "%s: ", name);
    if (plain)
        buf_adds(out, buf_str(&safe));
    else
        add_encoded(out, buf_str(&safe));
    buf_addc(out, '\n');
}

/* "12", "12_3" */
static void
add_id(struct buf *out, const json_t *event)
{
    const json_t *array = json_object_get(event, "array_job");

    if (json_is_integer(array))
        buf_addf(out, "%lld_%lld", (long long)json_integer_value(array),
                 (long long)json_integer_value(json_object_get(event, "array_task")));
    else
        buf_addf(out, "%lld", (long long)json_integer_value(json_object_get(event, "job")));
}

/* "completed after 2h03m", "started", "failed" */
static void
add_what(struct buf *out, const json_t *event)
{
    const char *kind = text_of(event, "kind");
    const json_t *run = json_object_get(event, "run_ms");
    char span[24];

    if (strcmp(kind, "ended") != 0) {
        buf_adds(out, strcmp(kind, "requeued") == 0 ? "waiting to run again" : kind);
        return;
    }
    for (const char *s = text_of(event, "state"); *s; s++)
        buf_addc(out, *s == '_' ? ' ' : (char)tolower((unsigned char)*s));
    if (json_is_integer(run))
        buf_addf(out, " after %s", format_duration(json_integer_value(run), span));
}

static void
add_line(struct buf *out, const char *label, const char *value)
{
    if (!value[0])
        return;
    buf_addf(out, "%-10s", label);
    text_add_safe(out, value, strlen(value), 0);
    buf_addc(out, '\n');
}

static void
add_peaks(struct buf *out, const json_t *event)
{
    const char *gpu;
    json_t *mib;

    json_object_foreach(json_object_get(event, "peak_mib"), gpu, mib)
    {
        if (json_is_integer(mib))
            buf_addf(out, "%-10s%lld MiB of GPU %s\n", "Peak",
                     (long long)json_integer_value(mib), gpu);
    }
}

static void
add_words(struct buf *out, const json_t *event, const char *host)
{
    auto_buf struct buf id = BUF_INIT, what = BUF_INIT;
    const json_t *status = json_object_get(event, "exit_status");

    add_id(&id, event);
    add_what(&what, event);
    add_line(out, "Job", buf_str(&id));
    add_line(out, "Name", text_of(event, "name"));
    add_line(out, "Command", text_of(event, "command"));
    add_line(out, "State", buf_str(&what));
    add_line(out, "Why", text_of(event, "text"));
    if (json_is_integer(status))
        buf_addf(out, "%-10s%lld\n", "Status", (long long)json_integer_value(status));
    add_peaks(out, event);
    add_line(out, "Machine", host);
    buf_addf(out, "\nDetails: berth show %s\n", buf_str(&id));
}

void
mail_write(const json_t *event, const char *to, const char *id, struct buf *out)
{
    auto_buf struct buf subject = BUF_INIT;
    char host[256] = "";

    gethostname(host, sizeof host - 1);
    buf_addf(&subject, "berth %s: job ", host);
    add_id(&subject, event);
    if (text_of(event, "name")[0])
        buf_addf(&subject, " (%s)", text_of(event, "name"));
    buf_addc(&subject, ' ');
    add_what(&subject, event);
    buf_adds(out, "To: ");
    text_add_safe(out, to, strlen(to), 0);
    buf_addc(out, '\n');
    add_header(out, "Subject", buf_str(&subject));
    buf_addf(out,
             "Message-ID: <berth-%s@%s>\n"
             "Auto-Submitted: auto-generated\n"
             "MIME-Version: 1.0\n"
             "Content-Type: text/plain; charset=utf-8\n"
             "Content-Transfer-Encoding: 8bit\n\n",
             id, host[0] ? host : "localhost");
    add_words(out, event, host);
}
