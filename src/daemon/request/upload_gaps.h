/* Parts of jobs files that were refused, or could not be read. What a client sent behind one,
 * before it heard of that, must not be taken for the whole file: the lines that it lacks would
 * count as gone. */
#ifndef DAEMON_REQUEST_UPLOAD_GAPS_H
#define DAEMON_REQUEST_UPLOAD_GAPS_H

#include <stdbool.h>
#include <stdint.h>

struct client;
struct gap;

/* A part of the file at path is missing: the request with this number, of those of its
 * connection. path NULL: of whichever file, as nobody can say what stood there. */
void gaps_note(struct gap **all, const struct client *client, const char *path,
               uint64_t number);

/* Whether one is between the requests `after`, from which on the client has said that it sends
 * all of the file (0: it has not), and `before`, the last of the file's. What is kept of it
 * begins with the request `from`. True is said once of each file, unless one of them was named
 * more than a few others ago. */
bool gaps_take(struct gap **all, const struct client *client, const char *path, uint64_t after,
               uint64_t from, uint64_t before);

void gaps_drop_client(struct gap **all, const struct client *client);

#endif
