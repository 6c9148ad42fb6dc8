/* A pseudo-terminal for a job. */
#ifndef SHEPHERD_TALK_PTY_H
#define SHEPHERD_TALK_PTY_H

#include <stdint.h>
#include <sys/types.h>

struct err;

/* Both ends, close-on-exec, no process's controlling terminal; the master does not block.
 * owner: the user who is given the terminal's file, so that it can be opened by name; -1: it
 * stays ours. rows and columns 0: 24 and 80. */
int pty_open(uint16_t rows, uint16_t columns, int64_t owner, int *master, int *slave,
             struct err *e);

/* The foreground processes there get WINCH. Zeros are ignored. */
void pty_resize(int master, uint16_t rows, uint16_t columns);

/* The byte that means end of file on it at this moment, ^D mostly. */
char pty_eof_byte(int master);

#endif
