/* A mail about a job. */
#ifndef SHEPHERD_NURSERY_MAIL_H
#define SHEPHERD_NURSERY_MAIL_H

#include <jansson.h>

struct buf;

/* The whole message: headers, an empty line, words. event: as followers get it. to: addresses
 * that were checked; id: different for each message, the same when one is sent again. */
void mail_write(const json_t *event, const char *to, const char *id, struct buf *out);

#endif
