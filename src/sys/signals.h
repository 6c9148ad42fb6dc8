/* Signals through a descriptor, for programs that wait in poll; and resetting all signals. */
#ifndef SYS_SIGNALS_H
#define SYS_SIGNALS_H

#include <stdbool.h>
#include <stdint.h>

struct err;

/* Blocks these signals (a list that ends with 0; SIGHUP is left out under nohup) and returns a
 * non-blocking, close-on-exec descriptor that reports them; -1. */
int signals_to_fd(const int *numbers, struct err *e);

/* True if systemd is process 1 here and may send signals of its own; in a container, process 1
 * may be a person's shell. */
bool signals_has_systemd(void);

/* True if that sender of a TERM is systemd as process 1, which ends units with it. */
bool signals_is_systemd(uint32_t pid);

/* Resets every signal to its default action. System calls only: safe after vfork. */
void signals_default(void);

#endif
