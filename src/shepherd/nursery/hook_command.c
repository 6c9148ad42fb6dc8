/* Reads an order and chooses the program that carries it out: the shell for a user's own
 * command, curl for a webhook, sendmail for mail. Text from other users never reaches a shell:
 * curl reads the URL from a config file (which also keeps it out of process lists), and a
 * mail's addresses are arguments that were checked at submission. Called by deliver.c. */
#include "shepherd/nursery/hook_command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/parse.h"
#include "shepherd/nursery/mail.h"
#include "sys/helpers.h"
#include "sys/spawn.h"
#include "wire/members.h"

#define ORDER_MAX_BYTES ((off_t)64 << 20)
#define HTTP_MARK       "http="

/* --- reading --- */

static int
read_all(int fd, struct buf *out, struct err *e)
{
    struct stat st;
    ssize_t n;

    if (fstat(fd, &st) < 0 || st.st_size > ORDER_MAX_BYTES)
        return err_set(e, ERR_FAILED, "the order cannot be read");
    buf_reserve(out, (size_t)st.st_size + 1);
    n = pread(fd, out->data, (size_t)st.st_size, 0);
    if (n != st.st_size)
        return err_set(e, ERR_FAILED, "the order is incomplete");
    out->len = (size_t)n;
    return 0;
}

static void
take_env(struct order *o, const char *bytes, size_t n)
{
    o->block = xmalloc(n + 1);
    memcpy(o->block, bytes, n);
    o->block[n] = '\0';
    o->env = spawn_envp(o->block, n);
}

static const struct member members[] = {
    {MEMBER(TEXT, order, id), .needed = true},
    {MEMBER(TEXT, order, kind), .needed = true},
    {MEMBER(TEXT, order, target), .needed = true},
    {MEMBER(TEXT, order, cwd), .needed = true},
    {MEMBER(TEXT, order, log), .needed = true},
    {MEMBER(TEXT, order, sendmail)},
    {MEMBER(TEXT, order, rlimits)},
    {MEMBER(TEXT, order, user)},
    {MEMBER(TEXT, order, pam)},
    {MEMBER(TEXT, order, account)},
    {MEMBER(NUMBER, order, job), .max = UINT32_MAX},
    {MEMBER(NUMBER, order, uid), .max = UINT32_MAX - 1},
    {MEMBER(NUMBER, order, limit_ms), .max = INT64_MAX},
    {MEMBER(NUMBER, order, umask), .max = 0777},
    {MEMBER(NUMBER, order, drop_caps), .max = INT64_MAX},
    {MEMBER(FLAG, order, no_new_privs)},
    {MEMBER(FLAG, order, locked_runs)},
    {MEMBER(FLAG, order, log_mkdir)},
    {0},
};

int
order_read(int fd, struct order *out, struct err *e)
{
    auto_buf struct buf text = BUF_INIT;
    const char *end;

    *out = (struct order){.uid = -1};
    if (read_all(fd, &text, e) < 0)
        return -1;
    end = memchr(buf_str(&text), '\n', text.len);
    out->root = end ? json_loadb(text.data, (size_t)(end - text.data), 0, NULL) : NULL;
    if (!out->root)
        return err_set(e, ERR_FAILED, "the order is not JSON");
    if (members_read(out->root, members, out, e) < 0)
        return -1;
    out->event = json_object_get(out->root, "event");
    if (!out->event)
        return err_set(e, ERR_FAILED, "the order has no event");
    if (groups_read(out->root, &out->groups, e) < 0)
        return -1;
    take_env(out, end + 1, text.len - (size_t)(end + 1 - text.data));
    return 0;
}

void
order_free(struct order *o)
{
    json_decref(o->root);
    free(o->block);
    free(o->env);
}

/* --- which program --- */

static void
add_event(const struct order *o, struct buf *out)
{
    auto_free char *text = json_dumps(o->event, JSON_COMPACT);

    buf_adds(out, text ? text : "{}");
}

/* The URL holds neither quotes nor backslashes nor spaces (spec/attr_hooks.c). */
static int
prepare_webhook(const struct order *o, struct order_run *out, struct err *e)
{
    const char *curl = helper_curl();
    const char *const argv[] = {curl, "--disable", "--config", "/proc/self/fd/3", NULL};

    if (!curl)
        return err_set(e, ERR_FAILED, "there is no curl on this machine");
    memcpy(out->argv, argv, sizeof argv);
    buf_addf(&out->extra,
             "url = \"%s\"\n"
             "globoff\nsilent\nshow-error\n"
             "proto = \"=http,https\"\n"
             "connect-timeout = 10\nmax-time = %lld\n"
             "header = \"Content-Type: application/json\"\n"
             "header = \"X-Berth-Delivery: %s\"\n"
             "user-agent = \"berth/" BERTH_VERSION "\"\n"
             "data-binary = \"@-\"\n"
             "output = \"/dev/null\"\n"
             "write-out = \"\\n" HTTP_MARK "%%{http_code}\\n\"\n",
             o->target, (long long)((o->limit_ms + 999) / 1000), o->id);
    add_event(o, &out->input);
    return 0;
}

static int
prepare_mail(const struct order *o, struct order_run *out, struct err *e)
{
    const char *program = helper_sendmail(o->sendmail);
    char *rest = out->text = xstrdup(o->target);
    int n = 0;

    if (!program)
        return err_set(e, ERR_FAILED, "there is no sendmail on this machine");
    out->argv[n++] = program;
    out->argv[n++] = "-i";
    while (rest && n < ORDER_ARGS_MAX - 1)
        out->argv[n++] = strsep(&rest, ",");
    mail_write(o->event, o->target, o->id, &out->input);
    return 0;
}

int
order_prepare(const struct order *o, struct order_run *out, struct err *e)
{
    *out = (struct order_run){.input = BUF_INIT, .extra = BUF_INIT};
    if (strcmp(o->kind, "webhook") == 0)
        return prepare_webhook(o, out, e);
    if (strcmp(o->kind, "mail") == 0)
        return prepare_mail(o, out, e);
    out->argv[0] = "/bin/sh";
    out->argv[1] = "-c";
    out->argv[2] = o->target;
    add_event(o, &out->input);
    buf_addc(&out->input, '\n');
    return 0;
}

void
order_run_free(struct order_run *r)
{
    free(r->text);
    buf_free(&r->input);
    buf_free(&r->extra);
}

/* --- the result --- */

/* The line that ends at *end, which moves to before that line. */
static const char *
line_before(const char *s, size_t *end, size_t *len)
{
    size_t stop = *end, start;

    while (stop > 0 && strchr("\r\n ", s[stop - 1]))
        stop--;
    for (start = stop; start > 0 && s[start - 1] != '\n'; start--)
        continue;
    *end = start;
    *len = stop - start;
    return s + start;
}

void
order_explain(const struct order *o, const struct buf *output, char *text, size_t size)
{
    size_t end = output->len, len;
    const char *line = line_before(buf_str(output), &end, &len);
    size_t mark = strlen(HTTP_MARK);

    if (strcmp(o->kind, "webhook") == 0 && len > mark && memcmp(line, HTTP_MARK, mark) == 0) {
        if (memcmp(line + mark, "000", 3) != 0) {
            snprintf(text, size, "HTTP status %.3s", line + mark);
            return;
        }
        line = line_before(buf_str(output), &end, &len);
    }
    snprintf(text, size, "%.*s", (int)(len < size ? len : size - 1), line);
}

/* The HTTP status code; 0: no response. */
static int64_t
http_code(const char *text)
{
    static const char answered[] = "HTTP status ";
    size_t n = sizeof answered - 1;
    int64_t code = 0;

    return strncmp(text, answered, n) == 0 && parse_int(text + n, 1, 999, &code, NULL) == 0
               ? code
               : 0;
}

const char *
order_judge(const struct order *o, int status, const char *text)
{
    int64_t code;

    if (strcmp(o->kind, "mail") == 0)
        return status == 0 ? "done" : "again";
    if (strcmp(o->kind, "webhook") != 0)
        return status == 0 ? "done" : "failed";
    code = http_code(text);
    if (status == 0 && code >= 200 && code < 300)
        return "done";
    /* A response that will be the same tomorrow is not retried. */
    return code >= 300 && code < 500 && code != 408 && code != 425 && code != 429 ? "failed"
                                                                                  : "again";
}
