/* The program in the window of a job's screen session. */
#ifndef SHEPHERD_BEGIN_WINDOW_H
#define SHEPHERD_BEGIN_WINDOW_H

#define WINDOW_OPTION "--window"

/* Shows the job whose attach socket this is on the terminal at descriptors 0 and 1, and sends
 * it what is typed there, until one of them has gone. Returns the exit status. */
int window_run(const char *socket);

#endif
