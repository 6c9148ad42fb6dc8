/* Shared by both forms of a report: they take the answer of the daemon's method `report` and
 * format its numbers. */
#ifndef CLI_REPORT_REPORT_VERB_H
#define CLI_REPORT_REPORT_VERB_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct term;

/* report_text.c: for a terminal. */
/* commands: the maximum number to list. */
void report_add_text(const json_t *report, const struct term *term, bool utf8, int64_t commands,
                     struct buf *out);

/* report_html.c: one self-contained page. */
void report_add_html(const json_t *report, struct buf *out);

/* report_plots.c: its plots. */
void report_plot_gpus(const json_t *report, struct buf *out);
void report_plot_scatter(const json_t *report, struct buf *out);
void report_plot_wait_classes(const json_t *report, struct buf *out);
void report_plot_waits_over_time(const json_t *report, struct buf *out);

/* report_values.c */
void report_add_hours(struct buf *out, int64_t ms);                    /* "51.2", "1234" */
void report_add_ms(struct buf *out, const json_t *o, const char *key); /* "3m20s"; "n/a" */
void report_add_peak(struct buf *out, const json_t *sums);  /* "6.1 GiB"; "n/a"; "-" */
void report_add_asked(struct buf *out, const json_t *sums); /* per job, or "whole", "-" */
void report_add_percent(struct buf *out, const json_t *o, const char *key); /* of a mean load */
void report_add_edge(struct buf *out, int64_t ms); /* a round value: "10 s", "1 min", "6 h" */
void report_add_day(struct buf *out, int64_t wall_us, int64_t span_us); /* as fine as fits */
int64_t report_failed(const json_t *sums);    /* jobs that failed by themselves */
double report_completed(const json_t *total); /* fraction of the jobs; of none: nonsense */
double report_busy(const json_t *report);     /* of all GPUs, 0..1 */
int64_t report_bin_at(const json_t *report, size_t i); /* start of bin i, wall time */
int64_t report_span_us(const json_t *report);          /* of the time axis; at least 1 */
/* Appends text from people, escaped for HTML and for quoted attributes. */
void report_add_escaped(struct buf *out, const char *text);

#endif
