/* The terminal of this program in raw mode: every key goes on as it is. */
#ifndef CLI_COMMON_RAWTTY_H
#define CLI_COMMON_RAWTTY_H

#include <stdbool.h>

/* Standard input is a terminal, and this program is in its foreground. */
bool rawtty_is_ours(void);

/* Raw from here on; it is put back by rawtty_leave and at exit, whichever comes first. Does
 * nothing on what is no terminal of ours, and when it is raw already. */
void rawtty_enter(void);
void rawtty_leave(void); /* nothing when it is not raw */
bool rawtty_is_on(void);

#endif
