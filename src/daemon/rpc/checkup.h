/* Whether all is well with the daemon and what it needs, in words: `health`. Made on request,
 * from what is known anyway and a few cheap looks at local things; nothing here waits. */
#ifndef DAEMON_RPC_CHECKUP_H
#define DAEMON_RPC_CHECKUP_H

struct jsonw;
struct rpc;

/* "state" and "checks", into an open object. */
void checkup_write(struct rpc *rpc, struct jsonw *out);

#endif
