/* sinfo: the machine as the only node in the only partition. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/parse.h"
#include "cli/common/cli.h"
#include "compat/compat.h"
#include "compat/slurm/slurm.h"
#include "compat/slurm/slurm_json.h"
#include "compat/slurm/slurm_node.h"
#include "compat/slurm/slurm_table.h"
#include "compat/slurm/slurm_words.h"
#include "wire/client.h"

static const char usage[] =
    "Usage: sinfo [OPTIONS]\n"
    "\n"
    "This machine as Slurm's one node.\n"
    "\n"
    "  -o, --format=FORMAT and -O, --Format=NAMES  columns, as sinfo(1) has them\n"
    "  -N, --Node, -l, --long, -s, --summarize, -R, --list-reasons  other columns\n"
    "  -h, --noheader, -n, --nodes=LIST, -p, --partition=LIST, -t, --states=LIST, --json";

struct sinfo {
    const char *letters, *words, *nodes, *partitions, *states;
    bool no_header, is_long, by_node, summary, reasons, reservations, json;
    int64_t every_s;
    struct slurm_table table;
};

enum { OPT_ITERATE };
static const struct slurm_option own[] = {
    [OPT_ITERATE] = {.option = {"iterate", 'i', TAKES_VALUE}},
    {.option = {"format", 'o', TAKES_VALUE}, SLURM_INTO(struct sinfo, letters)},
    {.option = {"Format", 'O', TAKES_VALUE}, SLURM_INTO(struct sinfo, words)},
    {.option = {"noheader", 'h', TAKES_NOTHING}, SLURM_INTO(struct sinfo, no_header)},
    {.option = {"long", 'l', TAKES_NOTHING}, SLURM_INTO(struct sinfo, is_long)},
    {.option = {"Node", 'N', TAKES_NOTHING}, SLURM_INTO(struct sinfo, by_node)},
    {.option = {"nodes", 'n', TAKES_VALUE}, SLURM_INTO(struct sinfo, nodes)},
    {.option = {"partition", 'p', TAKES_VALUE}, SLURM_INTO(struct sinfo, partitions)},
    {.option = {"list-reasons", 'R', TAKES_NOTHING}, SLURM_INTO(struct sinfo, reasons)},
    {.option = {"reservation", 'T', TAKES_NOTHING}, SLURM_INTO(struct sinfo, reservations)},
    {.option = {"summarize", 's', TAKES_NOTHING}, SLURM_INTO(struct sinfo, summary)},
    {.option = {"states", 't', TAKES_VALUE}, SLURM_INTO(struct sinfo, states)},
    {.option = {"json", 0, TAKES_NOTHING}, SLURM_INTO(struct sinfo, json)},
    {.option = {"all", 'a', TAKES_NOTHING}},
    {.option = {"clusters", 'M', TAKES_VALUE}},
    {.option = {"dead", 'd', TAKES_NOTHING}},
    {.option = {"exact", 'e', TAKES_NOTHING}},
    {.option = {"federation", 0, TAKES_NOTHING}},
    {.option = {"hide", 0, TAKES_NOTHING}},
    {.option = {"local", 0, TAKES_NOTHING}},
    {.option = {"noconvert", 0, TAKES_NOTHING}},
    {.option = {"responding", 'r', TAKES_NOTHING}},
    {.option = {"sort", 'S', TAKES_VALUE}},
    {.option = {"verbose", 'v', TAKES_NOTHING}},
    {.option = {NULL, 0, TAKES_NOTHING}},
};

/* --- columns --- */

static void
add_state(struct buf *out, const struct slurm_row *row)
{
    buf_adds(out, row->machine->state);
}

static void
add_code(struct buf *out, const struct slurm_row *row)
{
    buf_adds(out, row->machine->code);
}

static void
add_node(struct buf *out, const struct slurm_row *row)
{
    (void)row;
    buf_adds(out, slurm_node());
}

static void
add_gres(struct buf *out, const struct slurm_row *row)
{
    if (row->machine->gpus)
        buf_addf(out, "gpu:%d", row->machine->gpus);
    else
        buf_adds(out, "(null)");
}

static void
add_gres_used(struct buf *out, const struct slurm_row *row)
{
    buf_addf(out, "gpu:%d", row->machine->gpus_used);
}

static void
add_cpus(struct buf *out, const struct slurm_row *row)
{
    buf_addi(out, row->machine->cpus);
}

static void
add_cpus_state(struct buf *out, const struct slurm_row *row)
{
    const struct slurm_machine *m = row->machine;

    buf_addf(out, "%d/%d/0/%d", m->cpus_used, m->cpus - m->cpus_used, m->cpus);
}

static void
add_nodes_state(struct buf *out, const struct slurm_row *row)
{
    bool is_shut = strncmp(row->machine->state, "drain", 5) == 0;

    buf_addf(out, "%d/%d/%d/1", row->machine->jobs > 0, row->machine->jobs == 0 && !is_shut,
             is_shut && row->machine->jobs == 0);
}

static void
add_nodes_used(struct buf *out, const struct slurm_row *row)
{
    buf_addf(out, "%d/%d", row->machine->jobs > 0, row->machine->jobs == 0);
}

static void
add_memory(struct buf *out, const struct slurm_row *row)
{
    buf_addi(out, row->machine->mem_mib);
}

static void
add_memory_free(struct buf *out, const struct slurm_row *row)
{
    buf_addi(out, row->machine->mem_free_mib);
}

static void
add_memory_used(struct buf *out, const struct slurm_row *row)
{
    buf_addi(out, row->machine->mem_used_mib);
}

static void
add_load(struct buf *out, const struct slurm_row *row)
{
    buf_addf(out, "%.2f", row->machine->load);
}

static void
add_layout(struct buf *out, const struct slurm_row *row)
{
    buf_addf(out, "%d:1:1", row->machine->cpus);
}

static void
add_reason(struct buf *out, const struct slurm_row *row)
{
    buf_adds(out, row->machine->reason[0] ? row->machine->reason : "none");
}

static const struct slurm_field fields[] = {
    {'P', "partition", "PARTITION", 0, CONSTANT(SLURM_PARTITION "*")},
    {'R', "partitionname", "PARTITION", 0, CONSTANT(SLURM_PARTITION)},
    {'a', "available", "AVAIL", 0, CONSTANT("up")},
    {'l', "time", "TIMELIMIT", 0, CONSTANT("infinite")},
    {'D', "nodes", "NODES", 0, CONSTANT("1")},
    {'t', "statecompact", "STATE", 0, ADD_ROW(add_code)},
    {'T', "statelong", "STATE", 0, ADD_ROW(add_state)},
    {'N', "nodelist", "NODELIST", 0, ADD_ROW(add_node)},
    {'n', "nodehost", "HOSTNAMES", 0, ADD_ROW(add_node)},
    {'o', "nodeaddr", "NODE_ADDR", 0, ADD_ROW(add_node)},
    {'G', "gres", "GRES", 0, ADD_ROW(add_gres)},
    {0, "gresused", "GRES_USED", 0, ADD_ROW(add_gres_used)},
    {'c', "cpus", "CPUS", 0, ADD_ROW(add_cpus)},
    {'C', "cpusstate", "CPUS(A/I/O/T)", 0, ADD_ROW(add_cpus_state)},
    {'F', "nodeaiot", "NODES(A/I/O/T)", 0, ADD_ROW(add_nodes_state)},
    {'A', "nodeai", "NODES(A/I)", 0, ADD_ROW(add_nodes_used)},
    {'m', "memory", "MEMORY", 0, ADD_ROW(add_memory)},
    {'e', "freemem", "FREE_MEM", 0, ADD_ROW(add_memory_free)},
    {0, "allocmem", "ALLOCMEM", 0, ADD_ROW(add_memory_used)},
    {'O', "cpusload", "CPU_LOAD", 0, ADD_ROW(add_load)},
    {'z', "socketcorethread", "S:C:T", 0, ADD_ROW(add_layout)},
    {'X', "sockets", "SOCKETS", 0, ADD_ROW(add_cpus)},
    {'Y', "cores", "CORES", 0, CONSTANT("1")},
    {'Z', "threads", "THREADS", 0, CONSTANT("1")},
    {'d', "disk", "TMP_DISK", 0, CONSTANT("0")},
    {'w', "weight", "WEIGHT", 0, CONSTANT("1")},
    {'f', "features", "AVAIL_FEATURES", 0, CONSTANT("(null)")},
    {'b', "features_act", "ACTIVE_FEATURES", 0, CONSTANT("(null)")},
    {'g', "groups", "GROUPS", 0, CONSTANT("all")},
    {'s', "size", "JOB_SIZE", 0, CONSTANT("1-infinite")},
    {'r', "root", "ROOT", 0, CONSTANT("no")},
    {'h', "oversubscribe", "OVERSUBSCRIBE", 0, CONSTANT("NO")},
    {'B', "maxcpuspernode", "MAX_CPUS_PER_NODE", 0, CONSTANT("UNLIMITED")},
    {'E', "reason", "REASON", 0, ADD_ROW(add_reason)},
    {'H', "timestamp", "TIMESTAMP", 0, CONSTANT("Unknown")},
    {'I', "priorityjobfactor", "PRIO_JOB_FACTOR", 0, CONSTANT("1")},
    {'L', "defaulttime", "DEFAULTTIME", 0, CONSTANT("n/a")},
    {'M', "preemptmode", "PREEMPT_MODE", 0, CONSTANT("OFF")},
    {'u', "user", "USER", 0, CONSTANT("Unknown")},
    {'U', "userlong", "USER", 0, CONSTANT("Unknown")},
    {0, "comment", "COMMENT", 0, CONSTANT("(null)")},
    {0, "extra", "EXTRA", 0, CONSTANT("(null)")},
    {0, "statecomplete", "STATECOMPLETE", 0, ADD_ROW(add_state)},
    {'v', "version", "VERSION", 0, CONSTANT(SLURM_RELEASE)},
    {'p', "prioritytier", "PRIO_TIER", 0, CONSTANT("1")},
    {'S', "allocnodes", "ALLOCNODES", 0, CONSTANT("all")},
    {'V', "cluster", "CLUSTER", 0, CONSTANT("N/A")},
    {0},
};

/* --- the command --- */

static int
take_option(void *into, struct slurm_reader *r, int opt)
{
    struct sinfo *s = into;
    struct err e = {0};

    if (opt == OPT_ITERATE && parse_int(r->value, 1, 86400, &s->every_s, &e) < 0)
        return slurm_fail(1, "--iterate=%s", r->value);
    return 0; /* the others have no effect on one machine */
}

static bool
is_shown(const struct sinfo *s, const struct slurm_machine *m)
{
    const char *states = s->states ? s->states : m->code;

    return (!s->nodes || slurm_is_here(s->nodes)) &&
           (!s->partitions || slurm_is_listed(s->partitions, SLURM_PARTITION)) &&
           (slurm_is_listed_anyhow(states, m->state) ||
            slurm_is_listed_anyhow(states, m->code) || slurm_is_listed_anyhow(states, "all")) &&
           (!s->reasons || m->reason[0]);
}

static const char *
default_columns(const struct sinfo *s)
{
    if (s->reasons)
        return "%20E %9u %19H %N";
    if (s->summary)
        return "%9P %.5a %.10l %.16F %N";
    if (s->by_node)
        return s->is_long ? "%9N %.6D %.9P %.11T %4c %.8z %.6m %.8d %.6w %.8f %20E"
                          : "%9N %.6D %.9P %6t";
    return s->is_long ? "%9P %.5a %.10l %.10s %.4r %.8h %.10g %.6D %.11T %N"
                      : "%9P %.5a %.10l %.6D %.6t %N";
}

static json_t *
json_of(const struct slurm_machine *m)
{
    auto_buf struct buf gres = BUF_INIT, used = BUF_INIT;

    add_gres(&gres, &(struct slurm_row){.machine = m});
    add_gres_used(&used, &(struct slurm_row){.machine = m});
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:[], s:[s], s:i, s:i, s:i, s:i, s:i, s:I, s:I, s:I, s:s, s:s, "
        "s:s, s:I, s:I, s:i, s:s, s:s, s:i}",
        "name", slurm_node(), "hostname", slurm_node(), "address", slurm_node(), "state",
        m->state, "state_flags", "partitions", SLURM_PARTITION, "cpus", m->cpus, "sockets",
        m->cpus, "cores", 1, "alloc_cpus", m->cpus_used, "idle_cpus", m->cpus - m->cpus_used,
        "real_memory", (json_int_t)m->mem_mib, "alloc_memory", (json_int_t)m->mem_used_mib,
        "free_memory", (json_int_t)m->mem_free_mib, "gres", m->gpus ? buf_str(&gres) : "",
        "gres_used", buf_str(&used), "reason", m->reason, "boot_time",
        (json_int_t)(m->booted_us / 1000000), "slurmd_start_time",
        (json_int_t)(m->started_us / 1000000), "cpu_load", (int)(m->load * 100), "features", "",
        "slurmd_version", SLURM_RELEASE, "threads", 1);
}

static int
put_json(const struct sinfo *s, const struct slurm_machine *m)
{
    json_t *list = json_array();

    if (is_shown(s, m))
        json_array_append_new(list, json_of(m));
    return slurm_put_json("nodes", list);
}

static int
show(const struct sinfo *s)
{
    auto_client struct client *c = slurm_connect("slurm_load_partitions");
    auto_buf struct buf out = BUF_INIT;
    struct slurm_machine m;
    struct err e = {0};

    if (!c)
        return 1;
    if (slurm_machine_ask(c, &m, &e) < 0)
        return slurm_fail(1, "%s", e.text);
    if (s->json)
        return put_json(s, &m);
    if (s->is_long)
        slurm_add_date(&out);
    if (!s->no_header)
        slurm_table_add_header(&s->table, &out);
    if (is_shown(s, &m))
        slurm_table_add_row(&s->table, &(struct slurm_row){.machine = &m}, &out);
    return cli_put(&out);
}

static int
run(struct sinfo *s)
{
    struct err e = {0};
    int status;

    if (s->reservations) {
        auto_buf struct buf out = BUF_INIT;

        buf_adds(&out, "No reservations in the system\n");
        return cli_put(&out);
    }
    if (s->words && strcasecmp(s->words, "all") == 0) {
        s->letters = "%all";
        s->words = NULL;
    }
    if (s->words && slurm_table_names(&s->table, fields, s->words, &e) < 0)
        return slurm_fail(1, "%s", e.text);
    if (!s->words)
        slurm_table_letters(&s->table, fields, s->letters ? s->letters : default_columns(s));
    for (const char *p = s->table.unknown; p && *p; p++)
        fprintf(stderr, "Invalid node format specification: %c\n", *p);
    while ((status = show(s)) == 0 && s->every_s > 0)
        sleep((unsigned)s->every_s);
    return status;
}

int
compat_sinfo(int argc, char **argv)
{
    struct slurm_reader r = {
        .name = "sinfo", .usage = usage, .own = own, .anywhere = true, .wrong = 1};
    struct sinfo s = {.letters = getenv("SINFO_FORMAT")};
    int status;

    if (slurm_read(&r, argc, argv, &s, take_option, &status) &&
        (status = slurm_refuse_words(&r)) == 0)
        status = run(&s);
    slurm_table_free(&s.table);
    return status;
}
