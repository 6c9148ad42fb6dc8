/* Parts of jobs files that were refused or could not be read. What a client had sent after
 * such a part, before it learned of that, must not pass for the whole file: the missing lines
 * would count as removed. */
#ifndef DAEMON_REQUEST_UPLOAD_GAPS_H
#define DAEMON_REQUEST_UPLOAD_GAPS_H

#include <stdbool.h>
#include <stdint.h>

struct client;
struct gap;

/* A part of the file at path is missing: the request with this number on the connection. path
 * NULL: an unknown file, because the request could not be read. */
void gaps_note(struct gap **all, const struct client *client, const char *path,
               uint64_t number);

/* True if a part is missing between the requests `after`, with which the client began to send
 * the whole file (0: it did not say so), and `before`, the last one of the file. The lines
 * kept of it start with the request `from`. Returns true once per file, unless a file comes
 * again after more than a few others. */
bool gaps_take(struct gap **all, const struct client *client, const char *path, uint64_t after,
               uint64_t from, uint64_t before);

void gaps_drop_client(struct gap **all, const struct client *client);

#endif
