#!/usr/bin/env bats
# The documents match the programs: every path and name in ARCHITECTURE.md's "Where is X"
# table, every command in the README and the tour, every verb and option in berth(1), every
# setting in berth-config(5). Needs the programs in PATH, and the checkout in $BERTH_SOURCE.

setup()
{
    cd "${BERTH_SOURCE:-$BATS_TEST_DIRNAME/../..}" || return 1
    export LC_ALL=C.UTF-8
}

# Fail if there are none: an empty list would pass every test below.
verbs()
{
    berth help | grep -qE '^  run ' || return 1
    berth help | sed -nE 's/^  ([a-z]+) .*/\1/p'
}

# Options that a verb's help names, without the dashes.
options_of()
{
    berth "$1" --help | grep -oE '(^|[ ,|[])--[a-z][a-z-]+' | sed -E 's/.*--//' | sort -u
}

rendered()
{
    mandoc -T utf8 -O width=200 "$1" | col -bx
}

# The table under the heading "Where is X", without its head.
where_table()
{
    awk '/^#+ .*Where is/{on=1; next} /^#/{on=0} on && /^\|/' ARCHITECTURE.md | sed '1,2d'
}

complain()
{
    printf '%s\n' "$@" >&2
    bad=1
}

@test "the programs say which verbs there are" {
    [ "$(verbs | wc -l)" -ge 15 ]
    verbs | grep -qx run
}

@test "every path and name in ARCHITECTURE.md's table exists" {
    local bad=0 token n=0
    while read -r token; do
        n=$((n + 1))
        case $token in
        */* | *.c | *.h | *.md | *.build)
            [ -e "${token%%:*}" ] || [ -e "src/${token%%:*}" ] || complain "no file $token"
            ;;
        *)
            token=${token%%(*}
            git grep -qwF -e "$token" -- src || complain "no name $token in src"
            ;;
        esac
    done < <(where_table | grep -oE '`[^`]+`' | tr -d '`')
    [ "$n" -ge 10 ] || complain "only $n names in the table 'Where is X'"
    [ "$bad" = 0 ]
}

@test "every relative link and file named in the documents exists" {
    local bad=0 doc target
    for doc in README.md ARCHITECTURE.md CONTRIBUTING.md docs/*.md; do
        while read -r target; do
            [ -e "$(dirname "$doc")/${target%%#*}" ] || complain "$doc points to $target, which is not there"
        done < <(grep -oE '\]\([^)#:]+(#[^)]*)?\)' "$doc" | sed -E 's/^\]\((.*)\)$/\1/')
    done
    [ "$bad" = 0 ]
}

# FILE:COMMAND for each command in the blocks of output.
commands_shown()
{
    awk 'FNR==1{on=0} /^```/{on=!on; next}
        on && /^(\$ )?berth [a-z]/{sub(/^\$ /, ""); print FILENAME ":" $0}' README.md docs/tour.md
}

@test "every command in the README and the tour is a verb, and its options are that verb's" {
    local bad=0 verb line option n=0
    commands_shown | grep -q '^README.md:'
    commands_shown | grep -q '^docs/tour.md:'
    while read -r line; do
        n=$((n + 1))
        verb=$(awk '{print $2}' <<<"$line")
        verbs | grep -qx -- "$verb" || {
            complain "no verb in: $line"
            continue
        }
        for option in $(sed 's/ -- .*//; s/#.*//' <<<"$line" | grep -oE ' --[a-z-]+' | tr -d ' '); do
            options_of "$verb" | grep -qx -- "${option#--}" ||
                berth help | grep -q -- "$option" || complain "no $option in: $line"
        done
    done < <(commands_shown)
    [ "$n" -ge 10 ] || complain "only $n commands in the README and the tour"
    [ "$bad" = 0 ]
}

@test "the tour shows what installing a drop-in command prints" {
    local shown
    shown=$(awk '/^\$ berth compat install/{on=1; next} /^\$ /{on=0} on' docs/tour.md)
    [ "$(berth compat install "$BATS_TEST_TMPDIR/bin" gpusched)" = "$BATS_TEST_TMPDIR/bin/gpusched" ]
    [ "$shown" = /home/ada/.local/bin/gpusched ]
}

@test "berth(1) lists every verb of berth help" {
    local bad=0 verb
    verbs >/dev/null
    for verb in $(verbs); do
        grep -qE "^\.It Cm $verb\b" man/berth.1 || complain "berth(1) says nothing of '$verb'"
    done
    [ "$bad" = 0 ]
}

@test "berth(1) lists no verb that is not there" {
    local bad=0 verb
    for verb in $(sed -nE 's/^\.It Cm ([a-z]+).*/\1/p' man/berth.1 | sort -u); do
        verbs | grep -qx "$verb" || complain "berth(1) has '$verb', berth has not"
    done
    [ "$bad" = 0 ]
}

@test "berth(1) lists every option of every verb" {
    local bad=0 verb option page
    verbs >/dev/null
    page=$(rendered man/berth.1)
    for verb in $(verbs); do
        if [ "$verb" = help ] || [ "$verb" = version ]; then continue; fi
        for option in $(options_of "$verb"); do
            grep -qE -- "--$option\b" <<<"$page" || complain "berth(1) has no --$option of '$verb'"
        done
    done
    [ "$bad" = 0 ]
}

@test "berth-config(5) lists every setting, and no other" {
    local bad=0 key
    berth config sample | sed -nE 's/^#? ?([a-z_]+):.*/\1/p' | sort -u >"$BATS_TEST_TMPDIR/keys"
    sed -nE 's/^\.It Cm ([a-z_]+).*/\1/p' man/berth-config.5 | sort -u >"$BATS_TEST_TMPDIR/paged"
    [ -s "$BATS_TEST_TMPDIR/keys" ]
    diff "$BATS_TEST_TMPDIR/keys" "$BATS_TEST_TMPDIR/paged"
}

@test "the manual pages are well formed" {
    mandoc -T lint -W warning man/*.[1578]
}

@test "the examples are accepted" {
    unset BERTH_SOCKET
    export BERTH_DIR=$BATS_TEST_TMPDIR/i BERTH_LOCK_DIR=$BATS_TEST_TMPDIR XDG_CONFIG_HOME=$BATS_TEST_TMPDIR
    berth run --sim 2 --dry-run examples/jobs.txt
    berth run --sim 2 --dry-run examples/jobs-pytorch.txt
    berth submit --dry-run examples/slurm.sh | grep -q '^would start now on gpu'
    berth daemon stop --cancel || true
    rm -rf "$BERTH_DIR"
}

@test "the Python example is Python" {
    python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' examples/train.py
}

@test "every installed file belongs to a package, and every line of debian/*.install finds one" {
    local bad=0 root tree line found= path
    root=$(cd "$(dirname "$(command -v berth)")/.." && pwd)
    tree=$BATS_TEST_TMPDIR
    ln -s "$root" "$tree/usr"
    while read -r line; do
        line=${line/'${env:UNITS}'/usr/lib/systemd/system}
        # /etc/berth is created when the packages are built.
        if [ "$line" = 'etc/*' ]; then continue; fi
        line=$(cd "$tree" && shopt -s nullglob && eval "printf '%s\n' $line")
        [ -n "$line" ] && [ -e "$tree/${line%%$'\n'*}" ] || complain "nothing is installed as $line"
        found+=$line$'\n'
    done < <(cat debian/*.install)
    while read -r path; do
        line=$path
        until [ "$line" = usr ] || grep -qxF -- "$line" <<<"$found"; do line=${line%/*}; done
        [ "$line" != usr ] || complain "no package has $path"
    done < <(cd "$tree" && find -L usr -path usr/etc -prune -o -type f -print)
    [ "$bad" = 0 ]
}

@test "every document belongs to a package, and every line of debian/*.docs names one" {
    local bad=0 line found=
    while read -r line; do
        compgen -G "$line" >/dev/null || complain "there is no $line"
        found+=$(compgen -G "$line")$'\n'
    done < <(cat debian/*.docs)
    for line in docs/*.md; do
        grep -qxF "$line" <<<"$found" || complain "no package has $line"
    done
    [ "$bad" = 0 ]
}

@test "the version is the same everywhere" {
    local version
    version=$(sed -nE "s/^ *version: '([^']+)',/\1/p" meson.build)
    [ "$(berth --version)" = "berth $version" ]
    [ "$(sed -nE '1s/.*\((.*)\).*/\1/p' debian/changelog)" = "$version" ]
    grep -qE "^## (\[Unreleased\]: )?$version\b" CHANGELOG.md
}
