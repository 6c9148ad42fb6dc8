/* Words quoted so that a shell reads them back unchanged. */
#ifndef CLI_COMMON_QUOTE_H
#define CLI_COMMON_QUOTE_H

struct buf;

/* Appends the word, quoted only if a shell would split or expand it; control bytes as
 * $'..'. */
void quote_add(struct buf *out, const char *word);

#endif
