#!/usr/bin/env bash
# Builds the peers beside which `dacapo eval` measures, and says why of what cannot be built.
# `make eval-peers` calls it.
#
# Needs: Rust and a C compiler. On Debian it installs libsrt, libzmq, ISA-L and iperf3 when it is root (or
# sudo asks for nothing). Aeron needs a JDK and Maven, which are used when they are there, not
# installed. A peer that cannot be had leaves PROGRAMS/NAME.why, and is a row that says so.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
PATH="$PATH:${CARGO_HOME:-${HOME:-}/.cargo}/bin"

readonly here=eval/peers
readonly target="${PEERS_TARGET_DIR:-$PWD/$here/target}"
readonly programs="$target/release"
readonly before=b8cfde3
readonly aeron_version=1.51.0

say() {
    printf 'eval-peers: %s\n' "$1" >&2
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
    if pkg-config --exists srt libzmq libisal 2>/dev/null && has iperf3 || ! has apt-get; then
        return 0
    fi
    if [ "$(id -u)" != 0 ]; then
        sudo -n true 2>/dev/null || return 0
        admin=sudo
    fi
    say "installing libsrt-openssl-dev libzmq3-dev libisal-dev pkg-config iperf3"
    $admin apt-get update -qq >/dev/null || return 0
    $admin env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        libsrt-openssl-dev libzmq3-dev libisal-dev pkg-config iperf3 >/dev/null || return 0
}

# in_c NAME SOURCE LIBRARY HEADER: a peer in C, if the library is there.
in_c() {
    if ! has cc; then
        missing "$1" "there is no C compiler"
    elif ! printf '#include <%s>\n' "$4" | cc -x c -fsyntax-only - >/dev/null 2>&1; then
        missing "$1" "<$4> is missing: on Debian install libsrt-openssl-dev libzmq3-dev libisal-dev"
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

# The command of before the redesign of the core's parts.
before() {
    local name=peer-before
    say "building the command of $before"
    attempt $name scripts/build-old.sh "$before" || return 0
    ln -sf "$(tail -n 1 "$target/$name.log")" "$programs/$name"
}

build() {
    mkdir -p "$programs"
    libraries
    say "building the controls"
    cargo build -q --release --locked --manifest-path "$here/Cargo.toml" --target-dir "$target" \
        --bin peer-plain
    in_c peer-srt srt.c srt srt/srt.h
    in_c peer-zmq zmq.c zmq zmq.h
    in_c peer-isal isal.c isal isa-l/erasure_code.h
    aeron
    in_rust peer-flows flows
    in_rust peer-iceoryx iceoryx
    in_rust peer-uring uring
    in_rust peer-xdp xdp
    in_rust peer-quinn quinn
    in_rust peer-zenoh zenoh
    before
}

advise() {
    local most set="sysctl -w net.core.rmem_max=4194304 net.core.wmem_max=4194304"
    most=$(cat /proc/sys/net/core/rmem_max)
    if [ "$most" -lt 4194304 ]; then
        say "socket buffers are bounded to $most bytes, usual are 4 MiB: $set"
    fi
}

build
advise
