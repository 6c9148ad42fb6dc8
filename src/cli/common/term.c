/* Properties of standard output; see term.h. COLUMNS overrides the width of a terminal, as
 * shells and tests expect. */
#include "cli/common/term.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/parse.h"

int
term_columns(void)
{
    const char *forced = getenv("COLUMNS");
    struct winsize size;
    int64_t n;

    if (!isatty(STDOUT_FILENO))
        return 0;
    if (forced && parse_int(forced, 20, 10000, &n, NULL) == 0)
        return (int)n;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return 80;
}

int
term_rows(void)
{
    struct winsize size;

    if (!isatty(STDOUT_FILENO))
        return 0;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : 24;
}

struct term
term_of_stdout(void)
{
    const char *no_color = getenv("NO_COLOR");
    const char *name = getenv("TERM");
    struct term t = {.tty = isatty(STDOUT_FILENO), .columns = term_columns()};

    t.color = t.tty && !(no_color && no_color[0]) && !(name && strcmp(name, "dumb") == 0);
    return t;
}

void
term_add(const struct term *t, struct buf *out, enum style style, const char *s)
{
    static const char *const codes[STYLES] = {
        [STYLE_NONE] = "",          [STYLE_DIM] = "\033[2m",    [STYLE_BOLD] = "\033[1m",
        [STYLE_GOOD] = "\033[32m",  [STYLE_BUSY] = "\033[36m",  [STYLE_WARN] = "\033[33m",
        [STYLE_BAD] = "\033[31m",   [STYLE_HUE_A] = "\033[36m", [STYLE_HUE_B] = "\033[34m",
        [STYLE_HUE_C] = "\033[35m",
    };

    if (!t->color || style == STYLE_NONE) {
        buf_adds(out, s);
        return;
    }
    buf_adds(out, codes[style]);
    buf_adds(out, s);
    buf_adds(out, "\033[0m");
}
