/* Attributes for notifications about a job, and what their values may be. A mail's address
 * ends up on a command line and in a header, a URL in a program's settings: so neither may
 * hold what means something there. Called through attr.c's table, by config.c, and for what
 * came over the wire by attr_check.c. */
#include "spec/attr_hooks.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/hook_list.h"
#include "base/request.h"
#include "base/text.h"
#include "spec/attr_set.h"

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
                           "'%s' is none of BEGIN, END, FAIL, REQUEUE, TIME_LIMIT, ALL, "
                           "ARRAY_TASKS, NONE",
                           buf_str(&shown));
        }
        all |= bits;
    }
    if (all & MAIL_NONE && all != MAIL_NONE)
        return err_set(e, ERR_USAGE, "NONE stands alone");
    *out = all;
    return 0;
}

void
hooks_add_types(uint32_t bits, struct buf *out)
{
    bool some = false;

    for (size_t i = 0; i < TYPES; i++) {
        if (types[i].bits & (types[i].bits - 1) || !(types[i].bits & bits))
            continue; /* ALL is but a shorter word */
        buf_addf(out, "%s%s", some ? "," : "", types[i].name);
        some = true;
    }
}

/* Shell text of 1 to HOOK_MAX_BYTES. "" passes. */
static int
check_command(const char *text, struct err *e)
{
    size_t n = strlen(text);

    if (n > HOOK_MAX_BYTES)
        return err_set(e, ERR_USAGE,
                       "%zu bytes of command; the most is %d: put it into a script", n,
                       HOOK_MAX_BYTES);
    return text_is_utf8(text, n, NULL) ? 0 : err_set(e, ERR_USAGE, "it is not UTF-8 text");
}

/* http://... or https://...; "" passes. */
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
            "'%s' is not an address to post to: http://HOST/PATH or https://HOST/PATH, at "
            "most %d bytes",
            buf_str(&shown), WEBHOOK_MAX_BYTES);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)url[i] <= ' ' || (unsigned char)url[i] >= 0x7f ||
            strchr("\"\\<>^`{|}", url[i]))
            return err_set(e, ERR_USAGE, "'%s' holds what must be written as %%XX",
                           buf_str(&shown));
    return 0;
}

/* One address: name or name@host, of characters that mean nothing to a mailer's command line or
 * to a header. */
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
            "'%s' is not a mail address; one looks like name@example.org, or is the name of "
            "a user here",
            buf_str(&shown));
    return 0;
}

static int
check_addresses(const char *list, struct err *e)
{
    auto_free char *copy = xstrdup(list);
    char *rest = copy, *address;

    if (strlen(list) > MAIL_MAX_BYTES)
        return err_set(e, ERR_USAGE, "%zu bytes of addresses; the most is %d", strlen(list),
                       MAIL_MAX_BYTES);
    while ((address = strsep(&rest, ",")))
        if (check_address(address, e) != 0)
            return -1;
    return 0;
}

int
hooks_check(const struct hooks *h, struct err *e)
{
    const struct {
        const char *name, *text;
        int (*check)(const char *text, struct err *e);
    } rows[] = {
        {"on-start", h->on_start, check_command},     {"on-end", h->on_end, check_command},
        {"on-fail", h->on_fail, check_command},       {"webhook", h->webhook, hooks_check_url},
        {"mail-user", h->mail_user, check_addresses},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].text && rows[i].check(rows[i].text, e) != 0)
            return err_prefix(e, "%s", rows[i].name);
    return 0;
}

/* --- setters ------------------------------------------------------------------------------ */

static struct hooks *
hooks_of(struct request *r)
{
    if (!r->hooks)
        r->hooks = xcalloc(1, sizeof *r->hooks);
    return r->hooks;
}

/* An empty value takes back what was said before. */
static int
set_text(char **field, const char *value, int (*check)(const char *text, struct err *e),
         struct err *e)
{
    if (value[0] && check(value, e) != 0)
        return -1;
    free(*field);
    *field = value[0] ? xstrdup(value) : NULL;
    return 0;
}

int
attr_set_on_start(struct request *r, const char *value, struct err *e)
{
    return set_text(&hooks_of(r)->on_start, value, check_command, e);
}

int
attr_set_on_end(struct request *r, const char *value, struct err *e)
{
    return set_text(&hooks_of(r)->on_end, value, check_command, e);
}

int
attr_set_on_fail(struct request *r, const char *value, struct err *e)
{
    return set_text(&hooks_of(r)->on_fail, value, check_command, e);
}

int
attr_set_webhook(struct request *r, const char *value, struct err *e)
{
    return set_text(&hooks_of(r)->webhook, value, hooks_check_url, e);
}

int
attr_set_mail_user(struct request *r, const char *value, struct err *e)
{
    return set_text(&hooks_of(r)->mail_user, value, check_addresses, e);
}

int
attr_set_mail_type(struct request *r, const char *value, struct err *e)
{
    return hooks_parse_types(value, &hooks_of(r)->mail_types, e);
}
