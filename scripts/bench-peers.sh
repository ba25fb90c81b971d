#!/usr/bin/env bash
# The peers beside which dacapo is measured: builds what can be built, says why of what cannot, and
# runs the harness from the root of the checkout. `make bench-peers` calls it.
#
#   scripts/bench-peers.sh [OPTIONS OF THE HARNESS]      --help shows them
#   scripts/bench-peers.sh build                         builds only
#
# Needs: Rust and a C compiler. On Debian it installs libsrt and libzmq when it is root (or sudo asks
# for nothing). Aeron needs a JDK and Maven, which are used when they are there, not installed. A peer
# that cannot be had leaves PROGRAMS/NAME.why, and is a row of the table that says so.
# DACAPO=PATH measures that command instead of building target/release/dacapo. Its `bench` is the
# dacapo-eval beside it; older ones have it built in.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
PATH="$PATH:${CARGO_HOME:-${HOME:-}/.cargo}/bin"

readonly here=bench/peers
readonly target="${PEERS_TARGET_DIR:-$PWD/$here/target}"
readonly programs="$target/release"
readonly aeron_version=1.51.0

say() {
    printf 'bench-peers: %s\n' "$1" >&2
}

has() {
    command -v "$1" >/dev/null 2>&1
}

# missing NAME WHY: notes why a peer is not there.
missing() {
    say "$1 is not there: $2"
    rm -f "$programs/$1"
    printf '%s\n' "$2" >"$programs/$1.why"
}

# last_line FILE: what a failed build said, in a line.
last_line() {
    grep -m 1 -E '(^|[ :])error' "$1" || tail -n 1 "$1"
}

# attempt NAME COMMAND...: runs it with its output in a file; true, or notes why it failed.
attempt() {
    local name=$1 log
    shift
    log="$target/$name.log"
    if "$@" >"$log" 2>&1; then
        rm -f "$programs/$name.why"
    else
        missing "$name" "$(last_line "$log")"
        return 1
    fi
}

libraries() {
    local admin=""
    if pkg-config --exists srt libzmq 2>/dev/null || ! has apt-get; then
        return 0
    fi
    if [ "$(id -u)" != 0 ]; then
        sudo -n true 2>/dev/null || return 0
        admin=sudo
    fi
    say "installing libsrt-openssl-dev libzmq3-dev pkg-config"
    $admin apt-get update -qq >/dev/null || return 0
    $admin env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        libsrt-openssl-dev libzmq3-dev pkg-config >/dev/null || return 0
}

# in_c NAME SOURCE LIBRARY HEADER: a peer in C, if the library is there.
in_c() {
    if ! has cc; then
        missing "$1" "there is no C compiler"
    elif ! printf '#include <%s>\n' "$4" | cc -x c -fsyntax-only - >/dev/null 2>&1; then
        missing "$1" "<$4> is missing: on Debian install libsrt-openssl-dev and libzmq3-dev"
    else
        attempt "$1" cc -O2 -Wall -Wextra -o "$programs/$1" "$here/c/$2" "-l$3" || true
    fi
}

in_rust() {
    say "building $1"
    attempt "$1" cargo build --release --locked --manifest-path "$here/Cargo.toml" \
        --target-dir "$target" --features "$2" --bin "$1" || true
}

aeron() {
    local name=peer-aeron lib="$target/aeron" jar
    jar="$lib/aeron-all-$aeron_version.jar"
    if ! has javac || ! has java; then
        missing $name "there is no JDK (javac)"
        return 0
    fi
    if [ ! -f "$jar" ]; then
        if ! has mvn; then
            missing $name "there is no Maven to fetch io.aeron:aeron-all:$aeron_version"
            return 0
        fi
        attempt $name mvn -q -B -f "$here/java/pom.xml" dependency:copy-dependencies \
            "-Daeron.version=$aeron_version" "-DoutputDirectory=$lib" || return 0
    fi
    attempt $name javac -cp "$jar" -d "$lib/classes" "$here/java/Peer.java" || return 0
    cat >"$programs/$name" <<END
#!/bin/sh
exec java -XX:+UseParallelGC -Dagrona.disable.bounds.checks=true \\
    --add-opens java.base/sun.nio.ch=ALL-UNNAMED \\
    --add-opens java.base/jdk.internal.misc=ALL-UNNAMED \\
    -cp "$jar:$lib/classes" Peer "\$@"
END
    chmod +x "$programs/$name"
}

build() {
    mkdir -p "$programs"
    libraries
    say "building the harness and the controls"
    cargo build -q --release --locked --manifest-path "$here/Cargo.toml" --target-dir "$target" \
        --bin peers --bin peer-plain
    in_c peer-srt srt.c srt srt/srt.h
    in_c peer-zmq zmq.c zmq zmq.h
    aeron
    in_rust peer-uring uring
    in_rust peer-xdp xdp
    in_rust peer-quinn quinn
    in_rust peer-zenoh zenoh
    if [ -z "${DACAPO:-}" ]; then
        say "building dacapo"
        cargo build -q --release --locked -p dacapo-cli -p dacapo-eval
    fi
}

advise() {
    local most set="sysctl -w net.core.rmem_max=4194304 net.core.wmem_max=4194304"
    most=$(cat /proc/sys/net/core/rmem_max)
    if [ "$most" -lt 4194304 ]; then
        say "socket buffers are bounded to $most bytes, usual are 4 MiB: $set"
    fi
}

case "${1:-}" in
--help | -h | --list)
    mkdir -p "$programs"
    cargo build -q --release --locked --manifest-path "$here/Cargo.toml" --target-dir "$target" \
        --bin peers
    exec "$programs/peers" "$@"
    ;;
build)
    build
    ;;
*)
    build
    advise
    exec "$programs/peers" --dacapo "${DACAPO:-${CARGO_TARGET_DIR:-target}/release/dacapo}" "$@"
    ;;
esac
