/* The terminal of `berth top`: shows a grid and reads keys, using curses. */
#ifndef CLI_TOP_TOP_SCREEN_H
#define CLI_TOP_TOP_SCREEN_H

#include <stdbool.h>

struct err;
struct grid;

enum top_key {
    TOP_KEY_NONE = -1,
    /* other keys are characters */
    TOP_KEY_UP = 0x110000,
    TOP_KEY_DOWN,
    TOP_KEY_LEFT,
    TOP_KEY_PAGE_UP,
    TOP_KEY_PAGE_DOWN,
    TOP_KEY_HOME,
    TOP_KEY_END,
    TOP_KEY_ENTER,
    TOP_KEY_ERASE,
    TOP_KEY_ESCAPE,
    TOP_KEY_RESIZE,
};

/* Takes over the terminal; top_screen_end restores it. */
int top_screen_begin(struct err *e);
void top_screen_end(void);

bool top_screen_is_ascii(void);
void top_screen_size(int *rows, int *columns);
void top_screen_show(const struct grid *g);
void top_screen_redraw(void); /* redraw everything next time */

/* Returns a pressed key, or TOP_KEY_NONE. */
int top_screen_key(void);

#endif
