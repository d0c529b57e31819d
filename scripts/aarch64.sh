# Shared by check and check-aarch64: the cross build for AArch64. Sourced after lib.sh.

# Targets that scripts/check --full builds, for what test/formats.py calls EMULATED.
aarch64_part=(tilus-run test_fiber)

# Succeeds when the compiler and the emulator are installed.
has_aarch64_tools() {
    command -v aarch64-linux-gnu-gcc >/dev/null && command -v qemu-aarch64 >/dev/null
}

# apt's settings for arm64, away from this system's packages.
aarch64_apt_config() {
    cat <<CONFIG
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
Dir::State "$1";
Dir::State::lists "$1/lists";
Dir::State::status "$1/status";
Dir::Cache "$1";
Dir::Cache::archives "$1/archives";
APT::Sandbox::User "";
CONFIG
}

# Downloads LLVM and what links it, with their dependencies, and of llvm-22-dev's only the
# packages whose files its CMake package looks for.
download_aarch64() {
    mkdir -p "$1"/{lists,archives}/partial
    : >"$1/status"
    aarch64_apt_config "$1" >"$1/apt.conf"
    local apt=(env -C "$1/archives" "APT_CONFIG=$1/apt.conf" apt-get)
    "${apt[@]}" update &&
        "${apt[@]}" install -y --no-install-recommends --download-only \
            libllvm22 libc6-dev libcmocka-dev libjansson-dev libsqlite3-dev &&
        "${apt[@]}" download llvm-22-dev llvm-22 llvm-22-tools llvm-22-linker-tools
}

# Links that name files from / on are made to name those of the sysroot.
extract_aarch64() {
    local package link
    mkdir "$2" || return
    for package in "$1"/archives/*.deb; do
        dpkg-deb -x "$package" "$2" || return
    done
    find "$2" -type l -lname '/*' | while read -r link; do
        ln -sfnr "$2$(readlink "$link")" "$link" || return
    done
}

# Makes build/aarch64-sysroot, once.
make_aarch64_sysroot() {
    local apt=$root/build/aarch64-apt sysroot=$root/build/aarch64-sysroot
    [ ! -d "$sysroot" ] || return 0
    say "Downloading Debian's arm64 packages (115 MB)"
    quietly "$root/build/aarch64-download.log" download_aarch64 "$apt"
    rm -rf "$sysroot.new"
    quietly "$root/build/aarch64-extract.log" extract_aarch64 "$apt" "$sysroot.new"
    mv "$sysroot.new" "$sysroot"
    rm -rf "$apt"
}

# Builds the preset aarch64, or the targets named.
build_aarch64() {
    make_aarch64_sysroot
    build_preset aarch64 "$@"
}
