# Sourced by the tools that compile, with the checkout as the current folder: a compiler cache, where there is one, that
# knows the same file in another checkout as the same. What the cache has then names that one's folder in its debugging
# information; names of files are relative.

export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$PWD} CCACHE_NOHASHDIR=${CCACHE_NOHASHDIR:-1}

# The command that compiles as COMPILER does: `cached_compiler COMPILER`.
cached_compiler()
{
    if command -v ccache >/dev/null && [[ $1 != *ccache* ]]; then
        echo "ccache $1"
    else
        echo "$1"
    fi
}
