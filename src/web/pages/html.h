/* Escapes text for HTML. All text from jobs, users and files passes through here. */
#ifndef WEB_PAGES_HTML_H
#define WEB_PAGES_HTML_H

#include <stddef.h>

struct buf;

/* Escapes text, or the value of a quoted attribute: the five special characters become
 * entities, invalid UTF-8 and control bytes U+FFFD, and characters that change the direction
 * of writing are shown by number. NULL adds nothing. */
void html_add(struct buf *out, const char *s);

/* Writes JSON as the content of a script element, which nothing in it can end. */
void html_add_json(struct buf *out, const char *json, size_t n);

#endif
