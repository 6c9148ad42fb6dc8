/* Terms of other schedulers; see other_schedulers.h. help_verb.c and opt.c call this before
 * they suggest a word with a similar spelling. */
#include "cli/common/other_schedulers.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "cli/common/opt.h"

static const struct {
    const char *word, *here;
} verbs[] = {
    {"add", "berth submit"},
    {"sbatch", "berth submit"},
    {"enqueue", "berth submit"},
    {"srun", "berth submit --interactive"},
    {"salloc", "berth shell"},
    {"squeue", "berth queue"},
    {"ls", "berth queue"},
    {"list", "berth queue"},
    {"ps", "berth queue"},
    {"jobs", "berth queue"},
    {"scancel", "berth cancel"},
    {"kill", "berth cancel"},
    {"rm", "berth cancel"},
    {"remove", "berth cancel"},
    {"delete", "berth cancel"},
    {"stop", "berth cancel, or berth daemon stop"},
    {"start", "berth release, or berth daemon start"},
    {"sinfo", "berth gpus"},
    {"nodes", "berth gpus"},
    {"sacct", "berth history"},
    {"sreport", "berth report"},
    {"stats", "berth report"},
    {"scontrol", "berth show, hold, release, requeue or pause"},
    {"info", "berth show"},
    {"sattach", "berth attach"},
    {"cat", "berth logs"},
    {"tail", "berth logs -f"},
    {"follow", "berth logs -f"},
    {"output", "berth logs"},
    {"redo", "berth requeue"},
    {"restart", "berth requeue"},
    {"retry", "berth requeue"},
    {"nice", "berth priority"},
    {"why", "berth explain"},
    {"drain", "berth pause --drain"},
    {"web", "berth-web, a separate program"},
};

#define NOTHING "none (there is one machine; omit it)"

static const struct {
    const char *name, *option, *here;
} options[] = {
    {"gres", "gpus", "--gpus 2 for gpu:2"},
    {"gpus-per-node", "gpus", "--gpus N"},
    {"gpus-per-task", "gpus", "--gpus N"},
    {"gpu-memory", "vram", "--vram SIZE"},
    {"gpu-mem", "vram", "--vram SIZE"},
    {"mem-per-gpu", "mem", "--mem SIZE, or --vram SIZE for the memory of a GPU"},
    {"mem-per-cpu", "mem", "--mem SIZE, all of it"},
    {"cpus-per-task", "cpus", "--cpus N"},
    {"constraint", "gpu-type", "--gpu-type TEXT or --min-vram SIZE"},
    {"time-limit", "time", "--time TIME"},
    {"walltime", "time", "--time TIME"},
    {"dependency", "after", "--after 12 for afterok:12, --after-any, --after-failed"},
    {"depends-on", "after", "--after JOBS"},
    {"d", "after", "--after 12 for afterok:12, --after-any, --after-failed"},
    {"max-concurrent", "array", "--array 0-99%8 for 8 at once"},
    {"nice", "priority", "--priority N, higher first"},
    {"label", "name", "--name NAME"},
    {"partition", "priority", NOTHING},
    {"account", "priority", NOTHING},
    {"A", "priority", NOTHING},
    {"qos", "priority", NOTHING},
    {"q", "priority", NOTHING},
    {"nodes", "gpus", NOTHING},
    {"N", "gpus", NOTHING},
    {"ntasks", "gpus", "none (a job is one task; srun -n in it starts more)"},
    {"n", "gpus", "none (a job is one task; srun -n in it starts more)"},
    {"ntasks-per-node", "gpus", "none (a job is one task; srun -n in it starts more)"},
    {"conda-env", "conda", "--conda ENV"},
    {"wrap", "hold", "the shell command itself, as one argument"},
    {"working-directory", "chdir", "--chdir DIR"},
    {"after-ok", "after", "--after JOBS"},
    {"afterok", "after", "--after JOBS"},
    {"afterany", "after-any", "--after-any JOBS"},
    {"afternotok", "after-failed", "--after-failed JOBS"},
};

const char *
habit_verb(const char *word)
{
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
        if (strcmp(verbs[i].word, word) == 0)
            return verbs[i].here;
    return NULL;
}

static bool
has_option(const struct opt *table, const char *name)
{
    for (; table && table->name; table++)
        if (strcmp(table->name, name) == 0)
            return true;
    return false;
}

const char *
habit_option(const struct opt *table, const char *name)
{
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        if (strcmp(options[i].name, name) == 0 && has_option(table, options[i].option))
            return options[i].here;
    return NULL;
}
