/* Raw mode of this program's terminal: every key is passed on unchanged. */
#ifndef CLI_COMMON_RAWTTY_H
#define CLI_COMMON_RAWTTY_H

#include <stdbool.h>

/* True if standard input is a terminal and this program is in its foreground. */
bool rawtty_is_ours(void);

/* Enters raw mode until rawtty_leave or the exit of the program. No-op if rawtty_is_ours is
 * false, or in raw mode already. */
void rawtty_enter(void);
void rawtty_leave(void); /* no-op if not in raw mode */
bool rawtty_is_on(void);

#endif
