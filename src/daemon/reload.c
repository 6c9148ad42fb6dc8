/* Reloads the settings while jobs run: see reload.h. Settings that are read on each use take
 * effect at once, as do limits and the order, with the next plan. Settings from which the
 * ledger or the probe were built are logged and wait for the next start, because applying half
 * of a rule would be worse than keeping the old one. Called by berthd.c on SIGHUP. */
#include "daemon/reload.h"

#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "daemon/common/instance.h"
#include "daemon/common/settings_names.h"
#include "daemon/rpc/daemon_log.h"
#include "daemon/rules.h"
#include "daemon/service/daemon_options.h"
#include "spec/config.h"

/* Settings that are read on each use. */
static const char *const live[] = {
    "idle_exit_s",
    "mig_wait_ms",
    "oom_patterns",
    "oom_retries",
    "on_exceed",
    "on_exceed_gpus",
    "keep_days",
    "keep_jobs",
    "keep_mib",
    "keep_events",
    "user_priority_max",
    "log_level",
    "log_format",
    "log_max_mib",
    "log_keep",
    "on_start",
    "on_end",
    "on_fail",
    "webhook",
    "hook_limit_s",
    "sendmail",
    "grace_ms",
    "private",
    "time_max_s",
    "time_default_s",
    "env_setup",
    "conda",
    "job_max_processes",
    "hook_user",
    "pam_service",
    "locked_accounts",
    "job_log_max_mib",
    "log_reserve_mib",
    "request_max_mib",
    "answer_max_mib",
    "job_max_text_kib",
    "user_max_connections",
    "user_max_buffer_mib",
    "grace_max_ms",
    "no_new_privs",
    "drop_capabilities",
    "container_runtime",
    "slurm_commands",
    "slurm_folder", /* once no attempt uses the old folder */
    "slurm_partition",
    "slurm_account",
    "slurm_qos",
    "slurm_options",
    "slurm_shard_mib",
    "slurm_max_jobs",
    "slurm_array_max",
    "slurm_pack_mib",
    "slurm_allocations",
    "slurm_allocation_gpus",
    "slurm_allocation_cpus",
    "slurm_allocation_mem_mib",
    "slurm_allocation_s",
    "slurm_allocation_idle_s",
    "slurm_gpu_mib",
};

/* Settings from which rules_take makes the planner's rules. */
static const char *const rules[] = {
    "order",         "patience_s",        "aging_s",
    "fair_share",    "max_running",       "max_gpus",
    "max_vram_mib",  "pending_max",       "user_max_running",
    "user_max_gpus", "user_max_vram_mib", "user_max_pending",
    "users",         "tolerance",         "vram_cap",
    "reservations",  "vram_wait_ms",      "reservation_horizon_s",
    "cpu_bind",
};

static bool
is_among(const char *key, const char *const *keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(key, keys[i]) == 0)
            return true;
    return false;
}

static bool
is_rule(const char *key)
{
    return is_among(key, rules, sizeof rules / sizeof rules[0]);
}

static bool
is_live(const char *key)
{
    return is_rule(key) || is_among(key, live, sizeof live / sizeof live[0]);
}

/* arg: bool, set if a rule has changed. */
static void
say_change(void *arg, const char *key, bool taken)
{
    if (is_rule(key))
        *(bool *)arg = true;
    if (taken)
        log_info("event=setting key=%s changed", key);
    else
        log_warn("event=setting key=%s takes effect at the next start of the daemon", key);
}

void
reload_settings(struct rules *r, struct settings_names *names, const struct options *options)
{
    struct instance *inst = r->inst;
    struct config fresh;
    struct err e = {0};
    bool new_rules = false;
    if (log_reopen(&e) < 0)
        log_error("event=log-not-reopened %s", e.text);
    if (daemon_options_read_config(options, &inst->places, &fresh, &e) < 0) {
        log_error("event=not-reloaded the settings stay as they are: %s", e.text);
        config_free(&fresh);
        return;
    }
    config_take(&inst->config, &fresh, is_live, say_change, &new_rules);
    config_free(&fresh);
    settings_names_ask(names);
    if (new_rules)
        rules_take(r);
    logging_apply(&inst->config);
    log_info("event=reloaded");
}
