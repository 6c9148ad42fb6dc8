/* Signals through a descriptor, for programs that wait in poll; and resetting all signals. */
#ifndef SYS_SIGNALS_H
#define SYS_SIGNALS_H

struct err;

/* Blocks these signals (a list that ends with 0; SIGHUP is left out under nohup) and returns a
 * non-blocking, close-on-exec descriptor that reports them; -1. */
int signals_to_fd(const int *numbers, struct err *e);

/* Resets every signal to its default action. System calls only: safe after vfork. */
void signals_default(void);

#endif
