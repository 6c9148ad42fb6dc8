#!/usr/bin/env bats
# Shell completions, as offered by the shells themselves.

load lib

# `in_bash WORD...`: print what bash offers for the last of these words.
in_bash()
{
    bash -c 'eval "$(berth completion bash)"
COMP_WORDS=(berth "$@") COMP_CWORD=$#
_berth
printf "%s\n" "${COMPREPLY[@]}"' bash "$@" | tr '\n' ' '
}

# The same in fish.
in_fish()
{
    fish --no-config -c 'berth completion fish | source
complete -C "$argv[1]"' "$1" | cut -f1 | tr '\n' ' '
}

@test "bash completes verbs, options, words and jobs" {
    start_daemon
    berth submit -G 0 --hold -- true
    is "verbs" "$(in_bash su)" "submit "
    is "options" "$(in_bash daemon --fo)" "--follow "
    is "of submit" "$(in_bash submit --mail)" "--mail-user --mail-type "
    is "everywhere" "$(in_bash --dir /tmp events --js)" "--json "
    is "words" "$(in_bash daemon st)" "start stop status "
    is "of help" "$(in_bash help cance)" "cancel "
    is "jobs" "$(in_bash show '')" "1 "
    is "columns" "$(in_bash queue -o pri)" "priority "
    is "columns of a list" "$(in_bash history --sort id,st)" "id,state id,started "
    is "no job where a value is due" "$(in_bash cancel -g '')" " "
    is "a file" "$(in_bash simulate --no-such '')" " "
}

@test "fish completes verbs, options, words and jobs" {
    command -v fish >/dev/null || skip "there is no fish here"
    start_daemon
    berth submit -G 0 --hold -- true
    is "verbs" "$(in_fish 'berth subm')" "submit "
    is "options" "$(in_fish 'berth daemon --fo')" "--follow "
    has "words" "$(in_fish 'berth daemon sta')" "^start "
    is "jobs" "$(in_fish 'berth show ')" "1 "
    is "columns" "$(in_fish 'berth queue -o id,stat')" "id,state "
}

@test "zsh takes the script, and every option is in it" {
    command -v zsh >/dev/null || skip "there is no zsh here"
    berth completion zsh >_berth
    zsh -n _berth
    zsh -fc 'autoload -Uz compinit; compinit -u -d "$1/dump"; eval "$(cat _berth)"; print $_comps[berth]' zsh "$ROOT" >"$ROOT/out"
    is "who completes berth" "$(cat "$ROOT/out")" _berth
    for option in $(berth submit --help | grep -oE '^ +(-., )?--[a-z-]+' | grep -oE -- '--[a-z-]+'); do
        grep -q -- "$option" _berth || fail_with "$option of submit is not there"
    done
}

@test "completion for an unknown shell, or without a shell, is an error" {
    try berth completion tcsh
    is "exit status" "$status" 2
    has "words" "$err" "unknown shell 'tcsh'; use bash, zsh or fish"
    try berth completion
    is "exit status" "$status" 2
}

@test "the installed completion scripts are those that the verb prints" {
    share=$(dirname "$(command -v berth)")/../share
    cmp "$share/bash-completion/completions/berth" <(berth completion bash)
    cmp "$share/zsh/site-functions/_berth" <(berth completion zsh)
    cmp "$share/fish/vendor_completions.d/berth.fish" <(berth completion fish)
}
