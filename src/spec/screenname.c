/* The names of screen sessions: see screenname.h. The daemon's launch.c makes them for the
 * supervisor, which starts the session, and job_view.c shows them. Scripts that look for
 * sessions rely on the form gpujob_0,1_train_12. */
#include "spec/screenname.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/request.h"

#define MODE_MAX 20

static bool
is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '_' || c == '-';
}

/* Replaces each run of other characters by one _. */
static void
add_plain(struct buf *out, const char *s, size_t n)
{
    size_t from = out->len;
    for (size_t i = 0; i < n && out->len - from < MODE_MAX; i++) {
        if (is_plain(s[i]))
            buf_addc(out, s[i]);
        else if (i == 0 || is_plain(s[i - 1]))
            buf_addc(out, '_');
    }
}

static bool
add_mode_of_argv(struct buf *out, char *const *argv)
{
    for (; *argv; argv++) {
        const char *value = NULL;
        if (strcmp(*argv, "--mode") == 0)
            value = argv[1];
        else if (strncmp(*argv, "--mode=", 7) == 0)
            value = *argv + 7;
        if (value && *value) {
            add_plain(out, value, strlen(value));
            return true;
        }
    }
    return false;
}

/* Strips the shell's quotes from the value. */
static bool
add_mode_of_shell(struct buf *out, const char *command)
{
    static const char blanks[] = " \t\n";
    for (const char *p = command; (p = strstr(p, "--mode")); p++) {
        const char *value = p + strlen("--mode");
        if ((p > command && !strchr(blanks, p[-1])) || !strchr(" \t=", *value))
            continue;
        value += *value == '=' ? 1 : strspn(value, " \t");
        value += strspn(value, "\"'");
        size_t n = strcspn(value, " \t\n\"';&|)");
        if (n > 0) {
            add_plain(out, value, n);
            return true;
        }
    }
    return false;
}

static void
add_mode(struct buf *out, const struct request *r)
{
    if (r->argv ? add_mode_of_argv(out, r->argv) : add_mode_of_shell(out, r->command))
        return;
    const char *name = r->name ? r->name : "unknown";
    add_plain(out, name, strlen(name));
}

void
screen_name(const struct request *r, uint64_t cards, uint32_t job, struct buf *out)
{
    auto_buf struct buf name = BUF_INIT;
    char number[16];
    const char *comma = "";
    buf_adds(&name, cards ? "gpujob_" : "gpujob_cpu");
    for (int i = 0; i < GPU_MAX; i++) {
        if (!(cards >> i & 1))
            continue;
        buf_addf(&name, "%s%d", comma, i);
        comma = ",";
    }
    buf_addc(&name, '_');
    add_mode(&name, r);
    snprintf(number, sizeof number, "_%u", job);
    size_t room = SCREEN_NAME_MAX - strlen(number);
    buf_add(out, name.data, name.len < room ? name.len : room);
    buf_adds(out, number);
}
