/* Whether a terminal is known; see top_screen.h. Apart from the rest, because <term.h> makes
 * macros of words like `columns`. */
#include <ncurses.h>
#include <term.h>
#include <unistd.h>

#include "cli/top_screen.h"

bool
top_screen_is_known(void)
{
    int why;

    if (setupterm(NULL, STDOUT_FILENO, &why) != OK)
        return false;
    del_curterm(cur_term);
    return true;
}
