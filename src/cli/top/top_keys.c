/* The keys of `berth top`: they navigate in the model, or ask the daemon to change something
 * (which it refuses if the viewer may not). */
#include "cli/top/top_keys.h"

#include <jansson.h>
#include <limits.h>
#include <string.h>
#include <wchar.h>

#include "base/buf.h"
#include "cli/common/term.h"
#include "cli/top/top_feed.h"
#include "cli/top/top_filter.h"
#include "cli/top/top_layout.h"
#include "cli/top/top_model.h"
#include "cli/top/top_screen.h"
#include "cli/verbs/explain_verb.h"

#define INPUT_MAX 200

enum { ASKING_NOTHING, ASKING_CANCEL, ASKING_FILTER, ASKING_PAUSE, ASKING_RESUME };

static void
ask(struct top *t, int what, const char *question)
{
    top_ask(t, question);
    t->asking = what;
}

/* --- actions --- */

static json_t *
select_job(uint32_t id)
{
    return json_pack("{s:[o]}", "select", json_sprintf("%u", id));
}

static void
change(struct top *t, struct top_feed *f, const char *method, const char *done)
{
    if (t->selected)
        top_feed_do(f, method, select_job(t->selected), done);
}

static void
raise_priority(struct top *t, struct top_feed *f, int by)
{
    auto_buf struct buf done = BUF_INIT;
    struct row row;
    json_t *params;

    if (!top_selected(t, &row))
        return;
    params = select_job(t->selected);
    json_object_set_new(params, "priority", json_integer(scan_int(&row.v[F_PRIORITY], 0) + by));
    buf_addf(&done, "priority %lld for", (long long)scan_int(&row.v[F_PRIORITY], 0) + by);
    top_feed_do(f, "priority", params, buf_str(&done));
}

static void
change_gpus(struct top *t, struct top_feed *f, bool pause, const char *which)
{
    auto_buf struct buf done = BUF_INIT;
    auto_buf struct buf word = BUF_INIT;
    json_t *words = json_array();

    for (const char *s = which; *s;) {
        size_t n = strcspn(s, ", ");

        buf_clear(&word);
        buf_add(&word, s, n);
        if (n > 0)
            json_array_append_new(words, json_string(buf_str(&word)));
        s += n + (s[n] != '\0');
    }
    if (json_array_size(words) == 0) {
        json_decref(words);
        top_say(t, false, "no GPU named; nothing was done");
        return;
    }
    buf_addf(&done, "%s gpu %s", pause ? "paused" : "resumed", which);
    top_feed_do(f, pause ? "gpu.pause" : "gpu.resume", json_pack("{s:o}", "gpus", words),
                buf_str(&done));
}

static void
ask_cancel(struct top *t)
{
    auto_buf struct buf question = BUF_INIT;

    if (!t->selected)
        return;
    buf_adds(&question, "cancel job ");
    top_add_selected(t, &question);
    buf_adds(&question, "? y or n");
    ask(t, ASKING_CANCEL, buf_str(&question));
    t->asked = t->selected;
}

static void
show_help(struct top *t)
{
    buf_clear(&t->text);
    top_help_text(&t->text, t->ascii);
    t->page = TOP_TEXT;
    t->scroll = 0;
}

static void
show_explanation(struct top *t)
{
    const struct term plain = {0};

    if (!t->selected || !t->explain)
        return;
    buf_clear(&t->text);
    explain_add(&plain, &t->text, t->explain);
    t->page = TOP_TEXT;
    t->scroll = 0;
}

/* --- answering a question --- */

static void
add_typed(struct buf *input, int key)
{
    char bytes[MB_LEN_MAX];
    mbstate_t state = {0};
    size_t n = key >= ' ' && key < TOP_KEY_UP ? wcrtomb(bytes, (wchar_t)key, &state) : 0;

    if (n > 0 && n != (size_t)-1 && input->len + n < INPUT_MAX)
        buf_add(input, bytes, n);
}

static void
erase(struct buf *input)
{
    if (input->len == 0)
        return;
    do
        input->len--;
    while (input->len > 0 && ((unsigned char)input->data[input->len] & 0xc0) == 0x80);
    input->data[input->len] = '\0';
}

static void
finish(struct top *t, struct top_feed *f)
{
    auto_buf struct buf input = t->input;
    auto_buf struct buf why = BUF_INIT;
    int asking = t->asking;

    t->input = (struct buf)BUF_INIT;
    ask(t, ASKING_NOTHING, NULL);
    if (asking == ASKING_FILTER && !top_filter_check(t->filter, &why)) {
        top_set_filter(t, "");
        top_say(t, true, buf_str(&why));
    } else if (asking == ASKING_FILTER) {
        top_feed_refresh(f); /* a filter searches more jobs than the list shows */
    } else {
        change_gpus(t, f, asking == ASKING_PAUSE, buf_str(&input));
    }
}

static void
answer(struct top *t, struct top_feed *f, int key)
{
    if (t->asking == ASKING_CANCEL) {
        if (key == 'y' || key == 'Y')
            top_feed_do(f, "cancel", select_job(t->asked), "cancelled");
        ask(t, ASKING_NOTHING, NULL);
        return;
    }
    if (key == TOP_KEY_ENTER) {
        finish(t, f);
        return;
    }
    if (key == TOP_KEY_ESCAPE) {
        if (t->asking == ASKING_FILTER)
            top_set_filter(t, "");
        ask(t, ASKING_NOTHING, NULL);
        return;
    }
    if (key == TOP_KEY_ERASE)
        erase(&t->input);
    else
        add_typed(&t->input, key);
    if (t->asking == ASKING_FILTER)
        top_set_filter(t, buf_str(&t->input));
}

/* --- pages --- */

static void
scroll(struct top *t, int lines)
{
    t->scroll = t->scroll + lines < 0 ? 0 : t->scroll + lines;
    if (t->page == TOP_LOG && (size_t)t->scroll > t->log.n)
        t->scroll = (int)t->log.n;
}

/* Logs scroll up from the end, other pages down from the beginning. */
static void
press_on_page(struct top *t, int key)
{
    int up = t->page == TOP_LOG ? 1 : -1;

    if (key == 'q' || key == TOP_KEY_ESCAPE || key == TOP_KEY_LEFT || key == TOP_KEY_ENTER ||
        key == 'l') {
        t->page = TOP_MAIN;
        t->scroll = 0;
    } else if (key == TOP_KEY_UP || key == 'k') {
        scroll(t, up);
    } else if (key == TOP_KEY_DOWN || key == 'j') {
        scroll(t, -up);
    } else if (key == TOP_KEY_PAGE_UP) {
        scroll(t, up * 20);
    } else if (key == TOP_KEY_PAGE_DOWN || key == ' ') {
        scroll(t, -up * 20);
    } else if (key == TOP_KEY_END || key == 'G') {
        t->scroll = 0;
    }
}

static bool
move(struct top *t, int key)
{
    if (key == TOP_KEY_UP || key == 'k')
        top_move(t, -1);
    else if (key == TOP_KEY_DOWN || key == 'j')
        top_move(t, 1);
    else if (key == TOP_KEY_PAGE_UP)
        top_move(t, -t->list_rows);
    else if (key == TOP_KEY_PAGE_DOWN || key == ' ')
        top_move(t, t->list_rows);
    else if (key == TOP_KEY_HOME || key == 'g')
        top_move(t, -(long)t->n_shown);
    else if (key == TOP_KEY_END || key == 'G')
        top_move(t, (long)t->n_shown);
    else
        return false;
    return true;
}

static void
change_sort(struct top *t, struct top_feed *f)
{
    auto_buf struct buf words = BUF_INIT;

    top_set_sort(t, t->sort + 1);
    buf_addf(&words, "sort by: %s", top_sort_name(t->sort));
    top_say(t, false, buf_str(&words));
    top_feed_refresh(f);
}

static void
look(struct top *t, struct top_feed *f, int key)
{
    if (key == 'l' || key == TOP_KEY_ENTER) {
        t->page = t->selected ? TOP_LOG : TOP_MAIN;
        t->scroll = 0;
    } else if (key == 'e') {
        show_explanation(t);
    } else if (key == '?') {
        show_help(t);
    } else if (key == '/') {
        top_set_filter(t, "");
        ask(t, ASKING_FILTER, "show only:");
    } else if (key == 's') {
        change_sort(t, f);
    } else if (key == 'a') {
        t->ended = !t->ended;
        top_say(t, false, t->ended ? "with the newest ended jobs" : "without ended jobs");
        top_feed_refresh(f);
    } else if (key == '\f') {
        top_screen_redraw();
    }
}

static bool
press_on_main(struct top *t, struct top_feed *f, int key)
{
    if (key == 'q')
        return false;
    if (move(t, key))
        return true;
    if (key == 'c')
        ask_cancel(t);
    else if (key == 'h')
        change(t, f, "hold", "held");
    else if (key == 'r')
        change(t, f, "release", "released");
    else if (key == '+' || key == '=')
        raise_priority(t, f, 1);
    else if (key == '-')
        raise_priority(t, f, -1);
    else if (key == 'p')
        ask(t, ASKING_PAUSE, "pause which GPUs (0, 1-3, all)?");
    else if (key == 'u')
        ask(t, ASKING_RESUME, "resume which GPUs (0, 1-3, all)?");
    else
        look(t, f, key);
    return true;
}

bool
top_press(struct top *t, struct top_feed *f, int key)
{
    if (t->prompt)
        answer(t, f, key);
    else if (t->page != TOP_MAIN)
        press_on_page(t, key);
    else
        return press_on_main(t, f, key);
    return true;
}
