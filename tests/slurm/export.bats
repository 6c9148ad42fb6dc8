#!/usr/bin/env bats
# The output of `berth export --to slurm`, given to a real Slurm.

load lib

case_setup()
{
    export BERTH_DIR=$ROOT/berth BERTH_LOCK_DIR=$ROOT/locks
    mkdir "$BERTH_LOCK_DIR"
    command -v berth >/dev/null || { echo "there is no berth in PATH"; return 1; }
}

case_teardown()
{
    berth daemon stop --cancel >/dev/null 2>&1 || true
    if [ -n "${ALICE:-}" ]; then
        flock -o /etc userdel -f "$ALICE"
        flock -o /etc userdel -f "$BOB"
    fi
}

# A queue in which nothing starts, because job 1 runs and no other may run beside it.
start_berth()
{
    echo 'max_running: 1' >settings.yaml
    berth daemon start --sim 2x24G --config settings.yaml >/dev/null 3>&-
    berth submit --gpus 0 --name blocker 'sleep 100000'
}

slurm_id() { awk -v id="$1" '$1 == id { n = $2 } END { print n }' out/submitted; }

ended() { [ -z "$(squeue -h)" ]; }

# Accounts for this test, with homes alice and bob here.
load_users()
{
    ALICE=bsa$RANDOM BOB=bsb$RANDOM
    flock -o /etc useradd -m -d "$ROOT/alice" -s /bin/bash "$ALICE"
    flock -o /etc useradd -m -d "$ROOT/bob" -s /bin/bash "$BOB"
    # Users may not be able to reach the checkout.
    bin=$(dirname "$(command -v berth)")
    mkdir root
    cp -rL "$bin" "$bin/../libexec" root/
    chmod -R a+rX root
    PATH=$ROOT/root/bin:$PATH
}

as()
{
    runuser -u "$1" -- env HOME="$ROOT/$([ "$1" = "$ALICE" ] && echo alice || echo bob)" MINE="of $1" \
        bash -c 'cd && umask 027 && "$@"' bash "${@:2}"
}

@test "the exported slurm.conf starts a slurmctld and a slurmd, which run the exported jobs" {
    start_cluster --nodes 1
    cluster kill-ctld
    start_berth
    berth submit --gpus 2 --cpus 1 --time 5m --name 'two; "x"' 'echo $CUDA_VISIBLE_DEVICES-$SLURM_GPUS_ON_NODE >two' 
    # Host names are the machine's: here the controller's.
    unshare -u bash -c 'hostname ctl.example.org; exec berth export --to slurm -o out --cluster lab1'
    grep -x 'NodeName=ctl .* Gres=gpu:simulated_gpu:2,shard:48 State=UNKNOWN' out/slurm.conf
    mkdir conf state
    # Parts that depend on where it runs: addresses, files, root, and no cgroups in this
    # cluster.
    net=$(cat c/run/net)
    sed -e "s/^SlurmctldHost=ctl$/SlurmctldHost=ctl($net.253)/" -e "s/^NodeName=ctl/& NodeAddr=$net.253/" \
        -e 's/^SlurmUser=.*/SlurmUser=root/' -e 's/^ProctrackType=.*/ProctrackType=proctrack\/linuxproc/' \
        -e 's/^TaskPlugin=.*/TaskPlugin=task\/none/' -e "s|=/var/lib/slurm|=$ROOT/state|" -e "s|=/run/|=$ROOT/state/|" \
        -e "s|=/var/log/slurm|=$ROOT/state|" -e "s|^AuthType=.*|&\nAuthInfo=socket=$ROOT/c/munge/socket|" \
        out/slurm.conf >conf/slurm.conf
    cp out/gres.conf conf
    sed -i "s|File=/dev/|File=$ROOT/state/|" conf/gres.conf
    mkdir -p state/slurmctld state/slurmd
    mknod state/nvidia0 c 1 3
    mknod state/nvidia1 c 1 3
    cluster on ctl setsid slurmctld -D -f "$ROOT/conf/slurm.conf" >ctld.out 2>&1 </dev/null 3>&- &
    cluster on ctl setsid slurmd -D -f "$ROOT/conf/slurm.conf" >slurmd.out 2>&1 </dev/null 3>&- &
    export SLURM_CONF=$ROOT/conf/slurm.conf
    is_idle() { [ "$(sinfo -h -o '%P %D %T' 2>/dev/null)" = 'main* 1 idle' ]; }
    within is_idle || { cat ctld.out slurmd.out; false; }
    scontrol show config | grep -E '^ClusterName *= lab1'
    scontrol show config | grep -E '^KillWait *= 10 '
    out/submit-all --test-only
    [ ! -e out/submitted ]
    out/submit-all
    within ended
    scontrol show job "$(slurm_id 2)" | grep -E 'JobState=COMPLETED'
    [ "$(sed 's/.*-//' two)" = 2 ]
    run grep -iE 'fatal|duplicat' ctld.out slurmd.out
    [ "$status" -eq 1 ]
}

@test "submit-all runs a queue with its dependencies, arrays, priorities and held jobs, once each" {
    start_cluster --nodes 2
    start_berth
    berth submit --name first 'test ! -e second && echo 1 >>ran'
    berth submit --after 2 --name array --array 1,3-4%1 'test -e ran && echo $SLURM_ARRAY_TASK_ID-$BERTH_ARRAY_TASK_ID >>ran'
    berth submit --after 3_3 --gpus 0 'grep -x 3-3 ran && echo third >>ran'
    berth submit --after 3 --gpus 0 'exit 9'
    berth submit --after-failed 5 --gpus 0 'echo fifth >>ran'
    berth submit --after 5 --gpus 0 'echo never >>ran'
    berth submit --hold --gpus 0 'echo held >>ran'
    berth submit --begin now+5h --gpus 0 'echo later >>ran'
    berth submit --priority -5 --gpus 0 'echo low >>ran'
    berth export --to slurm --hold -o out
    # The cluster's GPUs have no type.
    sed -i 's/gpu:simulated_gpu:/gpu:/' out/scripts/*.sh
    [ "$(berth queue -H -o state 8>&- | sort | uniq -c | tr -s ' ' | tr '\n' ,)" = ' 9 HELD, 1 RUNNING,' ]
    [ "$(sort -n out/held | tr '\n' ,)" = 2,3,4,5,6,7,9,10, ]
    out/submit-all --test-only
    out/submit-all
    run out/submit-all
    [ "$status" -eq 0 ] && [ -z "$output" ]
    [ "$(wc -l <out/submitted)" -eq 18 ]
    only_two_left() { [ "$(squeue -h -o '%r' | sort | tr '\n' ,)" = 'BeginTime,JobHeldUser,' ]; }
    within only_two_left
    [ "$(sort ran | tr '\n' ,)" = "1,1-1,3-3,4-4,fifth,low,third," ]
    scontrol show job "$(slurm_id 5)" | grep ExitCode=9:0
    scontrol show job "$(slurm_id 7)" | grep -E 'JobState=CANCELLED'
    scontrol show job "$(slurm_id 10)" | grep -E 'Nice=5 '
    scontrol release "$(slurm_id 8)"
    was_released() { grep -x held ran; }
    within was_released
}

@test "no text of a job is taken apart: newlines, quotes, non-ASCII, carriage returns, a megabyte" {
    start_cluster --nodes 1
    start_berth
    odd=$'a \'b\' "c" \\d $HOME `e` ; # é ü 日本\nnext\tline\r\n#SBATCH --hold\n'
    berth submit --gpus 0 --name 'n; "q" \ $x é' --comment $'#c \'x\'' --log "$ROOT/o ü \"%x\"" --env "ODD=$odd" -- \
        printf '%s' "$odd"
    berth submit --gpus 0 --env "ODD=$odd" 'printf %s "$ODD" >from-env'
    export INHERITED=$odd
    berth submit --gpus 0 'printf %s "$INHERITED" >from-environment; exit 4'
    printf "[gpus=0] : '%01000000d'; printf it >big\n" 0 >big.txt
    berth run -d big.txt
    berth submit --gpus 0 --env-setup $'say() { printf %s "$1"; }\nA=é' 'say "$A" >from-set-up'
    berth export --to slurm -o out
    out/submit-all --test-only
    unset INHERITED
    out/submit-all
    within ended
    printf '%s' "$odd" | cmp - "$ROOT/o ü \"n; \"q\" \\ \$x é\""
    printf '%s' "$odd" | cmp - from-env
    printf '%s' "$odd" | cmp - from-environment
    [ "$(cat from-set-up)" = é ]
    [ "$(cat big)" = it ]
    scontrol show job "$(slurm_id 2)" | grep -E "Comment=berth:[0-9a-f]{16}\.2 #c 'x'"
    scontrol show job "$(slurm_id 4)" | grep ExitCode=4:0
}

@test "root exports the jobs of all users, which run as them; others export their own" {
    start_cluster --nodes 1 --accounting --conf AccountingStorageEnforce=associations,limits
    load_users
    printf 'max_running: 1\nmax_gpus: 7\nuser_max_gpus: 3\nusers:\n  %s: {max_gpus: 1, weight: 2}\n' "$BOB" >settings.yaml
    mkfifo ready
    mkdir "$BERTH_DIR"
    berthd --system --dir "$BERTH_DIR" --sim 2x24G --config settings.yaml --ready-fd 9 9>ready 3>&- &
    read -r _ <ready
    berth submit --gpus 0 'sleep 100000'
    as "$ALICE" berth submit -- sh -c 'id -un >who; id -gn >>who; umask >>who; echo "$MINE" >>who'
    as "$BOB" berth submit --gpus 0 -- sh -c 'id -un >who; id -gn >>who; umask >>who; echo "$MINE" >>who'
    as "$BOB" berth export --to slurm -o mine
    [ "$(ls bob/mine/scripts)" = 3.sh ]
    run as "$BOB" berth export --to slurm --all -o both
    [ "$status" -ne 0 ]
    [[ $output == *"only root and members of admin_group may export other users' jobs"* ]]
    [ ! -e bob/both ]
    berth export --to slurm --config settings.yaml -o out
    [ "$(stat -c %a out out/scripts/2.sh out/environments/* | sort -u | tr '\n' ,)" = 600,700, ]
    sed -i 's/gpu:simulated_gpu:/gpu:/' out/scripts/*.sh
    # Without the accounts that accounts.sh creates nobody may submit.
    run out/submit-all
    [ "$status" -eq 1 ]
    [[ $output == *"job 2 was not submitted"* ]]
    bash out/accounts.sh >/dev/null
    sacctmgr -n -P show assoc account=berth format=user,grptres,fairshare | sort >limits
    diff limits - <<<"$(printf '%s\n' '|gres/gpu=7|1' "$ALICE|gres/gpu=3|100" "$BOB|gres/gpu=1|200" | sort)"
    out/submit-all
    within ended
    [ "$(tr '\n' , <alice/who)" = "$ALICE,$(id -gn "$ALICE"),0027,of $ALICE," ]
    [ "$(tr '\n' , <bob/who)" = "$BOB,$(id -gn "$BOB"),0027,of $BOB," ]
}

@test "a slurmctld that is killed between submissions costs no job and doubles none" {
    start_cluster --nodes 1
    start_berth
    # Held, so that none that is forgotten has run.
    for i in 1 2 3 4 5 6; do berth submit --gpus 0 --hold --name "job$i" "echo job$i >>ran"; done
    berth export --to slurm -o out
    # The fourth submission finds no slurmctld.
    mkdir shim
    printf '#!/bin/bash\ncase $* in *scripts/5.sh*) %s %s kill-ctld ;; esac\nexec %s "$@"\n' \
        "$BATS_TEST_DIRNAME/cluster" "$ROOT/c" "$(command -v sbatch)" >shim/sbatch
    chmod +x shim/sbatch
    PATH=$ROOT/shim:$PATH run timeout $LIMIT out/submit-all
    [ "$status" -eq 1 ]
    [[ $output == *"Unable to contact slurm controller"* ]]
    [[ $output == *"job 5 was not submitted, or"* ]]
    cluster restart-ctld
    out/submit-all
    squeue -h -o %i | xargs -n 1 scontrol release
    within ended
    [ "$(sort ran | tr '\n' ,)" = job1,job2,job3,job4,job5,job6, ]
}
