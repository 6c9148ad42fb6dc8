# First impressions of a machine with berthd.service.
load ../lib

@test "the unit has started, and the status line is systemd's" {
    guest 'systemctl is-active berthd'
    guest 'systemctl show -p StatusText berthd' | grep -q 'StatusText=.'
}

@test "an ordinary user's job runs as that user, and submit -W returns its exit code" {
    run as alice 'berth submit -W --gpus 0 -- "id -un >out; exit 3"'
    [ "$status" -eq 3 ]
    [ "$(guest cat /home/alice/out)" = alice ]
}

@test "a job that runs when the power fails is LOST afterwards, and one that has ended keeps its end" {
    run as alice 'berth submit -W --gpus 0 -- "exit 3"'
    [ "$status" -eq 3 ]
    as alice 'berth submit --gpus 0 -- "echo >begun; sleep 1000"'
    within 20 '[ -e /home/alice/begun ]'
    power_cut
    boot
    run as alice 'berth show 1; berth show 2'
    echo "$output"
    [[ $output == *FAILED*LOST* ]]
}
