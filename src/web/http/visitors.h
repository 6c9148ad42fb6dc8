/* The connections of the page's server, and room for new ones. One that has asked for nothing
 * yet, or that still reads its answer, holds a place that others may want: of too many such,
 * the oldest is closed, so that half requests and slow readers, however many, keep no visitor
 * out. No bound for each address: that of a proxy or of a gateway is many visitors'. */
#ifndef WEB_HTTP_VISITORS_H
#define WEB_HTTP_VISITORS_H

/* As many may be connected and silent; a browser's own connections are asked through at
 * once. */
#define VISITORS_SILENT_MAX 128
/* This many may read at the same time; most answers fit into the socket's buffer and are read
 * immediately. */
#define VISITORS_READING_MAX 64

struct visitors;
struct visitor;

struct visitors *visitors_new(void);
void visitors_free(struct visitors *v); /* once all visitors have left; NULL is fine */

/* A connection on fd, which is silent at first. The server's, until visitor_leave. May shut
 * down the socket of the oldest silent one, whose own end follows as that of any other. */
struct visitor *visitors_enter(struct visitors *v, int fd);
void visitor_leave(struct visitor *x);

void visitor_asks(struct visitor *x);        /* a whole request is there */
void visitor_is_answered(struct visitor *x); /* its answer is being sent */
void visitor_is_done(struct visitor *x);     /* it has all of it: silent again */

/* Whose end of the connection it is, for the gate: 0 until it is known. */
char *visitor_peer(struct visitor *x);

#endif
