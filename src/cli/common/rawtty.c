/* Raw mode and back: see rawtty.h. The original settings are in a global, because exit
 * handlers take no arguments and there is only one standard input. */
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
    /* Waits for pending output, which was meant for raw mode, before the modes change. */
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
        return; /* raw mode that is never undone would be worse than line mode */
    tty.registered = true;
    tty.on = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
}

bool
rawtty_is_on(void)
{
    return tty.on;
}
