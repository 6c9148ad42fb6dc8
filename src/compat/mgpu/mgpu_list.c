/* mgpu_queue and mgpu_cancel: one question, and the lines of the original. */
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "cli/ask/answer.h"
#include "cli/common/cli.h"
#include "compat/compat.h"
#include "compat/mgpu/mgpu.h"
#include "wire/client.h"

/* As Python prints it, on one line. */
static void
add_value(struct buf *out, const json_t *v)
{
    if (json_is_string(v))
        text_add_safe(out, json_string_value(v), json_string_length(v), 0);
    else if (json_is_integer(v))
        buf_addf(out, "%lld", (long long)json_integer_value(v));
    else
        buf_adds(out, "None");
}

static void
add_jobs(struct buf *out, const char *title, const json_t *jobs)
{
    static const char *const titles[] = {
        "ID: ", " | User: ", " | GPUs: ", " | Mem: ", " | CMD: ", " | Status: "};
    size_t i;
    json_t *job;

    buf_addf(out, "--- %s ---\n", title);
    json_array_foreach(jobs, i, job)
    {
        for (size_t p = 0; p < sizeof titles / sizeof *titles; p++) {
            buf_adds(out, titles[p]);
            add_value(out, json_array_get(job, p));
        }
        buf_addc(out, '\n');
    }
}

static bool
is_ok(const json_t *reply)
{
    return strcmp(answer_str(reply, "status"), "ok") == 0;
}

static bool
wants_help(int argc, char **argv)
{
    return argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
}

static int
put(const char *text)
{
    return cli_write(text, strlen(text));
}

int
compat_mgpu_queue(int argc, char **argv)
{
    auto_buf struct buf out = BUF_INIT;
    auto_json json_t *reply = NULL;

    if (wants_help(argc, argv))
        return put("Usage: mgpu_queue\n");
    reply = mgpu_ask_once("mgpu_queue", json_pack("{s:s}", "cmd", "queue"));
    if (!reply)
        return 1;
    if (!is_ok(reply)) {
        buf_addf(&out, "Query failed: %s\n", answer_str(reply, "msg"));
        (void)cli_put(&out);
        return 1;
    }
    add_jobs(&out, "Running Jobs", json_object_get(reply, "running"));
    add_jobs(&out, "Queue", json_object_get(reply, "queue"));
    return cli_put(&out);
}

int
compat_mgpu_cancel(int argc, char **argv)
{
    auto_json json_t *reply = NULL;
    static const char usage[] = "Usage: mgpu_cancel <job_id>\n";
    json_t *request;

    if (argc < 2 || wants_help(argc, argv)) {
        int status = put(usage);

        return argc < 2 ? 1 : status;
    }
    request = json_pack("{s:s, s:s}", "cmd", "cancel", "job_id", argv[1]);
    if (!request) {
        (void)put("Cancel failed.\n");
        return compat_fail(1, "mgpu_cancel", "a job's id is 8 letters and digits, or a number");
    }
    reply = mgpu_ask_once("mgpu_cancel", request);
    if (!reply)
        return 1;
    if (is_ok(reply))
        return put("Job cancelled.\n");
    (void)put("Cancel failed.\n");
    return answer_str(reply, "msg")[0]
               ? compat_fail(1, "mgpu_cancel", "%s", answer_str(reply, "msg"))
               : 1;
}
