/* Signals as a descriptor, for programs that wait in poll; and all as they are by default. */
#ifndef SYS_SIGNALS_H
#define SYS_SIGNALS_H

struct err;

/* Blocks these signals (a list that ends with 0; not SIGHUP under nohup) and returns a
 * descriptor that reports them, which neither blocks nor goes along with exec; -1. */
int signals_to_fd(const int *numbers, struct err *e);

/* Every signal does what it does by default. System calls only: safe after vfork. */
void signals_default(void);

#endif
