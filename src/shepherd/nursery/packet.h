/* What the daemon sends the nursery, and the nursery one of its supervisors: see
 * sys/nursery_packets.h. */
#ifndef SHEPHERD_NURSERY_PACKET_H
#define SHEPHERD_NURSERY_PACKET_H

#include <stdbool.h>

#include "sys/nursery_packets.h"

/* Where descriptors go that are to be out of the way of those that are received. */
#define FD_OUT_OF_THE_WAY 11

/* 1 with *kind and fds filled, 0 at the end, -1 for a packet that is of no use, or cannot be
 * had now. */
int packet_receive(int from, char *kind, int fds[NURSERY_FDS]);

/* Makes them descriptors 3, 4 and 5. */
bool packet_put_in_place(const int fds[NURSERY_FDS]);

/* Says that no process can be started, to the one that waits at the other end of ctl. */
void packet_refuse(int ctl, int errnum);

/* A duplicate out of the way for fd, which is closed; fd itself if there is none. */
int packet_move_up(int fd);

/* After a call that failed and is made again: at once after a signal, else in a moment, as the
 * kernel has no memory for it. */
void packet_rest(void);

#endif
