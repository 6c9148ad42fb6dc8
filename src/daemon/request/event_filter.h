/* Which events a client wants: the same filter for stored events and new ones. */
#ifndef DAEMON_REQUEST_EVENT_FILTER_H
#define DAEMON_REQUEST_EVENT_FILTER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

/* An event as the filter sees it; borrowed. */
struct event_view {
    const char *kind;
    uint32_t job, file; /* 0: none */
    const char *line;   /* the whole object */
    size_t n;
};

/* Zero-initialised, it passes every event. */
struct event_filter {
    uint32_t file;  /* 0: any */
    uint32_t *jobs; /* owned, sorted; NULL: any */
    int n_jobs;
    uint32_t kinds; /* bit set; 0: any */
    bool only_jobs; /* drop events that are not about a job */
    char *user;     /* owned: the user's member in the event line; NULL: any */
};

/* Reads the params of `events`. ERR_USAGE. */
int event_filter_read(const json_t *params, struct event_filter *out, struct err *e);
void event_filter_free(struct event_filter *f);

/* True if the filter may pass events of this kind. */
bool event_filter_takes(const struct event_filter *f, const char *kind);
/* Events not about a job pass if neither kinds nor a user are named, unless only_jobs. */
bool event_filter_lets(const struct event_filter *f, const struct event_view *ev);

#endif
