#!/usr/bin/env bats
# The installed programs are hardened like Debian's OpenSSH: checked with readelf, so that a
# flag dropped by a compiler or a build option is noticed. Every program of Berth in bin and
# libexec counts.

load lib

# One path per line.
installed_programs()
{
    local bin file
    bin=$(dirname "$(command -v berth)")
    find "$bin"/berth* "$bin"/../libexec/berth -type f | while read -r file; do
        if readelf -h "$file" >/dev/null 2>&1; then printf '%s\n' "$file"; fi
    done
}

# Run `CHECK PROGRAM` for each installed program and name those for which it fails.
each_program()
{
    local program bad= n=0
    while read -r program; do
        n=$((n + 1))
        "$1" "$program" || bad+=" ${program##*/}"
    done < <(installed_programs)
    [ "$n" -ge 7 ] || fail_with "only $n programs are installed"
    [ -z "$bad" ] || fail_with "$1: not so for$bad"
}

# Symbols of the program; a stripped one has only those imported from libraries.
symbols()
{
    readelf -W --syms --dyn-syms "$1" | awk '{ print $8 }'
}

is_position_independent()
{
    readelf -Wh "$1" | grep -q 'Type: *DYN' && readelf -Wd "$1" | grep -q 'FLAGS_1.*PIE'
}

# The table of addresses is resolved at the start and read-only afterwards.
binds_now_and_seals()
{
    readelf -Wl "$1" | grep -q GNU_RELRO && readelf -Wd "$1" | grep -q 'FLAGS_1.*NOW'
}

has_no_writable_code()
{
    readelf -Wl "$1" | grep -q 'GNU_STACK.* RW ' && ! readelf -Wl "$1" | grep -E '^ +[A-Z_]+ ' | grep -q 'RWE' &&
        ! readelf -Wd "$1" | grep -q TEXTREL
}

# A library search path left behind by the build could be another user's folder.
has_no_search_path()
{
    ! readelf -Wd "$1" | grep -qE 'RPATH|RUNPATH'
}

# In a static, stripped program calls are not visible; it is built with the others' flags.
shows_calls()
{
    readelf -Wd "$1" | grep -q NEEDED || symbols "$1" | grep -qx main
}

# err_set, which most of them contain, keeps a list of arguments on its stack. Checks in libc
# or an archive prove nothing about our functions.
checks_its_stack()
{
    shows_calls "$1" || return 0
    if ! symbols "$1" | grep -qx err_set; then # stripped
        symbols "$1" | grep -q '^__stack_chk_fail'
        return
    fi
    objdump -d --no-show-raw-insn "$1" |
        awk '/^[0-9a-f]+ <.*>:$/ { on = /<err_set(\.cold)?>/ } on' | grep -q __stack_chk_fail
}

# The wholly static one has these functions from libc in any case; it is built with the others'
# flags.
is_fortified()
{
    ! shows_calls "$1" || symbols "$1" | grep -qE '^__[a-z]+_chk(@|$)'
}

# Our functions start with an instruction that marks a valid jump target. The note that turns
# the check on is only present if the libraries' archives have it, too.
marks_where_to_jump()
{
    local main
    main=$(readelf -W --syms "$1" | awk '$8 == "main" { print $2 }')
    # Stripped: then count over all functions, and expect many.
    if [ -z "$main" ]; then
        [ "$(objdump -d "$1" | grep -c endbr64)" -ge 20 ]
        return
    fi
    objdump -d --start-address="0x$main" --stop-address="$((0x$main + 4))" "$1" | grep -q endbr64
}

is_sanitized()
{
    symbols "$(command -v berth)" | grep -q '^__asan_init'
}

@test "every program is loaded at a random address" {
    each_program is_position_independent
}

@test "every program binds its symbols at start and has a read-only table of them" {
    each_program binds_now_and_seals
}

@test "no program has memory that is writable and executable, nor an RPATH" {
    each_program has_no_writable_code
    each_program has_no_search_path
}

@test "every program is built with stack protector" {
    each_program checks_its_stack
}

@test "every program is built with _FORTIFY_SOURCE" {
    # Sanitizers check every access, but not those inside these functions.
    if is_sanitized; then skip "a build with sanitizers"; fi
    each_program is_fortified
}

@test "every program is built with control-flow protection" {
    case $(uname -m) in
    x86_64) ;;
    *) skip "not on this machine" ;;
    esac
    each_program marks_where_to_jump
}

@test "the machine's daemon has a memory limit of its own, and its memory is not taken before others'" {
    local unit
    unit=$(dirname "$(command -v berth)")/../lib/systemd/system/berthd.service
    [ -e "$unit" ] || skip "no units are installed beside berth"
    is "limit" "$(grep -c '^MemoryMax=[1-9][0-9]*[MG]$' "$unit")" 1
    is "what the kernel ends first" "$(grep -c '^OOMScoreAdjust=-[1-9]' "$unit")" 1
}
