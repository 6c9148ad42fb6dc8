/* Pages of the history: the newest jobs that ended and match, and from where the next older
 * ones are had. A page is full, or all there was, or as much as could be looked through in
 * some milliseconds: so however long the history is and however rare what is searched for, one
 * request delays no other. */
#ifndef DAEMON_VIEW_HISTORY_PAGE_H
#define DAEMON_VIEW_HISTORY_PAGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/request/selection.h"

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
};

/* Whether the params of `jobs` ask for a page: ended jobs, and a number of them. */
bool page_is_wanted(const json_t *params);
int page_read(const struct instance *inst, const struct caller *c, const json_t *params,
              struct page *out, struct err *e);
void page_free(struct page *p);

/* Calls cb for each job of the page, oldest first; each is borrowed. *older: what before_id
 * has to be for the next page; 0: there is none. */
int page_walk(const struct instance *inst, const struct select *s, const struct page *p,
              select_cb cb, void *arg, uint32_t *older, struct err *e);

#endif
