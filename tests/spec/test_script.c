/* Options in scripts: where reading ends, words and quotes, the effect of #BERTH and each
 * #SBATCH option, and that all complaints come at once and with their lines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/request.h"
#include "spec/attr.h"
#include "spec/script.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static int
read_text(const char *text, struct request *r, struct script *s)
{
    struct err e;

    request_begin(r);
    r->command = xstrdup("x");
    return script_read("f", text, strlen(text), NULL, NULL, r, s, &e);
}

/* The request made by the lines, as `submit --dry-run` shows it, without the command. */
static void
describe(const char *lines, struct buf *out)
{
    struct request r;
    struct script s;
    struct err e;

    if (read_text(lines, &r, &s) != 0 || s.unsupported.n)
        fail_msg("'%s': %s", lines, s.errors.n ? s.errors.at[0] : s.unsupported.at[0]);
    if (request_validate(&r, &e) < 0)
        fail_msg("'%s': %s", lines, e.text);
    buf_clear(out);
    assert_int_equal(r.slurm_env, s.n_sbatch > 0);
    r.slurm_env = false;
    request_describe(&r, out);
    buf_drop(out, strlen("command       x\n"));
    if (s.export)
        buf_addf(out, "export=%s\n", s.export);
    script_free(&s);
    request_free(&r);
}

#define WHOLE "gpus          1, whole and idle\n"

static void
honours_each_option(void **state)
{
    static const struct {
        const char *line, *means;
    } cases[] = {
        {"#SBATCH -t 90", WHOLE "time limit    1h30m\n"},
        {"#SBATCH --time=2:30", WHOLE "time limit    3m00s\n"},
        {"#SBATCH --time=0:01", WHOLE "time limit    1m00s\n"},
        {"#SBATCH --time=2:00", WHOLE "time limit    2m00s\n"},
        {"#SBATCH -t 5 --time=00:00", WHOLE},
        {"#SBATCH -t 5 -t 0-00:00:00", WHOLE},
        {"#SBATCH -t 5 -t -1", WHOLE},
        {"#SBATCH -J a -J ''", WHOLE},
        {"#SBATCH --comment=a --comment=", WHOLE},
        {"#SBATCH -M other,berth", WHOLE},
        {"#SBATCH --time=1-12", WHOLE "time limit    1d12h\n"},
        {"#SBATCH --time=1-00:30:00", WHOLE "time limit    1d00h\n"},
        {"#SBATCH --time=0-36:00", WHOLE "time limit    1d12h\n"},
        {"#SBATCH --time=1-24", WHOLE "time limit    2d00h\n"},
        {"#SBATCH --time=0-36:99", WHOLE "time limit    1d13h\n"},
        {"#SBATCH --time=00:90:00", WHOLE "time limit    1h30m\n"},
        {"#SBATCH --time=0:90", WHOLE "time limit    2m00s\n"},
        {"#SBATCH --time=1:90", WHOLE "time limit    3m00s\n"},
        {"#SBATCH --time=0:90:90", WHOLE "time limit    1h32m\n"},
        {"#SBATCH --time=1-0:90", WHOLE "time limit    1d01h\n"},
        {"#SBATCH --time=1-25:61:61", WHOLE "time limit    2d02h\n"},
        {"#SBATCH --time=1-", WHOLE "time limit    1d00h\n"},
        {"#SBATCH --time=90:00:00", WHOLE "time limit    3d18h\n"},
        {"#SBATCH -t 5 --time=UNLIMITED", WHOLE},
        {"#BERTH -t 90", WHOLE "time limit    1m30s\n"},
        {"#SBATCH --gres=gpu:2", "gpus          2, whole and idle\n"},
        {"#SBATCH --gres=gpu", WHOLE},
        {"#SBATCH --gres gpu:A100:4", "gpus          4, whole and idle\ngpu-type      a100\n"},
        {"#SBATCH --gres=none", "gpus          none\n"},
        {"#SBATCH --constraint=A100", WHOLE "gpu-type      a100\n"},
        {"#SBATCH -C a100 --gres=none", "gpus          none\n"},
        {"#SBATCH -G2", "gpus          2, whole and idle\n"},
        {"#SBATCH --gpus=v100:2", "gpus          2, whole and idle\ngpu-type      v100\n"},
        {"#SBATCH --gres=gpu:v100:2 --gpus-per-task=1",
         "gpus          1, whole and idle\ngpu-type      v100\n"},
        {"#SBATCH -C v100\n#BERTH --gpus 1", WHOLE "gpu-type      v100\n"},
        {"#SBATCH --gpus=v100:2\n#BERTH --gpus 0", "gpus          none\n"},
        {"#SBATCH --gpus-per-node=0", "gpus          none\n"},
        {"#SBATCH --gpus-per-task=3", "gpus          3, whole and idle\n"},
        {"#SBATCH --gpus-per-task=a100:2 -n 2",
         "gpus          4, whole and idle\ngpu-type      a100\ncpus          2\n"},
        {"#SBATCH -n 4 --gpus-per-task=2 -G 4",
         "gpus          4, whole and idle\ncpus          4\n"},
        {"#SBATCH -G 4 --gpus-per-task=2 -c 3",
         "gpus          4, whole and idle\ncpus          6\n"},
        {"#SBATCH --gpus-per-task=a100:2 --gpus=a100:4",
         "gpus          4, whole and idle\ngpu-type      a100\ncpus          2\n"},
        {"#SBATCH -G 2 --gpus-per-task=2", "gpus          2, whole and idle\n"},
        {"#SBATCH -G 4 --gpus-per-task=2\n#BERTH --gpus 3",
         "gpus          3, whole and idle\n"},
        {"#SBATCH -G 4 --gpus-per-task=2 --gres=none", "gpus          none\n"},
        {"#SBATCH -n 4 -c 2", WHOLE "cpus          8\n"},
        {"#SBATCH --tasks-per-node 4", WHOLE "cpus          4\n"},
        {"#SBATCH --cpus-per-t=4 --mail-use=a@example.org",
         WHOLE "cpus          4\nmail          END to a@example.org\n"},
        {"#SBATCH --ntasks-per-node=4 --mem-per-cpu=1G",
         WHOLE "cpus          4\nmem           4.0 GiB\n"},
        {"#SBATCH -n 4 -c 2\n#BERTH --cpus 6", WHOLE "cpus          6\n"},
        {"#SBATCH -n 4 -c 2\n#BERTH --cpus 2", WHOLE "cpus          2\n"},
        {"#SBATCH -n 4 --gpus-per-task=2\n#BERTH --gpus 2",
         "gpus          2, whole and idle\ncpus          4\n"},
        {"#SBATCH --cpus-per-gpu=4 -G2\n#BERTH --cpus 3",
         "gpus          2, whole and idle\ncpus          3\n"},
        {"#BERTH --cpus 3\n#SBATCH --cpus-per-gpu=4 -G2",
         "gpus          2, whole and idle\ncpus          8\n"},
        {"#SBATCH --mem-per-cpu=2G -c4\n#BERTH --mem 1G",
         WHOLE "cpus          4\nmem           1.0 GiB\n"},
        {"#SBATCH --mem-per-gpu=2G\n#BERTH --mem 1G", WHOLE "mem           1.0 GiB\n"},
        {"#BERTH --mem 1G\n#SBATCH --mem-per-cpu=2G -c4",
         WHOLE "cpus          4\nmem           8.0 GiB\n"},
        {"#SBATCH -J train -c 4 --mem=8G",
         "name          train\n" WHOLE "cpus          4\nmem           8.0 GiB\n"},
        {"#SBATCH --mem=1k", WHOLE "mem           1 MiB\n"},
        {"#SBATCH --mem=2049KB", WHOLE "mem           3 MiB\n"},
        {"#SBATCH --mem-per-cpu=1500K -c 2", WHOLE "cpus          2\nmem           4 MiB\n"},
        {"#SBATCH --mem=4G --mem-per-cpu=0", WHOLE},
        {"#SBATCH --mem=4G --mem-per-gpu=0", WHOLE},
        {"#SBATCH --mem=4096", WHOLE "mem           4.0 GiB\n"},
        {"#SBATCH --mem-per-cpu=2G -c4", WHOLE "cpus          4\nmem           8.0 GiB\n"},
        {"#SBATCH --mem-per-cpu=2G", WHOLE "mem           2.0 GiB\n"},
        {"#SBATCH --mem-per-gpu=2G -G3",
         "gpus          3, whole and idle\nmem           6.0 GiB\n"},
        {"#SBATCH --cpus-per-gpu=4 -G2", "gpus          2, whole and idle\ncpus          8\n"},
        {"#SBATCH --cpus-per-gpu=4 -G 0", "gpus          none\n"},
        {"#SBATCH -c 2 --cpus-per-gpu=4\n#BERTH --cpus 3", WHOLE "cpus          3\n"},
        {"#SBATCH --cpus-per-gpu=2 --mem-per-cpu=1G",
         WHOLE "cpus          2\nmem           2.0 GiB\n"},
        {"#SBATCH -o log/%x-%A_%a-%j%%.txt", WHOLE "log           log/%x-%A_%a-%j%%.txt\n"},
        {"#SBATCH -o none -e NONE -i none",
         WHOLE "log           /dev/null\nerror         /dev/null\n"},
        {"#SBATCH -o '\\%j' -e 'a\\\\b%j%%\\'",
         WHOLE "log           %%j\nerror         a\\b%%j%%%%\n"},
        {"#SBATCH -o a -e a", WHOLE "log           a\nerror         a\n"},
        {"#SBATCH -o o -e %N-%u-%4a-%t%s --open-mode=truncate",
         WHOLE "log           o\nerror         %N-%u-%4a-0batch\nopen-mode     truncate\n"},
        {"#SBATCH -a 0-9%2", WHOLE "array         10 tasks: 0-9, 2 at once\n"},
        {"#SBATCH -a '[0-9]%2'", WHOLE "array         10 tasks: 0-9, 2 at once\n"},
        {"#SBATCH -a 0-9%0", WHOLE "array         10 tasks: 0-9\n"},
        {"#SBATCH -a 0-9%2 -a 1,3%", WHOLE "array         2 tasks: 1,3\n"},
        {"#SBATCH -a 0-9%2 -a ''", WHOLE},
        {"#SBATCH -d afterok:12:13_4,afterany:14",
         WHOLE "after         12\nafter         13_4\nafter-any     14\n"},
        {"#SBATCH -d 'afterok:12_*'", WHOLE "after         12\n"},
        {"#SBATCH --dependency=afternotok:9", WHOLE "after-failed  9\n"},
        {"#SBATCH --begin=2026-12-24T18:30Z", WHOLE "begin         2026-12-24T18:30:00Z\n"},
        {"#SBATCH --requeue", WHOLE "also          requeue\n"},
        {"#SBATCH --requeue --no-requeue", WHOLE},
        {"#SBATCH -H", WHOLE "also          hold\n"},
        {"#SBATCH --signal=B:TERM@90",
         WHOLE "signal        TERM, 1m30s before the limit, to the command's own process\n"},
        {"#SBATCH --signal=R:USR2@", WHOLE "signal        USR2, 1m00s before the limit\n"},
        {"#SBATCH --signal=RB:USR1@30",
         WHOLE "signal        USR1, 30s before the limit, to the command's own process\n"},
        {"#SBATCH --signal=BR:10@30",
         WHOLE "signal        USR1, 30s before the limit, to the command's own process\n"},
        {"#SBATCH --signal=USR2", WHOLE "signal        USR2, 1m00s before the limit\n"},
        {"#SBATCH --signal=USR1@60", WHOLE "signal        USR1, 1m00s before the limit\n"},
        {"#SBATCH --time=10:00#short", WHOLE "time limit    10m00s\n"},
        {"#SBATCH -J 'a#b'#c -t 5", "name          a#b\n" WHOLE},
        {"#SBATCH -J a\\#b -t 5", "name          a#b\n" WHOLE "time limit    5m00s\n"},
        {"#BERTH --name a#b -t 5m #c", "name          a#b\n" WHOLE "time limit    5m00s\n"},
        {"#SBATCH --mem=0", WHOLE},
        {"#SBATCH -D /data --export=ALL,A=1", WHOLE "chdir         /data\nexport=ALL,A=1\n"},
        {"#SBATCH --export=", WHOLE "export=NONE\n"},
        {"#SBATCH --exclusive", WHOLE "exclusive     yes\n"},
        {"#SBATCH --exclusive=user", WHOLE "exclusive     yes\n"},
        {"#SBATCH -G 0 --exclusive", "gpus          none\n"},
        {"#SBATCH --mem=500 -N 1-4", WHOLE "mem           500 MiB\n"},
        {"#SBATCH --mem=50", WHOLE "mem           50 MiB\n"},
        {"#SBATCH -d 12", WHOLE "after-any     12\n"},
        {"#SBATCH -d afterany:12,13", WHOLE "after-any     12\nafter-any     13\n"},
        {"#SBATCH -d ''", WHOLE},
        {"#SBATCH --get-user-env -m block:block --ntasks-per-core=1 --threads-per-core=1",
         WHOLE},
        {"#SBATCH --gpu-bind=closest --cpu-freq=high --cluster-constraint=a", WHOLE},
        {"#SBATCH --nice=50", WHOLE "priority      -50\n"},
        {"#SBATCH --nice=", WHOLE "priority      -100\n"},
        {"#SBATCH --nice", WHOLE "priority      -100\n"},
        {"#SBATCH --nice=-5000", WHOLE "priority      1000\n"},
        {"#SBATCH -p gpu -A lab --qos=high -N 1 -n1 --ntasks-per-node=1 --comment='a b' -Q",
         WHOLE "comment       a b\n"},
        {"#SBATCH --open-mode=append -i /dev/null", WHOLE},
        {"#SBATCH --open-mode=T", WHOLE "open-mode     truncate\n"},
        {"#SBATCH --open-mode=t --open-mode=app", WHOLE},
        {"#SBATCH --mail-type=END --mail-user=a@example.org",
         WHOLE "mail          END to a@example.org\n"},
        {"#SBATCH --mail-type=END,none --mail-user=a@example.org", WHOLE},
        {"#SBATCH --gres=gres:gpu:2", "gpus          2, whole and idle\n"},
        {"#SBATCH -G ''", WHOLE},
        {"#BERTH --gpus 0.5 --tag=a,b",
         "gpus          1\nshare         50 %\ntag           a,b\n"},
        {"#BERTH --hold --unique=no -D x --env A=b --export NONE",
         WHOLE "also          hold\nchdir         x\nenv           A=b\nexport=NONE\n"},
        {"#BERTH --timeout 1h # --hold", WHOLE "time limit    1h00m\n"},
        {"#BERTH --name \"a 'b'\" ", "name          a 'b'\n" WHOLE},
        {"#BERTH --name a\\ b'c'\"\\\"\"", "name          a bc\"\n" WHOLE},
        {"#BERTH --name a#b", "name          a#b\n" WHOLE},
        {"#SBATCH -J a\r\n#SBATCH -J b\r", "name          b\n" WHOLE},
        {"#!/bin/sh\n\n# words\n #SBATCH -J a\n##SBATCH -J b\n#SBATCHx\n#BERTH", WHOLE},
        {"#BERTH -J a\ntrue\n#BERTH -J b", "name          a\n" WHOLE},
        {"#BERTH -J a\n  exec x\n#BERTH --bad", "name          a\n" WHOLE},
    };
    auto_buf struct buf got = BUF_INIT;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        describe(cases[i].line, &got);
        if (strcmp(buf_str(&got), cases[i].means) != 0)
            fail_msg("'%s' means:\n%s", cases[i].line, buf_str(&got));
    }
}

static void
names_what_it_cannot_honour(void **state)
{
    static const struct {
        const char *line, *words;
    } cases[] = {
        {"--mail-type=END,STAGE_OUT",
         "f:1: #SBATCH --mail-type: no mail is sent for STAGE_OUT"},
        {"-N 2", "#SBATCH --nodes: 2: there is one machine"},
        {"-n 8 --ntasks-per-node=4", "#SBATCH --ntasks: 8 tasks exceed 4 on each node"},
        {"--gres=gpu:1,shard:2", "#SBATCH --gres: 1,shard:2: only one type of GPU"},
        {"--gres=shard:2", "#SBATCH --gres: shard:2: only gpu:N and gpu:TYPE:N"},
        {"--gres=gpu:a:b:1", "one type of GPU and a number"},
        {"-o %z.txt", "#SBATCH --output: %z is not supported"},
        {"-i data.txt", "redirect it in the script: < data.txt"},
        {"-d after:12", "only afterok, afterany, afternotok and singleton"},
        {"-d afterok:1?afterok:2", "one of several (?) is not supported"},
        {"-d afterok:1+5", "a delay after + is not supported"},
        {"--exclusive=topo", "#SBATCH --exclusive: =topo: only --exclusive and"},
        {"-c 2 --cpus-per-gpu=4 -G 2",
         "f:1: #SBATCH --cpus-per-gpu: mutually exclusive with --cpus-per-task"},
        {"--cpus-per-gpu=4 --cpus-per-task=1", "mutually exclusive with --cpus-per-task"},
        {"-G 0 --mem-per-gpu=1G", "#SBATCH --mem-per-gpu: the job requests no GPU"},
        {"-N 2-4", "#SBATCH --nodes: 2-4: there is one machine"},
        {"-d afterok:12,13", "13: only afterok, afterany, afternotok and singleton"},
        {"--constraint=a100|h100", "#BERTH --gpu-type"},
        {"--priority=10", "the scales differ"},
        {"-M other", "#SBATCH --clusters: other is not here; the one cluster is berth"},
        {"-x node7", "#SBATCH --exclude: node7: there is one machine"},
        {"--parsable", "#SBATCH --parsable: use --parsable on the command line"},
        {"-w node7", "#SBATCH --nodelist: node7: there is one machine"},
        {"--quux=x", "#SBATCH --quux: unknown option, or not supported"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        auto_buf struct buf text = BUF_INIT;
        struct request r;
        struct script s;
        buf_addf(&text, "#SBATCH %s", cases[i].line);
        int rc = read_text(buf_str(&text), &r, &s);
        if (rc != 0 || s.unsupported.n != 1)
            fail_msg("'%s': %d, %zu, %s", cases[i].line, rc, s.unsupported.n,
                     s.errors.n ? s.errors.at[0] : "");
        if (!strstr(s.unsupported.at[0], cases[i].words))
            fail_msg("'%s': %s", cases[i].line, s.unsupported.at[0]);
        script_free(&s);
        request_free(&r);
    }
}

static void
refuses_what_is_wrong(void **state)
{
    static const struct {
        const char *line, *words;
    } cases[] = {
        {"#SBATCH -n x", "#SBATCH --ntasks: 'x' is not a whole number"},
        {"#SBATCH -G 5 --gpus-per-task=2",
         "f:1: #SBATCH --gpus-per-task: 5 GPUs are no multiple of 2"},
        {"#SBATCH -n 65 --gpus-per-task=1", "#SBATCH --ntasks: 1 times 65 is too much"},
        {"#SBATCH --time=soon", "f:1: #SBATCH --time: 'soon' is not a duration"},
        {"#SBATCH --time=-", "f:1: #SBATCH --time: '-' is not a duration"},
        {"#SBATCH --time=-2", "f:1: #SBATCH --time: '-2' is not a duration"},
        {"#SBATCH -o '~/%j.out'", "--output: '~/%j.out': ~ is not expanded here"},
        {"#BERTH --error=~", "#BERTH --error: '~': ~ is not expanded here"},
        {"#SBATCH --time", "#SBATCH --time: it needs a value"},
        {"#SBATCH -t#5", "#SBATCH --time: it needs a value"},
        {"#SBATCH --requeue=yes", "#SBATCH --requeue: it takes no value"},
        {"#SBATCH --tim=5", "#SBATCH --tim: unknown option; did you mean --time?"},
        {"#SBATCH --mem-per=5", "#SBATCH --mem-per: unknown option; did you mean --mem-per-"},
        {"#SBATCH --time=0-36:9x", "#SBATCH --time: '0-36:9x' is not a duration"},
        {"#SBATCH --time=5:", "#SBATCH --time: '5:' is not a duration"},
        {"#SBATCH --time=:5", "#SBATCH --time: ':5' is not a duration"},
        {"#SBATCH --time=1-:", "#SBATCH --time: '1-:' is not a duration"},
        {"#SBATCH --time=1:2:3:4", "#SBATCH --time: '1:2:3:4' is not a duration"},
        {"#SBATCH --time=1-2:3:4:5", "#SBATCH --time: '1-2:3:4:5' is not a duration"},
        {"#SBATCH --time=1-2-3", "#SBATCH --time: '1-2-3' is not a duration"},
        {"#SBATCH --time=0:9999999999", "#SBATCH --time: '0:9999999999' is not a duration"},
        {"#SBATCH --time=999999999-0", "#SBATCH --time: '999999999-0' is too long"},
        {"#SBATCH train", "#SBATCH train: not an option; options begin with -"},
        {"#SBATCH -J 'a", "#SBATCH a: the quote is not closed"},
        {"#SBATCH --gpus=99", "#SBATCH --gpus: '99' is not a number of GPUs"},
        {"#SBATCH --gpus=0.5", "#SBATCH --gpus: '0.5' is not a number of GPUs"},
        {"#SBATCH --nice=x", "'x' is not a whole number"},
        {"#SBATCH -d afterok:x", "'x' are not jobs"},
        {"#SBATCH -d afterok:", "'' are not jobs"},
        {"#SBATCH --mem-per-gpu=8T -G 4", "times 4 is too much"},
        {"#SBATCH --cpus-per-gpu=65536 -G 2", "65536 times 2 is too much"},
        {"#BERTH --vrma=8G", "#BERTH --vrma: unknown option; did you mean --vram?"},
        {"#BERTH -X", "#BERTH -X: unknown option"},
        {"#BERTH --wait", "#BERTH --wait: unknown option"},
        {"#BERTH --cancel", "#BERTH --cancel: unknown option"},
        {"#BERTH --env A", "#BERTH --env: 'A' is not NAME=value"},
        {"#BERTH -e A=b", "#BERTH --error: 'A=b' looks like a variable; write --env"},
        {"#SBATCH --vram=8G", "it is not a Slurm option; write it on a #BERTH line"},
        {"#BERTH --vram=8X", "#BERTH --vram: '8X' is not a size"},
        {"#BERTH --", "#BERTH --: unknown option"},
        {"#BERTH --=x", "#BERTH --: unknown option"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct request r;
        struct script s;
        if (read_text(cases[i].line, &r, &s) == 0)
            fail_msg("'%s' is accepted", cases[i].line);
        if (!strstr(s.errors.at[0], cases[i].words))
            fail_msg("'%s': %s", cases[i].line, s.errors.at[0]);
        script_free(&s);
        request_free(&r);
    }
}

static void
says_all_at_once(void **state)
{
    struct request r;
    struct script s;

    (void)state;
    assert_int_equal(read_text("#!/usr/bin/env  python3 -u\n"
                               "#SBATCH --deadline=now --time=x\n"
                               "#SBATCH -N 2\n"
                               "#BERTH --vram=1X\n"
                               "import torch\n",
                               &r, &s),
                     -1);
    assert_int_equal(s.n_lines, 3);
    assert_string_equal(s.interpreter, "/usr/bin/env  python3 -u");
    assert_int_equal(s.errors.n, 2);
    assert_int_equal(s.unsupported.n, 2);
    assert_non_null(strstr(s.errors.at[1], "f:4: "));
    assert_non_null(strstr(s.unsupported.at[1], "f:3: "));
    script_free(&s);
    request_free(&r);
}

static void
slurm_env_is_as_said(void **state)
{
    static const struct {
        const char *text;
        bool slurm_env;
    } cases[] = {
        {"#SBATCH -J a\n", true},
        {"#BERTH --slurm-env=no\n#SBATCH -J a\n", false},
        {"#SBATCH -J a\n#BERTH --slurm-env=no\n#SBATCH -t 5\n", false},
        {"#BERTH --slurm-env\n#SBATCH -J a\n", true},
        {"#BERTH --slurm-env\n", true},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct request r;
        struct script s;

        assert_int_equal(read_text(cases[i].text, &r, &s), 0);
        if (r.slurm_env != cases[i].slurm_env)
            fail_msg("'%s'", cases[i].text);
        script_free(&s);
        request_free(&r);
    }
}

static void
what_is_said_elsewhere_is_shared_out_too(void **state)
{
    static const struct {
        const char *lines, *attr, *value;
        int cpus, mem_mib; /* before the value is applied */
        const char *told;  /* passed to the script; NULL: nothing */
    } cases[] = {
        {"--mem-per-cpu=100 -c 2", "mem", "1G", 2, 0, NULL},
        {"--mem-per-gpu=100 -G 2", "mem", "1G", 0, 0, NULL},
        {"--mem-per-cpu=100 -c 2", "cpus", "8", 2, 800, "SLURM_MEM_PER_CPU=100"},
        {"--mem-per-gpu=100 -G 2", "gpus", "3", 0, 300, "SLURM_MEM_PER_GPU=100"},
        {"--mem-per-gpu=100 -G 2", "gpu-ids", "0,1,2", 0, 300, "SLURM_MEM_PER_GPU=100"},
        {"--mem-per-gpu=100 -G 2", "cpus", "8", 0, 200, "SLURM_MEM_PER_GPU=100"},
        {"--cpus-per-gpu=3 -G 2", "gpus", "1", 3, 0, NULL},
        {"--cpus-per-gpu=3 --mem-per-cpu=100 -G 2", "cpus", "5", 0, 500,
         "SLURM_MEM_PER_CPU=100"},
        {"--mem-per-cpu=100 -c 2", "name", "a", 2, 200, "SLURM_MEM_PER_CPU=100"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        auto_buf struct buf text = BUF_INIT;
        struct request over, r;
        struct script s;
        struct err e;

        buf_addf(&text, "#SBATCH %s\n", cases[i].lines);
        request_begin(&over);
        request_begin(&r);
        assert_int_equal(
            attr_set_at(&over, cases[i].attr, cases[i].value, ATTR_COMMAND_LINE, NULL, &e), 0);
        assert_int_equal(script_read("f", text.data, text.len, NULL, &over, &r, &s, &e), 0);
        if (r.demand.cpus != cases[i].cpus || r.demand.mem_mib != cases[i].mem_mib)
            fail_msg("case %zu: %d cores, %d MiB", i, r.demand.cpus, r.demand.mem_mib);
        assert_int_equal(s.variables.n, cases[i].told ? 1 : 0);
        if (cases[i].told)
            assert_string_equal(s.variables.at[0], cases[i].told);
        script_free(&s);
        request_free(&r);
        request_free(&over);
    }
}

static void
notes_what_became_of_a_constraint(void **state)
{
    static const struct {
        const char *lines, *type, *note;
    } cases[] = {
        {"#SBATCH -C A100\n", "a100", "f:1: --constraint=a100 is read as a type of GPU"},
        {"#SBATCH -C A100\n#SBATCH -C h100\n", "h100",
         "f:2: --constraint=h100 is read as a type of GPU"},
        {"#SBATCH -G h100:2\n#SBATCH -C ib\n", "h100",
         "f:2: --constraint=ib is ignored: the type of GPU is h100"},
        {"#SBATCH -C ib\n#SBATCH -G h100:2\n", "h100",
         "f:1: --constraint=ib is ignored: the type of GPU is h100"},
        {"#SBATCH -C ib\n#SBATCH -G 0\n", "",
         "f:1: --constraint=ib is ignored: the job has no GPU"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct request r;
        struct script s;

        assert_int_equal(read_text(cases[i].lines, &r, &s), 0);
        assert_int_equal(s.notes.n, 1);
        assert_string_equal(s.notes.at[0], cases[i].note);
        assert_string_equal(r.demand.gpu_type, cases[i].type);
        script_free(&s);
        request_free(&r);
    }
}

static void
other_files_are_no_scripts(void **state)
{
    static const char *const cases[] = {"",
                                        "\n",
                                        "#!/bin/sh\ntrue\n#SBATCH -J a\n",
                                        "# SBATCH -J a\n",
                                        "echo",
                                        "\177ELF\n#SBATCH"};
    struct request r;
    struct script s;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(read_text(cases[i], &r, &s), 0);
        assert_int_equal(s.n_lines, 0);
        script_free(&s);
        request_free(&r);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(honours_each_option),
        cmocka_unit_test(names_what_it_cannot_honour),
        cmocka_unit_test(refuses_what_is_wrong),
        cmocka_unit_test(says_all_at_once),
        cmocka_unit_test(slurm_env_is_as_said),
        cmocka_unit_test(what_is_said_elsewhere_is_shared_out_too),
        cmocka_unit_test(notes_what_became_of_a_constraint),
        cmocka_unit_test(other_files_are_no_scripts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
