/* The terminal of `berth top`; see top_screen.h. No other file uses curses. */
#include "cli/top/top_screen.h"

#include <langinfo.h>
#include <limits.h>
#include <locale.h>
#include <ncurses.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "cli/common/grid.h"
#include "cli/common/term.h"
#include "cli/top/top_terminfo.h"

#define SIDE_MAX     SHRT_MAX
#define ESC_DELAY_MS 50 /* longest gap within a key's sequence over a slow line */

static SCREEN *screen; /* exit handlers take no arguments, and there is only one terminal */
static bool has_color;

static void
begin_colors(void)
{
    static const short colors[STYLES] = {
        [STYLE_GOOD] = COLOR_GREEN,    [STYLE_BUSY] = COLOR_CYAN,  [STYLE_WARN] = COLOR_YELLOW,
        [STYLE_BAD] = COLOR_RED,       [STYLE_HUE_A] = COLOR_CYAN, [STYLE_HUE_B] = COLOR_BLUE,
        [STYLE_HUE_C] = COLOR_MAGENTA,
    };
    const char *no_color = getenv("NO_COLOR");

    has_color = !(no_color && no_color[0]) && has_colors() && start_color() == OK &&
                use_default_colors() == OK;
    for (short i = 0; has_color && i < STYLES; i++) {
        if (colors[i])
            init_pair(i, colors[i], -1);
    }
}

int
top_screen_begin(struct err *e)
{
    setlocale(LC_CTYPE, "");
    /* These hold the window's original size, which curses would never update. */
    (void)unsetenv("LINES");
    (void)unsetenv("COLUMNS");
    int columns = term_of_stdout().columns, rows = term_rows();
    if (columns > SIDE_MAX || rows > SIDE_MAX)
        return err_set(
            e, ERR_FAILED,
            "the terminal says that it has %d columns and %d rows, of which curses draws "
            "%d at most; set its size with stty",
            columns, rows, SIDE_MAX);
    /* newterm also reports an unknown terminal, but leaks memory. */
    screen = top_terminfo_is_usable() ? newterm(NULL, stdout, stdin) : NULL;
    if (!screen) {
        const char *name = getenv("TERM");

        return err_set(e, ERR_FAILED,
                       "unknown terminal type, or one without cursor movement (TERM=%s); try "
                       "'TERM=xterm berth top'",
                       name ? name : "");
    }
    (void)atexit(top_screen_end);
    begin_colors();
    set_escdelay(ESC_DELAY_MS);
    cbreak();
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    meta(stdscr, TRUE);
    curs_set(0);
    return 0;
}

void
top_screen_end(void)
{
    if (!screen)
        return;
    endwin();
    delscreen(screen);
    screen = NULL;
}

bool
top_screen_is_ascii(void)
{
    return strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
}

void
top_screen_size(int *rows, int *columns)
{
    getmaxyx(stdscr, *rows, *columns);
}

static attr_t
attributes_of(const struct grid_cell *c)
{
    attr_t a = c->reverse ? A_REVERSE : 0;

    if (c->style == STYLE_BOLD)
        return a | A_BOLD;
    if (c->style == STYLE_DIM)
        return a | A_DIM;
    if (has_color)
        return a | (c->style ? COLOR_PAIR(c->style) : 0);
    return c->style == STYLE_BAD || c->style == STYLE_WARN ? a | A_BOLD : a;
}

void
top_screen_show(const struct grid *g)
{
    for (int row = 0; row < g->rows; row++) {
        for (int column = 0; column < g->columns; column++) {
            const struct grid_cell *c = grid_at(g, row, column);

            /* Writing the very last cell makes curses report an error, as it would scroll;
             * this is harmless. */
            if (!c->text[0])
                continue;
            attrset(attributes_of(c));
            (void)mvaddstr(row, column, c->text);
        }
    }
    attrset(A_NORMAL);
    refresh();
}

void
top_screen_redraw(void)
{
    clearok(stdscr, TRUE);
}

int
top_screen_key(void)
{
    static const struct {
        int code, key;
    } named[] = {
        {KEY_UP, TOP_KEY_UP},           {KEY_DOWN, TOP_KEY_DOWN},
        {KEY_LEFT, TOP_KEY_LEFT},       {KEY_PPAGE, TOP_KEY_PAGE_UP},
        {KEY_NPAGE, TOP_KEY_PAGE_DOWN}, {KEY_HOME, TOP_KEY_HOME},
        {KEY_END, TOP_KEY_END},         {KEY_ENTER, TOP_KEY_ENTER},
        {KEY_BACKSPACE, TOP_KEY_ERASE}, {KEY_RESIZE, TOP_KEY_RESIZE},
    };
    wint_t c;
    int kind = get_wch(&c);

    if (kind == ERR)
        return TOP_KEY_NONE;
    if (kind == OK)
        return c == '\r' || c == '\n'   ? TOP_KEY_ENTER
               : c == '\b' || c == 0x7f ? TOP_KEY_ERASE
               : c == 0x1b              ? TOP_KEY_ESCAPE
                                        : (int)c;
    for (size_t i = 0; i < sizeof named / sizeof named[0]; i++) {
        if ((int)c == named[i].code)
            return named[i].key;
    }
    return 0; /* a key without a function here */
}
