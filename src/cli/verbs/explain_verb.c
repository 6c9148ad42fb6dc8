/* `berth explain`: why a job waits or why it ended, in one sentence, with the numbers behind
 * it. */
#include "cli/verbs/explain_verb.h"

#include <string.h>

#include "base/buf.h"
#include "base/parse.h"
#include "base/text.h"
#include "cli/ask/answer.h"
#include "cli/ask/ask_each.h"
#include "cli/common/cli.h"
#include "cli/common/opt.h"
#include "cli/common/term.h"
#include "cli/table/render.h"

static const struct opt options[] = {
    {"all", 'a', NULL, "all jobs, including ended ones"},
    {0},
};

static const struct page page = {
    .usage = "berth explain SEL... | --all",
    .about = "Show why a job waits, for which GPU, how much is missing, which jobs hold it and "
             "when\n"
             "it is expected to start; or why it ended, and what would help.",
    .options = options,
};

static void
add_fact(struct buf *out, const char *label, const struct buf *value)
{
    if (!value->len)
        return;
    buf_addf(out, "  %-11s ", label);
    text_add_safe(out, value->data, value->len, 0);
    buf_addc(out, '\n');
}

static void
add_kept(struct buf *line, const json_t *job)
{
    const json_t *cards = json_object_get(job, "cards");
    buf_adds(line, line->len ? ", with " : "with ");
    if (json_array_size(cards)) {
        buf_adds(line, json_array_size(cards) > 1 ? "gpus " : "gpu ");
        answer_add_gpus(line, cards);
        buf_adds(line, " kept for it");
    } else {
        buf_adds(line, "a reservation");
    }
}

static void
add_expected(struct buf *out, const json_t *job)
{
    auto_buf struct buf line = BUF_INIT;
    int64_t start_us = answer_time_us(job, "expected_start");
    int64_t end_us = answer_time_us(job, "expected_end");

    if (start_us) {
        buf_adds(&line, "start at ");
        render_when(&line, start_us);
    } else if (end_us) {
        buf_adds(&line, "end at ");
        render_when(&line, end_us);
    }
    if (answer_bool(job, "reserved"))
        add_kept(&line, job);
    add_fact(out, "expected", &line);
    buf_clear(&line);
    if (answer_bool(job, "firm")) {
        buf_adds(&line, "to start at ");
        render_when(&line, answer_time_us(job, "latest_start"));
        buf_adds(&line, " at the latest");
    }
    add_fact(out, "promised", &line);
}

static void
add_position(struct buf *out, const json_t *job)
{
    auto_buf struct buf line = BUF_INIT;
    int64_t position = answer_int(job, "position", 0), all = answer_int(job, "waiting", 0);

    if (position == 1 && all == 1)
        buf_adds(&line, "the only pending job");
    else if (position == 1)
        buf_addf(&line, "first of %lld pending jobs", (long long)all);
    else if (position > 1)
        buf_addf(&line, "%lld of %lld pending jobs", (long long)position, (long long)all);
    add_fact(out, "position", &line);
}

/* The value that vram=auto has now. */
static void
add_learned(struct buf *out, const json_t *job)
{
    auto_buf struct buf line = BUF_INIT;
    int64_t runs = answer_int(job, "auto_runs", -1), mib = answer_int(job, "auto_mib", -1);
    char size[24];

    if (runs == 0)
        buf_adds(&line, "auto: a whole GPU, as this command has not run yet");
    else if (runs > 0)
        buf_addf(&line, "auto: %s from %lld run%s",
                 mib > 0 ? format_mib(mib, size) : "whole card", (long long)runs,
                 runs == 1 ? "" : "s");
    add_fact(out, "asks", &line);
}

static void
add_numbers(struct buf *out, const json_t *job)
{
    auto_buf struct buf line = BUF_INIT;
    int64_t peak = answer_int(job, "peak_mib", -1);
    int64_t had = answer_int(job, "vram_mib", answer_int(job, "card_mib", -1));
    int64_t ran = answer_int(job, "run_ms", -1);
    int64_t limit = answer_int(job, "limit_ms", -1);
    char a[24];
    char b[24];

    if (ran > 0)
        buf_addf(&line, "%s%s%s", format_duration(ran, a), limit > 0 ? " of " : "",
                 limit > 0 ? format_duration(limit, b) : "");
    add_fact(out, "ran for", &line);
    buf_clear(&line);
    if (peak >= 0)
        buf_addf(&line, "%s%s%s", format_mib(peak, a), had > 0 ? " of " : "",
                 had > 0 ? format_mib(had, b) : "");
    add_fact(out, "peak VRAM", &line);
}

void
explain_add(const struct term *term, struct buf *out, const json_t *job)
{
    const char *state = answer_str(job, "state");
    auto_buf struct buf text = BUF_INIT;
    auto_buf struct buf help = BUF_INIT;

    buf_adds(&text, answer_str(job, "text"));
    buf_adds(&help, answer_str(job, "help"));
    buf_adds(out, "job ");
    answer_add_id(out, job);
    buf_addc(out, ' ');
    term_add(term, out, render_state_style(state), state);
    if (text.len) {
        buf_adds(out, ": ");
        text_add_safe(out, text.data, text.len, 0);
    }
    buf_addc(out, '\n');
    add_position(out, job);
    add_learned(out, job);
    add_expected(out, job);
    add_numbers(out, job);
    add_fact(out, "would help", &help);
}

int
cmd_explain(struct cli *cli, int argc, char **argv)
{
    static const struct tell what = {
        .page = &page,
        .method = "explain",
        .nothing = "which job? For example: berth explain 12, or @ for your last",
        .between = "",
        .add = explain_add,
    };
    return tell_jobs(cli, argc, argv, &what);
}
