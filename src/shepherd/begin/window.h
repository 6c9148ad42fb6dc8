/* The program that runs in the window of a job's screen session. */
#ifndef SHEPHERD_BEGIN_WINDOW_H
#define SHEPHERD_BEGIN_WINDOW_H

#define WINDOW_OPTION "--window"

/* Shows the job of this attach socket on the terminal at descriptors 0 and 1, and sends it
 * what is typed, until either end is gone. Returns the exit status. */
int window_run(const char *socket);

#endif
