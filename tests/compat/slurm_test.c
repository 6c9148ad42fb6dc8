/* Slurm's commands: times, ids and columns as Slurm reads and writes them, and command-line
 * options overriding those of a script. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "compat/slurm/slurm_job.h"
#include "compat/slurm/slurm_node.h"
#include "compat/slurm/slurm_sacct.h"
#include "compat/slurm/slurm_script.h"
#include "compat/slurm/slurm_table.h"
#include "compat/slurm/slurm_words.h"
#include "spec/attr.h"
#include "spec/script.h"
#include "spec/when.h"
#include "wire/client.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void
durations_are_slurms(void **state)
{
    static const struct {
        int64_t ms;
        const char *in_squeue, *in_sacct;
    } cases[] = {
        {0, "0:00", "00:00:00"},          {-5000, "0:00", "00:00:00"},
        {59999, "0:59", "00:00:59"},      {600000, "10:00", "00:10:00"},
        {3601000, "1:00:01", "01:00:01"}, {(24 * 3600 + 61) * 1000, "1-00:01:01", "1-00:01:01"},
    };
    char text[SLURM_TIME];

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_string_equal(slurm_short_duration(cases[i].ms, text), cases[i].in_squeue);
        assert_string_equal(slurm_duration(cases[i].ms, text), cases[i].in_sacct);
    }
}

static void
sizes_are_slurms(void **state)
{
    static const struct {
        int64_t mib;
        const char *text;
    } cases[] = {{1, "1M"}, {1023, "1023M"}, {1024, "1G"}, {1536, "1536M"}, {65536, "64G"}};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        auto_buf struct buf out = BUF_INIT;

        slurm_add_mib(&out, cases[i].mib);
        assert_string_equal(buf_str(&out), cases[i].text);
    }
}

static void
times_are_read_as_sacct_does(void **state)
{
    static const struct {
        const char *text;
        int64_t utc_s; /* 0: invalid */
    } cases[] = {
        {"2026-03-01", 1772323200},
        {"2026-03-01T14:02:10", 1772373730},
        {"03/01/26", 1772323200},
        {"03/01/2026-14:02", 1772373720},
        {"uts1772373730", 1772373730},
        {"02/30/26", 0},
        {"now-", 0},
        {"now-2fortnights", 0},
        {"soon", 0},
        {"", 0},
    };
    int64_t now_us, at_us;
    char text[SLURM_TIME];
    struct err e;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        int rc = slurm_read_time(cases[i].text, &at_us, &e);

        assert_int_equal(rc, cases[i].utc_s ? 0 : -1);
        if (rc == 0)
            assert_int_equal(at_us / 1000000, cases[i].utc_s);
    }
    assert_int_equal(slurm_read_time("now", &now_us, &e), 0);
    assert_int_equal(slurm_read_time("now-2hours", &at_us, &e), 0);
    assert_true(now_us - at_us <= 7200 * INT64_C(1000000));
    assert_true(now_us - at_us > 7100 * INT64_C(1000000));
    assert_int_equal(slurm_read_time("NOW-1week", &at_us, &e), 0);
    assert_string_equal(slurm_time(INT64_C(1772373730) * 1000000, text), "2026-03-01T14:02:10");
}

static void
variables_for_flags_are_read_as_sbatch_does(void **state)
{
    static const char *const yes[] = {"", "yes", "YES", "1", "2", "-1"};
    static const char *const no[] = {"0", "no", "true", "on", "1x", "0x1", " "};

    (void)state;
    for (size_t i = 0; i < COUNT(yes); i++)
        assert_true(slurm_is_yes(yes[i]));
    for (size_t i = 0; i < COUNT(no); i++)
        assert_false(slurm_is_yes(no[i]));
}

static void
ids_are_read_as_slurm_writes_them(void **state)
{
    static const struct {
        const char *text, *words; /* NULL: refused */
    } cases[] = {
        {"12", "[\"12\"]"},
        {"12,13_4", "[\"12\",\"13_4\"]"},
        {"12.batch,13.0", "[\"12\",\"13\"]"},
        {"12_[1-4,7%2],9", "[\"12_[1-4,7]\",\"9\"]"},
        {"12_[3]", "[\"12_[3]\"]"},
        {"abc", NULL},
        {"_3", NULL},
        {"12;13", NULL},
        {"12_[1-3],14_[5-6]", "[\"12_[1-3]\",\"14_[5-6]\"]"},
        {"12-20", NULL},
        {"3,12-20", NULL},
        {"12_1-2", NULL},
        {"12_[1-2]-9", NULL},
        {"[12-20]", NULL},
        {"-", NULL},
        {"12,,13", NULL},
        {"", NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        auto_json json_t *list = json_array();
        struct err e;
        int rc = slurm_read_ids(cases[i].text, list, NULL, &e);

        if (rc != (cases[i].words ? 0 : -1))
            fail_msg("'%s': %d", cases[i].text, rc);
        if (rc == 0) {
            char *text = json_dumps(list, JSON_COMPACT);

            assert_string_equal(text, cases[i].words);
            free(text);
        }
    }
}

static void
states_have_two_names(void **state)
{
    auto_buf struct buf all = BUF_INIT;

    (void)state;
    assert_true(slurm_is_state("PENDING"));
    assert_true(slurm_is_state("pd"));
    assert_true(slurm_is_state("NODE_FAIL"));
    assert_false(slurm_is_state("LOST"));
    assert_false(slurm_is_state(""));
    assert_true(slurm_names_ended("pd,all"));
    assert_true(slurm_names_ended("R,cd"));
    assert_false(slurm_names_ended("PENDING,R,CG"));
    slurm_add_states(&all);
    assert_string_equal(
        buf_str(&all),
        "PENDING,RUNNING,SUSPENDED,COMPLETED,CANCELLED,FAILED,TIMEOUT,NODE_FAIL,PREEMPTED,"
        "BOOT_FAIL,DEADLINE,OUT_OF_MEMORY,COMPLETING,CONFIGURING,RESIZING,RESV_DEL_HOLD,"
        "REQUEUED,REQUEUE_FED,REQUEUE_HOLD,REVOKED,SIGNALING,SPECIAL_EXIT,STAGE_OUT,STOPPED");
}

/* --- lists of jobs --- */

/* The daemon's next answer, with these rows, each the first of the brief fields. */
static void
answer(int server, int id, const char *rows)
{
    auto_buf struct buf line = BUF_INIT;

    buf_addf(&line, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":{\"rows\":[%s]}}\n", id, rows);
    assert_int_equal(write(server, line.data, line.len), line.len);
}

static void
a_job_that_ends_between_two_questions_is_listed_once_and_as_ended(void **state)
{
    const struct slurm_wish wish = {.ended = true, .since_us = 77};
    auto_slurm_jobs struct slurm_jobs jobs = {0};
    char asked[4096] = "";
    int ends[2];
    struct err e;

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    auto_client struct client *c = client_from_fd(ends[0]);
    answer(ends[1], 1,
           "[1,\"a\",\"u\",1000,\"RUNNING\"],[2,\"b\",\"u\",1000,\"RUNNING\"],"
           "[5,\"c\",\"u\",1000,\"HELD\"]");
    answer(ends[1], 2, "[2,\"b\",\"u\",1000,\"FAILED\"]");
    assert_int_equal(slurm_jobs_ask(c, &wish, &jobs, &e), 0);
    assert_int_equal(jobs.n, 3);
    assert_int_equal(jobs.at[0].id, 2);
    assert_string_equal(jobs.at[0].state->name, "FAILED");
    assert_int_equal(jobs.at[1].id, 1);
    assert_int_equal(jobs.at[2].id, 5);
    assert_true(read(ends[1], asked, sizeof asked - 1) > 0);
    *strchr(asked, '\n') = ' ';
    char *second = strstr(asked, "\"id\":2");
    assert_non_null(second);
    assert_non_null(strstr(second, "\"since_us\":77"));
    assert_true(strstr(asked, "\"ended\":true") > second);
    close(ends[1]);
}

#define ARRAY_ROW                                                                              \
    "[7,\"a\",\"u\",1000,\"CANCELLED\",null,null,null,null,0,[],0,null,null,"                  \
    "{\"tasks\":\"1-4\",\"pending\":\"\",\"ended\":{\"CANCELLED\":2}}]"
#define TASK_ROW(id, task)                                                                     \
    "[" id ",\"a\",\"u\",1000,\"COMPLETED\",null,null,null,null,0,[],0,7," task "]"

static void
tasks_that_ended_long_before_their_array_did_start(void **state)
{
    const struct slurm_wish wish = {.ended = true, .since_us = 77};
    auto_slurm_jobs struct slurm_jobs jobs = {0};
    int ends[2];
    struct err e;

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    auto_client struct client *c = client_from_fd(ends[0]);
    answer(ends[1], 1, "");
    answer(ends[1], 2, ARRAY_ROW);
    answer(ends[1], 3, TASK_ROW("8", "1") "," TASK_ROW("9", "2"));
    assert_int_equal(slurm_jobs_ask(c, &wish, &jobs, &e), 0);
    assert_int_equal(jobs.n, 1);
    assert_string_equal(jobs.at[0].tasks, "3-4");
    close(ends[1]);
}

static void
the_copy_of_a_script_is_found_in_a_command(void **state)
{
#define HASH "0123456789abcdef0123456789abcdef01234567"
    static const struct {
        const char *command, *path; /* NULL: the text runs no command */
    } cases[] = {
        {"/a/slurm_script." HASH, "/a/slurm_script." HASH},
        {"/a/slurm_script." HASH " 1 2", "/a/slurm_script." HASH},
        {"'/a b/slurm_script." HASH "' 1", "/a b/slurm_script." HASH},
        {"/bin/sh /a/slurm_script." HASH, NULL},
        {"cat /a/slurm_script." HASH, NULL},
        {"/a/slurm_script.0123", NULL},
        {"/a/slurm_script." HASH "0", NULL},
        {"train.py", NULL},
        {"", NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *path = slurm_kept_script(cases[i].command);

        if (cases[i].path)
            assert_string_equal(path, cases[i].path);
        else
            assert_null(path);
        free(path);
    }
}

/* --- columns --- */

/* squeue's sort key for a time; an unknown time sorts as the end of time. */
static int64_t
number_of(const struct slurm_value *v, const struct slurm_job *job)
{
    return v->number ? v->number(job) : v->time_us(job) ? v->time_us(job) / 1000000 : INT64_MAX;
}

static int
in_order(char letter, const struct slurm_job *a, const struct slurm_job *b)
{
    const struct slurm_value *v = &slurm_field_of(squeue_fields, letter)->value;
    int64_t left = number_of(v, a), right = number_of(v, b);

    return (left > right) - (left < right);
}

static void
times_are_sorted_by_their_length(void **state)
{
    static const struct slurm_state running = {"RUNNING", "RUNNING", "R", false},
                                    pending = {"PENDING", "PENDING", "PD", false};
    const struct slurm_job
        hours = {.state = &running, .run_ms = 36000000, .limit_ms = 72000000},
        minutes = {.state = &running, .run_ms = 3540000, .limit_ms = 86400000},
        moment = {.state = &running, .run_ms = 3540700},
        waiting = {.state = &pending, .run_ms = 7200000, .limit_ms = 72000000};

    (void)state;
    assert_true(in_order('M', &minutes, &hours) < 0);
    assert_true(in_order('M', &hours, &minutes) > 0);
    assert_true(in_order('M', &waiting, &minutes) < 0);
    assert_int_equal(in_order('M', &minutes, &moment), 0);
    assert_true(in_order('l', &hours, &minutes) < 0);
    assert_true(in_order('l', &minutes, &moment) < 0);
    assert_int_equal(in_order('l', &hours, &waiting), 0);
    assert_true(in_order('L', &hours, &waiting) < 0);
    assert_true(in_order('L', &waiting, &minutes) < 0);
    assert_true(in_order('L', &moment, &minutes) > 0);
}

static void
ends_are_sorted_by_their_moment(void **state)
{
    static const struct slurm_state running = {"RUNNING", "RUNNING", "R", false},
                                    pending = {"PENDING", "PENDING", "PD", false};
    const struct slurm_job limited = {.state = &running, .started_us = 5000000, .limit_ms = 60},
                           longer = {.state = &running,
                                     .started_us = 4000000,
                                     .limit_ms = 9000},
                           endless = {.state = &running, .started_us = 1000000},
                           waiting = {.state = &pending, .limit_ms = 60};

    (void)state;
    assert_true(in_order('e', &limited, &longer) < 0);
    assert_true(in_order('e', &longer, &endless) < 0);
    assert_true(in_order('e', &waiting, &limited) < 0);
    assert_true(in_order('S', &longer, &limited) < 0);
    assert_true(in_order('S', &limited, &waiting) < 0);
    assert_null(slurm_field_of(squeue_fields, 'j')->value.number);
}

static void
add_word(struct buf *out, const struct slurm_row *row)
{
    buf_adds(out, row->machine->state);
}

static void
add_length(struct buf *out, const struct slurm_row *row)
{
    buf_addi(out, (int64_t)strlen(row->machine->state));
}

static const struct slurm_field fields[] = {
    {'w', "word", "WORD", 0, ADD_ROW(add_word)},
    {'n', "length", "LENGTH", 2, ADD_ROW(add_length)},
    {0},
};

static void
letters_make_columns(void **state)
{
    static const struct {
        const char *format, *header, *row;
    } cases[] = {
        {"%w", "WORD\n", "\u00fcber\n"},
        {"%.6w|%6w|%n", "  WORD|WORD  |LENGTH\n", "  \u00fcber|\u00fcber  |5\n"},
        {"%2w %.2n.", "WO LE.\n", "\u00fcb  5.\n"},
        {"id=%w,%Q;", "id=WORD,%Q;\n", "id=\u00fcber,%Q;\n"},
        {"%.6Q|%w%5", "%.6Q|WORD%5\n", "%.6Q|\u00fcber%5\n"},
        {"no column", "no column\n", "no column\n"},
        {"%all", "WORD|LENGTH|\n", "\u00fcber|5|\n"},
        {"%w%", "WORD\n", "\u00fcber\n"},
        {"", "\n", "\n"},
    };
    const struct slurm_machine machine = {.state = "\u00fcber"};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        auto_slurm_table struct slurm_table t = {0};
        auto_buf struct buf header = BUF_INIT, row = BUF_INIT;

        slurm_table_letters(&t, fields, cases[i].format);
        slurm_table_add_header(&t, &header);
        slurm_table_add_row(&t, &(struct slurm_row){.machine = &machine}, &row);
        assert_string_equal(buf_str(&header), cases[i].header);
        assert_string_equal(buf_str(&row), cases[i].row);
        assert_string_equal(t.unknown ? t.unknown : "",
                            strstr(cases[i].format, "Q") ? "Q" : "");
    }
}

static void
names_make_columns(void **state)
{
    auto_slurm_table struct slurm_table t = {0}, bad = {0};
    const struct slurm_machine machine = {.state = "a\nb"};
    auto_buf struct buf out = BUF_INIT;
    struct err e;

    (void)state;
    assert_int_equal(slurm_table_names(&t, fields, "word:.6,,LENGTH:3,word", &e), 0);
    slurm_table_add_header(&t, &out);
    slurm_table_add_row(&t, &(struct slurm_row){.machine = &machine}, &out);
    assert_string_equal(buf_str(&out), "  WORDLENWORD                \n"
                                       "  a\\nb3  a\\nb                \n");
    assert_int_equal(slurm_table_detail(&t), 2);
    assert_int_equal(slurm_table_names(&bad, fields, "word,foo:3", &e), -1);
    assert_string_equal(e.text, "Invalid job format specification: foo");
}

static void
sacct_cuts_with_a_plus(void **state)
{
    const struct slurm_job job = {.id = 123456, .task = -1};
    const struct slurm_row row = {.job = &job};
    struct sacct_table t = {0};
    auto_buf struct buf out = BUF_INIT;
    struct err e;

    (void)state;
    assert_int_equal(sacct_read_format(&t, "jobid%-8,JobIDRaw%4,jobid%9,,Account%2", &e), 0);
    sacct_add_header(&t, &out);
    sacct_add_row(&t, &row, &out);
    assert_string_equal(buf_str(&out), "JobID    Job+     JobID A+ \n"
                                       "-------- ---- --------- -- \n"
                                       "123456   123+    123456    \n");
    buf_clear(&out);
    t.delimiter = "|";
    sacct_add_row(&t, &row, &out);
    assert_string_equal(buf_str(&out), "123456|123456|123456|\n");
    sacct_table_free(&t);
    assert_int_equal(sacct_read_format(&t, "elap,jobidr,st%5", &e), 0);
    assert_int_equal(t.n, 3);
    assert_string_equal(t.at[0].field->name, "Elapsed");
    assert_string_equal(t.at[1].field->name, "JobIDRaw");
    assert_string_equal(t.at[2].field->name, "Start");
    sacct_table_free(&t);
    assert_int_equal(sacct_read_format(&t, "all", &e), 0);
    assert_int_equal(t.n, 109);
    sacct_table_free(&t);
    assert_int_equal(sacct_read_format(&t, "jobid,foo", &e), -1);
    assert_string_equal(e.text, "Invalid field requested: \"foo\"");
    sacct_table_free(&t);
}

/* --- options over a script --- */

static int
row_of(const char *name)
{
    const struct script_option *o;

    for (int i = 0; (o = sbatch_option(i)); i++)
        if (strcmp(o->name, name) == 0)
            return i;
    fail_msg("sbatch has no --%s", name);
    return -1;
}

static void
read_over_on(const char *host, const char *script, const struct script_word *over, size_t n,
             struct request *r, struct script *out)
{
    static const struct when_clock clock = {.now_us = 1};
    struct err e;

    request_begin(r);
    (void)script_read_over("x.sh", script, strlen(script), &clock, host, over, n, r, out, &e);
}

static void
read_over(const char *script, const struct script_word *over, size_t n, struct request *r,
          struct script *out)
{
    read_over_on("vm", script, over, n, r, out);
}

static void
options_override_a_script_and_share_its_totals(void **state)
{
    char from[] = "--ntasks", gres[] = "SBATCH_GRES";
    const struct script_word over[] = {{gres, row_of("gres"), "gpu:1", true},
                                       {from, row_of("ntasks"), "4", false}};
    struct script out;
    struct request r;

    (void)state;
    read_over("#!/bin/sh\n#SBATCH --gres=gpu:2 -c 2 --mem-per-cpu=10 -n 2\n", over, 2, &r,
              &out);
    assert_int_equal(out.errors.n + out.unsupported.n, 0);
    assert_int_equal(r.demand.gpus, 1);
    assert_int_equal(r.demand.cpus, 8);
    assert_int_equal(r.demand.mem_mib, 80);
    script_free(&out);
    request_free(&r);
}

static void
memory_is_said_in_one_way_and_the_last_counts(void **state)
{
    static const struct {
        const char *script, *variable, *in_it, *option, *value; /* NULL: none */
        int32_t mib;
        const char *told; /* passed to the script; NULL: nothing */
    } cases[] = {
        {"--mem-per-cpu=4G -c 2", NULL, NULL, "mem", "100", 100, NULL},
        {"--mem-per-gpu=4G --gres=gpu:2", NULL, NULL, "mem", "100", 100, NULL},
        {"--mem-per-cpu=4G", NULL, NULL, "mem", "0", 0, NULL},
        {"--mem=4G -c 2", NULL, NULL, "mem-per-cpu", "100", 200, "SLURM_MEM_PER_CPU=100"},
        {"--mem-per-cpu=4G -G 2", NULL, NULL, "mem-per-gpu", "100", 200,
         "SLURM_MEM_PER_GPU=100"},
        {"--mem-per-gpu=4G -c 2", NULL, NULL, "mem-per-cpu", "100", 200,
         "SLURM_MEM_PER_CPU=100"},
        {"--mem-per-cpu=4G --mem=100", NULL, NULL, NULL, NULL, 100, NULL},
        {"--mem=4G --mem-per-cpu=100", NULL, NULL, NULL, NULL, 100, "SLURM_MEM_PER_CPU=100"},
        {"", "mem-per-cpu", "4G", "mem", "100", 100, NULL},
        {"-G 1", "mem", "4G", "mem-per-gpu", "100", 100, "SLURM_MEM_PER_GPU=100"},
        {"--mem=100", "mem", "200", NULL, NULL, 200, NULL},
        /* As in Slurm, a variable loses to the script only if the script uses another
         * option. */
        {"--mem=100", "mem-per-cpu", "4G", NULL, NULL, 100, NULL},
        {"--mem-per-cpu=100", "mem", "4G", NULL, NULL, 100, "SLURM_MEM_PER_CPU=100"},
        {"--mem-per-cpu=100", "mem", "4G", "mem", "300", 300, NULL},
        {"--mem-per-cpu=4G\n#BERTH --mem 100", NULL, NULL, NULL, NULL, 100, NULL},
        {"-c 2\n#BERTH --mem 100", "mem-per-cpu", "4G", NULL, NULL, 100, NULL},
        {"-c 2\n#BERTH --mem 1G", NULL, NULL, "mem-per-cpu", "100", 200,
         "SLURM_MEM_PER_CPU=100"},
    };
    char from[] = "x";

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct script_word over[2] = {0};
        auto_buf struct buf text = BUF_INIT;
        struct script out;
        struct request r;
        size_t n = 0;

        buf_addf(&text, "#!/bin/sh\n#SBATCH %s\n", cases[i].script);
        if (cases[i].variable)
            over[n++] =
                (struct script_word){from, row_of(cases[i].variable), cases[i].in_it, true};
        if (cases[i].option)
            over[n++] =
                (struct script_word){from, row_of(cases[i].option), cases[i].value, false};
        read_over(buf_str(&text), over, n, &r, &out);
        assert_int_equal(out.errors.n + out.unsupported.n, 0);
        if (r.demand.mem_mib != cases[i].mib)
            fail_msg("case %zu: %d", i, r.demand.mem_mib);
        assert_int_equal(out.variables.n, cases[i].told ? 1 : 0);
        if (cases[i].told)
            assert_string_equal(out.variables.at[0], cases[i].told);
        script_free(&out);
        request_free(&r);
    }
}

static void
the_same_option_replaces_a_type_of_gpu_and_another_adds_to_it(void **state)
{
    static const struct {
        const char *script, *option, *value, *type;
    } cases[] = {
        {"--gres=gpu:a100:2", "gres", "gpu:1", ""},
        {"--gpus=a100:2", "gpus", "1", ""},
        {"--gres=gpu:a100:2", "gres", "gpu:h100:1", "h100"},
        {"--gres=gpu:a100:2", "gpus", "1", "a100"},
        {"--gres=gpu:a100:2", "gpus-per-task", "1", "a100"},
        {"--gres=gpu:a100:2 --gpus-per-task=1", "gres", "gpu:1", ""},
        {"--gres=gpu:2 --gpus-per-task=a100:1", "gres", "gpu:1", "a100"},
        {"--gres=gpu:a100:2 --gres=gpu:1", "gpus", "1", ""},
        {"-C h100 --gres=gpu:a100:2", "gres", "gpu:1", "h100"},
        {"-C h100", "gres", "gpu:1", "h100"},
        {"-J x\n#BERTH --gpus a100:2", "gres", "gpu:1", "a100"},
        {"--gres=gpu:v100:2\n#BERTH --gpu-type a100", "gres", "gpu:1", "a100"},
    };
    char from[] = "x";

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct script_word over[] = {
            {from, row_of(cases[i].option), cases[i].value, false}};
        auto_buf struct buf text = BUF_INIT;
        struct script out;
        struct request r;

        buf_addf(&text, "#!/bin/sh\n#SBATCH %s\n", cases[i].script);
        read_over(buf_str(&text), over, 1, &r, &out);
        assert_int_equal(out.errors.n + out.unsupported.n, 0);
        if (strcmp(r.demand.gpu_type, cases[i].type) != 0)
            fail_msg("'%s' --%s=%s: '%s'", cases[i].script, cases[i].option, cases[i].value,
                     r.demand.gpu_type);
        script_free(&out);
        request_free(&r);
    }
}

static void
complaints_say_where_an_option_is_from(void **state)
{
    char time[] = "SBATCH_TIMELIMIT", nodes[] = "--nodes";
    const struct script_word over[] = {{time, row_of("time"), "x", true},
                                       {nodes, row_of("nodes"), "3", false}};
    struct script out;
    struct request r;

    (void)state;
    read_over("", over, 2, &r, &out);
    assert_int_equal(out.errors.n, 1);
    assert_memory_equal(out.errors.at[0], "SBATCH_TIMELIMIT: 'x' ", 22);
    assert_int_equal(out.unsupported.n, 1);
    assert_string_equal(out.unsupported.at[0], "--nodes: 3: there is one machine");
    script_free(&out);
    request_free(&r);
}

static void
a_node_by_name_is_this_machine(void **state)
{
    static const struct {
        const char *nodes;
        size_t unsupported;
    } cases[] = {
        {"vm", 0}, {"VM.example.org", 0}, {"localhost", 0}, {"vm,localhost", 0}, {"vm2", 1},
        {"v", 1},  {"vm,node2", 1},       {"", 0},          {".vm", 1}};
    char from[] = "--nodelist";

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct script_word over[] = {{from, row_of("nodelist"), cases[i].nodes, false}};
        struct script out;
        struct request r;

        read_over("", over, 1, &r, &out);
        assert_int_equal(out.unsupported.n, cases[i].unsupported);
        script_free(&out);
        request_free(&r);
    }
}

static void
only_this_machine_cannot_be_excluded(void **state)
{
    static const struct {
        const char *host, *nodes;
        size_t unsupported;
    } cases[] = {{"vm", "dgx04", 0},
                 {"vm", "a,vm", 1},
                 {"vm", "vm[1-3]", 0},
                 {"vm", "v[1-3],vm,z", 1},
                 {"vm", "", 0},
                 {"vm", "vm.example.org", 1},
                 {"vm", "v[m", 0},
                 {"vm", "[vm]", 0},
                 {"gpu-07", "gpu-[01-10]", 1},
                 {"gpu-07", "gpu-[1-10]", 0},
                 {"gpu-07", "gpu-[01-06,08]", 0},
                 {"gpu-07", "gpu-[01,07]", 1},
                 {"gpu-07", "GPU-[06-08],a", 1},
                 {"gpu-07", "gpu-[07]x", 0},
                 {"gpu-07", "gpu-[001-009]", 0},
                 {"gpu-07", "gpu-[a-z]", 0},
                 {"gpu-07", "a[1,2],gpu-07", 1},
                 {"gpu-07", "gpu-", 0},
                 {"gpu-12", "gpu-[9-13]", 1}};
    char from[] = "--exclude";

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct script_word over[] = {{from, row_of("exclude"), cases[i].nodes, false}};
        struct script out;
        struct request r;

        read_over_on(cases[i].host, "", over, 1, &r, &out);
        if (out.unsupported.n != cases[i].unsupported)
            fail_msg("--exclude=%s on %s: %zu", cases[i].nodes, cases[i].host,
                     out.unsupported.n);
        script_free(&out);
        request_free(&r);
    }
}

static void
lines_of_other_systems_are_noted_once(void **state)
{
    struct script out;
    struct request r;

    (void)state;
    read_over("#!/bin/sh\n#PBS -l nodes=1\n#PBS -N x\n#BSUB -n 4\n#PBSX\n", NULL, 0, &r, &out);
    assert_int_equal(out.notes.n, 1);
    assert_string_equal(out.notes.at[0], "x.sh:2: #PBS lines are not read; write #SBATCH");
    script_free(&out);
    request_free(&r);
    read_over("#!/bin/sh\n#PBSX\ntrue\n#PBS -N x\n", NULL, 0, &r, &out);
    assert_int_equal(out.notes.n, 0);
    script_free(&out);
    request_free(&r);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(durations_are_slurms),
        cmocka_unit_test(sizes_are_slurms),
        cmocka_unit_test(times_are_read_as_sacct_does),
        cmocka_unit_test(variables_for_flags_are_read_as_sbatch_does),
        cmocka_unit_test(ids_are_read_as_slurm_writes_them),
        cmocka_unit_test(states_have_two_names),
        cmocka_unit_test(a_job_that_ends_between_two_questions_is_listed_once_and_as_ended),
        cmocka_unit_test(tasks_that_ended_long_before_their_array_did_start),
        cmocka_unit_test(the_copy_of_a_script_is_found_in_a_command),
        cmocka_unit_test(times_are_sorted_by_their_length),
        cmocka_unit_test(ends_are_sorted_by_their_moment),
        cmocka_unit_test(letters_make_columns),
        cmocka_unit_test(names_make_columns),
        cmocka_unit_test(sacct_cuts_with_a_plus),
        cmocka_unit_test(options_override_a_script_and_share_its_totals),
        cmocka_unit_test(memory_is_said_in_one_way_and_the_last_counts),
        cmocka_unit_test(the_same_option_replaces_a_type_of_gpu_and_another_adds_to_it),
        cmocka_unit_test(complaints_say_where_an_option_is_from),
        cmocka_unit_test(a_node_by_name_is_this_machine),
        cmocka_unit_test(only_this_machine_cannot_be_excluded),
        cmocka_unit_test(lines_of_other_systems_are_noted_once),
    };

    setenv("TZ", "UTC", 1);
    tzset();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
