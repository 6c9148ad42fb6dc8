/* For verbs that print something about each selected job: show and explain. */
#ifndef CLI_ASK_ASK_EACH_H
#define CLI_ASK_ASK_EACH_H

#include <jansson.h>

struct buf;
struct cli;
struct page;
struct term;

struct tell {
    const struct page *page; /* its only option is --all */
    const char *method;      /* answers {"jobs": [...]} */
    const char *nothing;     /* error if no job is selected */
    const char *between;     /* printed between two jobs; "": nothing */
    void (*add)(const struct term *term, struct buf *out, const json_t *job);
};

/* Runs the whole verb; returns the exit status. */
int tell_jobs(struct cli *cli, int argc, char **argv, const struct tell *what);

#endif
