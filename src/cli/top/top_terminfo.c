/* The terminfo database; see top_terminfo.h. Separate from top_screen.c, because <term.h>
 * defines words such as `columns` as macros. */
#include "cli/top/top_terminfo.h"

#include <ncurses.h>
#include <term.h>
#include <unistd.h>

bool
top_terminfo_is_usable(void)
{
    bool usable;
    int why;

    if (setupterm(NULL, STDOUT_FILENO, &why) != OK)
        return false;
    usable = cursor_address && cursor_address[0]; /* "dumb" has none */
    del_curterm(cur_term);
    return usable;
}
