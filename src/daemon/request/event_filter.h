/* Which events a client wants: the same for history and for what comes. */
#ifndef DAEMON_REQUEST_EVENT_FILTER_H
#define DAEMON_REQUEST_EVENT_FILTER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

/* What there is to know of an event; borrowed. */
struct event_view {
    const char *kind;
    uint32_t job, file; /* 0: none */
    const char *line;   /* the whole object */
    size_t n;
};

/* Zero-initialised it lets everything through. */
struct event_filter {
    uint32_t file;  /* 0: any */
    uint32_t *jobs; /* owned, sorted; NULL: any */
    int n_jobs;
    uint32_t kinds; /* a bit each; 0: any */
    bool only_jobs; /* nothing that concerns no job */
    char *user;     /* owned: how the line names this user; NULL: any */
};

/* From the params of `events`. ERR_USAGE. */
int event_filter_read(const json_t *params, struct event_filter *out, struct err *e);
void event_filter_free(struct event_filter *f);

/* Whether it may let events of this kind through. */
bool event_filter_takes(const struct event_filter *f, const char *kind);
/* What concerns no job passes where no kinds and no user are named, unless only_jobs. */
bool event_filter_lets(const struct event_filter *f, const struct event_view *ev);

#endif
