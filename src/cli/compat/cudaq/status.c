/* `cudaq.py status`: a line for each record, from the file alone. */
#include <ctype.h>
#include <string.h>

#include "base/err.h"
#include "cli/answer.h"
#include "cli/cli.h"
#include "cli/compat/cudaq/cudaq.h"

static const char *
icon_of(const char *status)
{
    static const struct {
        const char *status, *icon;
    } icons[] = {{"completed", "[✓]"}, {"running", "[→]"}, {"failed", "[!]"}};

    for (size_t i = 0; i < sizeof icons / sizeof icons[0]; i++) {
        if (strcmp(status, icons[i].status) == 0)
            return icons[i].icon;
    }
    return "[ ]";
}

static void
add_capitalised(struct buf *out, const char *word)
{
    for (const char *p = word; *p; p++)
        buf_addc(out,
                 (char)(p == word ? toupper((unsigned char)*p) : tolower((unsigned char)*p)));
}

static void
add_line(struct buf *out, const json_t *job)
{
    const char *status = answer_str(job, "status");

    if (!status[0])
        status = "unknown";
    buf_addf(out, "%s %s → ", icon_of(status), answer_str(job, "command"));
    if (json_is_integer(json_object_get(job, "gpu_id")))
        buf_addf(out, "GPU %lld → ", (long long)answer_int(job, "gpu_id", 0));
    else
        buf_adds(out, "GPU N/A → ");
    if (strcmp(status, "running") != 0)
        add_capitalised(out, status);
    else if (json_is_integer(json_object_get(job, "pid")))
        buf_addf(out, "Running (PID %lld)", (long long)answer_int(job, "pid", 0));
    else
        buf_adds(out, "Running (PID None)");
    buf_addc(out, '\n');
}

int
cq_status(const struct cq_config *c)
{
    auto_buf struct buf out = BUF_INIT;
    struct records r;
    struct err e = {0};

    if (records_load(c->jobs_file, &r, &e) < 0) {
        cli_say("%s", e.text);
        return 1;
    }
    for (size_t i = 0; i < r.n; i++) {
        if (r.at[i].text)
            buf_addf(&out, "[Warning] Invalid JSON line in %s: %s\n", c->jobs_file,
                     r.at[i].text);
    }
    for (size_t i = 0; i < r.n; i++) {
        if (json_is_object(r.at[i].value))
            add_line(&out, r.at[i].value);
    }
    records_free(&r);
    return cli_put(&out);
}
