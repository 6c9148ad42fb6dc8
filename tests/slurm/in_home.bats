#!/usr/bin/env bats
# A cluster on which Berth exists only in a user's home folder, as unpacked from a release's
# archive.

bats_require_minimum_version 1.5.0
load lib

case_setup()
{
    local built
    if [ -e /usr/bin/berth ]; then skip "Berth is installed on this machine"; fi
    built=$(dirname "$(dirname "$(readlink -f "$(command -v berth)")")")
    HOME=$ROOT/home
    mkdir "$HOME" "$ROOT/empty" "$ROOT/locks"
    cp -r "$built" "$HOME/berth"
    chown -R nobody: "$HOME" "$ROOT/locks"
    # The build is hidden, both here and on the nodes.
    hide="mount -t tmpfs none '$built'"
}

case_teardown() { as_user 'berth daemon stop --cancel' >/dev/null 2>&1 || true; }

# `as_user SCRIPT`: as a user who has only a home folder.
as_user()
{
    timeout "$LIMIT" unshare -m sh -ec "$hide"'
        exec runuser -u nobody -- env -i HOME="$1" PATH="$1/berth/bin:/usr/bin:/bin" SLURM_CONF="$2" BERTH_LOCK_DIR="$3" LC_ALL=C.UTF-8 \
            sh -ec "cd \"\$HOME\"; $4"' as_user "$HOME" "$SLURM_CONF" "$ROOT/locks" "$1"
}

# A job prints its node and the program that supervises it.
job='echo on $(uname -n) by $(readlink /proc/$PPID/exe); exit 3'

@test "jobs run with Berth in the home folder alone, one Slurm job each and packed" {
    start_cluster --nodes 2 --gpus 2 --on-boot "$hide"
    for pack in "" --pack; do
        run -3 as_user "berth submit --on slurm $pack -W -G 1 -- sh -c '$job'"
        run -0 as_user 'berth logs @'
        [[ $output =~ ^"on n"[12]" by $HOME/berth/libexec/berth/berth-shepherd"$ ]]
    done
    run -0 as_user 'printf "%s\n" "[gpus=1] echo 1 >>runs" "[gpus=1] echo 2 >>runs" >jobs; berth run --on slurm jobs'
    [ "$(sort "$HOME/runs" | tr '\n' ' ')" = "1 2 " ]
}
