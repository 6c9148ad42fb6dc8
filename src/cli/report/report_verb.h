/* What the two faces of a report share: the answer of the daemon's method `report`, and how its
 * numbers are written. */
#ifndef CLI_REPORT_REPORT_VERB_H
#define CLI_REPORT_REPORT_VERB_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct term;

/* report_text.c: for a terminal. */
/* commands: how many of them at most. */
void report_add_text(const json_t *report, const struct term *term, bool utf8, int64_t commands,
                     struct buf *out);

/* report_html.c: one page, which needs nothing else. */
void report_add_html(const json_t *report, struct buf *out);

/* report_plots.c: its pictures. */
void report_plot_gpus(const json_t *report, struct buf *out);
void report_plot_scatter(const json_t *report, struct buf *out);
void report_plot_wait_classes(const json_t *report, struct buf *out);
void report_plot_waits_over_time(const json_t *report, struct buf *out);

/* report_values.c */
void report_add_hours(struct buf *out, int64_t ms);                    /* "51.2", "1234" */
void report_add_ms(struct buf *out, const json_t *o, const char *key); /* "3m20s"; "n/a" */
void report_add_peak(struct buf *out, const json_t *sums);  /* "6.1 GiB"; "n/a"; "-" */
void report_add_asked(struct buf *out, const json_t *sums); /* of a command; "whole", "-" */
void report_add_percent(struct buf *out, const json_t *o, const char *key); /* of a mean load */
void report_add_edge(struct buf *out, int64_t ms); /* a round one: "10 s", "1 min", "6 h" */
void report_add_day(struct buf *out, int64_t wall_us, int64_t span_us); /* as fine as fits */
int64_t report_failed(const json_t *sums);    /* jobs that ended badly by themselves */
double report_completed(const json_t *total); /* which part of the jobs; of no job: nonsense */
double report_busy(const json_t *report);     /* of all cards, 0..1 */
int64_t report_bin_at(const json_t *report, size_t i); /* where bin i begins, wall time */
int64_t report_span_us(const json_t *report);          /* of the time axis; at least 1 */
/* Text of people: safe for HTML, also within an attribute's quotes. */
void report_add_escaped(struct buf *out, const char *text);

#endif
