/* The machine's daemon while it does not answer: whether it is worth waiting for. */
#ifndef CLI_ASK_MACHINE_TURN_H
#define CLI_ASK_MACHINE_TURN_H

#include <stdbool.h>

enum machine_state {
    MACHINE_NONE,     /* the machine has no daemon for all users */
    MACHINE_UNSEEN,   /* it may have one, which has not run since the machine was started */
    MACHINE_STOPPED,  /* in order */
    MACHINE_FAILED,   /* to start */
    MACHINE_DIED,     /* and left its socket; its service manager restarts it */
    MACHINE_STARTING, /* it lives, or will at this start of the machine, and serves soon */
};

struct machine {
    enum machine_state state;
    bool soon; /* it may serve in a moment */
};

/* True if the service manager starts the daemon with the machine. */
bool machine_is_enabled(void);

/* What the notes in PLACES_SYSTEM_FOLDER say. Call if nothing answers at its socket. */
struct machine machine_look(void);
/* The same for another folder; is_awaited: the machine has just been started, and will start
 * the daemon. For tests. */
struct machine machine_look_in(const char *folder, bool is_awaited);

#endif
