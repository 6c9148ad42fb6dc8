/* The terminfo database. */
#ifndef CLI_TOP_TOP_TERMINFO_H
#define CLI_TOP_TOP_TERMINFO_H

#include <stdbool.h>

/* True if it describes the terminal named by TERM. */
bool top_terminfo_is_usable(void);

#endif
