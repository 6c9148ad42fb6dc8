/* Text into HTML. Everything that comes from a job, a user or a file goes through here. */
#ifndef WEB_PAGES_HTML_H
#define WEB_PAGES_HTML_H

#include <stddef.h>

struct buf;

/* As text or as the value of a quoted attribute: the five characters that mean something are
 * written as entities; bytes that are not UTF-8 and control bytes become U+FFFD, what turns
 * the direction of writing around is shown by its number. NULL adds nothing. */
void html_add(struct buf *out, const char *s);

/* JSON as the content of a script element: nothing in it can end the element. */
void html_add_json(struct buf *out, const char *json, size_t n);

#endif
