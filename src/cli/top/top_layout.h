/* Draws `berth top` into a grid of any size from the model. Pure. */
#ifndef CLI_TOP_TOP_LAYOUT_H
#define CLI_TOP_TOP_LAYOUT_H

#include "cli/common/grid.h"

struct buf;
struct top;

/* Draws everything; stores in t how much of the list fitted and where it begins. */
void top_draw(struct top *t, struct grid *g);

/* Layout of the GPUs: rows per GPU, and GPUs side by side. */
struct top_cards {
    int rows, across, shown, height;
};
struct top_cards top_cards_fit(int n, int columns, int height_max);
void top_draw_cards(const struct top *t, struct grid *g, struct area a,
                    const struct top_cards *fit);

/* The jobs, with a line of titles. */
void top_draw_list(struct top *t, struct grid *g, struct area a);

/* The selected job: its properties, why it waits, and below that the end of its log. */
void top_draw_job(const struct top *t, struct grid *g, struct area a);
void top_draw_log(const struct top *t, struct grid *g, struct area a);

/* A horizontal line with a title. */
void top_draw_rule(struct grid *g, struct area a, enum style style, const char *title);
/* Draws s in lines of a.columns, at most a.rows of them; returns the number of lines. */
int top_draw_wrapped(struct grid *g, struct area a, enum style style, const char *s);

/* The pages that consist only of text. */
void top_help_text(struct buf *out, bool ascii);
/* "### what it uses, ..." */
void top_bar_legend(struct buf *out, bool ascii);

#endif
