#!/usr/bin/env bash
# What a target needs beyond this checkout: checks for it and, on Debian, installs what is missing.
# Says nothing when there is nothing to do.
#
#   scripts/setup.sh build   Rust and a C compiler (aws-lc-sys, the cryptography, is C)
#   scripts/setup.sh demo    the same
#   scripts/setup.sh test    also make, rustfmt and clippy, ffmpeg (the judge of our media files)
#                            valgrind (counts instructions) and tshark (the judge of XTP packets);
#                            for root on Debian perf (counts system calls)
#   scripts/setup.sh night   also cargo-mutants, which cargo builds
#   scripts/setup.sh check   what `test` needs; installs nothing, only says what is missing
set -euo pipefail

readonly rust_min=1.95
readonly target="${1:-}"

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# rustup's folder; a shell that was open during the installation does not have it yet.
PATH="$PATH:${CARGO_HOME:-${HOME:-}/.cargo}/bin"

stop() {
    printf 'setup: %s\n' "$1" >&2
    exit 1
}

has() {
    command -v "$1" >/dev/null 2>&1
}

is_debian() {
    grep -qx 'ID=debian' /etc/os-release 2>/dev/null
}

# A compiler without the headers of the C library is no use, so try one.
compiles_c() {
    has cc && printf '#include <stdlib.h>\n' | cc -x c -fsyntax-only - >/dev/null 2>&1
}

check_rust() {
    local version
    has cargo || stop "cargo is missing: install Rust $rust_min or newer with rustup (see the Rust site), then run make again"
    # In this folder rustup fetches the toolchain that rust-toolchain.toml names, if need be.
    version=$(cargo --version | cut -d' ' -f2) ||
        stop "cargo does not start: install Rust $rust_min or newer with rustup (see the Rust site), then run make again"
    if [ "$(printf '%s\n' "$rust_min" "$version" | sort -V | head -n 1)" != "$rust_min" ]; then
        stop "Rust is $version: install Rust $rust_min or newer with rustup (see the Rust site), then run make again"
    fi
}

check_rust_tools() {
    cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1 ||
        stop "rustfmt or clippy is missing: run \`rustup component add rustfmt clippy\`, then run make again"
}

# Prints the words that make apt-get an administrator; fails where there is no way.
as_admin() {
    if [ "$(id -u)" = 0 ]; then
        echo env
    elif has sudo && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
        echo sudo
    else
        return 1
    fi
}

install() {
    local admin
    [ $# -gt 0 ] || return 0
    has apt-get || stop "missing: $*. Install it with the package manager of your system, then run make again"
    local by_hand="run \`sudo apt-get update && sudo apt-get install --no-install-recommends $*\`, then run make again"
    [ "$target" != check ] || stop "missing: $*; $by_hand"
    admin=$(as_admin) || stop "missing: $*; $by_hand"
    echo "setup: installing $*"
    {
        $admin apt-get update -qq &&
            $admin env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
    } || stop "apt-get could not install $*; $by_hand"
}

missing=()
case "$target" in
build | demo)
    check_rust
    ;;
test | check | night)
    check_rust
    check_rust_tools
    has make || missing+=(make)
    has ffmpeg && has ffprobe || missing+=(ffmpeg)
    has valgrind || missing+=(valgrind)
    has tshark || missing+=(tshark)
    # What it counts by is root's, and elsewhere it has other names: there a test is left out.
    has perf || ! is_debian || [ "$(id -u)" != 0 ] || missing+=(linux-perf)
    ;;
*)
    stop "usage: scripts/setup.sh build|demo|test|night|check"
    ;;
esac
compiles_c || missing+=(gcc libc6-dev)
install ${missing[@]+"${missing[@]}"}
if [ "$target" = night ] && ! cargo mutants --version >/dev/null 2>&1; then
    echo "setup: building cargo-mutants"
    cargo install cargo-mutants --version 27.1.0 --locked --quiet ||
        stop "cargo could not install cargo-mutants; run \`cargo install cargo-mutants --version 27.1.0 --locked\`, then run make again"
fi
