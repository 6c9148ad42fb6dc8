/* Metrics in the text format of Prometheus, and the same numbers as members of a JSON object,
 * named as in the text. https://prometheus.io/docs/instrumenting/exposition_formats/ */
#ifndef DAEMON_VIEW_EXPOSITION_H
#define DAEMON_VIEW_EXPOSITION_H

struct buf;
struct histogram;
struct jsonw;

struct exposition {
    struct buf *text;
    struct jsonw *numbers; /* an open object */
    const char *name;      /* of the current family; borrowed */
};

/* Begins a family; all its values must follow. type: "gauge", "counter" or "histogram". */
void exposition_family(struct exposition *x, const char *name, const char *type,
                       const char *help);

/* Adds a value with its labels: alternating names and values, ended by NULL. Label values may
 * be any bytes. */
void exposition_value(struct exposition *x, double value, ...) __attribute__((sentinel));

/* Adds a family with one value and no labels. */
void exposition_one(struct exposition *x, const char *name, const char *type, const char *help,
                    double value);

/* Adds a whole family: buckets in seconds, sum and count. */
void exposition_histogram(struct exposition *x, const char *name, const char *help,
                          const struct histogram *h);

#endif
