# What the tests of the drop-in schedulers share: `load lib`, then `load scheduler`. Jobs are
# python scripts; two simulated cards of 24,000 MiB; no daemon but the schedulers' own, which is
# gone when they are.

scheduler_setup()
{
    berth compat install "$ROOT/bin" >/dev/null
    PATH=$ROOT/bin:$PATH
    export BERTH_DIR= BERTH_SIM=2x24000M GPU_SCHEDULER_LOG_DIR=$ROOT/joblogs
    export HOME=$ROOT
    unset CONDA_PREFIX CONDA_EXE
    echo '{"default_requirement": 1.0, "models": {"half": 0.5, "two": 2.0, "onehalf": 1.5}}' >llm_config.json
    # Writes what it was given and its mask to `ran`, waits for a word in the FIFO after --gate, ends as
    # --fail says.
    cat >job.py <<'PY'
import os, sys
args = sys.argv[1:]
with open("ran", "a") as f:
    print(" ".join(args), "mask", os.environ["CUDA_VISIBLE_DEVICES"], file=f)
print("to stdout")
print("to stderr", file=sys.stderr)
if "--gate" in args:
    open(args[args.index("--gate") + 1]).read()
if "--fail" in args:
    sys.exit(int(args[args.index("--fail") + 1]))
PY
}

# Until the state file says so: allocations and paused cards, as in `wait_for_state '[1.0, 0.0] []'`.
wait_for_state()
{
    timeout "$LIMIT" python3 - "$1" <<'PYTHON' || fail_with "the state never was '$1'; it is: $(cat gpu_scheduler_state.json)"
import ctypes, json, os, sys
libc = ctypes.CDLL(None, use_errno=True)
fd = libc.inotify_init()
libc.inotify_add_watch(fd, b".", 0x80 | 0x100 | 0x8)  # moved to, created, closed after writing
while True:
    try:
        state = json.load(open("gpu_scheduler_state.json"))
        if f"{state['gpu_status']} {state['paused_gpus']}" == sys.argv[1]:
            sys.exit(0)
    except (OSError, ValueError):
        pass
    os.read(fd, 65536)
PYTHON
}

# Ends a scheduler as a person would, by Ctrl-C: `stop_scheduler run`.
stop_scheduler()
{
    local name=$1 pid_name=pid_of_$1
    kill -INT "${!pid_name}"
    finish "$name"
    is 'status of a scheduler that was ended' "$status" 0
}

# Lets one who waits at a FIFO go on.
pass()
{
    timeout "$LIMIT" sh -c ': >"$1"' sh "$1" || fail_with "nobody waits at $1"
}
