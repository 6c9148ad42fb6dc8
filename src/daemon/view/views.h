/* What clients are shown of jobs, and of what is expected of them: what the files of this
 * folder ask the parts of the daemon. They read, and change nothing. */
#ifndef DAEMON_VIEW_VIEWS_H
#define DAEMON_VIEW_VIEWS_H

struct views {
    /* Borrowed, as is all up to the pace. */
    struct instance *inst;
    const struct roles *roles;
    const struct attempts *attempts;
    const struct cards *cards;
    struct slurm *slurm;
    struct pace *pace;

    struct forecast *forecast; /* expected_starts.c; NULL until a client asks */
    int needs_told;            /* wait_reason.c: lines since the last plan */
};

#endif
