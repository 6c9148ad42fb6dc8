/* Folders and files that a job names, looked at before it is submitted: as the user, here,
 * since the daemon opens nothing that a user named. */
#ifndef CLI_ASK_JOB_PLACES_H
#define CLI_ASK_JOB_PLACES_H

struct err;
struct request;

/* Makes the folder of r->chdir absolute, and sees that the log and the file for errors can be
 * made: their folders need not be there, for the supervisor makes them, but must be possible.
 * ERR_USAGE, with the attribute's name in front. */
int jobplaces_settle(struct request *r, struct err *e);

#endif
