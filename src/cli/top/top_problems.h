/* What is wrong with daemon and cards, and what has failed lately: lines for the head of `berth
 * top`, the gravest first. Made by top_problems.c from what the model knows; drawn by
 * top_layout.c. */
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
    int total; /* with those for which there was no room */
    enum style worst;
};

void top_problems_find(const struct top *t, struct top_problems *p);
void top_problems_free(struct top_problems *p);

#endif
