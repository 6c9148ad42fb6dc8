# A person before a terminal: tmux, whose screen is looked at until it shows what it should.
# `load lib`, then `load screen`.

eval "plain_$(declare -f teardown)"

# The terminal ends first: what runs in it has the test's mark.
teardown()
{
    close_terminal
    plain_teardown
}

# What runs in it is killed first: a hang-up in the middle of a sanitizer's last look at the memory
# leaves that waiting for ever.
close_terminal()
{
    local shell
    for shell in $(in_tmux list-panes -a -F '#{pane_pid}' 2>/dev/null); do
        pkill -KILL -P "$shell" || true
    done
    in_tmux kill-server 2>/dev/null || true
}

# Each terminal has a server of its own: the one before may still be leaving.
terminals=0

in_tmux()
{
    tmux -S "$ROOT/tmux.$terminals" -f /dev/null "$@"
}

# `open_terminal COLUMNS ROWS [NAME=VALUE...] COMMAND`: runs COMMAND as a shell's; when it ends, the
# screen says `left STATUS` and whether the terminal is cooked, and stays.
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

# What the screen shows now; `screen -e` with its colours.
screen()
{
    in_tmux capture-pane -p "$@"
}

# Until the screen has a line like this extended regular expression.
see()
{
    "$AWAIT" screen "$LIMIT" "$ROOT/tmux.$terminals" "$1" || fail_with "the screen never had '$1'; it has:
$(screen)"
}

# Until it has none.
see_gone()
{
    "$AWAIT" noscreen "$LIMIT" "$ROOT/tmux.$terminals" "$1" || fail_with "the screen still has '$1':
$(screen)"
}

# Keys as tmux names them: `press j Enter C-c`; `enter_text TEXT` types it.
press()
{
    in_tmux send-keys "$@"
}

enter_text()
{
    in_tmux send-keys -l "$1"
}
