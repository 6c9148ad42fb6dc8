/* Parses the output of Slurm's commands: see slurm_answers.h. States and reasons are those of
 * squeue(1); the texts are sbatch's error messages, only some of which tell for certain
 * whether the job was accepted. */
#include "slurm/slurm_answers.h"

#include <string.h>
#include <strings.h>

#include "base/err.h"
#include "base/parse.h"

#define FIELDS 7

/* Splits at the first FIELDS - 1 bars only, because a comment may contain more. */
static bool
split(char *line, char *fields[FIELDS])
{
    for (int i = 0; i < FIELDS; i++) {
        char *bar = strchr(line, '|');
        fields[i] = line;
        if (i == FIELDS - 1)
            return true;
        if (!bar)
            return false;
        *bar = '\0';
        line = bar + 1;
    }
    return false;
}

bool
slurm_read_job(char *line, struct slurm_job *out)
{
    char *f[FIELDS];
    int64_t index = 0, start_s = 0;
    struct err ignored;
    size_t mark = strlen(SLURM_MARK);
    if (!split(line, f) || strncmp(f[6], SLURM_MARK, mark) != 0)
        return false;
    bool is_task = parse_int(f[1], 0, INT32_MAX, &index, &ignored) == 0;
    bool has_start = parse_int(f[5], 1, INT64_MAX / 1000000, &start_s, &ignored) == 0;
    *out = (struct slurm_job){.array = f[0],
                              .index = is_task ? (int32_t)index : 0,
                              .is_task = is_task,
                              .state = f[2],
                              .node = f[3],
                              .reason = f[4],
                              .start_s = has_start ? start_s : 0,
                              .key = f[6] + mark};
    return true;
}

static bool
is_among(const char *word, const char *const *words)
{
    for (; *words; words++)
        if (strcmp(word, *words) == 0)
            return true;
    return false;
}

enum slurm_phase
slurm_phase_of(const char *state)
{
    static const char *const waits[] = {
        "PENDING",      "REQUEUED",      "REQUEUE_HOLD",  "REQUEUE_FED",
        "SPECIAL_EXIT", "RESV_DEL_HOLD", "POWER_UP_NODE", NULL};
    static const char *const runs[] = {"RUNNING",   "CONFIGURING", "COMPLETING",
                                       "SUSPENDED", "SIGNALING",   "STAGE_OUT",
                                       "STOPPED",   "RESIZING",    NULL};
    return is_among(state, waits)  ? SLURM_WAITS
           : is_among(state, runs) ? SLURM_RUNS
                                   : SLURM_IS_OVER;
}

const char *
slurm_reason_words(const char *reason)
{
    static const struct {
        const char *name, *words;
    } known[] = {
        {"Resources", "too little is free on the cluster"},
        {"Priority", "other jobs of the cluster are first"},
        {"PartitionTimeLimit", "its time limit is longer than the partition's"},
        {"PartitionNodeLimit", "the partition allows fewer nodes"},
        {"PartitionDown", "the partition is down"},
        {"PartitionInactive", "the partition is inactive"},
        {"ReqNodeNotAvail", "nodes that it needs are not available"},
        {"NodeDown", "a node that it needs is down"},
        {"BadConstraints", "no node can ever satisfy it"},
        {"JobHeldUser", "it was held in Slurm; scontrol release lets it go"},
        {"JobHeldAdmin", "an administrator of Slurm holds it"},
        {"AssocGrpGRES", "the account's limit on GPUs is reached"},
        {"QOSMaxGRESPerUser", "the QOS's limit on GPUs is reached"},
        {"QOSMaxJobsPerUserLimit", "the QOS's limit on jobs is reached"},
        {"AssocMaxJobsLimit", "the account's limit on jobs is reached"},
        {"None", "Slurm has not looked at it yet"},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i].name, reason) == 0)
            return known[i].words;
    return NULL;
}

const char *
slurm_read_id(char *text)
{
    size_t n = strspn(text, "0123456789");
    if (n == 0 || (text[n] && !strchr(";\n", text[n])))
        return NULL;
    text[n] = '\0';
    return text;
}

static bool
has_any(const char *text, const char *const *parts)
{
    for (; *parts; parts++)
        if (strstr(text, *parts))
            return true;
    return false;
}

bool
slurm_is_limit(const char *words)
{
    static const char *const parts[] = {"SubmitJob", "policy", "Job limit exceeded", NULL};
    return slurm_refusal_of(words) == SLURM_LATER && has_any(words, parts);
}

const char *const slurm_unsure_words[] = {"Socket timed out",
                                          "Zero Bytes were transmitted",
                                          "Message send failure",
                                          "Message receive failure",
                                          "(send failure)",
                                          "(receive failure)",
                                          "(shutdown failure)",
                                          "Communication shutdown failure",
                                          "Unexpected message",
                                          "receive timeout",
                                          NULL};

enum slurm_refusal
slurm_refusal_of(const char *words)
{
    /* sbatch itself rejects an option from slurm_options. */
    static const char *const never[] = {"unrecognized option",   "invalid option",
                                        "requires an argument",  "is ambiguous",
                                        "Try \"sbatch --help\"", NULL};
    /* Nothing was sent, or the controller refused for now. */
    static const char *const later[] = {"Unable to contact slurm controller",
                                        "Connection refused",
                                        "Slurm temporarily unable",
                                        "Resource temporarily unavailable",
                                        "in standby mode",
                                        "Communication connection failure",
                                        "I/O error writing script/environment",
                                        "fatal: ", /* sbatch's own configuration */
                                        "Protocol authentication error",
                                        "Unable to resolve",
                                        "QOSMaxSubmitJobPerUserLimit",
                                        "AssocMaxSubmitJobLimit",
                                        "AssocGrpSubmitJobsLimit",
                                        "QOSGrpSubmitJobsLimit",
                                        "Job violates accounting/QOS policy",
                                        "Job limit exceeded",
                                        "Required partition not available",
                                        "Requested partition configuration not available now",
                                        NULL};
    if (has_any(words, never))
        return SLURM_NEVER;
    if (has_any(words, slurm_unsure_words))
        return SLURM_UNKNOWN;
    if (has_any(words, later))
        return SLURM_LATER;
    return strstr(words, "error: ") ? SLURM_NEVER : SLURM_UNKNOWN;
}
