/* Raw mode and back: see rawtty.h. What the terminal was like is kept in one place for the
 * program's length, because exit handlers take no arguments; there is one standard input. */
#include "cli/common/rawtty.h"

#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

static struct {
    struct termios before;
    bool on;
    bool registered;
} tty;

bool
rawtty_is_ours(void)
{
    return isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) == getpgrp();
}

void
rawtty_leave(void)
{
    if (!tty.on)
        return;
    /* What was shown is to be out before the modes that it was meant for go. */
    (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &tty.before);
    tty.on = false;
}

void
rawtty_enter(void)
{
    struct termios raw;

    if (tty.on || !rawtty_is_ours() || tcgetattr(STDIN_FILENO, &tty.before) < 0)
        return;
    raw = tty.before;
    cfmakeraw(&raw);
    if (!tty.registered && atexit(rawtty_leave) != 0)
        return; /* rather line by line than never back */
    tty.registered = true;
    tty.on = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
}

bool
rawtty_is_on(void)
{
    return tty.on;
}
