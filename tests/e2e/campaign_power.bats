# The power campaign (tests/campaign/power.py), bounded: one cut on each file system, and a
# disk that ignores flushes, which must be detected. The whole is `tests/campaign/power.py
# --bin build/gcc/root/bin --cuts 100`.
load lib

power()
{
    run timeout 1000 "$BERTH_SOURCE/tests/campaign/power.py" --bin "$(dirname "$(command -v berthd)")" "$@"
    echo "$output"
    if [ "$status" -eq 77 ]; then skip "${output#skipped: }"; fi
}

@test "power cuts on ext4 with and without a journal, xfs, btrfs and a full disk lose nothing that was acknowledged" {
    power --cuts 5
    [ "$status" -eq 0 ]
}

@test "the power campaign notices a disk that flushes nothing" {
    power --cuts 5 --fs ext4 --lying
    [ "$status" -eq 1 ]
    # The effect of ignored flushes depends on what was lost: a job, a row, the file system's
    # own tables. Each is reported as a failure; the disk itself must have been mounted.
    [[ $output == *'FAILED on ext4, seed '* ]]
    [[ $output != *'the lossy disk did not start'* ]]
}
