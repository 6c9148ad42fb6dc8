# Bare Debian systems in folders: debootstrap's smallest, entered with chroot. Sourced by
# tools/dist and tests/package/run, which are root. Bases are kept below build/bare.
#
#   bare_base SUITE           makes build/bare/SUITE unless it is there; prints its path
#   bare_open BASE            a copy of BASE that costs nothing to make; its path is in $bare
#   bare_run DIR SCRIPT       runs the script (sh) as root in DIR, without the caller's environment
#   bare_close DIR            removes a copy
#
# $DEBIAN_MIRROR and $DEBIAN_SECURITY_MIRROR are where packages come from.

mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
security_mirror=${DEBIAN_SECURITY_MIRROR:-http://deb.debian.org/debian-security}
bare_dir=$PWD/build/bare

bare_base()
{
    local suite=$1 dir=$bare_dir/$1
    if [ ! -e "$dir.done" ]; then
        mkdir -p "$bare_dir"
        rm -rf "$dir"
        # Mounts below $dir must not outlive it: the next attempt begins with `rm -rf`.
        unshare --mount --propagation private debootstrap --variant=minbase "$suite" "$dir" "$mirror" >"$dir.log" 2>&1 || {
            tail -5 "$dir.log" >&2
            echo "$0: debootstrap of $suite failed; all it said is in $dir.log" >&2
            return 1
        }
        {
            echo "deb $mirror $suite main"
            echo "deb $security_mirror $suite-security main"
        } >"$dir/etc/apt/sources.list"
        cat >"$dir/etc/apt/apt.conf.d/90bare" <<APT
APT::Install-Recommends "false";
Acquire::Check-Valid-Until "false";
Acquire::Languages "none";
APT
        # No service may start on this machine from in there.
        printf '#!/bin/sh\nexit 101\n' >"$dir/usr/sbin/policy-rc.d"
        chmod +x "$dir/usr/sbin/policy-rc.d"
        bare_run "$dir" 'apt-get update -q && apt-get -y -q upgrade' >>"$dir.log" 2>&1 || {
            tail -5 "$dir.log" >&2
            return 1
        }
        touch "$dir.done"
    fi
    printf '%s\n' "$dir"
}

bare_open()
{
    mkdir -p "$bare_dir"
    bare=$(mktemp -d "$bare_dir/copy.XXXXXX")
    chmod 755 "$bare"
    mkdir "$bare/upper" "$bare/work" "$bare/root"
    if ! mount -t overlay overlay -o "lowerdir=$1,upperdir=$bare/upper,workdir=$bare/work" "$bare/root" 2>/dev/null; then
        cp -a "$1/." "$bare/root/"
    fi
    bare=$bare/root
}

# In its own mount and PID namespaces: processes started there end with the script, and nothing
# has to be unmounted.
bare_run()
{
    local dir=$1 script=$2
    cp -L /etc/resolv.conf "$dir/etc/resolv.conf"
    # shellcheck disable=SC2016 # $1 and $2 are the inner shell's
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 TERM=dumb \
        DEBIAN_FRONTEND=noninteractive SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-0}" \
        unshare --mount --pid --fork --kill-child sh -ec '
            mount --rbind /dev "$1/dev"
            mount -t proc proc "$1/proc"
            exec chroot "$1" sh -ec "$2"' sh "$dir" "$script" </dev/null
}

bare_close()
{
    case $1 in
    "$bare_dir"/copy.*/root)
        if mountpoint -q "$1"; then umount -l "$1"; fi
        rm -rf "${1%/root}"
        ;;
    esac
}
