/* The verbs that say something of each job that is selected: show and explain. */
#ifndef CLI_ASK_ASK_EACH_H
#define CLI_ASK_ASK_EACH_H

#include <jansson.h>

struct buf;
struct cli;
struct page;
struct term;

struct tell {
    const struct page *page; /* whose one option is --all */
    const char *method;      /* answers {"jobs": [...]} */
    const char *nothing;     /* said when no job is named */
    const char *between;     /* put between two jobs; "": nothing */
    void (*add)(const struct term *term, struct buf *out, const json_t *job);
};

/* The whole verb; the exit status. */
int tell_jobs(struct cli *cli, int argc, char **argv, const struct tell *what);

#endif
