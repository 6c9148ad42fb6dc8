# Power cuts of a whole machine under submissions and ends. The campaign over file systems is
# tests/campaign/power.py; here the kernel loses its memory too, and systemd starts the daemon.
load ../lib

# With the one in base.bats that makes five.
CUTS=${VM_CUTS:-4}

# Submit jobs one after the other, recording what the client was told of each, until the power
# goes.
submit_for_ever()
{
    as alice 'while :; do
        id=$(berth submit --gpus 0 -- "echo \$BERTH_JOB_ID >>ran; sync ran; exit 3" | grep -o "[0-9]*") || exit
        echo "acknowledged $id"
        berth wait -q $id
        echo "ended $id $?"
    done'
}

# Wait until at least N ends were reported in total.
await_ends()
{
    until [ "$(grep -c '^ended' "$BATS_TEST_TMPDIR/told")" -ge "$1" ]; do
        kill -0 "$client" || return 1
        sleep 0.1
    done
}

@test "everything acknowledged holds after each power cut, and nothing runs twice" {
    told=$BATS_TEST_TMPDIR/told
    touch "$told"
    for ((i = 1; i <= CUTS; i++)); do
        submit_for_ever >>"$told" 2>/dev/null 3>&- &
        client=$!
        await_ends $((2 * i))
        power_cut
        wait "$client" || true
        boot
        as alice 'berth show 1-99999 --json' >"$BATS_TEST_TMPDIR/jobs"
        while read -r what id status; do
            echo "$what $id $status"
            jq -e --argjson id "$id" '.jobs[] | select(.id == $id)' "$BATS_TEST_TMPDIR/jobs" >/dev/null
            if [ "$what" = ended ]; then
                jq -e --argjson id "$id" --argjson status "$status" \
                    '.jobs[] | select(.id == $id) | .state == "FAILED" and .exit_status == $status and $status == 3' "$BATS_TEST_TMPDIR/jobs"
            fi
        done <"$told"
        within 30 '[ "$(berth queue --json | jq ".jobs | length")" = 0 ]'
        guest '[ -z "$(sort /home/alice/ran | uniq -d)" ]'
    done
}
