#!/usr/bin/env bats
# Of the machine's daemon a job can open the devices of its own cards and of no others. The
# nodes are made here, with the numbers of NVIDIA's cards: the filter looks at numbers. Where a
# card is there the open succeeds, where none is it fails with another error than the filter's.

load lib
load users

make_nodes()
{
    NODES=$ROOT/nodes
    mkdir "$NODES"
    local n
    for n in 0 1 254 255; do
        mknod -m 666 "$NODES/nvidia$n" c 195 "$n" || skip "device nodes cannot be made here"
    done
    # On a file system for which devices are off nothing can be learned.
    python3 -c 'import errno, sys
try: open(sys.argv[1], "rb")
except OSError as e: sys.exit(e.errno == errno.EACCES)' "$NODES/nvidia0" || skip "devices are off on $NODES"
}

# What it tells of each node: open, or the error.
LOOK='import errno, os, sys
for n in 0, 1, 254, 255:
    try:
        os.open("%s/nvidia%d" % (sys.argv[1], n), os.O_RDWR)
        word = "open"
    except OSError as e:
        word = errno.errorcode[e.errno]
    print(n, "refused" if word == "EPERM" else "let through")
print(open("/dev/null", "w").write("x"), os.environ["CUDA_VISIBLE_DEVICES"])'

start_filtering()
{
    start_system "$@"
    if [ "$(berth status --json | json daemon.device_filter)" = false ]; then
        grep no-device-filter "$BERTH_DIR/daemon.log" || true
        skip "no device filter can be had here"
    fi
    make_nodes
}

# `job_sees OPTIONS`: what a job of alice's says of the nodes.
job_sees()
{
    as "$ALICE" berth submit --wait "$@" -- python3 -c "$LOOK" "$NODES" >/dev/null
    as "$ALICE" berth logs @
}

@test "a job can open its own GPU, no other one, and the devices that all GPUs share" {
    start_filtering
    uuid0=$(berth gpus --json | json gpus.0.uuid)
    uuid1=$(berth gpus --json | json gpus.1.uuid)
    is "a job on card 0" "$(job_sees --gpu-ids 0)" "0 let through
1 refused
254 let through
255 let through
1 $uuid0"
    is "a job on card 1" "$(job_sees --gpu-ids 1)" "0 refused
1 let through
254 let through
255 let through
1 $uuid1"
    has "a job on both" "$(job_sees -G 2)" "0 let through
1 let through"
    has "a job on none" "$(job_sees -G 0)" "0 refused
1 refused"
    is "a job of root's" "$(berth submit --wait -G 0 -- python3 -c "$LOOK" "$NODES" >/dev/null; berth logs @ | head -1)" "0 refused"
}

@test "the filter can be turned off, and doctor says so" {
    start_system --set device_filter=off
    make_nodes
    has "a job on none" "$(job_sees -G 0)" "0 let through
1 let through"
    has "doctor" "$(berth doctor || true)" " devices .*device_filter: on"
}
