/* Events as followers receive them. */
#ifndef DAEMON_TURN_EVENT_LINE_H
#define DAEMON_TURN_EVENT_LINE_H

struct buf;
struct store_event;

/* The whole line of a stored event: its object with seq, at_us, kind and job in front. */
void event_line(const struct store_event *row, struct buf *out);

#endif
