/* Shared by the simulator's pictures: a self-contained page with a title. */
#ifndef SIM_SVG_PAGE_H
#define SIM_SVG_PAGE_H

struct buf;

/* Left edge of titles, in pixels. */
#define SVG_LEFT 90

/* Opens the page, in pixels; the caller closes it with "</svg>\n". Classes of text: h the
 * title, n the note, g (12 px) and s (10 px, grey) end at their point, x (10 px) is centred; a
 * line of class t is dotted. The style adds others. Title and note are plain text of any
 * origin. */
void svg_begin(struct buf *out, int width, int height, const char *style, const char *title,
               const char *note);

/* Appends plain text of any origin. */
void svg_add_text(struct buf *out, const char *text);

#endif
