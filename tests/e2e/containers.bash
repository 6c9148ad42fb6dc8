# For tests with podman itself: `load containers` after `load lib`. Images are made of this machine's
# own programs, so nothing is fetched. Storage is below $STORE, which its user can write.

# Says why podman cannot be used, if so.
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

# Starts `COMMAND...` where podman finds what it needs: crun refuses a machine that has cgroups of
# both versions mounted, as some containers and virtual machines do. With CDI set, that folder is
# the machine's /etc/cdi, or /run/cdi in a /run of its own: a mount ends when anybody removes what it is mounted on,
# so tests that make and remove a folder in /etc would take it from each other.
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

# `make_image FOLDER [RUNNER...]`: an image localhost/small with a shell and a few programs in it, and
# a variable FROM=image. RUNNER: as whom podman is to import it, from a file in FOLDER.
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

# Storage in plain folders, which every file system can do.
storage_conf()
{
    printf '[storage]\ndriver = "vfs"\ngraphroot = "%s/graph"\nrootless_storage_path = "%s/graph"\nrunroot = "%s/run"\n' \
        "$1" "$1" "$1" >"$1/storage.conf"
}

# What podman still has of containers, by its own lists: later versions keep those with --rm in one of their own.
containers_left()
{
    "$E2E/containers_left.py" "$1"
}

# Until there are so many of them in $STORE: podman may yet be removing one whose job has ended.
containers_come_to()
{
    "$AWAIT" prints "$LIMIT" "$E2E/containers_left.py $STORE" "^$1\$" ||
        fail_with "there are $(containers_left "$STORE") containers instead of $1"
}
