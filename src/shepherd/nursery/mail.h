/* A mail about a job. */
#ifndef SHEPHERD_NURSERY_MAIL_H
#define SHEPHERD_NURSERY_MAIL_H

#include <jansson.h>

struct buf;

/* Writes the whole message: headers, an empty line, text. event: as followers receive it. to:
 * checked addresses; id: unique per message, the same if it is resent. */
void mail_write(const json_t *event, const char *to, const char *id, struct buf *out);

#endif
