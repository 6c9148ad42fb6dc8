/* The database of terminals. */
#ifndef CLI_TOP_TOP_TERMINFO_H
#define CLI_TOP_TOP_TERMINFO_H

#include <stdbool.h>

/* Whether it has the terminal that TERM names. */
bool top_terminfo_is_usable(void);

#endif
