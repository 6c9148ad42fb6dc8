/* `submit-all`: submits the scripts in order, with dependencies by the ids that Slurm
 * returned, which it stores. A key in each job's comment shows which jobs Slurm has, so an
 * interrupted submission can be resumed without losing or repeating a job. */
#include "base/buf.h"
#include "cli/common/quote.h"
#include "cli/export/export_priv.h"
#include "slurm/slurm_answers.h"

static const char head[] =
    "#!/bin/bash\n"
    "# Submits the jobs that `berth export` wrote, in the order of Berth's queue, to Slurm.\n"
    "#\n"
    "#   ./submit-all [OPTION...]     options of sbatch for all jobs, such as --partition=gpu\n"
    "#   ./submit-all --test-only     asks Slurm whether it would accept them; submits "
    "nothing\n"
    "#   ./submit-all --accepted      prints Berth's numbers of the jobs that Slurm has "
    "accepted\n"
    "#\n"
    "# The file `submitted` gets lines \"BERTH-JOB SLURM-JOB TIME\". Run again, this submits "
    "what\n"
    "# Slurm has not got yet, or has forgotten. With ENVIRONMENT=here, jobs get the "
    "environment of\n"
    "# this shell in the place of the one in which they were submitted to Berth. An answer may "
    "be "
    "lost:\n"
    "# a job may come to slurmctld up to a minute (SETTLE=SECONDS) after sbatch has given "
    "up.\n";

static const char program[] =
    "set -u\n"
    "cd -- \"$(dirname -- \"$0\")\" || exit\n"
    "options=(\"$@\")\n"
    "test_only=\n"
    "for option in \"$@\"; do [ \"$option\" != --test-only ] || test_only=yes; done\n"
    "declare -A slurm=() since=() known=()\n"
    "me=$(id -un)\n"
    "failed=0\n"
    "\n"
    "fail()\n"
    "{\n"
    "    echo \"submit-all: $*\" >&2\n"
    "    exit 1\n"
    "}\n"
    "\n"
    "unsure()\n"
    "{\n"
    "    fail \"job $1 may have been submitted when this was interrupted. Look for "
    "berth:$key.$1 in the comments\" \\\n"
    "        \"of Slurm's jobs, then add a line to the file submitted: '$1 NUMBER', or '$1 -' "
    "if it is not there\"\n"
    "}\n"
    "\n"
    "# Those whose last line in the file has a number of Slurm's.\n"
    "accepted()\n"
    "{\n"
    "    local id number at\n"
    "    [ -f submitted ] || fail 'nothing has been submitted'\n"
    "    while read -r id number at; do slurm[$id]=$number; done <submitted\n"
    "    for id in \"${!slurm[@]}\"; do [[ ! ${slurm[$id]} =~ ^[0-9]+$ ]] || echo \"$id\"; "
    "done "
    "| sort -n\n"
    "}\n"
    "\n"
    "if [ \"${1-}\" = --accepted ]; then\n"
    "    accepted\n"
    "    exit\n"
    "fi\n"
    "program=$(command -v sbatch) || fail 'there is no sbatch here'\n"
    "[[ $(readlink -f \"$program\") != */berth-compat ]] ||\n"
    "    fail \"$program submits to Berth; put Slurm's own sbatch first in PATH\"\n"
    "own=()\n"
    "[ -z \"${SLURM_CONF:-}\" ] || own=(SLURM_CONF=\"$SLURM_CONF\")\n"
    "\n"
    "# The numbers of those jobs that Slurm knows, into `known`, by the keys in their "
    "comments.\n"
    "ask_slurm()\n"
    "{\n"
    "    local jobs number comment\n"
    "    known=()\n"
    "    jobs=$(squeue -h -t all -o '%F|%k') || return 1\n"
    "    while IFS='|' read -r number comment; do\n"
    "        [[ $number =~ ^[0-9]+$ && $comment =~ ^berth:$key\\.([0-9]+)( |$) ]] &&\n"
    "            known[${BASH_REMATCH[1]}]=$number\n"
    "    done <<<\"$jobs\"\n"
    "    return 0\n"
    "}\n"
    "\n"
    "# A job whose answer was lost may still be on its way.\n"
    "settle()\n"
    "{\n"
    "    local id now last=0\n"
    "    for id in \"${!slurm[@]}\"; do\n"
    "        [ \"${slurm[$id]}\" != '?' ] || [ -n \"${known[$id]:-}\" ] || [ \"${since[$id]}\" "
    "-le $last ] ||\n"
    "            last=${since[$id]}\n"
    "    done\n"
    "    printf -v now '%(%s)T' -1\n"
    "    [ $((last + ${SETTLE:-60} - now)) -gt 0 ] || return 0\n"
    "    echo \"submit-all: waiting, as a job whose answer was lost may still come to Slurm\" "
    ">&2\n"
    "    sleep $((last + ${SETTLE:-60} - now))\n"
    "    ask_slurm || fail 'slurmctld does not answer'\n"
    "}\n"
    "\n"
    "# Compares the file with what Slurm knows. Slurm keeps an ended job for MinJobAge, so a "
    "younger one\n"
    "# that it does not know is lost: its answer did not arrive, or slurmctld was killed "
    "before it had\n"
    "# saved the job.\n"
    "recall()\n"
    "{\n"
    "    local age id number at now\n"
    "    while read -r id number at; do\n"
    "        slurm[$id]=${number#-}\n"
    "        since[$id]=${at:-0}\n"
    "    done <submitted\n"
    "    [ ${#slurm[@]} -gt 0 ] || return 0\n"
    "    ask_slurm || fail 'slurmctld does not answer'\n"
    "    settle\n"
    "    age=$(scontrol show config | sed -n 's/^MinJobAge *= *\\([0-9]*\\).*/\\1/p')\n"
    "    printf -v now '%(%s)T' -1\n"
    "    for id in \"${!slurm[@]}\"; do\n"
    "        if [ -n \"${known[$id]:-}\" ]; then\n"
    "            slurm[$id]=${known[$id]}\n"
    "        elif [ -n \"${slurm[$id]}\" ] && [ $((now - since[$id])) -lt $((${age:-0} - 30)) "
    "]; then\n"
    "            [ \"${slurm[$id]}\" = '?' ] || echo \"submit-all: Slurm has forgotten job $id "
    "(its ${slurm[$id]})\" >&2\n"
    "            slurm[$id]=\n"
    "        elif [ \"${slurm[$id]}\" = '?' ]; then\n"
    "            unsure \"$id\"\n"
    "        fi\n"
    "    done\n"
    "}\n"
    "\n"
    "record() { printf '%s %s %(%s)T\\n' \"$1\" \"$2\" -1 >>submitted; }\n"
    "\n"
    "# environment_of ID ENVIRONMENT: as sbatch reads it from a file; then it does not add the "
    "name.\n"
    "environment_of()\n"
    "{\n"
    "    local name\n"
    "    name=$(sed -n 's/^#SBATCH \"--job-name=\\(.*\\)\"$/\\1/; T; s/\\\\\\(.\\)/\\1/g; p; "
    "q' \"scripts/$1.sh\")\n"
    "    cat \"environments/$2\" && printf 'SLURM_JOB_NAME=%s\\0' \"${name:-$1.sh}\"\n"
    "}\n"
    "\n"
    "# submit ID USER ENVIRONMENT DEPENDENCY\n"
    "submit()\n"
    "{\n"
    "    local id=$1 user=$2 environment=$3 dependency=$4 number bad= sbatch=(\"$program\")\n"
    "    [ -z \"${slurm[$id]:-}\" ] || return 0\n"
    "    # The program that submits never has a job's variables among its own: LD_PRELOAD in "
    "them\n"
    "    # would run what a user likes as the one who submits. Nor do jobs of others get "
    "ours.\n"
    "    if [ -n \"$environment\" ] && [ \"${ENVIRONMENT:-}\" != here ]; then\n"
    "        environment_of \"$id\" \"$environment\" >.environment || exit\n"
    "        sbatch=(env -i \"${own[@]}\" \"$program\" --export-file=.environment)\n"
    "    elif [ \"$user\" != \"$me\" ] && [ \"${ENVIRONMENT:-}\" != here ]; then\n"
    "        sbatch=(env -i \"${own[@]}\" \"$program\")\n"
    "    fi\n"
    "    if [ \"$user\" != \"$me\" ]; then sbatch+=(--uid=\"$user\" --gid=\"$(id -g -- "
    "\"$user\")\"); fi\n"
    "    if [ -n \"$test_only\" ]; then\n"
    "        \"${sbatch[@]}\" \"${options[@]}\" \"./scripts/$id.sh\" || failed=$((failed + "
    "1))\n"
    "        return 0\n"
    "    fi\n"
    "    if [ -n \"$dependency\" ]; then sbatch+=(--dependency=\"$dependency\"); fi\n"
    "    record \"$id\" '?'\n"
    "    number=$(\"${sbatch[@]}\" --parsable \"${options[@]}\" \"./scripts/$id.sh\" "
    "2>.words) || bad=yes\n"
    "    cat .words >&2\n"
    "    if [ -n \"$bad\" ]; then\n"
    "        # The answer may have been lost, not the job.\n"
    "        [ ! -s .words ] || grep -qF \"$unsure_words\" .words || record \"$id\" -\n"
    "        fail \"job $id was not submitted, or its number is not known; see scripts/$id.sh, "
    "then run this again\"\n"
    "    fi\n"
    "    number=${number%%;*}\n"
    "    [[ $number =~ ^[0-9]+$ ]] || fail \"sbatch gave no number for job $id, but "
    "'$number'\"\n"
    "    record \"$id\" \"$number\"\n"
    "    slurm[$id]=$number\n"
    "    echo \"$id is $number\"\n"
    "}\n"
    "\n"
    "if [ -z \"$test_only\" ]; then\n"
    "    touch submitted || exit\n"
    "    exec 9<.\n"
    "    flock -n 9 || fail 'it is running already'\n"
    "    recall\n"
    "fi\n"
    "\n";

static const char tail[] =
    "\n"
    "rm -f .environment .words\n"
    "[ \"$failed\" -eq 0 ] || fail \"Slurm would refuse $failed jobs\"\n";

/* Adds "${slurm[12]-}_3" for every exported part of the job that dep names. */
static bool
add_id(void *context, const struct dep *dep, struct buf *out)
{
    const struct export_data *x = context;
    const struct export_job *job = NULL;
    bool any = false;

    while ((job = export_find_dep(x, dep, job))) {
        buf_addf(out, "%s${slurm[%u]-}", any ? ":" : "", job->id);
        if (dep->task >= 0)
            buf_addf(out, "_%d", dep->task);
        any = true;
    }
    return any;
}

void
export_submit_all(const struct export_data *x, struct buf *out)
{
    buf_adds(out, head);
    buf_addf(out, "key=%s\nunsure_words='", x->key);
    for (size_t i = 0; slurm_unsure_words[i]; i++)
        buf_addf(out, "%s%s", i > 0 ? "\n" : "", slurm_unsure_words[i]);
    buf_adds(out, "'\n");
    buf_adds(out, program);
    for (size_t i = 0; i < x->n; i++) {
        const struct export_job *job = &x->jobs[i];

        buf_addf(out, "submit %u ", job->id);
        quote_add(out, job->user);
        if (job->environment && !job->req.login)
            buf_addf(out, " %lld", (long long)job->environment);
        else
            buf_adds(out, " ''");
        buf_adds(out, " \"");
        (void)sbatch_add_dependency(&job->req, add_id, (void *)x, out);
        buf_adds(out, "\"\n");
    }
    buf_adds(out, tail);
}
