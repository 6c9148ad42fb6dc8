# Sourced by the tools that compile, with the checkout as the current folder: uses a compiler
# cache if there is one, such that equal files in different checkouts share an entry. Debugging
# information from the cache may name another checkout's folder; file names are relative.

export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$PWD} CCACHE_NOHASHDIR=${CCACHE_NOHASHDIR:-1}

# The command that compiles like COMPILER, through the cache: `cached_compiler COMPILER`.
cached_compiler()
{
    if command -v ccache >/dev/null && [[ $1 != *ccache* ]]; then
        echo "ccache $1"
    else
        echo "$1"
    fi
}
