/* What `berth top` knows and how it is looked at. Facts come from the daemon's answers
 * (top_feed.c) and a job's log (top_log.c), wishes from keys (top_keys.c); top_layout.c makes
 * a picture of both. Nothing here does I/O, so that tests can make any situation. */
#ifndef CLI_TOP_TOP_MODEL_H
#define CLI_TOP_TOP_MODEL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "cli/table/queue_rows.h"

#define TOP_POINTS 600 /* kept of a card's past; one comes each second */

struct top_point {
    int64_t at_us;
    int16_t util;          /* percent; -1: not reported */
    int16_t used_permille; /* of the card's memory; -1: not reported */
};

/* A card's past: a ring. */
struct top_past {
    char *uuid; /* owned */
    struct top_point points[TOP_POINTS];
    int n, next;
};

/* The end of the selected job's log, line by line. */
struct top_log {
    char *path;   /* owned; NULL: there is none to show */
    char **lines; /* owned */
    size_t n;
    char *why; /* owned; why nothing is shown, or NULL */
};

enum top_page { TOP_MAIN, TOP_LOG, TOP_TEXT };

struct top {
    /* facts; NULL until they are known */
    json_t *status, *gpus;
    json_t *health;  /* what the daemon finds wrong with itself */
    json_t *explain; /* of one job */
    json_t *failed;  /* what has failed within the last hour: rows of id, array_job, array_task,
                        state, array */
    struct buf answer; /* to `jobs`, as text; rows lie in it */
    struct queue_format format;
    struct queue_rows rows;
    bool cut; /* there are more jobs than were asked for */
    struct top_past *past;
    int n_past;
    struct top_log log;
    /* the daemon */
    bool connected;
    char *trouble;     /* owned; why not, in the daemon's or our words */
    int64_t silent_ms; /* for how long an answer has been due */
    /* the view */
    bool ascii;
    int64_t now_us;
    enum top_page page;
    char *filter;  /* owned; "" shows all */
    int sort;      /* which of top_sort_name */
    bool ended;    /* also the newest that have ended */
    size_t *shown; /* owned; rows that the filter lets through */
    size_t n_shown;
    char first_reason[24]; /* why those wait whose turn it is, "GpuBusy"; "": unknown */
    size_t at;             /* of shown: the selected one */
    size_t first;          /* of shown: the topmost in view */
    uint32_t selected;     /* its id; 0: none */
    int list_rows;         /* how many fitted, for page keys */
    struct buf text;       /* the page TOP_TEXT */
    int scroll;            /* lines off the top (text), or off the end (log) */
    /* the last line */
    char *prompt;     /* owned; a question, NULL: none */
    int asking;       /* what about, for top_keys.c */
    uint32_t asked;   /* about which job: the selection moves on when that ends meanwhile */
    struct buf input; /* what has been typed in answer */
    char *message;    /* owned; "" or NULL: none */
    bool message_is_bad;
    int64_t message_until_us;
};

void top_init(struct top *t);
void top_free(struct top *t);

/* Takes over what the daemon answered; answers are stolen. */
void top_take_status(struct top *t, json_t *status);
void top_take_gpus(struct top *t, json_t *gpus);
void top_take_health(struct top *t, json_t *answer);
void top_take_explain(struct top *t, json_t *answer);
void top_take_failed(struct top *t, json_t *answer);
void top_take_series(struct top *t, const json_t *answer);
void top_take_jobs(struct top *t, const char *answer, size_t n, size_t limit);
void top_lose(struct top *t, const char *why); /* the daemon has gone; the last picture stays */

/* How the list is sorted; NULL: no such. The first is the daemon's order. */
const char *top_sort_name(int sort);
void top_set_sort(struct top *t, int sort);
void top_set_filter(struct top *t, const char *filter);
void top_move(struct top *t, long by); /* the selection, so many rows down */

/* The selected job's row; false: none. */
bool top_selected(const struct top *t, struct row *row);
/* What people call it: "12" or "12_3". Appends. */
void top_add_selected(const struct top *t, struct buf *out);
/* Its log, where the daemon says that is; NULL: unknown. The caller frees. */
char *top_selected_log(const struct top *t);
/* The job's user. The caller frees; NULL: not known. */
char *top_selected_user(const struct top *t);

/* For how long it has been running, and what it uses on all its cards together, as of now: the
 * list itself is older. Nothing for one that does not run. */
void top_add_run_time(const struct top *t, const struct row *row, struct buf *out);
void top_add_use(const struct top *t, const struct row *row, struct buf *out);

/* A line for the user that goes away by itself. words are copied. */
void top_say(struct top *t, bool bad, const char *words);
void top_ask(struct top *t, const char *question); /* NULL: no more */

#endif
