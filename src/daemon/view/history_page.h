/* Pages of the history: the newest ended jobs that match, and where the next page, of older
 * jobs, begins. A page ends when it is full, when the history ends, or after some milliseconds
 * of search: so a request is answered soon however long the history is and however rare the
 * matches are. It is processed in pieces (long_work.h), so it delays no other request. */
#ifndef DAEMON_VIEW_HISTORY_PAGE_H
#define DAEMON_VIEW_HISTORY_PAGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/request/selection.h"
#include "store/store.h"

struct caller;
struct instance;
struct err;

#define PAGE_JOBS_MAX    1000
#define PAGE_OBJECTS_MAX 200 /* if whole objects are written, which takes about 0.1 ms each */

struct page {
    int64_t limit;              /* 1..PAGE_JOBS_MAX jobs */
    uint32_t before_id;         /* only jobs with a smaller id; 0: from the newest on */
    int64_t since_us, until_us; /* range of the end time; 0: unbounded */
    uint32_t states;            /* bit mask */
    char *search;               /* owned, lower case; or NULL */
    bool only_own;              /* search does not match other users' jobs */
    uid_t uid;                  /* the caller's */

    /* Progress. */
    struct store_filter where;
    struct select_past past;
    uint32_t *ids; /* owned; in the order found, descending */
    int64_t n;
    int64_t search_max_us; /* time limit of the search after the first piece */
    int64_t searched_us;
    bool found;     /* ids is complete */
    uint32_t older; /* before_id of the next page; 0: there is none */
    int64_t shown;
};

/* True if the params of `jobs` ask for a page: ended jobs, with a limit or before_id. */
bool page_is_wanted(const json_t *params);
/* Call page_free even after an error. */
int page_read(const struct instance *inst, const struct caller *c, const json_t *params,
              struct page *out, struct err *e);
void page_free(struct page *p);

/* Calls cb for each job of the page, oldest first; each is borrowed. Stops when the boot clock
 * reaches until_us, which is checked after each job, or when cb does not return 0. 1: all
 * done; 0: there is more; -1 with e. */
int page_walk(const struct instance *inst, const struct select *s, struct page *p,
              int64_t until_us, select_cb cb, void *arg, struct err *e);

#endif
