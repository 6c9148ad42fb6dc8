/* Packets from the daemon to the nursery, and from the nursery to a supervisor: see
 * sys/nursery_packets.h. */
#ifndef SHEPHERD_NURSERY_PACKET_H
#define SHEPHERD_NURSERY_PACKET_H

#include <stdbool.h>

#include "sys/nursery_packets.h"

/* Descriptors from here on do not collide with received ones. */
#define FD_OUT_OF_THE_WAY 11

/* 1 with *kind and fds filled, 0 at the end, -1 for a packet that is invalid or cannot be
 * received now. */
int packet_receive(int from, char *kind, int fds[NURSERY_FDS]);

/* Moves them to descriptors 3, 4 and 5. */
bool packet_put_in_place(const int fds[NURSERY_FDS]);

/* Reports to the other end of ctl that no process can be started. */
void packet_refuse(int ctl, int errnum);

/* Duplicates fd above FD_OUT_OF_THE_WAY and closes fd; returns fd itself if that fails. */
int packet_move_up(int fd);

/* Waits before a failed call is repeated: not at all after a signal, else briefly, because the
 * kernel is out of memory. */
void packet_rest(void);

#endif
