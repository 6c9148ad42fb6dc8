/* `berth priority`: changes which pending jobs start first. */
#include <jansson.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/request.h"
#include "cli/ask/ask.h"
#include "cli/common/cli.h"
#include "cli/common/opt.h"

static const struct page page = {
    .usage = "berth priority SEL... N",
    .about =
        "Set the priority, -1000 to 1000; higher numbers start first. For running jobs it\n"
        "counts when they run again.",
};

/* The index of a negative number, which must not be parsed as an option; 0: none. */
static int
find_negative(int argc, char **argv)
{
    for (int i = argc - 1; i > 1; i--)
        if (argv[i][0] == '-' && argv[i][1] >= '0' && argv[i][1] <= '9')
            return i;
    return 0;
}

int
cmd_priority(struct cli *cli, int argc, char **argv)
{
    struct opt_reader r;
    struct err e = {0};
    json_t *params;
    int64_t priority;
    const char *number;
    int negative = find_negative(argc, argv);

    number = argv[negative];
    if (negative)
        memmove(&argv[negative], &argv[negative + 1],
                (size_t)(--argc - negative) * sizeof *argv);
    if (!opt_read_none(&r, cli, &page, argc, argv))
        return r.status;
    if (r.n_words < (negative ? 1 : 2))
        return cli_usage("which jobs, and which priority? For example: berth priority 12 100");
    if (!negative)
        number = r.words[--r.n_words];
    if (parse_int(number, PRIORITY_MIN, PRIORITY_MAX, &priority, &e) < 0)
        return cli_usage("%s", e.text);
    params = ask_select(r.words, r.n_words);
    json_object_set_new(params, "priority", json_integer(priority));
    auto_free char *done = xasprintf("priority %lld for", (long long)priority);
    return ask_change(cli, "priority", params, done);
}
