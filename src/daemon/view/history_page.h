/* Pages of the history: the newest jobs that ended and match, and from where the next older
 * ones are had. A page is full, or all there was, or as much as could be looked through in
 * some milliseconds: so however long the history is and however rare what is searched for, a
 * request is answered soon. It goes in pieces (long_work.h), and delays no other. */
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
#define PAGE_OBJECTS_MAX 200 /* where each job is given in full, which takes some 0.1 ms */

struct page {
    int64_t limit;              /* 1..PAGE_JOBS_MAX jobs */
    uint32_t before_id;         /* only older ones; 0: from the newest on */
    int64_t since_us, until_us; /* when they ended; 0: whenever */
    uint32_t states;            /* bits */
    char *search;               /* owned, lower case; NULL */
    bool only_own;              /* of other people's jobs nothing is found by search */
    uid_t uid;                  /* the caller's */

    /* How far it is. */
    struct store_filter where;
    struct select_past past;
    uint32_t *ids; /* owned: as found, descending */
    int64_t n;
    int64_t search_max_us; /* behind the first piece; then the page ends */
    int64_t searched_us;
    bool found;     /* they are all that there will be */
    uint32_t older; /* where the next page begins; 0: there is none */
    int64_t shown;
};

/* Whether the params of `jobs` ask for a page: ended jobs, and a number of them. */
bool page_is_wanted(const json_t *params);
/* Call page_free whatever comes of it. */
int page_read(const struct instance *inst, const struct caller *c, const json_t *params,
              struct page *out, struct err *e);
void page_free(struct page *p);

/* Calls cb for each job of the page, oldest first; each is borrowed. Goes on until the boot
 * clock says until_us, which is looked at behind each job, or cb returns not 0. 1: that was
 * all; 0: there is more; -1 with e. */
int page_walk(const struct instance *inst, const struct select *s, struct page *p,
              int64_t until_us, select_cb cb, void *arg, struct err *e);

#endif
