/* Ended jobs in the format of `sacct -P`: a line of names, then one line per job, with '|'
 * between the fields. Tools that read sacct can read this. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "cli/ask/answer_pages.h"
#include "cli/ask/json_scan.h"
#include "cli/export/export_priv.h"
#include "cli/table/queue_columns.h"

enum {
    IN_ID,
    IN_ARRAY_JOB,
    IN_ARRAY_TASK,
    IN_ARRAY,
    IN_NAME,
    IN_USER,
    IN_UID,
    IN_STATE,
    IN_CODE,
    IN_SIGNAL,
    IN_SUBMITTED,
    IN_STARTED,
    IN_ENDED,
    IN_RUN_MS,
    IN_LIMIT_MS,
    IN_WANTED,
    IN_CPUS,
    IN_MEM,
    IN_CWD,
    INS
};

static const char *const in_fields[INS] = {
    "id",       "array_job",   "array_task", "array",     "name",    "user",  "uid",
    "state",    "exit_code",   "signal",     "submitted", "started", "ended", "run_ms",
    "limit_ms", "gpus_wanted", "cpus",       "mem_mib",   "cwd"};

static const char header[] =
    "JobID|JobIDRaw|JobName|User|UID|Account|Partition|State|ExitCode|Submit|Eligible|Start|"
    "End|Elapsed|"
    "ElapsedRaw|Timelimit|AllocCPUS|ReqCPUS|ReqMem|ReqTRES|AllocTRES|NNodes|NodeList|WorkDir\n";

struct table {
    struct export_data *x;
    struct buf *out;
    char host[64];
};

/* Replaces characters that would end the field or the line by blanks, as they cannot be
 * quoted. */
static void
add_text(struct buf *out, const struct scan_value *v)
{
    auto_buf struct buf text = BUF_INIT;

    scan_add(&text, v);
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        buf_addc(out, c == '|' || c < ' ' || c == 0x7f ? ' ' : (char)c);
    }
    buf_addc(out, '|');
}

static void
add_time(struct buf *out, const struct scan_value *v)
{
    int64_t us = queue_time_us(v);
    time_t t = (time_t)(us / 1000000);
    char text[32];
    struct tm tm;

    if (us <= 0 || !localtime_r(&t, &tm) || strftime(text, sizeof text, "%FT%T", &tm) == 0)
        buf_adds(out, "Unknown|");
    else
        buf_addf(out, "%s|", text);
}

/* [days-]hours:minutes:seconds */
static void
add_span(struct buf *out, int64_t s)
{
    if (s >= 86400)
        buf_addf(out, "%lld-", (long long)(s / 86400));
    buf_addf(out, "%02d:%02d:%02d|", (int)(s / 3600 % 24), (int)(s / 60 % 60), (int)(s % 60));
}

static void
add_state(struct buf *out, const struct scan_value *state, const struct scan_value *code,
          const struct scan_value *sig)
{
    static const char *const words[][2] = {{"LOST", "NODE_FAIL"}, {"INFEASIBLE", "FAILED"}};
    auto_buf struct buf text = BUF_INIT;
    const char *word;

    scan_add(&text, state);
    word = buf_str(&text);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(word, words[i][0]) == 0)
            word = words[i][1];
    buf_addf(out, "%s|%lld:%lld|", word, (long long)scan_int(code, 0),
             (long long)scan_int(sig, 0));
}

static void
add_tres(struct buf *out, const struct scan_value *v)
{
    int64_t gpus = scan_int(&v[IN_WANTED], 0), mem = scan_int(&v[IN_MEM], 0);
    int64_t cpus = scan_int(&v[IN_CPUS], 1);

    buf_addf(out, "billing=%lld,cpu=%lld", (long long)cpus, (long long)cpus);
    if (gpus > 0)
        buf_addf(out, ",gres/gpu=%lld", (long long)gpus);
    if (mem > 0)
        buf_addf(out, ",mem=%lldM", (long long)mem);
    buf_adds(out, ",node=1|");
}

static void
add_id(struct buf *out, const struct scan_value *v)
{
    int64_t array = scan_int(&v[IN_ARRAY_JOB], 0);

    if (array > 0)
        buf_addf(out, "%lld_%lld|", (long long)array,
                 (long long)scan_int(&v[IN_ARRAY_TASK], 0));
    else
        buf_addf(out, "%lld|", (long long)scan_int(&v[IN_ID], 0));
    buf_addf(out, "%lld|", (long long)scan_int(&v[IN_ID], 0));
}

static void
add_times(struct buf *out, const struct scan_value *v)
{
    int64_t run_s = scan_int(&v[IN_RUN_MS], 0) / 1000;
    int64_t limit = scan_int(&v[IN_LIMIT_MS], 0);

    add_time(out, &v[IN_SUBMITTED]);
    add_time(out, &v[IN_SUBMITTED]);
    add_time(out, &v[IN_STARTED]);
    add_time(out, &v[IN_ENDED]);
    add_span(out, run_s);
    buf_addf(out, "%lld|", (long long)run_s);
    if (limit > 0)
        add_span(out, (limit + 999) / 1000);
    else
        buf_adds(out, "UNLIMITED|");
}

static void
take_row(void *arg, const struct scan_value *v)
{
    struct table *t = arg;
    struct buf *out = t->out;
    auto_buf struct buf user = BUF_INIT;
    bool ran = v[IN_STARTED].type == SCAN_OBJECT;

    if (v[IN_ARRAY].type == SCAN_OBJECT)
        return; /* skip the array: its tasks are listed */
    if (!t->x->all_users && scan_int(&v[IN_UID], -1) != (int64_t)getuid())
        return;
    scan_add(&user, &v[IN_USER]);
    export_add_user(t->x, buf_str(&user));
    add_id(out, v);
    if (v[IN_NAME].type == SCAN_STRING)
        add_text(out, &v[IN_NAME]);
    else
        buf_addf(out, "%lld.sh|", (long long)scan_int(&v[IN_ID], 0)); /* as a script would be */
    add_text(out, &v[IN_USER]);
    buf_addf(out, "%lld|berth|main|", (long long)scan_int(&v[IN_UID], 0));
    add_state(out, &v[IN_STATE], &v[IN_CODE], &v[IN_SIGNAL]);
    add_times(out, v);
    buf_addf(out, "%lld|%lld|%lldM|", (long long)(ran ? scan_int(&v[IN_CPUS], 1) : 0),
             (long long)scan_int(&v[IN_CPUS], 1), (long long)scan_int(&v[IN_MEM], 0));
    add_tres(out, v);
    if (ran)
        add_tres(out, v);
    else
        buf_addc(out, '|');
    buf_addf(out, "1|%s|", ran ? t->host : "None assigned");
    add_text(out, &v[IN_CWD]);
    out->data[out->len - 1] = '\n'; /* replaces the last bar */
}

int
export_history(struct client *c, struct export_data *x, int64_t since_us, struct buf *out,
               struct err *e)
{
    json_t *fields = json_array(), *params = json_object();
    auto_buf struct buf text = BUF_INIT;
    struct table t = {.x = x, .out = out};

    for (int i = 0; i < INS; i++)
        json_array_append_new(fields, json_string(in_fields[i]));
    json_object_set_new(params, "fields", fields);
    if (since_us)
        json_object_set_new(params, "since_us", json_integer(since_us));
    if (gethostname(t.host, sizeof t.host) < 0 || pages_ask(c, params, 0, &text, e) < 0)
        return -1;
    t.host[sizeof t.host - 1] = '\0';
    t.host[strcspn(t.host, ".")] = '\0';
    buf_adds(out, header);
    scan_rows(text.data, text.len, INS, take_row, &t);
    return 0;
}
