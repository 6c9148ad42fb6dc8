/* The model of `berth top`: its data and its view state. Data comes from the daemon's answers
 * (top_feed.c) and a job's log (top_log.c), input from keys (top_keys.c); top_layout.c draws
 * both. There is no I/O here, so that tests can create any situation. */
#ifndef CLI_TOP_TOP_MODEL_H
#define CLI_TOP_TOP_MODEL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "cli/table/queue_rows.h"

#define TOP_POINTS 600 /* kept per GPU; one is added each second */

struct top_point {
    int64_t at_us;
    int16_t util;          /* percent; -1: not reported */
    int16_t used_permille; /* of the GPU's memory; -1: not reported */
};

/* A GPU's history: a ring buffer. */
struct top_past {
    char *uuid; /* owned */
    struct top_point points[TOP_POINTS];
    int n, next;
};

/* The end of the selected job's log, line by line. */
struct top_log {
    char *path;   /* owned; NULL: no log to show */
    char **lines; /* owned */
    size_t n;
    char *why; /* owned; why nothing is shown, or NULL */
};

enum top_page { TOP_MAIN, TOP_LOG, TOP_TEXT };

struct top {
    /* data; NULL until known */
    json_t *status, *gpus;
    json_t *health;    /* problems that the daemon reports about itself */
    json_t *explain;   /* of one job */
    json_t *failed;    /* failures of the last hour: rows of id, array_job, array_task, state,
                          array */
    struct buf answer; /* to `jobs`, as text; rows point into it */
    struct queue_format format;
    struct queue_rows rows;
    bool cut; /* there are more jobs than requested */
    struct top_past *past;
    int n_past;
    struct top_log log;
    /* the daemon */
    bool connected;
    char *trouble;     /* owned; why not connected, in the daemon's words or ours */
    int64_t silent_ms; /* how long an answer has been due */
    /* the view state */
    bool ascii;
    int64_t now_us;
    enum top_page page;
    char *filter;  /* owned; "" shows all */
    int sort;      /* index of top_sort_name */
    bool ended;    /* also show the newest ended jobs */
    size_t *shown; /* owned; indices of rows that the filter accepts */
    size_t n_shown;
    char first_reason[24]; /* why the first pending jobs wait, "GpuBusy"; "": unknown */
    size_t at;             /* index in shown of the selected row */
    size_t first;          /* index in shown of the topmost row in view */
    uint32_t selected;     /* its id; 0: none */
    int list_rows;         /* rows that fitted, for page keys */
    struct buf text;       /* the page TOP_TEXT */
    int scroll;            /* lines from the top (text), or from the end (log) */
    /* the bottom line */
    char *prompt;     /* owned; a question; NULL: none */
    int asking;       /* kind of question, for top_keys.c */
    uint32_t asked;   /* its job: the selection moves on if that ends meanwhile */
    struct buf input; /* the answer typed so far */
    char *message;    /* owned; "" or NULL: none */
    bool message_is_bad;
    int64_t message_until_us;
};

void top_init(struct top *t);
void top_free(struct top *t);

/* Store the daemon's answers, which are stolen. */
void top_take_status(struct top *t, json_t *status);
void top_take_gpus(struct top *t, json_t *gpus);
void top_take_health(struct top *t, json_t *answer);
void top_take_explain(struct top *t, json_t *answer);
void top_take_failed(struct top *t, json_t *answer);
void top_take_series(struct top *t, const json_t *answer);
void top_take_jobs(struct top *t, const char *answer, size_t n, size_t limit);
void top_lose(struct top *t, const char *why); /* the daemon is gone; the last picture stays */

/* Name of a sort order; NULL: no such order. The first is the daemon's. */
const char *top_sort_name(int sort);
void top_set_sort(struct top *t, int sort);
void top_set_filter(struct top *t, const char *filter);
void top_move(struct top *t, long by); /* moves the selection down by so many rows */

/* The selected job's row; false: none. */
bool top_selected(const struct top *t, struct row *row);
/* Appends the selected job's id: "12" or "12_3". */
void top_add_selected(const struct top *t, struct buf *out);
/* The path of its log, as the daemon reports it; NULL: unknown. The caller frees. */
char *top_selected_log(const struct top *t);
/* The job's user. The caller frees; NULL: unknown. */
char *top_selected_user(const struct top *t);

/* The job's run time, and its present use on all its GPUs together, which are newer than in
 * the list. Nothing if it is not running. */
void top_add_run_time(const struct top *t, const struct row *row, struct buf *out);
void top_add_use(const struct top *t, const struct row *row, struct buf *out);

/* Shows a temporary message to the user. words are copied. */
void top_say(struct top *t, bool bad, const char *words);
void top_ask(struct top *t, const char *question); /* NULL: end the question */

#endif
