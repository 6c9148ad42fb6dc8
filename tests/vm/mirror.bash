# Sourced by the scripts that fetch packages: make_disk, make_dmem_kernel.

# The mirror from which this machine itself installs packages.
mirror()
{
    local uri
    uri=$(apt-get indextargets --format '$(SITE)' 2>/dev/null |
        grep -m 1 -E '^https?://[^ ]*/debian/?$') || uri=http://deb.debian.org/debian
    printf '%s\n' "${uri%/}"
}
