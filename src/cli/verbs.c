/* The table of verbs. A new verb is a file with a cmd_ function, its prototype in cli.h and
 * a row here. The order is that of `berth help`. */
#include "cli/cli.h"
#include "cli/simjob.h"

static int
run_simjob(struct cli *cli, int argc, char **argv)
{
    (void)cli;
    return cmd_simjob(argc, argv);
}

const struct verb cli_verbs[] = {
    {"run", "a file of commands, followed to its end", cmd_run},
    {"submit", "queue one command", cmd_submit},
    {"shell", "a shell on a GPU, for as long as you stay in it", cmd_shell},
    {"queue", "who runs where, who waits and why", cmd_queue},
    {"show", "everything about a job", cmd_show},
    {"explain", "why a job waits, or why it ended", cmd_explain},
    {"logs", "a job's output; -f follows it", cmd_logs},
    {"attach", "back to an interactive job, or to a shell", cmd_attach},
    {"screens", "jobs in screen sessions, and how to attach to them", cmd_screens},
    {"wait", "until jobs end; exits with their code", cmd_wait},
    {"cancel", "stop jobs, or never start them", cmd_cancel},
    {"hold", "keep waiting jobs from starting", cmd_hold},
    {"release", "let held jobs start", cmd_release},
    {"priority", "let jobs start sooner or later than others", cmd_priority},
    {"requeue", "run jobs again, also those that have ended", cmd_requeue},
    {"signal", "send a signal to running jobs", cmd_signal},
    {"report", "what was asked, used and waited; --html FILE writes plots", cmd_report},
    {"history", "jobs that have ended; --csv for simulate", cmd_history},
    {"gpus", "the cards: memory, load, jobs, strangers", cmd_gpus},
    {"top", "all of it on one screen, and keys for what one does", cmd_top},
    {"pause", "keep new work off a card; --drain waits until it is empty", cmd_pause},
    {"resume", "let a card take work again", cmd_resume},
    {"status", "the daemon and the counts", cmd_status},
    {"health", "is all well? One line per check, and an exit status", cmd_health},
    {"metrics", "numbers, also for Prometheus", cmd_metrics},
    {"events", "what happened, as JSON lines; -f follows", cmd_events},
    {"daemon", "start, stop, status", cmd_daemon},
    {"config", "sample, check, show", cmd_config},
    {"doctor", "is everything here that is needed?", cmd_doctor},
    {"simulate", "a workload in virtual time: waits, makespan, a timeline", cmd_simulate},
    {"simjob", "pretend to be a GPU program (for --sim)", run_simjob},
    {"compat", "under the names and options of other schedulers", cmd_compat},
    {"completion", "of verbs and options, for bash, zsh or fish", cmd_completion},
    {"version", "which Berth this is", cmd_version},
    {"help", "this list", cmd_help},
    {0},
};
