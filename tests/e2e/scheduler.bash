# Shared by the tests of the drop-in schedulers: `load lib`, then `load scheduler`. Jobs are
# Python scripts; there are two simulated GPUs of 24,000 MiB, and no daemon but the schedulers'
# own, which exits with them.

scheduler_setup()
{
    berth compat install "$ROOT/bin" >/dev/null
    PATH=$ROOT/bin:$PATH
    export BERTH_DIR= BERTH_SIM=2x24000M GPU_SCHEDULER_LOG_DIR=$ROOT/joblogs
    export HOME=$ROOT
    unset CONDA_PREFIX CONDA_EXE
    echo '{"default_requirement": 1.0, "models": {"half": 0.5, "two": 2.0, "onehalf": 1.5}}' >llm_config.json
    # Write the arguments and the GPU mask to `ran`, wait for a word in the FIFO after --gate,
    # end as --fail says.
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

# Wait until the state file has these allocations and paused GPUs: `wait_for_state '[1.0, 0.0]
# []'`.
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

# End a scheduler as a user would, by Ctrl-C: `stop_scheduler run`.
stop_scheduler()
{
    local name=$1 pid_name=pid_of_$1
    kill -INT "${!pid_name}"
    finish "$name"
    is 'status of a scheduler that was ended' "$status" 0
}

# Release a process that waits at a FIFO.
pass()
{
    timeout "$LIMIT" sh -c ': >"$1"' sh "$1" || fail_with "nobody waits at $1"
}
