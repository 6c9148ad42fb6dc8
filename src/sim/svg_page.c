/* The frame of every picture. */
#include "sim/svg_page.h"

#include <string.h>

#include "base/buf.h"
#include "base/text.h"

void
svg_add_text(struct buf *out, const char *text)
{
    auto_buf struct buf safe = BUF_INIT;
    text_add_safe(&safe, text, strlen(text), 0);
    for (const char *p = buf_str(&safe); *p; p++) {
        if (*p == '<' || *p == '&' || *p == '>')
            buf_addf(out, "&#%d;", *p);
        else
            buf_addc(out, *p);
    }
}

void
svg_begin(struct buf *out, int width, int height, const char *style, const char *title,
          const char *note)
{
    buf_addf(out,
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
             "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\">\n",
             width, height, width, height);
    buf_addf(out,
             "<style>.t{stroke:#888;stroke-width:.4;stroke-dasharray:2 3}"
             ".g{font-size:12px;text-anchor:end;fill:#222}"
             ".s{font-size:10px;text-anchor:end;fill:#777}"
             ".x{font-size:10px;text-anchor:middle;fill:#444}"
             ".h{font-size:16px;fill:#111}.n{font-size:11px;fill:#666}%s</style>\n"
             "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
             style);
    buf_addf(out, "<text class=\"h\" x=\"%d\" y=\"24\">", SVG_LEFT);
    svg_add_text(out, title);
    buf_addf(out, "</text>\n<text class=\"n\" x=\"%d\" y=\"42\">", SVG_LEFT);
    svg_add_text(out, note);
    buf_adds(out, "</text>\n");
}
