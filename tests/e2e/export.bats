#!/usr/bin/env bats
# The output of `berth export --to slurm`. tests/slurm/export.bats gives it to a real Slurm.

load lib

# A queue in which job 1 runs and nothing else starts.
blocked()
{
    echo 'max_running: 1' >settings.yaml
    timeout "$LIMIT" berth daemon start --sim 2x24G --config settings.yaml
    berth submit --gpus 0 "sleep 10101"
    wait_for_event kind=started job=1
}

states() { berth show --json 2 3 4 | jq -c '[.jobs[].state]'; }

@test "scripts have options, losses as comments, and the command; the losses are summed up" {
    blocked
    berth submit --vram 6500M --time 1h --max-load 0.5 --tag x --name 'a;b' "echo \"it's\""
    berth submit --gpus 2 --vram 5G --after 2 --max-load 0.3 -- ls 'a b'
    run berth export --to slurm -o out
    [ "$status" -eq 0 ]
    [[ $output == *"2 jobs in out; submit-all submits them"* ]]
    [[ $output == *"1 job that started here is not exported"* ]]
    [[ $output == *"2 jobs: max-load: Slurm does not measure GPUs"* ]]
    [[ $output == *"1 job: tag: jobs have no tags"* ]]
    grep -x '#SBATCH "--gres=shard:7"' out/scripts/2.sh
    grep -x '#SBATCH "--time=0-01:00:00"' out/scripts/2.sh
    grep -x '#SBATCH "--job-name=a;b"' out/scripts/2.sh
    grep -x '# max-load: Slurm does not measure GPUs' out/scripts/2.sh
    grep -x '#SBATCH "--gres=gpu:2"' out/scripts/3.sh
    [ "$(tail -n 1 out/scripts/3.sh)" = "exec -- ls 'a b'" ]
    grep -x "submit 3 $(id -un) [0-9]* \"afterok:\${slurm\[2\]-}\"" out/submit-all
    for script in out/scripts/*.sh out/submit-all out/accounts.sh; do bash -n "$script"; done
}

@test "no folder's name adds an option of sbatch to a script" {
    local odd=$PWD/$'a\n#SBATCH --nice=-1000\ntouch x'
    start_daemon 1
    mkdir "$odd"
    (cd "$odd" && berth submit --gpus 0 --hold 'pwd >ran')
    run berth export --to slurm -o out
    [[ $output == *"1 job: chdir: a line break in its name; logs without a folder go to /tmp"* ]]
    is "options" "$(grep -c '^#SBATCH' out/scripts/1.sh)" "$(grep -c '^#SBATCH "--' out/scripts/1.sh)"
    grep -x '#SBATCH "--chdir=/tmp"' out/scripts/1.sh
    SLURM_JOB_ID=1 bash out/scripts/1.sh
    is "where the command ran" "$(cat "$odd/ran")" "$odd"
}

@test "a job that waits for one that runs here is exported held, and says why" {
    blocked
    berth submit --gpus 0 --after 1 true
    berth submit --gpus 0 --after 2 true
    run berth export --to slurm -o out
    [[ $output == *"1 job: after: it waits for a job that runs here; submitted held"* ]]
    grep -x '#SBATCH --hold' out/scripts/2.sh
    run grep hold out/scripts/3.sh
    [ "$status" -eq 1 ]
    grep -x "submit 2 $(id -un) [0-9]* \"\"" out/submit-all
}

@test "--hold holds what waits and remembers it; without it nothing changes" {
    blocked
    berth submit --gpus 0 true
    berth submit --gpus 0 --hold true
    berth submit --gpus 0 --array 0-2 true
    berth export --to slurm -o first
    [ ! -e first/held ]
    [ "$(states)" = '["PENDING","HELD","PENDING"]' ]
    berth export --to slurm --hold -o out
    [ "$(tr '\n' , <out/held)" = 2,4, ]
    run grep -L hold out/scripts/2.sh out/scripts/3.sh out/scripts/4.sh
    [ "$output" = "$(printf 'out/scripts/2.sh\nout/scripts/4.sh')" ]
    [ "$(states)" = '["HELD","HELD","HELD"]' ]
    berth release $(cat out/held)
    [ "$(states)" = '["PENDING","HELD","PENDING"]' ]
}

@test "the history is a table like sacct's" {
    start_daemon 1
    berth submit --gpus 0 --cpus 2 --mem 1G --name 'p|q' --time 90m 'exit 3'
    berth submit --gpus 0 'kill -9 $$'
    berth submit --gpus 0 --array 5-6 true
    berth wait 1 2 3 || true
    berth submit --hold true
    berth cancel 6 || berth cancel --all
    berth export --to slurm -o out
    python3 - out/history.txt <<'END'
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1]), delimiter="|"))
by = {row["JobID"]: row for row in rows}
assert sorted(by)[:2] == ["1", "2"] and {"3_5", "3_6"} <= set(by), by.keys()
one = by["1"]
assert (one["State"], one["ExitCode"], one["JobName"]) == ("FAILED", "3:0", "p q"), one
assert (one["AllocCPUS"], one["ReqMem"], one["Timelimit"]) == ("2", "1024M", "01:30:00"), one
assert by["2"]["ExitCode"] == "0:9", by["2"]
assert by["3_5"]["State"] == "COMPLETED" and by["3_5"]["JobIDRaw"] != "3"
assert any(row["State"] == "CANCELLED" and row["AllocCPUS"] == "0" for row in rows), rows
assert all(None not in row and None not in row.values() for row in rows)
END
}

@test "a limit that Slurm has no counterpart of is named, and locks nobody out there" {
    blocked
    berth submit --gpus 0 true
    printf 'user_max_pending: 100\n' >pending.yaml
    printf 'user_max_pending: 100\nuser_max_running: 20\n' >both.yaml
    berth export --to slurm -o one --config pending.yaml
    grep -q '^# user_max_pending of .*, 100: Slurm has no limit on pending jobs alone' one/accounts.sh
    [ -z "$(grep '^sacctmgr.*GrpSubmitJobs' one/accounts.sh)" ]
    berth export --to slurm -o two --config both.yaml
    grep -q '^sacctmgr.* GrpJobs=20 GrpSubmitJobs=120' two/accounts.sh
}

@test "wrong options are refused, and a folder with something in it" {
    start_daemon 1
    run berth export
    [ "$status" -eq 2 ]
    [[ $output == *"say for which scheduler: --to slurm"* ]]
    run berth export --to pbs
    [ "$status" -eq 2 ]
    [[ $output == *"'pbs' is not supported; use slurm"* ]]
    run berth export --to slurm --cluster 'a b'
    [ "$status" -eq 2 ]
    mkdir full && touch full/x
    run berth export --to slurm -o full
    [ "$status" -eq 2 ]
    [[ $output == *"full is not empty; choose a new folder with -o"* ]]
    run berth export --to slurm -o no/such
    [ "$status" -eq 1 ]
    [[ $output == *"cannot make the folder no/such"* ]]
    berth export --to slurm
    [ -x slurm-export/submit-all ]
}

# Slurm's commands, as far as submit-all uses them: jobs 101, 102, ... `lose` names the part of
# the next submission that is lost: "answer", or "job" and answer.
fake_slurm()
{
    mkdir -p fake
    cat >fake/sbatch <<'END'
#!/bin/bash
cd "$FAKE" || exit
script=${*: -1}
lose=$(cat lose 2>/dev/null)
rm -f lose
if [ "$lose" != job ]; then
    number=$((101 + $(wc -l <jobs)))
    echo "$number|$(sed -n 's/^#SBATCH "--comment=\(.*\)"$/\1/p' "$OUT/$script")" >>jobs
    echo "$* is $number" >>calls
fi
if [ -n "$lose" ]; then echo "sbatch: error: Batch job submission failed: Socket timed out" >&2; exit 1; fi
echo "$number"
END
    printf '#!/bin/sh\ncat %s/fake/jobs\n' "$WORK" >fake/squeue
    printf '#!/bin/sh\necho "MinJobAge               = 300 sec"\n' >fake/scontrol
    chmod +x fake/*
    touch fake/jobs
    export FAKE=$WORK/fake OUT=$WORK/out ENVIRONMENT=here PATH=$WORK/fake:$PATH
}

@test "submit-all goes on where it was interrupted: nothing is lost or submitted twice" {
    blocked
    for after in 1 2 3 4; do berth submit --gpus 0 --comment mine --after-any $after true; done
    berth export --to slurm -o out
    fake_slurm
    grep -xE '#SBATCH "--comment=berth:[0-9a-f]{16}\.2 mine"' out/scripts/2.sh
    echo answer >fake/lose
    run out/submit-all
    [ "$status" -eq 1 ]
    [[ $output == *"job 2 was not submitted, or its number is not known"* ]]
    echo job >fake/lose
    run out/submit-all
    [ "$status" -eq 1 ]
    [[ $output == *"job 3 was not submitted, or"* ]]
    # A job that Slurm does not show yet may still come: its answer was lost, and nothing was
    # refused.
    grep -x '3 ? .*' <(tail -n 1 out/submitted)
    [ -z "$(out/submit-all --accepted)" ]
    SETTLE=0 run out/submit-all
    [ "$output" = "$(printf '3 is 102\n4 is 103\n5 is 104')" ]
    grep -x -- '--dependency=afterany:101 --parsable ./scripts/3.sh is 102' fake/calls
    # slurmctld was killed before it saved the last two, and assigns their numbers again.
    sed -i '3,$d' fake/jobs
    run out/submit-all
    [ "$status" -eq 0 ]
    [[ $output == *"Slurm has forgotten job 4 (its 103)"*"4 is 103"*"5 is 104"* ]]
    [ "$(wc -l <fake/jobs)" -eq 4 ]
    run out/submit-all
    [ "$status" -eq 0 ] && [ -z "$output" ]
}

@test "a job that comes to Slurm after sbatch has given up is not submitted twice" {
    blocked
    berth submit --gpus 0 true
    berth export --to slurm -o out
    fake_slurm
    echo job >fake/lose
    run out/submit-all
    [ "$status" -eq 1 ]
    # It arrives while the next one waits for it.
    printf '#!/bin/sh\necho "101|berth:%s.2" >%s/fake/jobs\n' "$(sed -n 's/^key=//p' out/submit-all)" "$WORK" >fake/sleep
    chmod +x fake/sleep
    SETTLE=100000 run out/submit-all
    [ "$status" -eq 0 ]
    [ ! -e fake/calls ]
}

@test "only those that Slurm has accepted are cancelled in Berth" {
    blocked
    for name in 2 3 4; do berth submit --gpus 0 --hold true; done
    berth export --to slurm -o out
    fake_slurm
    sed -i '2i case $* in *scripts/3.sh) echo "sbatch: error: invalid partition specified" >\&2; exit 1 ;; esac' fake/sbatch
    run out/submit-all
    [ "$status" -eq 1 ]
    [[ $output == *"invalid partition specified"*"job 3 was not submitted"* ]]
    grep -x '3 - .*' out/submitted
    [ "$(out/submit-all --accepted)" = 2 ]
    berth cancel $(out/submit-all --accepted)
    [ "$(berth queue --all --json | jq -r '.jobs[] | select(.id > 1) | .state' | tr '\n' ' ')" = "CANCELLED HELD HELD " ]
    rm out/submitted
    run berth cancel $(out/submit-all --accepted)
    [ "$status" -eq 2 ]
}

@test "submit-all stops where it cannot know what was submitted, and refuses Berth's own sbatch" {
    blocked
    berth submit --gpus 0 true
    berth export --to slurm -o out
    mkdir compat
    ln -s "$(find_program berth-compat)" compat/sbatch
    PATH=$WORK/compat:$PATH run out/submit-all
    [ "$status" -eq 1 ]
    [[ $output == *"compat/sbatch submits to Berth"* ]]
    fake_slurm
    echo '2 ? 1000000000' >out/submitted
    run out/submit-all
    [ "$status" -eq 1 ]
    [[ $output == *"job 2 may have been submitted"*"'2 -' if it is not there"* ]]
    echo '2 -' >>out/submitted
    run out/submit-all
    [ "$output" = '2 is 101' ]
    # A job that ended long ago is unknown as well.
    sed -i 's/ 101 .*/ 101 1000000000/' out/submitted
    : >fake/jobs
    run out/submit-all
    [ "$status" -eq 0 ] && [ -z "$output" ]
    printf '#!/bin/sh\nexit 1\n' >fake/squeue
    run out/submit-all
    [ "$status" -eq 1 ]
    [[ $output == *"slurmctld does not answer"* ]]
}

find_program()
{
    local bin
    bin=$(dirname "$(command -v berth)")
    if [ -x "$bin/$1" ]; then echo "$bin/$1"; else echo "$bin/../libexec/berth/$1"; fi
}

@test "GPUs of different sizes are different types, and nothing is sent where it does not fit" {
    echo 'max_running: 1' >settings.yaml
    timeout "$LIMIT" berth daemon start --sim 1x80G,2x24G --config settings.yaml
    berth submit --gpus 0 "sleep 10101"
    berth submit --vram 40G true
    berth submit --vram 4G true
    berth export --to slurm -o out
    grep -x 'NodeName=.* Gres=gpu:simulated_gpu_80gb:1,gpu:simulated_gpu_24gb:2 State=UNKNOWN' out/slurm.conf
    grep -x 'NodeName=.* Name=gpu Type=simulated_gpu_24gb File=/dev/nvidia2' out/gres.conf
    run grep shard out/gres.conf out/slurm.conf out/scripts/2.sh out/scripts/3.sh
    [ "$status" -eq 1 ]
    grep -x '#SBATCH "--gres=gpu:simulated_gpu_80gb:1"' out/scripts/2.sh
    grep -x '#SBATCH "--gres=gpu:1"' out/scripts/3.sh
}
