/* What the daemon sends to the nursery of shepherds (shepherd/nursery.c): a packet of one of
 * these bytes, with three descriptors: connection, lock, folder. */
#ifndef SYS_NURSERY_H
#define SYS_NURSERY_H

#define NURSERY_ATTEMPT 'a' /* supervise the attempt */
#define NURSERY_SWEEP   's' /* end what is left of one whose shepherd died */
#define NURSERY_DELIVER 'd' /* the second holds what to deliver; the third plays no part */

#endif
