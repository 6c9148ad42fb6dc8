/* Attributes for notifications about a job, and their valid values. A mail address ends up on
 * a command line and in a header, a URL in a program's settings, so neither may contain
 * characters that are special there. Named in attr.c's table; config.c checks a URL too. */
#include "spec/attr_hooks.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/request.h"
#include "base/text.h"

static const struct {
    const char *name;
    uint32_t bits;
} types[] = {
    {"BEGIN", MAIL_BEGIN},
    {"END", MAIL_END},
    {"FAIL", MAIL_FAIL},
    {"REQUEUE", MAIL_REQUEUE},
    {"TIME_LIMIT", MAIL_TIME_LIMIT},
    {"ARRAY_TASKS", MAIL_ARRAY_TASKS},
    {"NONE", MAIL_NONE},
    {"ALL", MAIL_BEGIN | MAIL_END | MAIL_FAIL | MAIL_REQUEUE},
};
#define TYPES (sizeof types / sizeof types[0])

static uint32_t
type_bits(const char *name)
{
    for (size_t i = 0; i < TYPES; i++)
        if (strcasecmp(name, types[i].name) == 0)
            return types[i].bits;
    return 0;
}

int
hooks_parse_types(const char *text, uint32_t *out, struct err *e)
{
    auto_free char *copy = xstrdup(text);
    char *rest = copy, *name;
    uint32_t all = 0;

    while ((name = strsep(&rest, ","))) {
        uint32_t bits = type_bits(name);
        if (!bits) {
            auto_buf struct buf shown = BUF_INIT;
            text_add_safe(&shown, name, strlen(name), 40);
            return err_set(e, ERR_USAGE,
                           "unknown mail type '%s'; use BEGIN, END, FAIL, REQUEUE, TIME_LIMIT, "
                           "ALL, ARRAY_TASKS or NONE",
                           buf_str(&shown));
        }
        all |= bits;
    }
    if (all & MAIL_NONE && all != MAIL_NONE)
        return err_set(e, ERR_USAGE, "NONE cannot be combined with others");
    *out = all;
    return 0;
}

void
hooks_add_types(uint32_t bits, struct buf *out)
{
    bool some = false;

    for (size_t i = 0; i < TYPES; i++) {
        if (types[i].bits & (types[i].bits - 1) || !(types[i].bits & bits))
            continue; /* ALL is only an abbreviation */
        buf_addf(out, "%s%s", some ? "," : "", types[i].name);
        some = true;
    }
}

/* Shell text of 1 to HOOK_MAX_BYTES. "" is valid. */
int
hooks_check_command(const char *text, struct err *e)
{
    size_t n = strlen(text);

    if (n > HOOK_MAX_BYTES)
        return err_set(e, ERR_USAGE,
                       "the command has %zu bytes; the maximum is %d; put it into a script", n,
                       HOOK_MAX_BYTES);
    return text_is_utf8(text, n, NULL) ? 0 : err_set(e, ERR_USAGE, "it is not UTF-8 text");
}

/* http://... or https://...; "" is valid. */
int
hooks_check_url(const char *url, struct err *e)
{
    auto_buf struct buf shown = BUF_INIT;
    size_t n = strlen(url), host;

    if (n == 0)
        return 0;
    text_add_safe(&shown, url, n, 60);
    host = strncasecmp(url, "http://", 7) == 0    ? 7
           : strncasecmp(url, "https://", 8) == 0 ? 8
                                                  : 0;
    if (n > WEBHOOK_MAX_BYTES || !host || !url[host] || strchr("/:?#", url[host]))
        return err_set(
            e, ERR_USAGE,
            "'%s' is not a URL; write http://HOST/PATH or https://HOST/PATH, at most %d bytes",
            buf_str(&shown), WEBHOOK_MAX_BYTES);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)url[i] <= ' ' || (unsigned char)url[i] >= 0x7f ||
            strchr("\"\\<>^`{|}", url[i]))
            return err_set(e, ERR_USAGE, "'%s' has characters that must be written as %%XX",
                           buf_str(&shown));
    return 0;
}

/* One address: name or name@host, without characters that are special on a mailer's command
 * line or in a header. */
static int
check_address(const char *address, struct err *e)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "._%+-=~'/@";
    const char *at = strchr(address, '@');
    auto_buf struct buf shown = BUF_INIT;

    text_add_safe(&shown, address, strlen(address), 60);
    if (!address[0] || address[0] == '-' || address[0] == '@' ||
        address[strspn(address, plain)] || (at && (!at[1] || strchr(at + 1, '@'))))
        return err_set(
            e, ERR_USAGE,
            "'%s' is not a mail address; write name@example.org, or the name of a local user",
            buf_str(&shown));
    return 0;
}

int
hooks_check_addresses(const char *list, struct err *e)
{
    auto_free char *copy = xstrdup(list);
    char *rest = copy, *address;

    if (strlen(list) > MAIL_MAX_BYTES)
        return err_set(e, ERR_USAGE, "the addresses have %zu bytes; the maximum is %d",
                       strlen(list), MAIL_MAX_BYTES);
    while ((address = strsep(&rest, ",")))
        if (check_address(address, e) < 0)
            return -1;
    return 0;
}
