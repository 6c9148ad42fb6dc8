/* A pseudo-terminal for a job. */
#ifndef SHEPHERD_TALK_PTY_H
#define SHEPHERD_TALK_PTY_H

#include <stdint.h>
#include <sys/types.h>

struct err;

/* Opens both ends: close-on-exec, not a controlling terminal, non-blocking master. owner: the
 * user who gets the terminal's file, to open it by name; -1: unchanged. rows and columns 0: 24
 * and 80. */
int pty_open(uint16_t rows, uint16_t columns, int64_t owner, int *master, int *slave,
             struct err *e);

/* Sends WINCH to the terminal's foreground processes. Zeros are ignored. */
void pty_resize(int master, uint16_t rows, uint16_t columns);

/* The terminal's current end-of-file byte, mostly ^D. */
char pty_eof_byte(int master);

#endif
