/* What the files of this folder need of the daemon to show jobs and their expected starts to
 * clients. They read, and change nothing. */
#ifndef DAEMON_VIEW_VIEWS_H
#define DAEMON_VIEW_VIEWS_H

struct views {
    /* Borrowed, as are all members up to pace. */
    struct instance *inst;
    const struct roles *roles;
    const struct attempts *attempts;
    const struct cards *cards;
    struct slurm *slurm;
    struct pace *pace;

    struct forecast *forecast; /* expected_starts.c; NULL until first requested */
    int needs_told;            /* wait_reason.c: queue lines since the last plan */
};

#endif
