/* Maps a path to what it names. Pure; docs/web.md lists the paths. */
#ifndef WEB_ROUTE_H
#define WEB_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "web/http/query.h"

enum route_kind {
    ROUTE_NONE,
    ROUTE_PAGE,   /* HTML, made from the answer to a query */
    ROUTE_DATA,   /* the answer itself */
    ROUTE_LOG,    /* the end of a job's log */
    ROUTE_EVENTS, /* the event stream */
    ROUTE_ASSET,  /* compiled in */
    ROUTE_LOGIN,
    ROUTE_LOGOUT,
};

struct route {
    enum route_kind kind;
    enum query_kind query; /* of a page, data, log */
    int64_t job;           /* if the path names one */
    const char *asset;     /* its name; borrowed from the path */
    bool is_open;          /* accessible without the token */
};

void route_find(const char *path, struct route *out);

#endif
