/* Words as a shell reads them back. */
#ifndef CLI_COMMON_QUOTE_H
#define CLI_COMMON_QUOTE_H

struct buf;

/* Appends the word, quoted only where a shell would take it apart; control bytes as $'..'. */
void quote_add(struct buf *out, const char *word);

#endif
