/* The nursery: one small process from which every shepherd is forked. */
#ifndef SHEPHERD_NURSERY_H
#define SHEPHERD_NURSERY_H

/* Serves the socket at descriptor 3 until it closes; the exit status. */
int nursery_run(void);

#endif
