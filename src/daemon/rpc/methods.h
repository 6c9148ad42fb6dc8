/* The methods of the socket, by name: docs/protocol.md section 2. Each group is in its own
 * method_*.c; this table joins them. */
#ifndef DAEMON_RPC_METHODS_H
#define DAEMON_RPC_METHODS_H

#include <stdbool.h>

#include "daemon/rpc/rpc_server.h"

struct instance;

struct method {
    const char *name;
    method_fn run;
    bool changes; /* its answer reports a durable change */
};

const struct method *methods_find(const char *name); /* NULL: none */

/* Whether the daemon accepts new jobs now: 0, or -1 with the reason. */
int daemon_accepts_work(const struct instance *inst, struct err *e);

int method_submit(struct rpc *, struct caller *, json_t *, struct jsonw *, struct err *);
int method_file_sync(struct rpc *, struct caller *, json_t *, struct jsonw *, struct err *);
int method_file_plan(struct rpc *, struct caller *, json_t *, struct jsonw *, struct err *);
int method_jobs(struct rpc *, struct caller *, json_t *, struct jsonw *, struct err *);
int method_cancel(struct rpc *, struct caller *, json_t *, struct jsonw *, struct err *);
int method_hold(struct rpc *, struct caller *, json_t *, struct jsonw *, struct err *);
int method_release(struct rpc *, struct caller *, json_t *, struct jsonw *, struct err *);
int method_environment(struct rpc *, struct caller *, json_t *, struct jsonw *, struct err *);
int method_explain(struct rpc *, struct caller *, json_t *, struct jsonw *, struct err *);
int method_priority(struct rpc *, struct caller *, json_t *, struct jsonw *, struct err *);
int method_requeue(struct rpc *, struct caller *, json_t *, struct jsonw *, struct err *);
int method_signal(struct rpc *, struct caller *, json_t *, struct jsonw *, struct err *);
int method_wait(struct rpc *, struct caller *, json_t *, struct jsonw *, struct err *);
int method_gpu_pause(struct rpc *, struct caller *, json_t *, struct jsonw *, struct err *);
int method_gpu_resume(struct rpc *, struct caller *, json_t *, struct jsonw *, struct err *);
int method_gpus(struct rpc *, struct caller *, json_t *, struct jsonw *, struct err *);
int method_status(struct rpc *, struct caller *, json_t *, struct jsonw *, struct err *);
int method_events(struct rpc *, struct caller *, json_t *, struct jsonw *, struct err *);
int method_health(struct rpc *, struct caller *, json_t *, struct jsonw *, struct err *);
int method_metrics(struct rpc *, struct caller *, json_t *, struct jsonw *, struct err *);
int method_series(struct rpc *, struct caller *, json_t *, struct jsonw *, struct err *);
int method_log_level(struct rpc *, struct caller *, json_t *, struct jsonw *, struct err *);
int method_report(struct rpc *, struct caller *, json_t *, struct jsonw *, struct err *);
int method_stop(struct rpc *, struct caller *, json_t *, struct jsonw *, struct err *);

#endif
