/* The parts of the daemon that methods use. A method reads its parameters, checks what the
 * caller may do, and leaves the rest to these parts. */
#ifndef DAEMON_RPC_RPC_H
#define DAEMON_RPC_RPC_H

struct rpc {
    struct instance *inst; /* borrowed, as are all members up to pace */
    struct roles *roles;
    struct admission *admission;
    struct budget *budget; /* limits on one request */
    struct uploads *uploads;
    struct modelfile *models;
    struct views *views;
    struct attempts *attempts;
    struct cards *cards;
    struct slurm *slurm;
    struct courier *courier;
    const struct tally *tally;
    struct pace *pace;

    struct server *server; /* NULL before the socket is open */
    struct waits *waits;
    struct works *works; /* long_work.c; NULL before the first long request */
};

#endif
