/* GNU screen, as seen by who submits. */
#ifndef CLI_SCREENS_H
#define CLI_SCREENS_H

struct err;

/* Whether there is a screen in PATH; else -1 with what to do. Jobs bring their own PATH, which
 * is mostly this one; said before a job waits an hour for a program that is not there. */
int screens_need(struct err *e);

#endif
