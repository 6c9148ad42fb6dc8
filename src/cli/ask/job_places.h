/* Checks folders and files that a job names before it is submitted. The client does this, with
 * the user's rights, because the daemon opens nothing that a user named. */
#ifndef CLI_ASK_JOB_PLACES_H
#define CLI_ASK_JOB_PLACES_H

struct err;
struct request;

/* Makes r->chdir absolute, and checks that the log and the error file can be created: the
 * supervisor creates missing folders, so they only have to be possible. ERR_USAGE, prefixed
 * with the attribute's name. */
int jobplaces_settle(struct request *r, struct err *e);

#endif
