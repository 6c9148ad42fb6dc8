#!/usr/bin/env bats
# sbatch's answers, or their absence: each job is sent until Slurm has it, and refused once it
# can never be accepted.

bats_require_minimum_version 1.5.0
load lib
load berth

# `fake_sbatch SCRIPT`: the daemon's sbatch from now on; in it, $real is Slurm's.
fake_sbatch()
{
    local folder=$PWD/src/slurm/bin # as on a site with its own build
    mkdir -p "$folder"
    ln -s "$(command -v squeue)" "$(command -v scancel)" "$folder/"
    printf '#!/bin/sh\nreal=%s\n%s\n' "$(command -v sbatch)" "$1" >"$folder/sbatch"
    chmod 755 "$folder/sbatch"
    echo "slurm_commands: $folder" >config
    berth daemon start --config config
}

@test "a job that Slurm got later than its answer is seen, though sbatch fails from then on" {
    start_cluster --nodes 1
    # The first call gives no answer, and its submission happens once a file `late` exists.
    fake_sbatch "cd '$PWD'"'
echo call >>calls
[ $(wc -l <calls) = 1 ] || { echo "sbatch: error: Unable to contact slurm controller" >&2; exit 1; }
cat >script
(until [ -e late ]; do sleep 0.1; done; exec "$real" "$@" <script) >/dev/null 2>&1 &
echo "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation" >&2
exit 1'
    submit -G 0 -- sh -c 'echo x >>runs; exit 5'
    second() { [ "$(wc -l <calls)" -ge 2 ]; }
    within second
    touch late
    run -5 wait_for 1
    [ "$(wc -l <runs)" = 1 ]
}

@test "a job that runs is not refused, though Slurm refuses it when it is sent again" {
    start_cluster --nodes 1
    # The first call gives no answer and sends nothing yet. The second makes that submission
    # happen, and is refused once it runs.
    fake_sbatch "cd '$PWD'; mark=$BERTH_DIR/state/jobs/1.1/started"'
echo call >>calls
if [ $(wc -l <calls) = 1 ]; then
    cat >script
    (until [ -e late ]; do sleep 0.1; done; exec "$real" "$@" <script) >/dev/null 2>&1 &
    echo "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation" >&2
    exit 1
fi
touch late
until [ -e "$mark" ]; do sleep 0.1; done
echo "sbatch: error: Batch job submission failed: Invalid partition name specified" >&2
exit 1'
    submit -G 0 -- sh -c 'until [ -e go ]; do sleep 0.1; done; exit 5'
    refused() { grep -q "event=not-sent .*Invalid partition" "$BERTH_DIR/daemon.log"; }
    within refused
    within is_state 1 RUNNING
    touch go
    run -5 wait_for 1
}

@test "a limit on submitted jobs lets as many go as it allows, and is in no other job's way" {
    start_cluster --nodes 1 --gpus 4
    # Slurm's errors for a user who may have three jobs, and never a job of two GPUs.
    fake_sbatch "cd '$PWD'"'
n=1
for word; do
    case $word in
    --array=*) n=$(echo "${word#*=}" | tr , "\n" | awk -F- "{ n += NF > 1 ? \$2 - \$1 + 1 : 1 } END { print n }") ;;
    --gres=gpu:2) n=9 ;;
    esac
done
if [ $(($(squeue -h -r | wc -l) + n)) -gt 3 ]; then
    echo "$n" >>refused
    echo "sbatch: error: AssocMaxSubmitJobLimit" >&2
    echo "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit)" >&2
    exit 1
fi
exec "$real" "$@"'
    submit -G 2 -- touch never
    says_so() { berth explain 1 | grep -q "Slurm: sbatch: .*AssocMaxSubmitJobLimit"; }
    within says_so
    for i in 1 2 3 4 5 6 7; do echo "[gpus=0] echo $i >>runs"; done >jobs
    run -0 timeout $LIMIT berth run --on slurm jobs
    [ "$(sort runs | tr '\n' ' ')" = "1 2 3 4 5 6 7 " ]
    grep -q 7 refused
    # Not while it is being sent once more.
    within says_so
    [ ! -e never ]
}

# `send_in_parts COMMANDS`: four jobs, and an sbatch that reports too many, and then does this
# for two of them.
send_in_parts()
{
    start_cluster --nodes 1
    fake_sbatch "cd '$PWD'"'
echo call >>calls
case $(wc -l <calls) in
1)
    echo "sbatch: error: AssocMaxSubmitJobLimit" >&2
    echo "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy" >&2
    exit 1
    ;;
2)
    '"$1"'
    exit 1
    ;;
esac
exec "$real" "$@"'
    for i in 1 2 3 4; do echo "[gpus=0] echo $i >>runs"; done >jobs
}

@test "the rest of an array is sent, though whether Slurm took its first part is not known" {
    send_in_parts '"$real" "$@" >/dev/null
    echo "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation" >&2'
    run -0 timeout $LIMIT berth run --on slurm jobs
    [ "$(sort runs | tr '\n' ' ')" = "1 2 3 4 " ]
}

@test "the rest of an array is sent, though Slurm refuses its first part" {
    send_in_parts 'echo "sbatch: error: Batch job submission failed: Invalid partition name specified" >&2'
    run -1 timeout $LIMIT berth run --on slurm jobs
    [ "$(sort runs | tr '\n' ' ')" = "3 4 " ]
}

@test "a daemon leaves at once though a site's sbatch is a script whose child does not end" {
    start_cluster --nodes 1
    fake_sbatch "cd '$PWD'"'
sleep 1000 &
echo $! >child.new
mv child.new child
wait'
    submit -G 0 -- true
    within test -e child
    berth daemon stop
    timeout "$LIMIT" tail --pid="$(cat child)" -f /dev/null
}

@test "a job that squeue never lists is not sent for ever" {
    start_cluster --nodes 1
    echo "slurm_options: --comment=mine --hold" >config
    berth daemon start --config config
    run -1 timeout $LIMIT berth submit --on slurm -W -G 0 -- true
    is_state 1 INFEASIBLE
    [[ $(field 1 .text) == *"squeue does not list it once it was sent"* ]]
    [ "$(squeue -h | wc -l)" = 3 ]
}

@test "jobs with many names are not sent one by one" {
    start_cluster --nodes 1
    for i in $(seq 20); do echo "[gpus=0 name=n$i] echo $i >>runs"; done >jobs
    run -0 timeout $LIMIT berth run --on slurm jobs
    [ "$(sort -n runs | tr '\n' ' ')" = "$(seq -s ' ' 20) " ]
    [ "$(grep -c event=sent "$BERTH_DIR/daemon.log")" = 1 ]
    for i in 1 2; do echo "[gpus=0 name=m$i] true"; done >few
    run -0 timeout $LIMIT berth run --on slurm few
    [ "$(squeue -h -t all -o %j | sort -u | tr '\n' ' ')" = "berth m1 m2 " ]
}

@test "Berth's own sbatch is never taken for Slurm's, and doctor says whether slurmctld answers" {
    start_cluster --nodes 1
    berth compat install "$ROOT/bin" slurm
    PATH=$ROOT/bin:$PATH timeout $LIMIT berth submit --on slurm -W -G 0 -- true
    [ "$(field 1 '.attempts[0].slurm_node')" = n1 ]
    berth doctor >doctor || true
    grep 'slurm  *slurmctld answers' doctor
    cluster kill-ctld
    berth doctor >doctor || true
    grep 'warn  *slurm .*finds no slurmctld' doctor
    submit -G 0 -- true
    says_so() { berth explain 2 | grep -q "Slurm: sbatch: "; }
    within says_so
    cluster restart-ctld
    # It may have forgotten that job 1 has ended, and then takes the node out of service.
    is_over() { scontrol update nodename=n1 state=resume || true; is_state 2 COMPLETED; }
    within is_over
}
