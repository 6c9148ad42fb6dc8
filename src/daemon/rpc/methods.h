/* The methods of the socket, by name: docs/protocol.md section 2. Each group has a file
 * method_*.c; this is the table that joins them. */
#ifndef DAEMON_RPC_METHODS_H
#define DAEMON_RPC_METHODS_H

#include <stdbool.h>

#include "daemon/rpc/rpc_server.h"

struct method {
    const char *name;
    method_fn run;
    bool changes; /* its answer says that something is durable */
};

const struct method *methods_find(const char *name); /* NULL: none */

int method_submit(struct daemon *, struct caller *, json_t *, struct jsonw *, struct err *);
int method_file_sync(struct daemon *, struct caller *, json_t *, struct jsonw *, struct err *);
int method_file_plan(struct daemon *, struct caller *, json_t *, struct jsonw *, struct err *);
int method_jobs(struct daemon *, struct caller *, json_t *, struct jsonw *, struct err *);
int method_cancel(struct daemon *, struct caller *, json_t *, struct jsonw *, struct err *);
int method_hold(struct daemon *, struct caller *, json_t *, struct jsonw *, struct err *);
int method_release(struct daemon *, struct caller *, json_t *, struct jsonw *, struct err *);
int method_environment(struct daemon *, struct caller *, json_t *, struct jsonw *,
                       struct err *);
int method_explain(struct daemon *, struct caller *, json_t *, struct jsonw *, struct err *);
int method_priority(struct daemon *, struct caller *, json_t *, struct jsonw *, struct err *);
int method_requeue(struct daemon *, struct caller *, json_t *, struct jsonw *, struct err *);
int method_signal(struct daemon *, struct caller *, json_t *, struct jsonw *, struct err *);
int method_wait(struct daemon *, struct caller *, json_t *, struct jsonw *, struct err *);
int method_gpu_pause(struct daemon *, struct caller *, json_t *, struct jsonw *, struct err *);
int method_gpu_resume(struct daemon *, struct caller *, json_t *, struct jsonw *, struct err *);
int method_gpus(struct daemon *, struct caller *, json_t *, struct jsonw *, struct err *);
int method_status(struct daemon *, struct caller *, json_t *, struct jsonw *, struct err *);
int method_events(struct daemon *, struct caller *, json_t *, struct jsonw *, struct err *);
int method_health(struct daemon *, struct caller *, json_t *, struct jsonw *, struct err *);
int method_metrics(struct daemon *, struct caller *, json_t *, struct jsonw *, struct err *);
int method_series(struct daemon *, struct caller *, json_t *, struct jsonw *, struct err *);
int method_log_level(struct daemon *, struct caller *, json_t *, struct jsonw *, struct err *);
int method_report(struct daemon *, struct caller *, json_t *, struct jsonw *, struct err *);
int method_stop(struct daemon *, struct caller *, json_t *, struct jsonw *, struct err *);

#endif
