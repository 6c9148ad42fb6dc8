/* Problems of the daemon and GPUs, and recent failures: lines for the head of `berth top`, the
 * most severe first. top_problems.c makes them from the model; top_layout.c draws them. */
#ifndef CLI_TOP_TOP_PROBLEMS_H
#define CLI_TOP_TOP_PROBLEMS_H

#include "base/buf.h"
#include "cli/common/term.h"

#define TOP_PROBLEMS_MAX 16

struct top;

struct top_problems {
    struct buf text[TOP_PROBLEMS_MAX];
    enum style style[TOP_PROBLEMS_MAX];
    int n;
    int total; /* including those without room */
    enum style worst;
};

void top_problems_find(const struct top *t, struct top_problems *p);
void top_problems_free(struct top_problems *p);

#endif
