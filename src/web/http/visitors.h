/* Limits the connections of the web server, to leave room for new ones. A silent connection
 * has sent no request yet; a reading one still receives its answer. If there are too many of
 * either, the oldest is closed, so that half-sent requests and slow readers cannot keep
 * visitors out. There is no limit per address, because many visitors share a proxy's or
 * gateway's. */
#ifndef WEB_HTTP_VISITORS_H
#define WEB_HTTP_VISITORS_H

/* The maximum of silent connections; a browser sends requests on its own connections at
 * once. */
#define VISITORS_SILENT_MAX 128
/* The maximum of reading connections; most answers fit into the socket's buffer and are sent
 * immediately. */
#define VISITORS_READING_MAX 64

struct visitors;
struct visitor;

struct visitors *visitors_new(void);
void visitors_free(struct visitors *v); /* once all visitors have left; NULL is fine */

/* Registers a connection on fd, silent at first. The caller releases it with visitor_leave.
 * May shut down the socket of the oldest silent connection, which then ends like any other. */
struct visitor *visitors_enter(struct visitors *v, int fd);
void visitor_leave(struct visitor *x);

void visitor_asks(struct visitor *x);        /* a complete request has arrived */
void visitor_is_answered(struct visitor *x); /* its answer is being sent */
void visitor_is_done(struct visitor *x);     /* its answer is sent: silent again */

/* Cached result of the gate's check of the peer: 0 until it is known. */
char *visitor_peer(struct visitor *x);

#endif
