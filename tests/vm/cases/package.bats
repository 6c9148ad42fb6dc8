# Installation from the packages for the machine's release, as an administrator does it: first
# job, upgrade with running jobs, removal, purge. The packages are those of tools/dist, in
# build/dist.
load ../lib

case_setup()
{
    local deb debs number=12
    if [ "$VM_RELEASE" = trixie ]; then number=13; fi
    debs=("$BERTH_SOURCE"/build/dist/berth*+deb"${number}"_*.deb)
    [ -e "${debs[0]}" ] || skip "there are no packages: tools/dist debs makes them"
    forget_the_build
    for deb in "${debs[@]}"; do
        case $deb in *-dbgsym_*) continue ;; esac
        push "$deb" "/root/$(basename "$deb" | sed 's/_.*//').deb"
    done
    guest 'inventory() {
            find / -xdev \( -path /proc -o -path /tmp -o -path /root -o -path /var/lib/dpkg -o -path /var/lib/apt \
                -o -path /var/cache -o -path /var/log -o -path /var/lib/systemd \) -prune -o -print |
                grep -vE "^/(etc/(passwd|group|shadow|gshadow|subuid|subgid)-|etc/ld.so.cache)" | sort
            ls /run /run/lock /sys/fs/cgroup /sys/fs/cgroup/system.slice | grep -i berth || true
            grep -hoE "^[^:]+" /etc/passwd /etc/group /etc/shadow /etc/gshadow; }
        declare -f inventory >/root/inventory; inventory >/root/before'
}

# Remove what the test installed below /usr without a package.
forget_the_build()
{
    guest 'systemctl disable -q --now berthd berth-web; systemctl stop -q "berth-jobs@*" berth.slice
        rm -rf /usr/bin/berth* /usr/libexec/berth /usr/lib/systemd/*/berth* /usr/lib/systemd/*/mgpu_* \
            /usr/lib/sysusers.d/berth* /usr/lib/tmpfiles.d/berth* /etc/systemd/system/berthd.service.d \
            /etc/pam.d/berth /usr/etc /etc/berth /var/lib/berth /run/berth /run/lock/berth-gpu-*
        find /usr/share -name "*berth*" -not -path "*/doc/*" -delete
        for user in berth-web berth-hook; do userdel $user; done; groupdel berth-admin
        systemctl daemon-reload; systemctl reset-failed; true' >/dev/null 2>&1 || true
}

apt() { guest "DEBIAN_FRONTEND=noninteractive apt-get -q -y $*"; }

# The machine has no GPU; the packages' unit is unchanged.
simulate()
{
    guest 'mkdir -p /etc/systemd/system/berthd.service.d
        printf "[Service]\nExecStart=\nExecStart=/usr/bin/berthd --system --sim 2\n" \
            >/etc/systemd/system/berthd.service.d/simulate.conf
        systemctl daemon-reload; systemctl restart berthd'
}

# The same package under a lower version.
install_older()
{
    guest 'set -e; cd /root; dpkg-deb -R berth.deb older; sed -i "s/^Version: .*/Version: 0.1.9/" older/DEBIAN/control
        dpkg-deb --root-owner-group -b older older.deb; rm -r older'
    apt install /root/older.deb
    simulate
}

# A job that runs until a word comes through its pipe, and ends with status 5; its id is 1.
start_long_job()
{
    as alice "mkfifo gate; berth submit --vram 1G $* -- 'echo \$\$ >pid; read x <gate; exit 5'"
    within 30 'test -s /home/alice/pid'
}

# The kernel still limits the long job.
has_its_limit() { guest 'cat /sys/fs/cgroup{,/memory}/berth.slice/*/*/job-1.1/memory.{max,limit_in_bytes} 2>/dev/null | grep -x 104857600'; }

# None of these exists: `none_of PATTERN...`.
none_of() { guest "for path in $*; do if [ -e \"\$path\" ]; then echo \"\$path is left\"; exit 1; fi; done"; }

let_it_end() { guest 'timeout 20 sh -c "echo >/home/alice/gate"'; }

# The machine has no driver either, so the first job waits.
@test "right after apt install a user sees what is missing, and that the job waits for it" {
    apt install /root/berth.deb
    guest 'systemctl is-enabled berthd; grep -E "^account +include +common-account$" /etc/pam.d/berth'
    as alice 'berth submit -- true 2>&1' | grep 'no GPU can be read now.*Install or repair the NVIDIA driver.*the job waits'
    simulate
    as alice 'berth wait 1'
}

@test "the page and the front ends are installed, and run" {
    apt install /root/berth.deb /root/berth-web.deb /root/berth-compat.deb
    simulate
    guest 'systemctl is-active berthd berth-web'
    within 20 'exec 3<>/dev/tcp/127.0.0.1/7461; printf "GET /api/v1/status HTTP/1.0\r\nHost: localhost\r\n\r\n" >&3; grep -q version <&3'
    as alice 'gpusched --help >/dev/null; /usr/lib/berth/compat/scheduler.py --help >/dev/null'
    [ "$(guest 'systemctl is-enabled mgpu_scheduler_server || true')" = disabled ]
    run as alice 'PATH=/usr/lib/berth/slurm:$PATH
        sbatch --wait --gres=gpu:1 -o out --wrap "sbatch --version; srun -n 2 echo task" >/dev/null; cat out'
    grep -q 'slurm-wlm .* (berth ' <<<"$output"
    [ "$(grep -cx task <<<"$output")" -eq 2 ]
    guest 'mkdir /root/image; cp /usr/libexec/berth/berth-init /root/image/; chroot /root/image /berth-init 2>&1 | grep berth-init:'
}

@test "an upgrade with running jobs loses nothing, and the jobs go on" {
    local daemon job
    install_older
    start_long_job --mem 100M
    as alice 'berth submit --gpus 2 -- "echo ran >waited"'
    daemon=$(guest systemctl show -p MainPID --value berthd)
    job=$(guest cat /home/alice/pid)
    apt install /root/berth.deb
    within 30 'systemctl is-active berthd'
    [ "$(guest systemctl show -p MainPID --value berthd)" != "$daemon" ]
    guest "kill -0 $job"
    as alice 'berth queue --all --json' | grep -q '"RUNNING"'
    has_its_limit
    install_limits
    as alice 'limits-hold memory cpus processes'
    # The long job still has the programs of before, for which needrestart would restart its unit.
    guest 'set -e; mv /etc/needrestart/conf.d/berth.conf /root; needrestart -b -r l | grep "NEEDRESTART-SVC: berth-jobs@"
        mv /root/berth.conf /etc/needrestart/conf.d'
    guest 'needrestart -r a -l </dev/null'
    guest "kill -0 $job"
    has_its_limit
    let_it_end
    run as alice 'berth wait 1'
    [ "$status" -eq 5 ]
    as alice 'berth wait 2; cat waited' | grep -qx ran
    as alice 'limits-hold devices' # needs a free GPU
}

@test "removal leaves running jobs and the queue, and a later installation finds them" {
    local job
    apt install /root/berth.deb
    simulate
    start_long_job
    job=$(guest cat /home/alice/pid)
    apt remove berth
    guest "! command -v berth"
    guest "kill -0 $job"
    let_it_end
    within 20 "! kill -0 $job 2>/dev/null"
    apt install /root/berth.deb
    run as alice 'berth wait 1'
    [ "$status" -eq 5 ]
}

@test "purging ends the jobs and leaves no file, account, group or process" {
    local job
    apt install /root/berth.deb /root/berth-web.deb /root/berth-compat.deb
    simulate
    start_long_job
    job=$(guest cat /home/alice/pid)
    guest 'systemctl set-property berth.slice MemoryMax=90%'
    # A user's folder for MPS, in use.
    guest 'mkdir -p /run/berth/mps/1000; mount -t tmpfs mps /run/berth/mps/1000; cd /run/berth/mps/1000
        systemd-run -q --unit user-of-mps --working-directory /run/berth/mps/1000 sleep 1000'
    guest rm -r /etc/systemd/system/berthd.service.d
    apt purge berth berth-web berth-compat
    guest "! kill -0 $job 2>/dev/null"
    guest '! pgrep -a berth'
    guest '! pgrep -a mgpu'
    none_of /sys/fs/cgroup/berth.slice '/sys/fs/cgroup/*/berth.slice' '/sys/fs/cgroup/system.slice/berth*'
    guest '! grep -E "^berth-(web|hook|admin):" /etc/passwd /etc/group'
    guest 'systemctl stop user-of-mps'
    # Only additions count: what is missing now was made by the test bed, and dpkg removed it
    # with its folder.
    guest 'rm /home/alice/gate /home/alice/pid; . /root/inventory; inventory >/root/after
        ! diff /root/before /root/after | grep "^>"'
}

@test "purging ends the jobs and the daemon even if a policy refuses to stop services" {
    local job
    apt install /root/berth.deb
    simulate
    start_long_job
    job=$(guest cat /home/alice/pid)
    # The administrator's copy of the unit is no other installation.
    guest 'rm -r /etc/systemd/system/berthd.service.d; cp /lib/systemd/system/berthd.service /etc/systemd/system; systemctl daemon-reload
        printf "#!/bin/sh\nexit 101\n" >/usr/sbin/policy-rc.d; chmod 755 /usr/sbin/policy-rc.d'
    apt purge berth
    guest "! kill -0 $job 2>/dev/null"
    guest '! pgrep -a berth'
    none_of /var/lib/berth /run/berth /etc/berth /sys/fs/cgroup/berth.slice
}

@test "purging a removed package leaves what belongs to an installation from source since" {
    apt install /root/berth.deb
    guest 'echo "max_running: 3" >/etc/berth/config.yaml'
    apt remove berth
    guest 'mkdir -p /usr/local/lib/systemd/system
        printf "[Service]\nExecStart=/bin/false\n[Install]\nWantedBy=multi-user.target\n" >/usr/local/lib/systemd/system/berthd.service
        systemctl daemon-reload; systemctl enable berthd'
    apt purge berth 2>&1 | grep 'from another installation: its jobs, state and settings stay'
    guest 'set -e; ls /var/lib/berth/state/*.db; grep max_running /etc/berth/config.yaml; getent passwd berth-hook; systemctl is-enabled berthd'
}
