#!/usr/bin/env bats
# The variables that --export and its environment variables pass to srun's jobs and to steps.
# tests/slurm/dropins.bats checks that Slurm does the same.

load lib

case_setup()
{
    berth compat install "$ROOT/bin" slurm >/dev/null
    PATH=$ROOT/bin:$PATH
    unset SLURM_CONF SLURM_EXPORT_ENV SRUN_EXPORT_ENV SBATCH_EXPORT C
    export A=1 B=2
    SHOW='echo "${A-none} ${B-none} ${C-none} ${SLURM_EXPORT_ENV-none}"'
    start_daemon 2
}

show() { srun "$@" /bin/sh -c "$SHOW"; }

@test "srun lets through what --export says, and its own values win" {
    is 'nothing said' "$(show)" '1 2 none none'
    is 'all' "$(show --export=all)" '1 2 none none'
    is 'none' "$(show --export=NONE)" 'none none none none'
    is 'none and one' "$(show --export=NONE,A)" 'none none none none'
    is 'one' "$(show --export=A)" '1 none none none'
    is 'a value' "$(show --export=A,C=3)" '1 none 3 none'
    is 'all and a value' "$(show --export=ALL,C=3)" '1 2 3 none'
    is 'a value that there is' "$(show --export=ALL,A=9)" '1 2 none none'
    is 'that is not let through' "$(show --export=A=9)" '9 none none none'
    is 'quotes' "$(show --export="C='a,b',A")" "1 none 'a,b' none"
    is 'two tasks' "$(show -n 2 --export=A,C=3 | uniq -c | sed 's/^ *//')" '2 1 none 3 none'
}

@test "SRUN_EXPORT_ENV counts more than SLURM_EXPORT_ENV, and --export more than both" {
    is 'one' "$(SLURM_EXPORT_ENV=A show)" '1 none none none'
    is 'both' "$(SLURM_EXPORT_ENV=A SRUN_EXPORT_ENV=B show)" 'none 2 none none'
    is 'both, two tasks' "$(SLURM_EXPORT_ENV=A SRUN_EXPORT_ENV=B show -n 2 | uniq)" 'none 2 none none'
    is 'all three' "$(SLURM_EXPORT_ENV=A SRUN_EXPORT_ENV=NONE show --export=ALL)" '1 2 none none'
    is 'all three, two tasks' "$(SLURM_EXPORT_ENV=A SRUN_EXPORT_ENV=NONE show -n 2 --export=ALL | uniq)" '1 2 none none'
}

@test "steps take over what sbatch --export said, unless they say something else" {
    cat >steps.sh <<'EOF'
#!/bin/sh
export C=3
srun /bin/sh -c "$1"
srun --export=ALL /bin/sh -c "$1"
srun --export=C /bin/sh -c "$1"
srun --export=ALL,C=4,D=5 /bin/sh -c "$1; echo \$D"
srun --export=NONE,C /bin/sh -c "$1"
srun --export="A='a,b',C" /bin/sh -c "$1"
SLURM_EXPORT_ENV=C srun /bin/sh -c "$1"
SLURM_EXPORT_ENV=C SRUN_EXPORT_ENV=A srun /bin/sh -c "$1"
EOF
    sbatch -W -o all.out steps.sh "$SHOW" >/dev/null
    is 'all' "$(cat all.out)" "1 2 3 none
1 2 3 none
none none 3 none
1 2 3 none
5
none none none none
'a,b' none 3 none
none none 3 C
1 none none C"
    sbatch -W -o some.out --export=A steps.sh "$SHOW" >/dev/null
    is 'some' "$(head -n 2 some.out)" "1 none none A
1 none 3 A"
    SBATCH_EXPORT=NONE sbatch -W -o none.out --wrap "$SHOW; export SLURM_EXPORT_ENV=ALL; C=5 srun /bin/sh -c '$SHOW'" >/dev/null
    is 'none' "$(cat none.out)" "none none none NONE
none none 5 ALL"
    SBATCH_EXPORT=NONE sbatch -W -o named.out --export=B --wrap "$SHOW" >/dev/null
    is 'over the variable' "$(cat named.out)" 'none 2 none B'
}

@test "in a job srun runs programs by names that its shell has too, and says its version" {
    sbatch -W -o out --wrap 'srun -n1 --export=NONE echo hi; srun printf "%s\n" there; srun --export=NONE start; srun --version; srun --help | head -n 1'
    is "what it says" "$(grep -v execve out)" "hi
there
slurm-wlm 22.05.8 (berth $(berth version | awk '{ print $2 }'))
Usage: srun [OPTIONS...] program [args...]"
    has "a name that is no program" "$(cat out)" 'execve\(\): start: No such file or directory'
}
