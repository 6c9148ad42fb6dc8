/* The table of verbs, in the order of `berth help`. To add a verb, add a file with its cmd_
 * function, its prototype in cli.h and a row here. */
#include "cli/common/cli.h"
#include "cli/simulate/simjob_verb.h"

static int
run_simjob(struct cli *cli, int argc, char **argv)
{
    (void)cli;
    return cmd_simjob(argc, argv);
}

const struct verb cli_verbs[] = {
    {"run", "run a file of commands and follow it to its end", cmd_run},
    {"submit", "queue one command", cmd_submit},
    {"shell", "open a shell on a GPU until you exit it", cmd_shell},
    {"queue", "show running and pending jobs, with GPUs and reasons", cmd_queue},
    {"show", "show everything about a job", cmd_show},
    {"explain", "show why a job waits, or why it ended", cmd_explain},
    {"logs", "show a job's output; -f follows it", cmd_logs},
    {"attach", "return to an interactive job or a shell", cmd_attach},
    {"screens", "list jobs in screen sessions and how to attach to them", cmd_screens},
    {"wait", "wait for jobs to end; exit with their status", cmd_wait},
    {"cancel", "cancel jobs", cmd_cancel},
    {"hold", "keep pending jobs from starting", cmd_hold},
    {"release", "let held jobs start", cmd_release},
    {"priority", "set the priority of jobs", cmd_priority},
    {"requeue", "run jobs again, including ended ones", cmd_requeue},
    {"signal", "send a signal to running jobs", cmd_signal},
    {"report", "summarise requests, use and waits; --html FILE writes plots", cmd_report},
    {"history", "list ended jobs; --csv for simulate", cmd_history},
    {"gpus", "show the GPUs: memory, load, jobs, other processes", cmd_gpus},
    {"top", "show everything on one screen, with keys for commands", cmd_top},
    {"pause", "keep new work off a GPU; --drain waits until it is empty", cmd_pause},
    {"resume", "start work on a GPU again", cmd_resume},
    {"status", "show the daemon and the number of jobs", cmd_status},
    {"health", "check the daemon: one line per check, and an exit status", cmd_health},
    {"metrics", "print metrics, also for Prometheus", cmd_metrics},
    {"events", "print events as JSON lines; -f follows", cmd_events},
    {"daemon", "start, stop or inspect the daemon", cmd_daemon},
    {"config", "print or check settings", cmd_config},
    {"doctor", "check the installation and the machine", cmd_doctor},
    {"simulate", "run a workload in virtual time: waits, makespan, timeline", cmd_simulate},
    {"simjob", "simulate a GPU program (for --sim)", run_simjob},
    {"export", "write files for a Slurm cluster that takes over", cmd_export},
    {"compat", "use the commands of other schedulers", cmd_compat},
    {"completion", "print a completion script for bash, zsh or fish", cmd_completion},
    {"version", "print the version", cmd_version},
    {"help", "print this list", cmd_help},
    {0},
};
