/* Everything in berthd: the instance and the parts that work on it. Only the files that put
 * the parts together include this: berthd.c, turn_wiring.c and part_wiring.c. */
#ifndef DAEMON_DAEMON_H
#define DAEMON_DAEMON_H

#include <stdbool.h>
#include <uv.h>

#include "daemon/common/card_facts.h"
#include "daemon/common/instance.h"
#include "daemon/common/settings_names.h"
#include "daemon/rules.h"
#include "daemon/state/state.h"

struct daemon {
    const struct options *options; /* from the command line */
    struct instance inst;
    struct card_facts card_facts;

    struct past past;
    struct around around;
    struct state state; /* the state of all jobs */
    struct rules rules;
    struct settings_names names;
    struct turn_loop *turn_loop;
    void (*after_turn)(struct daemon *);

    struct attempts *attempts; /* of jobs on this machine */
    struct slurm *slurm;       /* jobs that a Slurm cluster runs */
    struct cards *cards;
    struct courier *courier;
    struct roles *roles;
    struct budget *budget; /* bounds on one request */
    struct admission *admission;
    struct uploads *uploads;
    struct views *views;
    struct rpc *rpc;
    struct tally *tally;
    struct pace *pace;
    struct idle_work *idle_work;
    struct notify *notify; /* the service manager; NULL: none */

    const char *left_why; /* why the daemon exits; NULL until then */
    int lock_fd;          /* held to keep a second daemon off this state */
    int starting_fd;      /* until it serves, for clients of the machine's daemon; -1: none */
    bool follows_dead;    /* the previous daemon did not exit cleanly */
    uv_timer_t idle_timer;
    uv_signal_t on_term, on_int, on_hup;
};

#endif
