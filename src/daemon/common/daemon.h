/* What the daemon's files share: the parts of one instance and how they find each other.
 * Each part is opaque and owned by the file of its name; nothing here is global. */
#ifndef DAEMON_COMMON_DAEMON_H
#define DAEMON_COMMON_DAEMON_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "core/plan/limits.h"
#include "daemon/common/card_facts.h"
#include "daemon/common/instance.h"
#include "daemon/state/state.h"

struct daemon {
    struct instance inst;
    struct card_facts card_facts;
    struct attempts *attempts;
    struct cards *cards;
    struct roles *roles;
    struct views *views;
    struct rpc *rpc;
    struct uploads *uploads;
    const struct options *options;       /* as it was started */
    int lock_fd;                         /* held: one daemon per state */
    struct attempts_kept *attempts_kept; /* recover.c, during start */
    uv_timer_t idle_timer;
    uv_signal_t on_term, on_int, on_hup;
    bool follows_dead; /* the daemon before this one did not leave in order */

    struct notify *notify;      /* the service manager; NULL: there is none */
    int64_t events_trimmed;     /* idle_work.c: up to this number they are gone */
    bool pruned_any;            /* idle_work.c: environments are to be looked through */
    int64_t envs_at;            /* the last of them that was (0: none) */
    uint32_t files_at;          /* idle_work.c: the last jobs file that was looked at there */
    uint32_t room_uid, room_at; /* whose jobs make room there, behind that one (0: the first) */

    struct fair *fair;
    struct modelfile *modelfile;
    struct limits limits; /* as the settings have them */
    struct past past;
    struct around around;
    struct state state;    /* what is true of the jobs; it borrows the parts above */
    struct budget *budget; /* of one request */
    struct admission *admission;
    struct turn_loop *turn_loop;
    void (*after_turn)(struct daemon *);
    struct slurm *slurm; /* jobs that a cluster executes */
    struct courier *courier;
    struct tally *tally;
    struct pace *pace;
};

#endif
