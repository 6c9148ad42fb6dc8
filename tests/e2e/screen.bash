# A user at a terminal: tmux, whose screen is polled until it shows what it should. `load lib`,
# then `load screen`.

eval "plain_$(declare -f teardown)"

# End the terminal first: the programs in it carry the test's mark.
teardown()
{
    close_terminal
    plain_teardown
}

# Kill the programs in it first: a hang-up during a sanitizer's final leak check leaves that
# waiting for ever.
close_terminal()
{
    local shell
    for shell in $(in_tmux list-panes -a -F '#{pane_pid}' 2>/dev/null); do
        pkill -KILL -P "$shell" || true
    done
    in_tmux kill-server 2>/dev/null || true
}

# Each terminal has a tmux server of its own: the previous one may still be exiting.
terminals=0

in_tmux()
{
    tmux -S "$ROOT/tmux.$terminals" -f /dev/null "$@"
}

# `open_terminal COLUMNS ROWS [NAME=VALUE...] COMMAND`: run COMMAND as a shell would; when it
# ends, the screen stays, with `left STATUS` and whether the terminal is in cooked mode.
open_terminal()
{
    local columns=$1 rows=$2
    shift 2
    cat >"$ROOT/terminal" <<EOF
echo the line before
env ${*@Q}
echo "left \$?"
if stty -a | grep -q ' icanon'; then echo cooked; else echo raw; fi
exec cat >/dev/null
EOF
    terminals=$((terminals + 1))
    in_tmux new-session -d -x "$columns" -y "$rows" bash "$ROOT/terminal"
}

# Print the current screen; `screen -e` with its colours.
screen()
{
    in_tmux capture-pane -p "$@"
}

# Wait until a line of the screen matches this extended regular expression.
see()
{
    "$AWAIT" screen "$LIMIT" "$ROOT/tmux.$terminals" "$1" || fail_with "the screen never had '$1'; it has:
$(screen)"
}

# Wait until no line matches.
see_gone()
{
    "$AWAIT" noscreen "$LIMIT" "$ROOT/tmux.$terminals" "$1" || fail_with "the screen still has '$1':
$(screen)"
}

# Send keys by tmux's names: `press j Enter C-c`; `enter_text TEXT` types text.
press()
{
    in_tmux send-keys "$@"
}

enter_text()
{
    in_tmux send-keys -l "$1"
}
