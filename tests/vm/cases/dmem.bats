# VRAM limits enforced by the kernel's dmem controller: `run --dmem`, on a kernel with the
# controller and a GPU of 1 GiB that is nothing but memory (../dmem/card.c). The daemon sees it
# as an AMD GPU: its files in /sys are in a folder of the test, but the two memory figures,
# /proc and the cgroups are the kernel's.
load ../lib

case_setup()
{
    [ "$(guest 'cat /sys/fs/cgroup/dmem.capacity' || true)" = 'drm/0000:03:00.0/vram 1073741824' ] ||
        skip "the kernel has no such GPU: tests/vm/run --dmem"
    cat >"$BATS_TEST_TMPDIR/card-use" <<'END'
#!/usr/bin/python3
"""card-use MIB [FILE]: takes so much of the GPU's memory, and holds it until the file is there."""
import fcntl, os, struct, sys, time

fd = os.open("/dev/dri/renderD128", os.O_RDWR)
for had in range(0, int(sys.argv[1]), 10):
    try:
        fcntl.ioctl(fd, 0x40086201, struct.pack("Q", 10 << 20))
    except OSError as e:
        sys.exit("%s after %d MiB" % (e.strerror, had))
print("had all of it", flush=True)
while len(sys.argv) > 2 and not os.path.exists(sys.argv[2]):
    time.sleep(0.1)
END
    push "$BATS_TEST_TMPDIR/card-use" /usr/local/bin/card-use
    guest 'chmod 755 /usr/local/bin/card-use
        at=/srv/sys/bus/pci/devices/0000:03:00.0
        mkdir -p $at/drm/card0 $at/drm/renderD128 /srv/sys/class/drm/card0
        printf "DRIVER=amdgpu\nPCI_ID=1002:740F\nPCI_SLOT_NAME=0000:03:00.0\n" >$at/uevent
        echo 0 >$at/gpu_busy_percent
        ln -s /sys/class/misc/berth-card/mem_info_vram_total /sys/class/misc/berth-card/mem_info_vram_used $at
        ln -s $at /srv/sys/class/drm/card0/device
        printf "[Service]\nExecStart=\nExecStart=/usr/bin/berthd --system\n%s\n" \
            "Environment=BERTH_SYS=/srv/sys BERTH_NVML=/none BERTH_NVIDIA_SMI=/none" \
            >/etc/systemd/system/berthd.service.d/simulate.conf
        mkdir -p /etc/berth; printf "sample_ms: 200\nmargin_mib: 0\n" >/etc/berth/config.yaml
        systemctl daemon-reload; systemctl restart berthd'
    within 60 'berth gpus --json | jq -e ".gpus[0].total_mib == 1024"'
}

# `holder`: alice's job, which holds 300 MiB of 400 until /home/alice/go exists.
holder()
{
    as alice 'berth submit --vram 400M -- card-use 300 /home/alice/go'
    within 60 'berth logs 1 | grep "had all of it"'
}

holder_ends_well()
{
    within 60 'berth show 1 --json | jq -e ".jobs[0].peak_mib.\"0\" == 300"'
    as alice 'touch go; berth wait 1'
    as alice 'berth show 1' | grep COMPLETED
}

# `held_to LEAST MOST COMMAND`: bob's job fails with its own error, between these MiB.
held_to()
{
    run as bob "berth submit -W $3; status=\$?; berth logs @; exit \$status"
    echo "$output"
    [ "$status" -eq 1 ]
    [[ $output =~ 'Cannot allocate memory after '([0-9]+)' MiB' ]]
    [ "${BASH_REMATCH[1]}" -ge "$1" ]
    [ "${BASH_REMATCH[1]}" -le "$2" ]
}

@test "a job beyond its declared VRAM fails its own allocation, and its neighbour goes on" {
    holder
    held_to 200 220 '--vram 200M -- card-use 500'
    holder_ends_well
}

@test "a limit holds across a restart of the daemon, for the job that ran and for the next" {
    as alice 'berth submit --vram 200M -- "card-use 100 /home/alice/more && card-use 500"'
    within 60 'berth logs 1 | grep "had all of it"'
    guest 'systemctl restart berthd'
    held_to 300 330 '--vram 300M -- card-use 500'
    as alice 'touch more; berth wait 1' || true
    as alice 'berth logs 1' | grep -E 'Cannot allocate memory after 2[0-2]0 MiB'
}

@test "--vram-cap off limits nothing, and children in sessions of their own are held with the job" {
    as bob 'berth submit -W --vram 200M --vram-cap off -- card-use 500'
    held_to 100 110 '--vram 100M -- setsid --wait card-use 500'
    # Two processes within the limit each, but not together.
    run as bob 'berth submit -W --vram 200M -- "card-use 150 go & until berth logs @ | grep -q had; do sleep 0.2; done; card-use 150; s=\$?; touch go; exit \$s"; s=$?; berth logs @; exit $s'
    [ "$status" -eq 1 ]
    [[ $output =~ 'Cannot allocate memory after '([5-7]0)' MiB' ]]
}

@test "doctor says that the kernel enforces declared VRAM" {
    run as alice 'berth doctor'
    echo "$output"
    [[ $output == *dmem* ]]
}
