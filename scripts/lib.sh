# Shared by the scripts here: the checkout's root, and building. Sourced by bash, from any
# directory.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
jobs=$(nproc)

say() { printf '%s\n' "$*"; }

die() {
    printf '%s: error: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

# Runs a command with its output in a log, which is shown if the command fails.
quietly() {
    local log=$1
    shift
    mkdir -p "$(dirname "$log")"
    if ! "$@" >"$log" 2>&1; then
        tail -n 60 "$log" >&2
        die "failed: $* (all output: $log)"
    fi
}

# Configures (the first time, or when TILUS_WERROR changed) and builds a preset; further
# arguments are targets. On a terminal the build shows its progress.
build_preset() {
    local preset=$1 dir=$root/build/$1 werror=${TILUS_WERROR:-OFF}
    shift
    if ! grep -qs "^TILUS_WERROR:BOOL=$werror\$" "$dir/CMakeCache.txt" ||
       [ ! -f "$dir/build.ninja" ]; then
        say "Configuring the $preset build"
        (cd "$root" && quietly "$dir/configure.log" \
            cmake --preset "$preset" "-DTILUS_WERROR:BOOL=$werror")
    fi
    say "Building the $preset build"
    local build=(cmake --build "$dir" --parallel "$jobs" ${1:+--target "$@"})
    if [ -t 1 ]; then
        "${build[@]}" || die "failed: ${build[*]}"
    else
        quietly "$dir/build.log" "${build[@]}"
    fi
}

# Programs of the static preset, stripped, in one archive: pack_programs ARCHIVE NAME...
# A wide window, as they share LLVM's code.
pack_programs() {
    local archive=$1 stripped=$root/build/static/stripped name
    shift
    rm -rf "$stripped"
    mkdir -p "$stripped" "$(dirname "$archive")"
    for name in "$@"; do
        strip -o "$stripped/$name" "$root/build/static/bin/$name"
    done
    tar -C "$stripped" -cf - "$@" | xz --lzma2=preset=3,dict=64MiB >"$archive"
}

# Succeeds when the fuzz preset can be built.
has_libfuzzer() {
    [ -x /usr/lib/llvm-22/bin/clang ] &&
        compgen -G '/usr/lib/llvm-22/lib/clang/22/lib/*/libclang_rt.fuzzer*.a' >/dev/null
}
