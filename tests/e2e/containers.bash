# For tests with podman itself: `load containers` after `load lib`. Images are made of this
# machine's own programs, so nothing is fetched. Storage is below $STORE, which its user can
# write.

# Print why podman cannot be used, if so.
why_no_podman()
{
    if ! command -v podman >/dev/null; then
        echo "there is no podman here"
    elif ! command -v crun >/dev/null; then
        echo "podman's --cgroups=disabled needs crun, which is not here"
    elif [ "$(id -u)" -ne 0 ]; then
        echo "only root can give the daemon the mounts that podman needs here"
    elif ! unshare -m true 2>/dev/null; then
        echo "no mount namespaces here"
    fi
}

# Start `COMMAND...` in an environment that podman accepts: crun refuses a machine with cgroups
# of both versions mounted, as in some containers and virtual machines. If CDI is set, that
# folder is mounted at /etc/cdi, or at /run/cdi in a private /run: a mount ends when another
# process removes its mount point, so tests that make and remove a folder in /etc would break
# each other's.
in_machine()
{
    unshare -m sh -eu -c '
        cdi=$1
        shift
        mount --make-rprivate /
        if [ -d /sys/fs/cgroup/unified ]; then
            umount -R /sys/fs/cgroup
            mount -t cgroup2 cgroup2 /sys/fs/cgroup
        fi
        if [ -d /etc/cdi ] && [ -n "$cdi" ]; then
            mount --bind "$cdi" /etc/cdi
        elif [ -n "$cdi" ]; then
            run=$cdi.run
            mkdir -p "$run"
            mount -t tmpfs tmpfs "$run"
            for there in /run/*; do
                here=$run/${there##*/}
                if [ -L "$there" ]; then
                    cp -P "$there" "$here"
                elif [ -d "$there" ]; then
                    mkdir "$here"
                    mount --rbind "$there" "$here"
                elif [ -e "$there" ]; then
                    : >"$here"
                    mount --bind "$there" "$here"
                fi
            done
            mkdir -p "$run/cdi"
            mount --bind "$cdi" "$run/cdi"
            mount --move "$run" /run
        fi
        exec "$@"' sh "${CDI:-}" "$@"
}

# `make_image FOLDER [RUNNER...]`: make an image localhost/small with a shell and a few
# programs, and a variable FROM=image. RUNNER: command prefix that runs podman as the user who
# imports it, from a file in FOLDER.
make_image()
{
    local root=$1/image tar=$1/image.tar program library
    shift
    mkdir -p "$root/etc" "$root/tmp" "$root/proc" "$root/dev" "$root/sys" "$root/usr/bin" "$root/run"
    ln -s usr/bin "$root/bin"
    chmod 755 "$root"
    for program in sh cat env sleep id ls grep readlink; do
        cp -L "$(type -P $program)" "$root/usr/bin/"
        ldd "$(type -P $program)" | grep -o '/[^ ]*' | while read -r library; do
            mkdir -p "$root$(dirname "$library")"
            cp -nL "$library" "$root$library"
        done
    done
    echo 'image' >"$root/etc/is-image"
    tar -C "$root" -cf "$tar" .
    chmod 644 "$tar"
    "$@" podman --cgroup-manager=cgroupfs import -c 'ENV FROM=image' -c 'ENV LANG=image' "$tar" localhost/small \
        >"$ROOT/import.out" 2>&1 || fail_with "podman import: $(cat "$ROOT/import.out")"
    rm -r "$root" "$tar"
}

# Storage in plain folders, which works on every file system.
storage_conf()
{
    printf '[storage]\ndriver = "vfs"\ngraphroot = "%s/graph"\nrootless_storage_path = "%s/graph"\nrunroot = "%s/run"\n' \
        "$1" "$1" "$1" >"$1/storage.conf"
}

# List the containers that podman still has, from its own lists: later versions keep those with
# --rm in a list of their own.
containers_left()
{
    "$E2E/containers_left.py" "$1"
}

# Wait until $STORE has this many: podman may still be removing one whose job has ended.
containers_come_to()
{
    "$AWAIT" prints "$LIMIT" "$E2E/containers_left.py $STORE" "^$1\$" ||
        fail_with "there are $(containers_left "$STORE") containers instead of $1"
}
