/* Quotes words for a shell: see quote.h. For commands in messages that people can copy. */
#include "cli/common/quote.h"

#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"

/* As $'..': control characters, in a form that a shell reads back. */
static void
add_escaped(struct buf *out, const char *word)
{
    buf_adds(out, "$'");
    for (; *word; word++) {
        unsigned char c = (unsigned char)*word;

        if (c < ' ' || c == 0x7f)
            buf_addf(out, "\\%03o", c);
        else
            buf_addf(out, c == '\'' || c == '\\' ? "\\%c" : "%c", c);
    }
    buf_addc(out, '\'');
}

static bool
has_control(const char *word)
{
    for (; *word; word++) {
        if ((unsigned char)*word < ' ' || *word == 0x7f)
            return true;
    }
    return false;
}

/* Quotes only words that a shell would split or expand. */
void
quote_add(struct buf *out, const char *word)
{
    if (word[0] && strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-./=:,@%+") == strlen(word)) {
        buf_adds(out, word);
        return;
    }
    if (has_control(word)) {
        add_escaped(out, word);
        return;
    }
    text_add_quoted(out, word);
}
